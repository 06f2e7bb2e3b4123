"""Devices that are not here: on the meta device tensors of two devices cannot meet unseen; a pretended MPS has no
float64; on a pretended device with numbers whole estimators are fitted."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from evenhand import estimators, regularizer
from evenhand.devices import check_device, device_of_float64
from evenhand.domain import Box, FreeBox
from evenhand.estimators.senstir import SenSTIRRanker
from evenhand.fair_metrics import FairMetric
from evenhand.objectives import CLP, Batch, SenSeI, SenSR
from evenhand.objectives.senstir import policy_loss
from evenhand.objectives.versions import WorstVersion
from evenhand.output_distances import total_variation
from evenhand.regularizer import FairRegularizer, PricedSearch, ratio_rule
from evenhand.search import GradientSearch
from evenhand.training.batches import balanced_batches, uniform
from evenhand.variations import Variations

D = 5


class Answers(TorchFunctionMode):
    """What a tensor without numbers cannot say is answered: yes or no to every question, 1, every row."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if not args or not isinstance(args[0], torch.Tensor) or args[0].device.type != "meta":
            return func(*args, **(kwargs or {}))
        if func in (torch.Tensor.__bool__, torch.allclose, torch.equal):
            return self.answer if func is torch.Tensor.__bool__ else True
        if func in (torch.Tensor.item, torch.Tensor.__float__, torch.Tensor.__int__):
            return 1.0 if func is not torch.Tensor.__int__ else 1
        if func is torch.Tensor.nonzero:
            return torch.zeros(len(args[0]), args[0].ndim, dtype=torch.long, device=args[0].device)
        return func(*args, **(kwargs or {}))


class NoFloat64(TorchDispatchMode):
    """As on Apple's GPUs: no operation on float32 tensors may give float64."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for out in result if isinstance(result, tuple | list) else (result,):
            if isinstance(out, torch.Tensor) and out.dtype == torch.float64:
                raise TypeError(f"{func} gave float64, which this device does not have")
        return result


MODELS = {
    "first linear": lambda: nn.Sequential(nn.Linear(D, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2)),
    "cut, then anything": lambda: nn.Sequential(nn.Linear(D, 8), nn.Tanh(), nn.BatchNorm1d(8), nn.Linear(8, 2)),
    "no linear layer first": lambda: nn.Sequential(nn.Tanh(), nn.Linear(D, 8), nn.ReLU(), nn.Linear(8, 2)),
    "LayerNorm first": lambda: nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 8), nn.ReLU(), nn.Linear(8, 2)),
    "BatchNorm first": lambda: nn.Sequential(nn.BatchNorm1d(D), nn.Linear(D, 8), nn.ELU(), nn.Linear(8, 2)),
}
SETTINGS = {
    "eps": {"eps": 0.1},
    "eps of zero": {"eps": 0.0},
    "bounds": {"eps": 0.1, "bounds": (0.0, 1.0)},
    "bounds, eps of zero": {"eps": 0.0, "bounds": (0.0, 1.0)},
    "a Box": {"eps": 0.1, "bounds": Box(0.0, 1.0, binary=[0], d=D)},
    "free directions": {"eps": 0.1, "bounds": FreeBox(Box(0.0, 1.0, d=D), torch.eye(D)[:, :2], [0.0, 0.0], [2.0, 2.0])},
    "free directions, eps of zero": {
        "eps": 0.0,
        "bounds": FreeBox(Box(0.0, 1.0, d=D), torch.eye(D)[:, :2], [0.0, 0.0], [2.0, 2.0]),
    },
    "the paper's steps": {"eps": 0.1, "search": GradientSearch(full_steps=2, line_search=False, starts=2, reach=1.0)},
    "another distance and rule": {"eps": 0.1, "output_distance": total_variation, "lam_rule": ratio_rule()},
}


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", MODELS)
def test_no_two_devices_meet(name, setting, answer, monkeypatch):
    if answer:  # with yes to every question there is a NaN
        monkeypatch.setattr(regularizer, "check_finite", lambda x: None)
    if answer and "bounds" in SETTINGS[setting]:
        pytest.skip("with yes to every question all rows lie outside the bounds")
    if "free directions" in setting:
        pytest.skip("directions are turned by their numbers, on the CPU, and these have none")
    metric = FairMetric(torch.eye(D)[:, :2])  # made on the CPU, as metrics are
    model, x = MODELS[name]().to("meta"), torch.empty(6, D, device="meta")
    for fair in (FairRegularizer(metric, **SETTINGS[setting]), FairRegularizer(metric, **SETTINGS[setting]).to("meta")):
        fair.lam = fair.lam.to("meta")  # the metric stays behind in the first round
        with Answers(answer):
            value = fair(model, x)
            value.backward()
        assert value.device.type == "meta"
        assert any(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", MODELS)
def test_no_float64_where_a_device_has_none(name, setting):
    torch.manual_seed(0)
    model, x = MODELS[name](), torch.rand(20, D)
    x[:, 0] = x[:, 0].round()
    fair = FairRegularizer(FairMetric(torch.eye(D)[:, :2]), **SETTINGS[setting])
    fair(model, x)  # what is worked out once, on the CPU, may use float64
    with NoFloat64():
        fair(model, x).backward()


@pytest.mark.parametrize("kind", ["SenSeI", "SenSR"])
def test_a_training_step_without_float64(kind):
    metric, model = FairMetric(torch.eye(D)[:, :2]), MODELS["first linear"]()
    if kind == "SenSeI":
        objective = SenSeI(FairRegularizer(metric, bounds=(0.0, 1.0)), 5.0)
    else:
        objective = SenSR(PricedSearch(metric, bounds=(0.0, 1.0)))
    batch = Batch(torch.rand(20, D), torch.randint(2, (20,)))
    with NoFloat64():
        objective(model, batch).backward()


class AtHome(TorchFunctionMode):
    """As on CUDA, a generator draws on its own device only; meta takes any."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        generator, device = (kwargs or {}).get("generator"), torch.device((kwargs or {}).get("device") or "cpu")
        if func in (torch.rand, torch.randint) and generator is not None and generator.device.type != device.type:
            raise RuntimeError(f"Expected a '{device}' device type for generator but found '{generator.device}'")
        return func(*args, **(kwargs or {}))


