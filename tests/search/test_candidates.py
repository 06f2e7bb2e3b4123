"""The exact search: equal to a loop over the candidates; the dual of R equal to the primal by linear programming."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar
from torch import nn

from evenhand.fair_metrics import FairMetric
from evenhand.regularizer import FairRegularizer
from evenhand.search import CandidateSearch, DistanceGain
from evenhand.variations import Variations


def candidates(n=6, m=4, d=3, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, m, d))
    return torch.tensor(values[:, 0]), Variations(values, np.arange(n))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 100), lam=st.floats(0, 5), same=st.booleans())
def test_equals_a_loop(seed, lam, same):
    x, variations = candidates(seed=seed)
    metric = FairMetric(torch.eye(3, dtype=torch.float64)[:, :1])
    model = nn.Linear(3, 2).double()
    gain = DistanceGain(model(x).detach())
    found = CandidateSearch(variations, same_individual=same)(model, gain, x, metric, lam)
    for i in range(len(x)):
        options = torch.tensor(variations.values[i])
        reached = (model(options) - model(x[i : i + 1])).square().mean(1)
        price = torch.zeros(len(options)) if same else metric(x[i : i + 1].expand_as(options), options)
        best = (reached - lam * price).max().item()
        assert (found.gain[i] - lam * found.d_x[i]).item() == pytest.approx(max(best, 0.0), abs=1e-9)


def test_strong_duality():
    """inf over lam of lam*eps + mean max_j (d_Y - lam*d_X) is the best coupling, which linprog finds."""
    x, variations = candidates(n=8, m=5)
    metric = FairMetric(torch.eye(3, dtype=torch.float64)[:, :1])
    torch.manual_seed(0)
    model, eps = nn.Linear(3, 2).double(), 0.3
    search, gain = CandidateSearch(variations, same_individual=False), DistanceGain(model(x).detach())

    def dual(lam):
        found = search(model, gain, x, metric, lam)
        return lam * eps + (found.gain - lam * found.d_x).mean().item()

    found = minimize_scalar(dual, bounds=(0, 50), method="bounded", options={"xatol": 1e-9})
    n, m = variations.values.shape[:2]
    options = torch.tensor(variations.values)
    d_y = (model(options) - model(x)[:, None]).square().mean(-1).detach().numpy()
    d_x = np.stack([metric(x, options[:, j]).numpy() for j in range(m)], axis=1)
    rows = np.kron(np.eye(n), np.ones(m))
    primal = linprog(-d_y.ravel(), A_ub=[d_x.ravel()], b_ub=[eps], A_eq=rows, b_eq=np.full(n, 1 / n))
    assert found.fun == pytest.approx(-primal.fun, rel=1e-5)


def test_the_regularizer_takes_it_and_lets_gradients_through():
    x, variations = candidates()
    model = nn.Linear(3, 2).double()
    metric = FairMetric(torch.eye(3, dtype=torch.float64)[:, :1])
    fair = FairRegularizer(metric, eps=0, search=CandidateSearch(variations))
    value = fair(model, x)
    differences = torch.tensor(variations.values) - x[:, None]
    exact = (differences @ model.weight.T).square().mean(-1).amax(1).mean()
    torch.testing.assert_close(value, exact)
    value.backward()
    assert model.weight.grad.abs().sum() > 0


def test_rows_without_variations_keep_themselves_and_any_callable_will_do():
    x = torch.zeros(3, 2)
    variations = Variations(np.array([[[0.0, 0.0], [1.0, 1.0]]]), np.array([1]))
    found = CandidateSearch(variations)(
        lambda z: z.numpy().round(), lambda h: h.sum(1), x, FairMetric.euclidean(2), 1.0
    )
    assert found.x_worst.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert found.gain.tolist() == [0, 2, 0]


def test_candidates_outside_the_box_do_not_count():
    x = torch.zeros(1, 2)
    variations = Variations(np.array([[[0.0, 0.0], [9.0, 0.0], [1.0, 0.0]]]), np.array([0]))
    found = CandidateSearch(variations)(
        lambda z: z, lambda h: h.sum(1), x, FairMetric.euclidean(2), 1.0, bounds=(-2, 2)
    )
    assert found.x_worst.tolist() == [[1, 0]]


def test_errors():
    with pytest.raises(ValueError, match="values \\(g, m, d\\)"):
        CandidateSearch(Variations(np.zeros((2, 3)), np.arange(2)))
    variations = Variations(np.zeros((1, 2, 2)), np.array([5]))
    with pytest.raises(ValueError, match="row 5 but x has 3 rows"):
        CandidateSearch(variations)(torch.sin, lambda h: h.sum(1), torch.zeros(3, 2), FairMetric.euclidean(2), 1.0)


def test_in_mini_batches_everybody_meets_their_own_versions():
    """The mean over batches, drawn in any order with repetition, is the exact value over the rows they hold."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 3, 2))
    rows = np.array([8, 1, 4, 0, 6])
    x = torch.tensor(rng.normal(size=(9, 2)))
    x[rows] = torch.tensor(values[:, 0])
    torch.manual_seed(0)
    model = nn.Linear(2, 2).double()
    exact = torch.zeros(9, dtype=torch.float64)
    reached = ((torch.tensor(values) - torch.tensor(values[:, :1])) @ model.weight.T).square().mean(-1).amax(1)
    exact[rows] = reached.detach()
    fair = FairRegularizer(FairMetric.euclidean(2), eps=0, search=CandidateSearch(Variations(values, rows)))
    for batch in ([0, 1, 2, 3, 4, 5, 6, 7, 8], [6, 2, 6, 8], [7], [3, 5]):
        held = torch.tensor(batch)
        value = fair(model, x[held], held)
        torch.testing.assert_close(value.detach(), exact[held].mean())


