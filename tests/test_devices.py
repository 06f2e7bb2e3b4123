"""Devices that are not here: on the meta device tensors of two devices cannot meet unseen; a pretended MPS has no
float64."""

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from evenhand import regularizer
from evenhand.domain import Box, FreeBox
from evenhand.fair_metrics import FairMetric
from evenhand.objectives import Batch, SenSeI, SenSR
from evenhand.output_distances import total_variation
from evenhand.regularizer import FairRegularizer, PricedSearch, ratio_rule
from evenhand.search import GradientSearch

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
