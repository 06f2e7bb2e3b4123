"""A model seen from a batch of people: rows of numbers in, outputs of each row out, whatever it takes and gives."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.first_layer import Split, agreed, moved, moved_with, split, split_named
from evenhand.search.mode import (
    beside,
    constant,
    eval_mode,
    gradients_allowed,
    hidden_from,
    leaves_of,
    modules_in,
    on_ordinary_path,
    still,
    twin,
    weights_in,
)
from evenhand.search.paths import Path, PlainPath, ReLUPath, SplitPath
from evenhand.search.precision import Autocast, at_least_float32
from evenhand.search.walks import NormedWalk, walk_along
from evenhand.search.worst_cases import Gain, Model, WorstCases

Inputs = Any  # a tensor (n, ...), or a dict or tuple of what the model is called with
Output = Callable[[Any], Tensor]  # from what the model returns to the tensor that is judged

_seen: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()  # what was checked of models, see ``_check_rows``


class ModelView:
    """What the search and the training step both need to know of a model at x, computed once.

    ``x`` are the people as rows, (n, d): an image, a sequence or a feature map is flattened, and half precision becomes
    float32. ``view(x_other)`` gives the outputs of such rows, (n, K) or (n, T, K), always in eval mode and under the
    caller's autocast; the model itself is not touched. ``h_x()`` and ``h_worst(found)`` are the outputs at x and at the
    worst cases, with gradients for the parameters, and for x where it has been computed from something.

    vary: which of several inputs moves, its name in a dict or its place in a tuple; the others stay as they are.
    at: the name of a layer whose output moves, in the place of an input.
    output: what is judged of the model's return value, by default the tensor itself or its ``logits``.
    first_layer: the name of the first linear layer, where it cannot be found by itself (see search/first_layer.py).
    """

    def __init__(
        self,
        model: Callable[..., Any],
        x: Inputs,
        *,
        vary: str | int | None = None,
        at: str | None = None,
        output: Output | None = None,
        first_layer: str | None = None,
    ) -> None:
        _refuse_transforms()
        if not callable(model):
            raise TypeError(
                f"the model must be a module or a function of x, and what it gives is computed here; got "
                f"{type(model).__name__}"
            )
        self.given: Tensor
        self.call: Callable[[Tensor], Any]
        self.autocast: Autocast
        self.tapped: _Tapped | None
        self.output, self.modules, self.weights = output, modules_in(model), weights_in(model)
        self.known_as = self.modules[0] if self.modules else _code_of(model)  # which tells it from other models
        self.versions = {id(weight): weight._version for weight in self.weights}
        self.way, self.inputs = _way(x, vary, at, output), _tensors(x)
        self.mark = _mark(model, self.modules)
        self.hidden = self._look(model, x, vary, at)
        if self.hidden:
            self.modules, self.weights = self.modules + self.hidden, self.weights + weights_in(self.hidden)
            self.mark = _mark(model, self.modules)
            with eval_mode(self.hidden):
                self._set(model, x, vary, at)
            self.call = beside(self.call, self.hidden)
        self.h_at_x: Tensor | None = None if self.tapped is None else self._outputs(self.tapped.whole)
        self.shape, self.dtype = self.given.shape[1:], self.given.dtype
        self.x = at_least_float32(self.given.flatten(1))
        self.cut: Split | None = None
        self.tokens: Tensor | None = None  # (n, T) which tokens are there, where the metric is one per token
        self._check_rows(model)
        if at is None and isinstance(x, Tensor) and self.given.ndim == 2 and self.given.dtype == self.x.dtype:
            self.cut = _cut(model, self.call, first_layer, self) if not self.hidden else None
        if self.cut is not None:
            with self.autocast.off():
                self.head = self.cut.head.now()
                self.walked = self.head.walked(self.x)  # what of the head's output moves linearly with x, at x

    def __call__(self, x: Tensor) -> Tensor:
        """The outputs of other rows, as many as x has: (n, d) -> (n, K)."""
        with self.autocast.on():
            out = self.call(x.to(self.dtype, copy=True).reshape(len(x), *self.shape))  # it may overwrite the copy
        return self._outputs(out, len(x))

    def parameters(self) -> list[Tensor]:
        """What is trained of the model, as far as it can be seen."""
        return self.weights

    def restless(self) -> list[int]:
        """The ids of those that the model has changed since it is looked at."""
        versions = self.versions
        return [id(weight) for weight in self.weights if versions.get(id(weight), weight._version) != weight._version]

    def before(self) -> list[Tensor]:
        """What is trained before the model: the leaves that its inputs were computed from."""
        return leaves_of(self.inputs)

    def h_x(self) -> Tensor:
        if self.h_at_x is None:
            self.h_at_x = self(self.x) if self.cut is None else self._behind(self.walked, self.x)
        return self.h_at_x

    def part(self, rows: Tensor) -> ModelView:
        """The same look at some of the rows, without gradients, for a search. For models of one tensor, which others
        need not accompany."""
        other = copy.copy(self)
        other.x = constant(self.x)[rows]
        other.tokens = None if self.tokens is None else self.tokens[rows]
        if self.cut is None:
            other.given, other.h_at_x = constant(self.given)[rows], constant(self.h_x())[rows]
            return other
        other.given, other.walked = other.x, constant(self.walked).T.index_select(1, rows).T  # the layout stays
        with torch.no_grad():
            other.h_at_x = self._behind(other.walked, other.x)
        return other

    def h_worst(self, found: WorstCases, fair_metric: FairMetric, rows: Tensor | None = None) -> Tensor:
        """The outputs at the worst cases of all rows, or of some."""
        x_worst = self._x_worst(found, rows)
        if self.cut is None or found.z is None or found.u is None:
            return self(x_worst)
        directions = fair_metric.directions.to(found.z)
        walked = self.walked if rows is None else self.walked.T.index_select(1, rows).T
        with self.autocast.off():
            walked = moved(walked, self.head.weight, found.z, found.u, found.v, directions)
        return self._behind(walked, x_worst)

    def with_worst(
        self, worst: Sequence[tuple[WorstCases, Tensor | None]], fair_metric: FairMetric
    ) -> tuple[Tensor, list[Tensor]]:
        """h(x) of all rows, and the outputs at the worst cases of all (None) or of some: each (found, rows). Where the
        model is cut and h(x) is not there yet, they take one way together through what lies behind, and back."""
        some = [(found, rows) for found, rows in worst if not (found.z is None or found.u is None or rows is None)]
        if self.cut is None or self.h_at_x is not None or len(some) < len(worst):
            return self.h_x(), [self.h_worst(found, fair_metric, rows) for found, rows in worst]
        directions, fresh = fair_metric.directions.to(self.walked), self.cut.relu_layers is not None
        with self.autocast.off():
            walked = moved_with(self.walked, self.head.weight, directions, some, fresh)
        h = self._behind(walked, self.x, *(self._x_worst(found, rows) for found, rows in some), fresh=True)
        self.h_at_x, *h_worst = torch.split(h, [len(self.x), *(len(rows) for _, rows in some)])
        return self.h_at_x, h_worst

    def _x_worst(self, found: WorstCases, rows: Tensor | None) -> Tensor:
        """The worst cases, with gradients for what x has been computed from."""
        if not self.x.requires_grad:
            return found.x_worst
        x = self.x if rows is None else self.x[rows]
        return x + (found.x_worst - x).detach()

    def _behind(self, walked: Tensor, *x: Tensor, fresh: bool = False) -> Tensor:
        with self.autocast.off():
            z = self.head.finished(walked, *x)
        return self.tail(z, fresh)

    def tail(self, z: Tensor, fresh: bool = False) -> Tensor:
        """The outputs from the first linear layer's output, where the model is cut behind it. fresh: see ``Split``."""
        assert self.cut is not None
        with self.autocast.off() if self.cut.relu_layers is not None else self.autocast.on():
            return self._outputs(self.cut.tail(z, fresh), len(z))

    def path(self, gain: Gain, directions: Tensor, fast: bool = True) -> Path:
        """How a search walks from x: along the cut model where there is one."""
        x = constant(self.x)
        if self.cut is None or not fast:
            return PlainPath(self, gain, x, directions)
        by_hand = self.cut.relu_layers is not None and self.output is None
        walked = constant(self.walked)
        walk = walk_along(self.head, x, walked, directions, reuse=by_hand)
        if isinstance(walk, NormedWalk) and not walk.keeps_digits():
            return PlainPath(self, gain, x, directions)
        if self.cut.relu_layers is None or not by_hand:
            return SplitPath(self.tail, walk, gain, walked)
        return ReLUPath(self.cut.relu_layers, walk, gain, walked)

    def _outputs(self, out: Any, n: int | None = None) -> Tensor:
        """(n, K) or more axes, at least float32, from whatever the model returned."""
        h = self.output(out) if self.output is not None else _logits(out)
        if not isinstance(h, Tensor) or not h.is_floating_point():
            kind = f"one of {h.dtype}" if isinstance(h, Tensor) else f"a {type(h).__name__}"
            raise TypeError(
                f"the model's output must be a tensor of real numbers, one row for each person, but is {kind}; "
                "say what to take of it, for example output=lambda o: o.logits"
            )
        n = len(self.given) if n is None else n
        h = h[None] if h.ndim == 0 and n == 1 else h  # squeeze() takes the axis of a single person, too
        if h.ndim == 0 or len(h) != n:
            raise ValueError(
                f"the model gave an output of shape {tuple(h.shape)} for {n} rows; it must give each its own"
            )
        h = at_least_float32(h)
        return h[:, None] if h.ndim == 1 else h

    def _set(self, model: Any, x: Inputs, vary: str | int | None, at: str | None) -> None:
        """What moves, and the model as a function of it."""
        self.tapped = None if at is None else _Tapped(model, x, at)
        if self.tapped is None:
            self.given, self.call = _movable(still(model), x, vary)
        else:
            self.given, self.call = self.tapped.first, self.tapped.behind
        self.autocast = Autocast(self.given.device)

    def _look(self, model: Any, x: Inputs, vary: str | int | None, at: str | None) -> list[nn.Module]:
        """``_set``; and the modules that the model runs and that nobody finds who only looks at it, whatever their mode
        is now. Asked of each model until it was seen to have none: those that it has may be others the next time."""
        if _known(self.mark, self.way, "hides none"):
            self._set(model, x, vary, at)
            return []

        def run() -> None:
            self._set(model, x, vary, at)  # with at= this runs the model
            if self.tapped is None and len(self.given) > 0:
                with torch.no_grad(), self.autocast.on():
                    self.call(constant(self.given).clone())

        hidden = hidden_from(self.modules, run)
        if not hidden and len(self.given) > 0:
            _remember(self.mark, self.way, "hides none")
        return hidden

    def _check_rows(self, model: Any) -> None:
        """Each person's output must be a matter of the person: the same in a second call, in which half of the others
        are replaced. Asked of each model until the others' outputs were seen to change: one person, or a last layer
        that is still zero, teaches nothing about that."""
        n = len(self.given)
        if n == 0 or _known(self.mark, self.way, n > 1):
            return
        given = constant(self.given)
        stay, others = (rows.to(given.device) for rows in _halves(n))
        replaced = given.index_copy(0, others, given[min(1, n - 1)].expand(len(others), *given.shape[1:]))
        with torch.no_grad(), self.autocast.on():
            h, again = self._outputs(self.call(given.clone())), self._outputs(self.call(replaced))
        exact = self.autocast.dtype is None and self.given.dtype == self.x.dtype and given.device.type == "cpu"
        near = 1e-3 if exact else 0.05  # TF32 and half precision have fewer digits
        scale = float(h.abs().nan_to_num(0.0, 0.0).amax()) if h.numel() else 0.0
        own, still_own = h.index_select(0, stay), again.index_select(0, stay)
        if not torch.allclose(own, still_own, rtol=near, atol=near * scale, equal_nan=True):
            raise ValueError(
                "the model's output for a person changes from call to call, or with the others in the batch, even in "
                "eval mode, and would count as unfairness: look for dropout or noise that ignores the mode (F.dropout "
                "without training=self.training), for BatchNorm without running statistics, for fake quantisation "
                "behind a function, which still observes ranges (model.apply(torch.ao.quantization.disable_observer)), "
                "and for sequences that stand one beside the other, (T, n, K) in the place of (n, T, K)"
            )
        if self.tapped is not None:
            with self.autocast.on(), eval_mode(self.hidden):
                self.tapped.check_reach(self._outputs)
        _remember(self.mark, self.way, False)
        if bool(torch.isfinite(h).all() & (h != again).index_select(0, others).any()):
            _remember(self.mark, self.way, True)


