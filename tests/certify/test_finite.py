"""Finite sets against a linear program: the transport of people to their versions that spends at most eps."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch import nn

from evenhand import FairMetric, certify
from evenhand.certify.certificate import Certificate
from evenhand.certify.finite import _rounding, other_versions
from evenhand.counterfactuals import TokenSwap
from evenhand.fair_metrics.metric import free_share
from evenhand.output_distances import squared_error, total_variation
from evenhand.variations import Variations


def exact(d_y, d_x, eps):
    """max of mean sum_j p_ij d_Y_ij with mean sum_j p_ij d_X_ij <= eps and every row of p a distribution."""
    n, m = d_y.shape
    rows = np.kron(np.eye(n), np.ones(m))
    small = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        -d_y.ravel() / d_y.max(), A_ub=[d_x.ravel()], b_ub=[n * eps], A_eq=rows, b_eq=np.ones(n), options=small
    )
    return -found.fun * d_y.max() / n


@pytest.mark.parametrize("eps", [0.0, 0.02, 0.3, 50.0])
def test_the_sample_is_exact(eps):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 4, 3))
    values[:, 1] = values[:, 0] + [1.0, 0.0, 0.0]  # a version that costs nothing
    metric = FairMetric(torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64))
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    tuning = Variations(rng.normal(size=(20, 4, 3)), np.arange(20))
    cert = certify(
        model, Variations(values, np.arange(40)), metric, eps, x_tune=tuning, output_distance=squared_error, d_y_max=1e3
    )
    with torch.no_grad():
        h = model(torch.from_numpy(values))[..., 0].numpy()
    d_y, move = np.square(h - h[:, :1]), values - values[:, :1]
    truth = exact(d_y, np.square(move[..., 1:]).sum(-1), eps)
    assert cert.r_low == pytest.approx(truth, rel=1e-6, abs=1e-12)
    assert cert.r_high == pytest.approx(truth, rel=1e-5, abs=1e-9)
    assert cert.lower <= truth <= cert.upper < 500


def test_without_a_metric_versions_are_the_same_person():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    values = rng.normal(size=(60, 3, 2))
    model = nn.Linear(2, 2).double()
    cert = certify(model, Variations(values, np.arange(60)), None, 0.0, output_distance=total_variation)
    with torch.no_grad():
        p = model(torch.from_numpy(values)).softmax(-1)[..., 1].numpy()
    worst = np.abs(p - p[:, :1]).max(1)[cert.rows]
    assert cert.r_low == pytest.approx(worst.mean())
    np.testing.assert_allclose(cert.each_high, worst, atol=1e-12)
    np.testing.assert_allclose(cert.each_low, worst, atol=1e-12)  # at distance 0 <= eps
    decided = p[cert.rows] > 0.5
    assert cert.decisions.low == pytest.approx((decided != decided[:, :1]).any(1).mean())


def test_the_largest_distance_has_to_be_known():
    people = Variations(np.zeros((60, 2, 2)), np.arange(60))
    with pytest.raises(ValueError, match="give d_y_max"):
        certify(nn.Linear(2, 2), people, None, 0.0)
    loud = Variations(np.random.default_rng(0).normal(size=(60, 2, 2)) * 100, np.arange(60))
    with pytest.raises(ValueError, match="above d_y_max = 1e-06"):
        certify(nn.Linear(2, 1), loud, None, 0.0, output_distance=squared_error, d_y_max=1e-6)


def test_a_distance_that_is_just_the_largest_is_allowed():
    values = np.tile([[[0.0, 1.0], [2.0, 1.0]]], (30, 1, 1)) + np.arange(30.0)[:, None, None] * [1.0, 2.0]
    people, tuning = Variations(values, np.arange(30)), Variations(values + 100, np.arange(30))
    model = nn.Linear(2, 1).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0.0]]))
    given = {"x_tune": tuning, "output_distance": squared_error, "d_y_max": 4.0}
    metric = FairMetric(torch.tensor([[1.0], [0.0]], dtype=torch.float64))
    cert = certify(model, people, metric, 0.0, **given)
    assert cert.r_low == cert.r_high == 4.0  # everybody may move by 2 at no price
    assert cert.free_share == pytest.approx(free_share(metric, values[:, 0]))
    assert cert.free_share == pytest.approx(1 / 5)


def test_the_originals_are_version_zero():
    """How much of the difference between people is free is about them, not about their versions."""
    values = np.random.default_rng(2).normal(size=(40, 2, 2))
    values[:, 1] *= [9.0, 1.0]
    metric = FairMetric(torch.tensor([[1.0], [0.0]], dtype=torch.float64))
    given = {"x_tune": Variations(values[:10], np.arange(10)), "output_distance": total_variation}
    cert = certify(nn.Linear(2, 2).double(), Variations(values[10:], np.arange(30)), metric, 0.1, **given)
    assert cert.free_share == pytest.approx(free_share(metric, values[10:, 0]))


def test_numbers_are_as_exact_as_their_kind():
    for kind in (np.float16, np.float32, np.float64):
        assert _rounding(np.dtype(kind)) == np.finfo(kind).eps / 2
    for kind in (torch.float16, torch.float32, torch.float64):
        assert _rounding(kind) == torch.finfo(kind).eps / 2


TOKENS = ["gay", "deaf", "muslim"]
TEXTS = [f"my {TOKENS[i % 3]} friend sang song{i} with us" for i in range(60)]
SWAP = TokenSwap(TOKENS, everywhere=True)


@pytest.fixture(scope="module")
def reader():
    """A model that minds who is spoken of."""
    bad = [int("gay" in text) for text in TEXTS]
    return make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, bad)


def test_copies_of_texts_buy_no_confidence(reader):
    once, pasted = (certify(reader, SWAP(TEXTS[:40] * k), eps=0.0) for k in (1, 5))
    assert (pasted.n, pasted.copies, once.copies) == (once.n, 160, 0) == (32, 160, 0)
    assert (pasted.lower, pasted.upper) == (once.lower, once.upper)
    assert "160 rows that are copies not counted" in str(pasted)
    assert len({TEXTS[row % 40] for row in pasted.rows}) == pasted.n
    vouched = certify(reader, SWAP(TEXTS[:40] * 5), eps=0.0, distinct_people=True)
    assert (vouched.n, vouched.copies) == (160, 0)
    with pytest.raises(ValueError, match="got 1 in all, the 29 others being copies"):
        certify(reader, SWAP(TEXTS[:1] * 30), eps=0.0)


def test_tuning_and_certified_texts_are_apart(reader):
    with pytest.raises(ValueError, match="also in x_tune"):
        certify(reader, SWAP(TEXTS[:40]), eps=0.0, x_tune=SWAP(TEXTS[30:]))


def test_of_a_classifier_the_default_is_the_total_variation_and_the_worst_version_is_named(reader):
    versions = SWAP(["nobody here", *TEXTS])
    found = certify(reader, versions, eps=0.0)
    given = certify(reader, versions, eps=0.0, output_distance=total_variation)
    assert (found.distance, found.upper) == ("total variation", given.upper)
    p = versions.map(reader.predict_proba).values[..., 1]
    moved = np.abs(p - p[:, :1])[found.rows]
    assert found.worst.moves_by == pytest.approx(moved.max())
    assert found.worst.row in versions.rows
    i = versions.rows.tolist().index(found.worst.row)
    assert abs(p[i, found.worst.version] - p[i, 0]) == pytest.approx(moved.max())
    assert found.worst.words in versions.values[i, found.worst.version]
    assert f"version {found.worst.version} of row {found.worst.row} with {found.worst.words!r}" in str(found)
    again = Certificate.from_json(found.to_json())
    assert again.worst == found.worst
    assert str(again) == str(found)


def test_versions_that_are_repeated_count_once(reader):
    versions = TokenSwap({"faith": ["muslim", "jewish", "hindu", "sikh"], "ears": ["deaf", "hearing"]})(TEXTS)
    assert other_versions(versions) == (1, 3)
    assert "(1 to 3 others of each)" in str(certify(reader, versions, eps=0.0))


def test_nobody_moves_and_no_version_is_the_worst():
    same = Variations(np.ones((30, 2, 2)), np.arange(30))
    assert certify(nn.Linear(2, 2), same, eps=0.0, output_distance=total_variation).worst is None
