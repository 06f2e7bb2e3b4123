import numpy as np
import pytest
import torch

from evenhand.output_distances import mean_squared_logits, squared_error, total_variation
from evenhand.search.worst_cases import DistanceGain, box, value_and_slope


@pytest.mark.parametrize("distance", [mean_squared_logits, total_variation, squared_error])
def test_value_and_slope_are_the_gain_and_its_gradient(distance):
    h_x, h = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    value, slope = value_and_slope(DistanceGain(h_x, distance), h)
    torch.testing.assert_close(value, distance(h_x, h))
    step = 1e-6
    for j in range(3):
        up, down = h.clone(), h.clone()
        up[:, j] += step
        down[:, j] -= step
        numeric = (distance(h_x, up) - distance(h_x, down)) / (2 * step)
        torch.testing.assert_close(slope[:, j], numeric, rtol=1e-4, atol=1e-6)
    assert not value.requires_grad
    assert not h.requires_grad


def test_box_takes_numbers_and_columns():
    x = torch.zeros(3, 2, dtype=torch.float64)
    assert box(None, x) is None
    low, high = box((0, [1, 2]), x)[:2]
    assert low.tolist() == [0, 0]
    assert high.tolist() == [1, 2]
    assert low.dtype == x.dtype


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((0, [1.0, 2.0, 3.0]), "high must be a number or hold 2 values"),
        ((0, [[1.0], [2.0]]), r"got shape \(2, 1\); those of images or sequences are given flat"),
        ((1.0, 0.0), "low must not exceed high"),
        ((float("nan"), 1.0), "neither may be NaN"),
    ],
)
def test_bad_bounds_are_named(bounds, message):
    with pytest.raises(ValueError, match=message):
        box(bounds, torch.zeros(3, 2))


@pytest.mark.parametrize("high", [0.1, [0.1, 0.1], np.array([0.1, 0.1]), torch.tensor([0.1, 0.1], dtype=torch.float64)])
def test_bounds_have_the_digits_of_x(high):
    assert box((0.0, high), torch.zeros(3, 2, dtype=torch.float64)).high.tolist() == [0.1, 0.1]
    assert box((0.0, high), torch.zeros(3, 2)).high.dtype == torch.float32
