"""Looking at a model without leaving a trace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from evenhand.module_copy import OBSERVES, is_recurrent, observes

# Layers that do the same in train and eval mode and hold no statistics.
_MODE_FREE = (
    nn.Sequential,
    nn.ModuleList,
    nn.Linear,
    nn.Identity,
    nn.Flatten,
    nn.ReLU,
    nn.LeakyReLU,
    nn.ELU,
    nn.GELU,
    nn.SiLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
    nn.LayerNorm,
)
_ATTENTION = (nn.MultiheadAttention, nn.TransformerEncoder, nn.TransformerEncoderLayer)  # have a fast path, see below
_QUIET: dict[str, Any] = {"training": False}
_QUIET_RECURRENT: dict[str, Any] = {"training": True, "dropout": 0.0}  # see ``is_recurrent``
_OF_EVERY_MODULE = frozenset(vars(nn.Module())) | {"_compiled_call_impl"}  # which module.compile() adds
_DEEP = 6  # how far a module may be hidden behind functions, objects and containers
_MANY = 1000  # how many things of a container are looked at


@dataclass
class _Looked:
    """A module that is being looked at: what it was before, and by how many."""

    was: dict[str, Any]
    times: int = 0


_lock = threading.Lock()
_looking: WeakKeyDictionary[nn.Module, _Looked] = WeakKeyDictionary()  # at modules that were not quiet before


@contextmanager
def eval_mode(model: Any) -> Iterator[None]:
    """Dropout off and BatchNorm statistics frozen inside; each submodule's mode as it was afterwards, also on error.

    Re-entrant, also from several threads: the last one to leave restores the mode. Of a function, the modules that it
    holds (see ``modules_in``). Attention takes its ordinary path (see ``ordinary_path``).
    """
    parts = [m for top in modules_in(model) for m in top.modules()]
    with _quiet(parts), ordinary_path(parts):
        yield


@contextmanager
def _quiet(parts: Sequence[nn.Module]) -> Iterator[None]:
    """These modules, each alone, in eval mode inside."""
    with _lock:
        ours = [m for m in parts if m.training or m in _looking or is_recurrent(m)]
        for module in ours:
            quiet = _QUIET_RECURRENT if is_recurrent(module) else _QUIET
            if module not in _looking:
                _looking[module] = _Looked({name: getattr(module, name) for name in quiet})
            _looking[module].times += 1
            _set(module, quiet)
    try:
        yield
    finally:
        with _lock:
            for module in ours:
                _looking[module].times -= 1
                if _looking[module].times == 0:
                    _set(module, _looking.pop(module).was)


def _follows_mode(parts: Iterable[nn.Module], what: Callable[[nn.Module], bool]) -> bool:
    """Whether one of these is in train mode, or will be once nobody else looks at it; or is what is asked for."""
    with _lock:
        return any(m.training or m in _looking or what(m) for m in parts)


def _set(module: nn.Module, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(module, name, value)


def mode_free(model: Any) -> bool:
    """Whether train and eval mode are known to give the same output; hooks and forwards of an instance may not."""
    return isinstance(model, nn.Module) and all(
        type(module) in _MODE_FREE
        and not (module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))
        for module in model.modules()
    )


class _Ordinary(TorchFunctionMode):
    """Does nothing; where functions are looked at, torch does not take its fast path. In this thread alone, as torch's
    own switch is not."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def ordinary_path(modules: Sequence[nn.Module]) -> AbstractContextManager[Any]:
    """Inside, attention among the modules computes with gradients or without the same: torch's fast path in eval mode,
    which only those without can take, gives padded tokens zeros, and the ordinary one gives them numbers."""
    return _Ordinary() if any(isinstance(module, _ATTENTION) for module in modules) else nullcontext()  # type: ignore[no-untyped-call]


def on_ordinary_path(call: Callable[..., Any], model: nn.Module) -> Callable[..., Any]:
    """The call of a model, or of what shares its parts, on the ordinary path; itself where there is no other."""
    parts = [module for module in model.modules() if isinstance(module, _ATTENTION)]

    def called(*args: Any, **kwargs: Any) -> Any:
        with ordinary_path(parts):
            return call(*args, **kwargs)

    return called if parts else call


