import pytest
import torch
from torch import nn

from evenhand.objectives import Batch
from evenhand.objectives.adversarial import Adversarial, Adversary, away_from
from evenhand.training.loop import train


def task(n=600, seed=0):
    """The label follows feature 0 plainly and the group (feature 1) by accident."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.randint(0, 2, (n,), generator=generator)
    merit = torch.randn(n, generator=generator)
    y = (merit + 1.5 * (group - 0.5) + 0.3 * torch.randn(n, generator=generator) > 0).long()
    return torch.stack([merit, group.float()], dim=1), y, group


def test_away_from_two_slopes_is_the_least_squares_residual():
    generator = torch.Generator().manual_seed(0)
    g, a, b = (torch.randn(6, generator=generator, dtype=torch.float64) for _ in range(3))
    matrix = torch.stack([a, b], dim=1)
    residual = g - matrix @ torch.linalg.lstsq(matrix, g[:, None]).solution[:, 0]
    torch.testing.assert_close(away_from(g, [a, b], 0.0), residual)
    torch.testing.assert_close(away_from(g, [a, b], 0.5), residual - 0.5 * (a + b))


def test_away_from_collinear_and_zero_slopes():
    g, a = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 0.0])
    torch.testing.assert_close(away_from(g, [a, 2 * a, 0 * a], 0.0), torch.tensor([0.0, 2.0, 3.0]))


def test_value_is_the_loss_and_gradient_is_the_papers():
    """Against the formula, by hand, with one parameter tensor."""
    x, y, group = task(50)
    model = nn.Linear(2, 2, bias=False)
    objective = Adversarial(group, 2, weight=0.3, generator=torch.Generator().manual_seed(1))
    batch = Batch(x, y, None, torch.arange(50))
    loss = nn.functional.cross_entropy(model(x), y)
    (g,) = torch.autograd.grad(loss, model.weight)
    guess = objective.adversary(model(x), y)[0]
    (a,) = torch.autograd.grad(nn.functional.cross_entropy(guess, group), model.weight)
    unit = a / a.norm()
    value = objective(model, batch)
    value.backward()
    torch.testing.assert_close(value.detach(), loss.detach())
    torch.testing.assert_close(model.weight.grad, g - (g * unit).sum() * unit - 0.3 * a)


def test_adversary_of_two_classes_reads_what_the_paper_says():
    adversary = Adversary(2, [2], given_label=True)
    h, y = torch.tensor([[0.2, 1.0], [0.7, -1.0]]), torch.tensor([1, 0])
    s = torch.sigmoid(2 * (h[:, 1] - h[:, 0]))  # 1 + |c| = 2
    features = torch.stack([s, s * (1 - y), s * y], dim=1)
    torch.testing.assert_close(adversary(h, y)[0], adversary.heads[0](features))


def gap(model, x, group):
    """Difference of the mean score between the groups, among equals in label."""
    with torch.no_grad():
        p = model(x).softmax(-1)[:, 1]
    return (p[group == 1].mean() - p[group == 0].mean()).abs().item()


@pytest.mark.parametrize("attributes", [1, 2])
def test_training_hides_the_group(attributes):
    x, y, group = task()
    three = torch.remainder(torch.arange(len(x)), 3)
    sensitive = group if attributes == 1 else torch.stack([group, three], dim=1)
    gaps = []
    for weight in (0.0, 1.0):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
        objective = Adversarial(
            sensitive, 2, weight, given_label=False, lr=0.02, generator=torch.Generator().manual_seed(0)
        )
        if weight == 0:
            objective.forward = objective.plain
        train(model, objective, x, y, steps=400, batch_size=200, lr=0.01, generator=torch.Generator().manual_seed(0))
        gaps.append(gap(model, x, group))
    assert gaps[0] > 0.3
    assert gaps[1] < gaps[0] / 3


def test_evaluation_changes_nothing():
    x, y, group = task(40)
    model, objective = nn.Linear(2, 2), Adversarial(group, 2)
    before = [p.clone() for p in objective.adversary.parameters()]
    objective.eval()
    with torch.no_grad():
        value = objective(model, Batch(x, y))
    torch.testing.assert_close(value, nn.functional.cross_entropy(model(x), y).detach())
    for p, q in zip(before, objective.adversary.parameters()):
        assert torch.equal(p, q)


@pytest.mark.parametrize(
    ("sensitive", "message"),
    [([0.5, 1.0], "group numbers"), ([0, -1], "start at 0"), ([1, 1], "single group"), ([], "group numbers")],
)
def test_bad_groups(sensitive, message):
    with pytest.raises(ValueError, match=message):
        Adversarial(sensitive, 2)


def test_negative_weight():
    with pytest.raises(ValueError, match="weight"):
        Adversarial([0, 1], 2, weight=-1)
