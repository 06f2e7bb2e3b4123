"""What a certificate says, writes and reads."""

import json

import numpy as np
import pytest
from scipy.stats import beta

from evenhand.certify.certificate import Certificate, Individuals
from evenhand.headline import Bracketed

NUMBERS = {
    "r_low": 0.2, "r_high": 0.3, "lower": 0.1, "upper": 0.4, "lam": 2.0, "r_lam_max": 5.0, "delta_everywhere": 0.9,
    "eps": 0.01, "n": 4, "confidence": 0.95, "distance": "mean squared logits",
}  # fmt: skip


def made(**other):
    each = {"each_low": np.array([0.0, 0.1, 0.6, 0.7]), "each_high": np.array([0.2, 0.6, 0.8, 0.9])}
    return Certificate(**{**NUMBERS, **each, "rows": np.arange(4), **other})


@pytest.mark.parametrize(("delta", "answer"), [(0.4, True), (0.39, "undecided"), (0.1, "undecided"), (0.09, False)])
def test_is_dif(delta, answer):
    assert made().is_dif(delta) == answer


def test_gap():
    assert made().gap == pytest.approx(1.5)
    assert made(r_low=0.0).gap == np.inf
    assert made(r_low=0.0, r_high=0.0).gap == 1


def test_share_unfair_is_clopper_pearsons():
    """Two of four surely above .5, three perhaps, at 97.5 % on each side."""
    low, high = made().share_unfair(0.5)
    assert low == pytest.approx(beta.ppf(0.025, 2, 3))
    assert high == pytest.approx(beta.ppf(0.975, 4, 1))
    assert made().share_unfair(0.6)[0] == pytest.approx(beta.ppf(0.025, 1, 4))  # who is at .6 is not above it
    with pytest.raises(ValueError, match="per_person=True"):
        made(each_low=np.zeros(0)).share_unfair(0.5)


def test_the_headline_says_what_is_known_and_nothing_else():
    said = made(relative=Bracketed(0.1, 0.2, 0.05, 0.31), decisions=Bracketed(0, 0.01, 0, 0.021)).headline
    assert "at most 31% as differently as strangers" in said
    assert "no more than 2.1% of decisions" in said
    assert "percentiles" not in said
    assert "nothing can be said relative to strangers" in made().headline
    assert "nothing can be said" in made(relative=Bracketed(0.1, 0.2, 0.05, np.inf)).headline


def test_json_and_back():
    given = made(relative=Bracketed(0.1, 0.2, 0.05, np.inf), percentile=Bracketed(1.0, 2.0, 0.5, 3.0))
    text = given.to_json()
    json.loads(text, parse_constant=pytest.fail)  # no NaN, no Infinity
    again = Certificate.from_json(text)
    assert str(again) == str(given)
    assert again.relative == given.relative
    assert again.decisions is None
    assert np.isnan(again.strangers)
    assert again.seconds == given.seconds == 0
    np.testing.assert_array_equal(again.each_high, given.each_high)


def test_it_says_what_it_assumes():
    assert "drawn independently" in made(tuning_rows=7).assumes
    assert "7 tuning people" in made(tuning_rows=7).assumes
    assert "<script>" not in made(distance="<script>")._repr_html_()


def test_individuals_as_a_table():
    found = Individuals(np.array([0.1]), np.array([0.2]), np.array([[3.0, 4.0]]), np.array([0.01]), 0.01, "d_Y")
    assert found.frame().columns.tolist() == ["lower", "upper", "d_X", "x0", "x1"]
    assert "by at most 0.2" in str(found)