def _halves(n: int) -> tuple[Tensor, Tensor]:
    """Who stays, about half of n people, and the others, before and behind them at all distances: who makes a
    difference to somebody else may be the one before, as in a sequence that is taken for people, or another view of
    the same."""
    stays = torch.tensor([n == 1 or i.bit_count() % 2 == 1 for i in range(n)])
    return stays.nonzero()[:, 0], (~stays).nonzero()[:, 0]


def _refuse_transforms() -> None:
    if (
        torch._C._functorch.maybe_get_level(torch.empty(0)) > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
    ):
        raise RuntimeError(
            "a search follows gradients of its own, which torch.func transforms (grad, vmap, jvp) do not allow inside "
            "them; call the regularizer outside and use torch.autograd.grad, or backward(), on its value"
        )


_Mark = tuple[Any, tuple[Any, ...]]


def _mark(model: Any, modules: list[nn.Module]) -> _Mark:
    """What lives as long as the model does, and what must not change about it: functions are often made anew for each
    batch, their code and the modules behind them are not."""
    return modules[0] if modules else model, (_code_of(model), tuple(id(m) for top in modules for m in top.modules()))


def _code_of(model: Any) -> Any:
    return getattr(getattr(model, "__func__", model), "__code__", type(model))


def _known(mark: _Mark, *what: Any) -> bool:
    try:
        return (mark[1], *what) in _seen.get(mark[0], ())
    except TypeError:  # nothing can be remembered of it
        return False