def test_a_generator_stays_where_it_was_made():
    generator = torch.Generator().manual_seed(0)
    model, x = MODELS["first linear"]().to("meta"), torch.empty(6, D, device="meta")
    fair = FairRegularizer(FairMetric(torch.eye(D)[:, :2]), generator=generator).to("meta")
    versions = Variations(np.random.default_rng(0).normal(size=(6, 3, D)), np.arange(6))
    batch = Batch(x, torch.zeros(6, dtype=torch.long, device="meta"), rows=torch.arange(6, device="meta"))
    with AtHome(), Answers(False):
        assert fair(model, x).device.type == "meta"
        assert CLP(versions, 1.0, generator=generator).to("meta")(model, batch).device.type == "meta"
        assert WorstVersion([versions.values], 1.0, generator=generator).to("meta")(model, batch).device.type == "meta"
        scores = torch.zeros(4, 3, device="meta")
        assert policy_loss(scores, scores, 5, generator).device.type == "meta"
    assert not torch.equal(generator.get_state(), torch.Generator().manual_seed(0).get_state())


class There(torch.Tensor):
    """A tensor that says it lies on the meta device, and keeps its numbers."""

    @staticmethod
    def __new__(cls, numbers):
        made = torch.Tensor._make_wrapper_subclass(
            cls, numbers.size(), strides=numbers.stride(), dtype=numbers.dtype, device="meta"
        )
        made.numbers = numbers
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return computed(func, args, kwargs or {})

    def tolist(self):
        return self.numbers.tolist()


def computed(func, args, kwargs):
    """An operation as a device without float64 does it; tensors of two devices may only meet where torch lets them."""
    given = pytree.tree_leaves((args, kwargs))
    there = [t for t in given if isinstance(t, There)]
    name = func.overloadpacket.__name__
    moves, picks = name in ("copy_", "_to_copy"), name.startswith("index") and isinstance(args[0], There)
    if there and not moves and not picks:
        here = [t for t in given if isinstance(t, torch.Tensor) and not isinstance(t, There)]
        assert all(t.ndim == 0 for t in here), f"{func}: tensors of two devices meet"
    away = bool(there) if kwargs.get("device") is None else kwargs["device"].type == "meta"
    away = isinstance(args[0], There) if name == "copy_" else away
    kwargs = kwargs | ({"device": torch.device("cpu")} if "device" in kwargs else {})
    plain = pytree.tree_map(lambda t: t.numbers if isinstance(t, There) else t, (args, kwargs))
    changed = {id(held): t for held, t in zip(pytree.tree_leaves(plain), given)}

    def placed(out):
        if not isinstance(out, torch.Tensor) or id(out) in changed:
            return changed.get(id(out), out)
        if away and out.dtype == torch.float64:
            raise TypeError(f"{func} gave float64, which this device does not have")
        return There(out) if away else out

    return pytree.tree_map(placed, func(*plain[0], **plain[1]))


