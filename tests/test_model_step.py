import copy
import pickle

import pytest
import torch
from torch import nn

from evenhand import FairMetric, FairRegularizer
from evenhand.model_step import ModelStep


class BehindAutograd(torch.optim.Optimizer):
    """Changes parameters through .data, so that autograd's version counters stand still."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.sub_(0.1)


def lam():
    return torch.tensor(2.0)


def begun(step, model):
    step.begin(model, list(model.parameters()), lam())
    return step.count


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "fused Adam": lambda p: torch.optim.Adam(p, lr=0.1, fused=True),
    "foreach Adam": lambda p: torch.optim.Adam(p, lr=0.1, foreach=True),
    "behind autograd": BehindAutograd,
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_batches_between_two_optimizer_steps_are_one_step(name):
    model, step = nn.Linear(2, 2), ModelStep()
    optimizer = OPTIMIZERS[name](model.parameters())
    for _ in range(2):
        assert begun(step, model) == 0
        assert step.mean(torch.tensor(1.0), 3).item() == 1
        model(torch.ones(1, 2)).sum().backward()
        assert begun(step, model) == 3
        assert step.mean(torch.tensor(5.0), 1).item() == 2  # (3 * 1 + 1 * 5) / 4
        assert step.lam.item() == 2
        optimizer.step()


def test_a_change_by_hand_is_a_step_and_another_models_step_is_not():
    model, other, step = nn.Linear(2, 2), nn.Linear(2, 2), ModelStep()
    foreign = torch.optim.SGD(other.parameters(), lr=0.1)
    begun(step, model)
    step.mean(torch.tensor(1.0), 3)
    other(torch.ones(1, 2)).sum().backward()
    foreign.step()
    assert begun(step, model) == 3
    with torch.no_grad():
        model.weight.sub_(0.1)
    assert begun(step, model) == 0
    step.mean(torch.tensor(1.0), 3)
    assert begun(step, model) == 3
    model.bias.data -= 0.1  # leaves no trace with autograd
    assert begun(step, model) == 0


def test_without_anything_to_accumulate_every_batch_is_a_step():
    model, step = nn.Linear(2, 2), ModelStep()
    with torch.no_grad():
        for _ in range(2):
            assert begun(step, model) == 0
            step.mean(torch.tensor(1.0), 3)
    for _ in range(2):
        step.begin(nn.Identity(), [], lam())
        assert step.count == 0
        step.mean(torch.tensor(1.0), 3)


@pytest.mark.parametrize("kind", [nn.Parameter, lambda t: t.requires_grad_(True)])
@pytest.mark.parametrize("own", ["trainable", "frozen"])
def test_what_is_trained_before_the_model_tells_steps_too(kind, own):
    weight, head, step = kind(torch.ones(2)), nn.Linear(2, 2).requires_grad_(own == "trainable"), ModelStep()
    optimizer = torch.optim.SGD([weight], lr=0.1)
    weight.sum().backward()
    optimizer.step()
    parameters = [p for p in head.parameters() if p.requires_grad]
    for _ in range(2):
        for count in (0, 3):
            people = torch.rand(3, 2, requires_grad=True)  # a leaf as well, and nothing that is trained
            step.begin(head, parameters, lam(), [people, weight])
            assert step.count == count
            step.mean(torch.tensor(1.0), 3)
        optimizer.step()
    step.begin(head, parameters, lam(), [weight])
    step.mean(torch.tensor(1.0), 3)
    weight.data += 1.0
    step.begin(head, parameters, lam(), [weight])
    assert step.count == 0


class Partly(nn.Module):
    """Whose last layer is not used."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return self.used(x)


def test_a_change_behind_autograds_back_is_seen_wherever_it_is():
    model, step = Partly(), ModelStep()
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        model.to(dtype)
        begun(step, model)
        step.mean(torch.tensor(1.0), 3)
        assert begun(step, model) == 3
        model.used.weight.data -= 0.1
        assert begun(step, model) == 0


def counted(step, models, each):
    """How many steps begin while each model is looked at; people are counted from zero in a new step."""
    new = 0
    for model in models:
        new += begun(step, model) == 0
        step.mean(torch.tensor(1.0), 3)
        model(torch.ones(1, 2)).sum().backward()
        if each is not None:
            each[model].step()
    return new


def test_two_models_share_the_steps_of_one_optimizer():
    a, b, step = nn.Linear(2, 2), nn.Linear(2, 2), ModelStep()
    optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
    for _ in range(3):
        assert counted(step, [a, b] * 4, None) == 1
        assert step.count == 24
        optimizer.step()


def test_two_models_with_optimizers_of_their_own_step_together_or_in_turn():
    a, b, step = nn.Linear(2, 2), nn.Linear(2, 2), ModelStep()
    own = {m: torch.optim.SGD(m.parameters(), lr=0.1) for m in (a, b)}
    for _ in range(3):  # both are looked at before both step
        assert counted(step, [a, b] * 4, None) == 1
        for optimizer in own.values():
            optimizer.step()
    for _ in range(3):
        assert counted(step, [a, b], own) == 2


def test_what_is_gone_is_forgotten_and_a_new_model_takes_a_step_of_its_own():
    step = ModelStep()
    for _ in range(2):
        model = nn.Linear(2, 2)
        assert begun(step, model) == 0
        step.mean(torch.tensor(1.0), 3)
        assert begun(step, model) == 3
        del model
        assert len(step.models) == 0


def test_layers_frozen_while_batches_are_accumulated_are_no_step():
    model, step = Partly(), ModelStep()
    trained = list(model.parameters())
    for i, parameters in enumerate((trained, trained[:2], trained)):
        step.begin(model, parameters, lam())
        assert step.count == 3 * i
        step.mean(torch.tensor(1.0), 3)


def test_a_copy_begins_with_a_step_of_its_own():
    model, step = nn.Linear(2, 2), ModelStep()
    begun(step, model)
    step.mean(torch.tensor(1.0), 3)
    for other in (copy.deepcopy(step), pickle.loads(pickle.dumps(step))):
        assert begun(other, model) == 0
    assert begun(step, model) == 3


def test_lam_set_by_hand_between_two_batches_begins_a_step():
    """Whether in place, as an optimizer or a checkpoint does, or as another tensor."""
    fair = FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.1, lam_rule=lambda lam, d_x, eps: lam + 1)
    model, x = nn.Linear(2, 2), torch.rand(8, 2)
    for given in (torch.Tensor.fill_, lambda lam, value: setattr(fair, "lam", torch.tensor(value))):
        fair(model, x).backward()
        given(fair.lam, 5.0)
        fair(model, x).backward()
        assert fair.lam == 6
        fair(model, x).backward()  # accumulated: lam moves from 5 once
        assert fair.lam == 6