def test_strangers_are_refused():
    x, variations = candidates()
    search, gain = CandidateSearch(variations), lambda h: h.sum(1)
    with pytest.raises(ValueError, match="2 of 6 rows differ from version 0"):
        search(torch.sin, gain, x[[1, 0, 2, 3, 4, 5]], FairMetric.euclidean(3), 1.0)
    for unit in (1e-7, 1e7):  # what is rounding and who is a stranger, in any unit
        in_unit = CandidateSearch(Variations(unit * variations.values, variations.rows))
        in_unit(torch.sin, gain, unit * x * (1 + 1e-12), FairMetric.euclidean(3), 1.0)
        with pytest.raises(ValueError, match="2 of 6 rows differ from version 0"):
            in_unit(torch.sin, gain, unit * x[[1, 0, 2, 3, 4, 5]], FairMetric.euclidean(3), 1.0)
    with pytest.raises(ValueError, match="one row of the data for each of the 6 of x"):
        search(torch.sin, gain, x, FairMetric.euclidean(3), 1.0, rows=torch.arange(4))
    with pytest.raises(ValueError, match="versions have 3 features but x has 2"):
        search(torch.sin, gain, x[:, :2], FairMetric.euclidean(2), 1.0)


def test_a_model_may_overwrite_what_it_is_given():
    x, variations = candidates()
    metric, before, found = FairMetric(torch.eye(3, dtype=torch.float64)[:, :1]), x.clone(), []
    for in_place in (True, False):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Hardtanh(-0.5, 0.5, inplace=in_place), nn.Linear(3, 2)).double()
        gain = DistanceGain(model(x.clone()).detach())
        found.append(CandidateSearch(variations, same_individual=False)(model, gain, x, metric, 0.1))
        assert torch.equal(x, before)
    torch.testing.assert_close(found[0].x_worst, found[1].x_worst)
    torch.testing.assert_close(found[0].d_x, found[1].d_x)


def test_an_array_does_not_say_whose_versions_it_holds():
    with pytest.raises(TypeError, match=r"Variations\(values, rows\), .*; got ndarray"):
        CandidateSearch(np.zeros((4, 2, 3)))