class Elsewhere(TorchDispatchMode):
    """Tensors made on or moved to the meta device are There."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return computed(func, args, kwargs or {})


class GeneratorThere(torch.Generator):
    """A generator that says it lies on the meta device, for which there is none."""

    def __new__(cls, device="cpu"):
        made = super().__new__(cls, "cpu")
        made.where = torch.device(device)
        return made

    @property
    def device(self):
        return self.where


X = np.random.default_rng(0).normal(size=(60, D)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
METRIC = FairMetric(torch.eye(D)[:, :1])
SMALL = {"hidden": (6,), "steps": 3, "batch_size": 20, "random_state": 0, "device": "meta"}
FITS = {
    "plain": lambda: estimators.ERMClassifier(**SMALL).fit(X, Y),
    "held-out rows": lambda: estimators.ERMClassifier(**SMALL, validation_fraction=0.2).fit(X, Y),
    "weights": lambda: estimators.ERMClassifier(**SMALL, validation_fraction=0.2).fit(X, Y, np.full(60, 2.0)),
    "class weights": lambda: estimators.ERMClassifier(**SMALL, class_weight={0: 1, 1: 2}).fit(X, Y),
    "class weights of weights": lambda: estimators.ERMClassifier(**SMALL, class_weight={0: 1}).fit(X, Y, np.ones(60)),
    "a stream": lambda: estimators.ERMClassifier(**SMALL).fit_stream([(X.astype(np.float64), Y)]),
    "a stream of numbers": lambda: estimators.SenSeIRegressor(**SMALL).fit_stream([(X, X[:, 0].astype(np.float64))]),
    "SenSeI": lambda: estimators.SenSeIClassifier(estimators.ClassifierMetric([0]), **SMALL).fit(X, Y),
    "SenSeI again": lambda: estimators.SenSeIClassifier(METRIC, **SMALL).fit(X, Y).partial_fit(X, Y),
    "certified": lambda: estimators.SenSeIClassifier(METRIC, **SMALL, certified=0.1).fit(X, Y),
    "bounds": lambda: estimators.SenSeIClassifier(METRIC, **SMALL, bounds=(-9.0, 9.0)).fit(X, Y),
    "SenSR": lambda: estimators.SenSRClassifier(METRIC, **SMALL).fit(X, Y),
    "numbers": lambda: estimators.SenSeIRegressor(METRIC, **SMALL).fit(X, X[:, 0], np.ones(60)),
    "Project": lambda: estimators.ProjectClassifier(METRIC, **SMALL).fit(X, Y),
    "CLP": lambda: estimators.CLPClassifier(**SMALL).fit(X, Y, variations=np.stack([X, -X], 1).astype(np.float64)),
    "CoCL": lambda: estimators.CoCLClassifier(**SMALL).fit(X, Y, sensitive_features=Y),
    "rankings": lambda: SenSTIRRanker(METRIC, **SMALL).fit(X, Y, np.arange(60) // 6),
    "adversarial": lambda: estimators.AdversarialClassifier(**SMALL).fit(X, Y, sensitive_features=Y),
}


@pytest.mark.parametrize("fit", FITS)
def test_estimators_are_fitted_where_there_is_no_float64(fit, monkeypatch):
    monkeypatch.setattr(torch, "Generator", GeneratorThere)
    with Elsewhere():
        model = FITS[fit]()
        outputs = model.predict(X)
    assert all(isinstance(p.data, There) for p in model.module_.parameters())
    assert outputs.shape == (60,)


def test_draws_of_a_device_without_float64_are_as_fine():
    with Elsewhere():
        draws = uniform(10_000, GeneratorThere("meta").manual_seed(0))
        rows = list(balanced_batches(torch.tensor([0, 0, 1]).to("meta"), 4, 50, generator=GeneratorThere("meta")))
    assert draws.dtype == torch.float64
    assert draws.device.type == "cpu"
    assert 0 <= draws.min() < 0.001 < 0.999 < draws.max() < 1
    assert ((draws * 2**24) % 1 > 0).float().mean() > 0.99  # float32 alone ends there
    assert all(isinstance(batch, There) for batch in rows)
    assert {i for batch in rows for i in batch.tolist()} == {0, 1, 2}
    assert all(sorted(batch.tolist())[2:] == [2, 2] for batch in rows)


def test_a_device_is_asked_for_what_will_lie_on_it():
    for sound in ("cpu", torch.device("cpu"), "meta"):
        check_device(sound)
        check_device(sound, torch.float64)
    with pytest.raises(ValueError, match=r"^device='tpu' cannot be used here \(.*\); 'cpu' always can$"):
        check_device("tpu")
    with pytest.raises(ValueError, match=r"^device='tpu' cannot be used here, in float64 \("):
        check_device("tpu", torch.float64)
    with Elsewhere():
        check_device("meta")
        with pytest.raises(ValueError, match=r"in float64 .*which this device does not have"):
            check_device(torch.device("meta"), torch.float64)


@pytest.mark.parametrize(("device", "home"), [("cpu", "cpu"), ("mps", "cpu"), ("meta", "cpu"), ("cuda:1", "cuda:1")])
def test_float64_is_computed_on_the_device_or_on_the_cpu(device, home):
    assert device_of_float64(device) == device_of_float64(torch.device(device)) == home