def _remember(mark: _Mark, *what: Any) -> None:
    with suppress(TypeError):
        _seen.setdefault(mark[0], set()).add((mark[1], *what))


def _way(x: Inputs, vary: str | int | None, at: str | None, output: Output | None) -> tuple[Any, ...]:
    """How a model is called, and what is judged of it: another way may run other parts of it."""
    given = tuple(x) if isinstance(x, Mapping) else len(x) if isinstance(x, tuple | list) else None
    return vary, at, given, getattr(output, "__code__", type(output))


def _tensors(x: Inputs) -> list[Tensor]:
    several = x.values() if isinstance(x, Mapping) else x if isinstance(x, tuple | list) else (x,)
    return [each for each in several if isinstance(each, Tensor)]


def view_of(model: Model, x: Tensor) -> ModelView:
    """The model seen from x; a view is its own view."""
    return model if isinstance(model, ModelView) else ModelView(model, constant(x))


def _copy(value: Any) -> Any:
    """What a model may overwrite."""
    return value.clone() if isinstance(value, Tensor) else value


def _ordinary(value: Any) -> Any:
    """A tensor from inference mode as one that may meet gradients."""
    if not isinstance(value, Tensor) or not value.is_inference():
        return value
    with torch.inference_mode(False):
        return value.clone()


