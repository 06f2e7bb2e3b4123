"""Where there is little time, everybody is given fewer boxes, and what is said stays true."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from evenhand import Box, FairMetric
from evenhand.bounds import pace as pacing
from evenhand.bounds.forests import BOXES, bound_forest
from evenhand.bounds.pace import FEW, FEWEST, JUDGING, PART, TUNING, Pace, ending, never, seconds_of_a_box
from evenhand.bounds.trees import bound_trees, people
from evenhand.ensembles.read import read_ensemble
from evenhand.search.geometry import Geometry

pytest.importorskip("numba", reason="the search is compiled by numba")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 4))
Y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.3 * RNG.normal(size=200), [-0.3, 0.3])
GEOMETRY = Geometry(FairMetric([[1.0], [0.0], [0.0], [0.0]]), Box(-1.0, 1.0, d=4))
ENSEMBLE = read_ensemble(HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(X, Y > 0))
ROWS, NOTHING = torch.from_numpy(X[:40]), 1e-9


def test_without_a_limit_nothing_is_limited():
    pace = Pace.of(ENSEMBLE, people(GEOMETRY), X, 2000, None, 14, 3)
    assert pace == Pace(200, 2000, 2000)
    assert pace.over is never
    assert not never()
    ending(never)("so far")


def test_the_boxes_fit_into_the_time(monkeypatch):
    arrays = people(GEOMETRY)
    assert seconds_of_a_box(ENSEMBLE, arrays, X) > 0
    monkeypatch.setattr(pacing, "seconds_of_a_box", lambda *given: 1e-4)
    pace = Pace.of(ENSEMBLE, arrays, X[:40], 10**9, 10.0, 14, 3)
    assert pace.tuning * pace.rows * 14 * 1e-4 == pytest.approx(TUNING * 10.0, rel=0.1)
    assert pace.boxes * PART * 3 * 1e-4 == pytest.approx(JUDGING * 10.0, rel=0.1)
    assert not pace.over()
    assert Pace.of(ENSEMBLE, arrays, X[:40], 20, 10.0, 14, 3).boxes == 20
    least = Pace.of(ENSEMBLE, arrays, X[:40], 10**9, NOTHING, 14, 3)
    assert (least.rows, least.tuning, least.boxes) == (FEW, FEWEST, FEWEST)
    assert least.over()
    with pytest.raises(KeyboardInterrupt):
        ending(least.over)("so far")


@pytest.mark.parametrize("votes", [False, True])
def test_a_bound_that_was_found_in_no_time_holds(votes):
    if votes:
        forest = RandomForestClassifier(10, max_depth=5, random_state=0).fit(X, Y)
        ensemble = read_ensemble(forest)
        bound, whole = (bound_forest(ensemble, GEOMETRY, ROWS, 0.01, seconds) for seconds in (NOTHING, 1e9))
        assert whole.boxes == BOXES
    else:
        ensemble = ENSEMBLE
        bound, whole = (bound_trees(ensemble, GEOMETRY, ROWS, 0.01, 0.25, seconds=at) for at in (NOTHING, 1e9))
        assert whole.boxes == 2000
        plain = bound_trees(ensemble, GEOMETRY, ROWS, 0.01, 0.25)
        assert (whole.lam, whole.largest, whole.floor) == (plain.lam, plain.largest, plain.floor)
    assert bound.boxes == FEWEST
    other = RNG.uniform(-1, 1, (len(ROWS), 4))
    change = ensemble(other) - ensemble(ROWS.numpy())
    d_y = 0.5 * np.abs(change).sum(1) if votes else 0.25 * (change**2).sum(1)
    d_x = GEOMETRY.d_x(torch.from_numpy(other) - ROWS).numpy()
    assert (d_y - bound.lam * d_x <= bound.upper(ROWS).upper.numpy() + 1e-12).all()