@contextmanager
def gradients_allowed() -> Iterator[None]:
    """Gradients work inside, whatever the caller's ``no_grad`` or ``inference_mode``."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def constant(t: Tensor) -> Tensor:
    """t without history, fit for gradients also when it comes from inference mode."""
    return t.detach().clone() if t.is_inference() else t.detach()


def still(model: Callable[..., Any]) -> Callable[..., Any]:
    """The model as it is in eval mode, for as long as one likes, while the model itself keeps its mode.

    A module in train mode, or one that observes ranges, is seen through its ``twin``, so that nobody else who uses it
    meanwhile notices, and a backward pass that runs it again (checkpointing) finds the same mode. What has no twin is
    put in eval mode for the time of each call.
    """
    if isinstance(model, nn.Module):
        if mode_free(model) or not _follows_mode(model.modules(), lambda m: observes(m) or is_recurrent(m)):
            return on_ordinary_path(model, model)
        other = twin(model)
        if other is not None:
            return on_ordinary_path(other, model)
    else:
        parts = [m for top in modules_in(model) for m in top.modules()]
        if not _follows_mode(parts, lambda m: isinstance(m, _ATTENTION) or is_recurrent(m)):
            return model
    return beside(model, model)


def beside(call: Callable[..., Any], quiet: Any) -> Callable[..., Any]:
    """The call, during which the modules of ``quiet`` are in eval mode."""

    def called(*args: Any, **kwargs: Any) -> Any:
        with eval_mode(quiet):
            return call(*args, **kwargs)

    return called


def hidden_from(visible: list[nn.Module], call: Callable[[], Any]) -> list[nn.Module]:
    """The modules that run when ``call()`` does and are neither among the visible ones nor twins of these; without
    those that are made for the call and gone after it."""
    known = {id(vars(part).get("_parameters")) for top in visible for part in top.modules()}  # which a twin shares
    found = [ref(module) for module in modules_called(call) if id(vars(module).get("_parameters")) not in known]
    return [module for module in (each() for each in found) if module is not None]


def modules_called(call: Callable[[], Any]) -> list[nn.Module]:
    """The modules that run when ``call()`` does, wherever a function hides them. They run in eval mode, so that nothing
    of them changes, and keep theirs; those that other threads run are not touched."""
    found: dict[nn.Module, None] = {}
    here, looks = threading.get_ident(), ExitStack()

    def about_to_run(module: nn.Module, _: Any) -> None:
        if threading.get_ident() == here and module not in found:
            found[module] = None
            looks.enter_context(_quiet(list(module.modules())))

    hook = register_module_forward_pre_hook(about_to_run)
    with looks:
        try:
            call()
        finally:
            hook.remove()
    inner = {part for module in found for part in module.modules() if part is not module}
    return [module for module in found if module not in inner]


def twin(model: nn.Module, instead: Mapping[nn.Module, nn.Module] | None = None) -> nn.Module | None:
    """The same module tree, with the same parameters, buffers and hooks, in eval mode; the model is not touched. Of
    quantisation-aware training, ranges stay as they are; recurrent layers lose their dropout instead of their mode.

    instead: submodules that others take the place of. None where the tree cannot be seen this way: modules whose
    forward belongs to the instance, and functions kept by a module that hold a module themselves.
    """
    twins: dict[nn.Module, nn.Module] = dict(instead or {})

    def of(module: nn.Module) -> nn.Module | None:
        if module in twins:
            return twins[module]
        if not _has_twin(module):
            return None
        other = nn.Module.__new__(type(module))
        twins[module] = other
        children: dict[str, nn.Module | None] = {}
        for name, child in module._modules.items():
            children[name] = None if child is None else of(child)
            if child is not None and children[name] is None:
                return None
        # Parameters and buffers are the very dictionaries of the model: a step of its optimiser is seen here too.
        other.__dict__.update(vars(module), _modules=children, training=False, _compiled_call_impl=None)
        if "_original_forward" in vars(module):  # accelerate's: the twin runs the forward of its class
            del other.__dict__["forward"], other.__dict__["_original_forward"]
        if observes(module):  # no range is to be learned from worst cases
            off = torch.zeros_like(module.get_buffer(OBSERVES))
            other.__dict__["_buffers"] = {**module._buffers, OBSERVES: off}
        return other

    whole = of(model)
    for module, other in twins.items() if whole is not None else ():
        if other is not (instead or {}).get(module):  # a module may hold others, or itself, outside of the tree
            own = {name: value for name, value in vars(module).items() if name not in _OF_EVERY_MODULE}
            vars(other).update({name: _with_twins(value, twins) for name, value in own.items() if name in vars(other)})
            if is_recurrent(module):
                vars(other).update(_QUIET_RECURRENT)
    return whole


def _with_twins(value: Any, twins: Mapping[nn.Module, nn.Module], deep: int = 3) -> Any:
    """A value in which twins take the place of modules, in plain containers and weak references too; itself if there
    are none."""
    if isinstance(value, nn.Module):
        return twins.get(value, value)
    if isinstance(value, ref):
        held = value()
        return ref(twins[held]) if isinstance(held, nn.Module) and held in twins else value
    if deep == 0 or type(value) not in (list, tuple, dict) or len(value) > _MANY:
        return value
    parts = list(value.values() if type(value) is dict else value)
    others = [_with_twins(part, twins, deep - 1) for part in parts]
    if all(other is part for other, part in zip(others, parts)):
        return value
    return dict(zip(value, others)) if type(value) is dict else type(value)(others)


def _has_twin(module: nn.Module) -> bool:
    wrapped = "_original_forward" in vars(module)
    if isinstance(module, torch.jit.ScriptModule) or ("forward" in vars(module) and not wrapped):
        return False
    if type(module).__module__.startswith("torch.distributed"):  # wrappers that keep books about their parameters
        return False
    known = _OF_EVERY_MODULE | {"forward", "_original_forward"}
    own = [value for name, value in vars(module).items() if name not in known]
    return not any(callable(value) and modules_in(value) for value in own)


def modules_in(model: Any) -> list[nn.Module]:
    """The model itself if it is a module; otherwise the modules that a function or object holds.

    They are looked for in closures, defaults, bound objects, partial arguments, attributes, containers, and among the
    global names that a function's code mentions.
    """
    return [part for part in _held(model) if isinstance(part, nn.Module)]


def weights_in(model: Any) -> list[Tensor]:
    """What is trained: the parameters of its modules, and tensors that a function holds outside of any module."""
    weights: dict[int, Tensor] = {}
    for part in _held(model):
        held: list[Tensor | None] = [part] if isinstance(part, Tensor) else []
        if isinstance(part, nn.Module):  # what ``parameters()`` gives, in half the time
            held = [weight for module in part.modules() for weight in module._parameters.values()]
        weights.update({id(weight): weight for weight in held if weight is not None and weight.requires_grad})
    return list(weights.values())


def leaves_of(computed: list[Tensor]) -> list[Tensor]:
    """The leaves of the graphs that these tensors were computed by, from near to far; and those that are parameters
    themselves."""
    found: dict[int, Tensor] = {id(t): t for t in computed if isinstance(t, nn.Parameter) and t.requires_grad}
    nodes: dict[Any, None] = {t.grad_fn: None for t in computed if t.grad_fn is not None}
    todo = list(nodes)
    for node in todo:  # which grows meanwhile
        leaf = getattr(node, "variable", None)  # of the nodes that accumulate gradients
        if isinstance(leaf, Tensor):
            found[id(leaf)] = leaf
        for before, _ in node.next_functions:
            if before is not None and before not in nodes:
                nodes[before] = None
                todo.append(before)
    return list(found.values())


def _held(model: Any) -> list[nn.Module | Tensor]:
    """The modules and the leaf tensors that a model holds."""
    found: dict[int, nn.Module | Tensor] = {}
    seen: set[int] = set()

    def look(thing: Any, deep: int) -> None:
        if isinstance(thing, nn.Module) or (isinstance(thing, Tensor) and thing.requires_grad and thing.is_leaf):
            found[id(thing)] = thing
            return
        if id(thing) in seen or deep == 0 or isinstance(thing, type | Tensor | str | bytes | int | float):
            return
        seen.add(id(thing))
        for part in _parts(thing):
            look(part, deep - 1)

    look(model, _DEEP)
    return list(found.values())


def _parts(thing: Any) -> Iterator[Any]:
    """What a thing is made of, as far as a module can hide in it."""
    if isinstance(thing, FunctionType):
        if thing.__module__ is not None and thing.__module__.split(".")[0] == "torch":
            return
        for cell in thing.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not filled yet
                continue
        yield from thing.__defaults__ or ()
        yield from (thing.__kwdefaults__ or {}).values()
        yield from (thing.__globals__[name] for name in _names(thing.__code__) if name in thing.__globals__)
        yield from vars(thing).values()
    elif isinstance(thing, MethodType):
        yield thing.__self__
        yield thing.__func__
    elif isinstance(thing, partial):
        yield thing.func
        yield from thing.args
        yield from thing.keywords.values()
    elif isinstance(thing, Mapping):
        yield from islice(thing.values(), _MANY)
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from islice(thing, _MANY)
    elif hasattr(thing, "__dict__") and type(thing).__module__ not in ("builtins", "types"):
        yield from vars(thing).values()
        if callable(thing):
            yield type(thing).__call__


def _names(code: CodeType) -> set[str]:
    """The global names that a function's code mentions, nested functions included."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names