def _logits(out: Any) -> Any:
    if isinstance(out, Mapping) and "logits" in out:
        return out["logits"]
    return getattr(out, "logits", out)


def _movable(call: Callable[..., Any], x: Inputs, vary: str | int | None) -> tuple[Tensor, Callable[[Tensor], Any]]:
    """The input that moves, and the model as a function of it alone."""
    if isinstance(x, Tensor):
        if vary is not None:
            raise ValueError(f"vary={vary!r} names one of several inputs, but x is a single tensor; leave vary out")
        return _real(x, "x"), call
    if isinstance(x, Mapping):
        named = {k: _ordinary(v) for k, v in x.items()}
        key = _choice({k: v for k, v in named.items() if isinstance(v, Tensor)}, vary)
        return _real(named[key], repr(key)), lambda moving: call(
            **{k: moving if k == key else _copy(v) for k, v in named.items()}
        )
    if isinstance(x, tuple | list):
        several = [_ordinary(v) for v in x]
        place = _choice({i: v for i, v in enumerate(several) if isinstance(v, Tensor)}, vary)
        return _real(several[place], f"input {place}"), lambda moving: call(
            *[moving if i == place else _copy(v) for i, v in enumerate(several)]
        )
    raise TypeError(f"x must be a tensor, or a dict or tuple of the model's inputs; got {type(x).__name__}")


