import pytest
import torch

from evenhand.search.ascent import AdamAscent, NormalisedAscent, SignAscent


def test_adam_is_that_of_torch():
    point = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    reference = point.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([reference], lr=0.1, maximize=True)
    ascent = AdamAscent(point, 0.1)
    for _ in range(30):
        slope = torch.cos(3 * point) + 2
        ascent.climb(slope)
        reference.grad = torch.cos(3 * reference.detach()) + 2
        optimizer.step()
        torch.testing.assert_close(point, reference.detach(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [AdamAscent, SignAscent, NormalisedAscent])
def test_a_zero_slope_moves_nothing(kind):
    point = torch.ones(4, 2)
    ascent = kind(point, 0.5)
    ascent.climb(torch.zeros(4, 2))
    assert torch.equal(point, torch.ones(4, 2))


def test_sign_and_normalised_steps():
    slope = torch.tensor([[3.0, -4.0], [0.0, 0.1]])
    point = torch.zeros(2, 2)
    SignAscent(point, 0.5).climb(slope)
    assert torch.equal(point, torch.tensor([[0.5, -0.5], [0.0, 0.5]]))
    point = torch.zeros(2, 2)
    NormalisedAscent(point, 10.0).climb(slope)
    torch.testing.assert_close(point, torch.tensor([[6.0, -8.0], [0.0, 10.0]]))


@pytest.mark.parametrize("kind", [AdamAscent, SignAscent, NormalisedAscent])
def test_all_climb_a_hill(kind):
    point = torch.full((3, 2), 4.0)
    ascent = kind(point, 0.05)
    for _ in range(200):
        ascent.climb(-2 * point)  # the hill -|point|^2
    assert point.abs().max() < 0.2
