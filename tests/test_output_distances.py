import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenhand.output_distances import (
    absolute_probability,
    centred,
    described,
    mean_squared_logits,
    squared_error,
    total_variation,
)

DISTANCES = [mean_squared_logits, squared_error, absolute_probability, total_variation]
logit = st.floats(-20, 20, allow_nan=False)


def test_by_hand():
    h, other = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    assert mean_squared_logits(h, other).item() == 12.5
    assert squared_error(h, other).item() == 25
    p = torch.sigmoid(torch.tensor(1.0)).item()
    assert absolute_probability(h, other).item() == pytest.approx(p - 0.5)
    assert total_variation(h, other).item() == pytest.approx(p - 0.5)


@pytest.mark.parametrize("distance", DISTANCES)
@given(a=st.tuples(logit, logit), b=st.tuples(logit, logit))
def test_zero_on_itself_symmetric_and_not_negative(distance, a, b):
    h, other = torch.tensor([a]), torch.tensor([b])
    assert distance(h, h).item() == 0
    assert distance(h, other).item() == pytest.approx(distance(other, h).item(), abs=1e-6)
    assert distance(h, other).item() >= 0


@given(a=st.lists(logit, min_size=3, max_size=3), b=st.lists(logit, min_size=3, max_size=3), shift=logit)
def test_total_variation_lies_in_0_1_and_ignores_a_common_shift(a, b, shift):
    h, other = torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64)
    value = total_variation(h, other).item()
    assert 0 <= value <= 1 + 1e-12
    assert total_variation(h + shift, other).item() == pytest.approx(value, abs=1e-9)


def test_absolute_probability_needs_two_logits():
    with pytest.raises(ValueError, match="use total_variation"):
        absolute_probability(torch.zeros(1, 3), torch.zeros(1, 3))


def test_they_know_what_they_are():
    assert [d.name for d in DISTANCES] == ["mean squared logits", "squared error", "|p - p'|", "total variation"]
    assert [d.largest for d in DISTANCES] == [float("inf"), float("inf"), 1.0, 1.0]
    for distance in DISTANCES:
        assert copy.deepcopy(distance) is distance
        assert pickle.loads(pickle.dumps(distance)) is distance
        assert described(distance) is distance
        assert distance.__doc__

    def city_block(h, other):
        return (h - other).abs().sum(-1)

    assert described(city_block).name == "city block"
    assert described(city_block).largest == float("inf")
    assert described(city_block).reading is None


def test_centred_logits_do_not_know_a_shift():
    h = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(centred(h + 7), centred(h))
    torch.testing.assert_close(centred(h).softmax(-1), h.softmax(-1))
    torch.testing.assert_close(centred(h[:, None]), centred(h)[:, None])  # of versions, (n, m, K), too
    torch.testing.assert_close(centred(h[:, :1]), h[:, :1])  # one output: nothing to be shifted against


@given(a=logit, b=logit)
def test_a_single_logit_is_the_log_odds(a, b):
    """The softmax of one number is 1: nobody would ever be treated differently."""
    one, two = (torch.tensor([[v]], dtype=torch.float64) for v in (a, b))
    pair, other = (torch.tensor([[0.0, v]], dtype=torch.float64) for v in (a, b))
    for distance in (absolute_probability, total_variation):
        value = distance(one, two).item()
        assert value == pytest.approx(distance(pair, other).item(), abs=1e-12)
        reading = distance.reading
        change = (reading.change(two[0][:, None]) - reading.change(one[0][:, None])).square().sum().item()
        assert value <= reading.up(change) + 1e-12


@given(a=st.lists(logit, min_size=3, max_size=3), b=st.lists(logit, min_size=3, max_size=3), k=st.integers(2, 3))
def test_a_bound_on_squares_is_one_on_the_distance(a, b, k):
    h, other = (torch.tensor([v[:k]], dtype=torch.float64) for v in (a, b))
    for distance in DISTANCES:
        if distance is absolute_probability and k > 2:
            continue
        change = (distance.reading.change(h.T) - distance.reading.change(other.T)).square().sum().item()
        bound = change if distance.reading.up is None else distance.reading.up(change)
        shown = (centred(h), centred(other)) if distance is mean_squared_logits else (h, other)
        assert distance(*shown).item() <= bound + 1e-9
        if distance.reading.up is None:
            assert distance(*shown).item() == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize("a", [0.3, 1.0, 4.0])
def test_the_bound_on_two_classes_is_reached_by_opposite_margins(a):
    """sigma(a) - sigma(-a) = tanh(a / 2), where the margin changes by 2 a."""
    h, other = torch.tensor([[0.0, a]], dtype=torch.float64), torch.tensor([[a, 0.0]], dtype=torch.float64)
    for distance in (absolute_probability, total_variation):
        change = (distance.reading.change(h.T) - distance.reading.change(other.T)).square().sum().item()
        assert (
            distance(h, other).item()
            == pytest.approx(distance.reading.up(change))
            == pytest.approx(torch.tanh(torch.tensor(a / 2)).item())
        )