def _choice(tensors: dict[Any, Tensor], vary: str | int | None) -> Any:
    if vary is None:
        real = [key for key, value in tensors.items() if value.is_floating_point()]
        if len(real) == 1:
            return real[0]
        raise ValueError(
            f"which input makes people alike? {len(real)} of the inputs {list(tensors)} hold real numbers; say which "
            "moves with vary=, or with at= the layer whose output moves"
        )
    if vary not in tensors:
        raise ValueError(f"vary={vary!r} is not among the tensors that the model is called with: {list(tensors)}")
    return vary


def _real(x: Tensor, name: str) -> Tensor:
    if not x.is_floating_point():
        raise TypeError(
            f"{name} holds {x.dtype}: whole numbers such as tokens cannot move a little; give their embeddings "
            "(inputs_embeds), or say with at= which layer's output moves, for example the embedding"
        )
    if x.ndim < 2:
        raise ValueError(f"{name} must hold one row for each person, (n, d) or more axes; got shape {tuple(x.shape)}")
    return x


def _cut(model: Any, call: Any, first_layer: str | None, view: ModelView) -> Split | None:
    """The model cut behind its first linear layer where it has one and the parts were seen to agree with the whole."""
    cut = split(call) if first_layer is None else split_named(model, first_layer)
    if cut is None or any(t.dtype != view.x.dtype for t in cut.head.tensors()):
        return None
    with gradients_allowed(), view.autocast.off():
        seen = agreed(cut, model, view.mark[1], call, constant(view.x[:64]), view.output or _logits)
    return cut if seen else None


class _Tap(nn.Module):
    """In the place of a layer: runs it and keeps what it gave, or gives what it is told to."""

    def __init__(self, layer: nn.Module | None, at: str) -> None:
        super().__init__()
        self.at, self.only_instead = at, False
        self.layer = [layer]  # in a list: not a child, the layer's own twin belongs to the tree
        self.gave: Any = None
        self.calls = 0
        self.instead: Tensor | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.instead is not None:
            return self.instead if isinstance(self.gave, Tensor) else (self.instead, *map(_copy, self.gave[1:]))
        if self.only_instead:
            raise ValueError(
                f"at={self.at!r} lies inside of a block that torch.utils.checkpoint runs again in the backward pass, "
                "when the layer is no longer told what to give; name a layer outside, or the block, or turn "
                "checkpointing off"
            )
        layer = self.layer[0]
        assert layer is not None
        self.gave, self.calls = layer(*args, **kwargs), self.calls + 1
        return tuple(map(_copy, self.gave)) if type(self.gave) is tuple else _copy(self.gave)


class _Tapped:
    """A model as a function of what its layer ``at`` gives."""

    def __init__(self, model: Any, x: Inputs, at: str) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(
                f"at={at!r} names a layer of a module, and the model is a {type(model).__name__}; give the module, "
                "with all of its inputs in a dict or tuple"
            )
        layers = dict(model.named_modules())
        if not at or at not in layers:
            raise ValueError(
                f"at={at!r} does not name a layer of the model; it has {[name for name in layers if name][:40]}"
            )
        if isinstance(layers[at], nn.ModuleList | nn.ModuleDict):
            raise ValueError(f"at={at!r} is a list of layers; name one of them")
        layer = twin(layers[at])
        self.at, self.x, self.tap, self.recurrent = at, x, _Tap(layer, at), isinstance(layers[at], nn.RNNBase)
        tapped = None if layer is None else twin(model, {layers[at]: self.tap})
        if tapped is None:
            raise TypeError(
                f"the model cannot be looked at behind {at!r}: its forward belongs to the instance, as in a scripted "
                "or wrapped module; give the part behind the layer as the model and its input as x"
            )
        self.model = on_ordinary_path(tapped, model)
        self.whole = self._run()  # what the model gives
        gave = self.tap.gave
        first = gave[0] if isinstance(gave, tuple) and gave else gave
        if self.tap.calls != 1:
            raise ValueError(f"at={at!r} must be called once when the model is; it was called {self.tap.calls} times")
        if not isinstance(first, Tensor):
            raise TypeError(
                f"at={at!r} must give a tensor, or a tuple that begins with one; it gives {type(first).__name__}"
            )
        self.first = _real(first, f"the output of {at!r}")  # what moves, with gradients

    def behind(self, moving: Tensor) -> Any:
        """What the model gives when the layer gives something else."""
        self.tap.instead = moving
        try:
            return self._run()
        finally:
            self.tap.instead = None

    def check_reach(self, judged: Output) -> None:
        """What moves must reach the output that is judged, or R(h) would be zero whatever the model does; and no other
        part of a recurrent layer's output may, which says the same again and would stay as it was."""
        moves, stays = self._reach(judged)
        if moves and not (stays and self.recurrent):
            return
        cure = "name a layer from whose output the model's own is computed"
        if isinstance(self.tap.gave, tuple):
            cure = (
                "it gives a tuple, of which the first part moves and the others stay. Let the model read the first "
                "only (of a recurrent layer out[:, -1] in the place of h_n), or wrap the layer in a module that gives "
                "the one tensor that is read, and name that module"
            )
        what = "is not all that reaches" if moves else "does not reach"
        raise ValueError(f"what moves at at={self.at!r} {what} the output that is judged: {cure}")

    def _reach(self, judged: Output) -> tuple[bool, bool]:
        """Whether the output depends on what moves, and whether on the other parts of what the layer gives."""
        gave, moving = self.tap.gave, constant(self.first).clone()
        parts, structure = tree_flatten(gave)
        with gradients_allowed():
            moving.requires_grad_(True)
            parts = [constant(p).clone().requires_grad_(True) if _is_real(p) else p for p in parts]
            self.tap.gave, self.tap.only_instead = tree_unflatten(parts, structure), True
            try:
                h = judged(self.behind(moving.clone()))
                others = [p for p in parts if _is_real(p)]
                slopes: tuple[Tensor | None, ...] = (None,) * (1 + len(others))
                if h.requires_grad:
                    slopes = torch.autograd.grad(h.sum(), [moving, *others], allow_unused=True)
                moves = slopes[0] is not None
                if not moves:  # through a step without a slope, perhaps
                    moves = not torch.equal(h, judged(self.behind(moving.detach() + 1)))
            finally:
                self.tap.gave, self.tap.only_instead = gave, False
        return moves, any(slope is not None for slope in slopes[1:])

    def _run(self) -> Any:
        if isinstance(self.x, Mapping):
            return self.model(**{name: _copy(value) for name, value in self.x.items()})
        return self.model(*map(_copy, (self.x,) if isinstance(self.x, Tensor) else self.x))


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
