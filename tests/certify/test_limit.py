"""A limit of time ends what is told of it; a certificate within one is a true statement about whoever was reached."""

import time

import numpy as np
import pytest

from certify.models import BOX, EPS, METRIC, NET_BOX, NET_METRIC, QUICK, exact, linear_model, net, net_people, people
from evenhand import FairMetric, SenSeIBoostingClassifier, audit, certify
from evenhand.certify.certify import HURRIED
from evenhand.certify.limit import TimeLimit

AT_ONCE = 1e-9


def test_no_limit_leaves_progress_as_it_is():
    told: list[str] = []
    assert TimeLimit(None).half(told.append) == told.append
    assert TimeLimit(None).whole(False) is False


def test_over_at_once():
    told: list[str] = []
    limit = TimeLimit(AT_ONCE)
    for ending in (limit.half(told.append), limit.whole(told.append)):
        assert callable(ending)
        with pytest.raises(KeyboardInterrupt):
            ending("so far")
    assert told == ["so far", "so far"]


def test_refused():
    with pytest.raises(ValueError, match="seconds must be above 0"):
        TimeLimit(0.0)
    stream = iter([people(40)])
    with pytest.raises(ValueError, match="random order"):
        certify(linear_model(), stream, METRIC, EPS, BOX, x_tune=people(20, 1), seconds=AT_ONCE, **QUICK)


def test_the_first_people_are_looked_at_whatever_the_time():
    x = people(3 * HURRIED)
    cert = certify(linear_model(), x, METRIC, EPS, BOX, x_tune=people(40, 1), seconds=AT_ONCE, **QUICK)
    assert cert.n == HURRIED
    truth = exact(x[cert.rows])
    assert cert.r_low <= truth * (1 + 1e-9)
    assert truth <= cert.r_high * (1 + 1e-9)


def test_enough_time_gives_what_no_limit_gives():
    x, tuning = net_people(20), net_people(30, 1)
    free, timed = (
        certify(net(), x, NET_METRIC, EPS, NET_BOX, x_tune=tuning, seconds=seconds, **QUICK) for seconds in (None, 1e9)
    )
    assert (free.n, free.r_low, free.r_high, free.upper) == (timed.n, timed.r_low, timed.r_high, timed.upper)


def test_trees_are_searched_less_where_there_is_little_time():
    pytest.importorskip("numba", reason="the search is compiled by numba")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    model = SenSeIBoostingClassifier(FairMetric(np.eye(4)[:, :1]), random_state=0).fit(x, x[:, 0] + x[:, 1] > 0)
    began = time.process_time()
    found = certify(model, x[:40], eps=0.1, bounds=(-5.0, 5.0), x_tune=x[100:140], seconds=1.0)
    assert time.process_time() - began < 15  # minutes without a limit, whoever else is at work on the machine
    assert HURRIED <= found.n <= 40
    low = audit(model, x[:40][found.rows], eps=0.1, bounds=(-5.0, 5.0)).r_low
    assert 0.5 * low <= found.r_low <= found.r_high
    assert low <= found.r_high


def test_how_much_is_left():
    assert TimeLimit(None).left() is None
    assert not TimeLimit(None).half_over()
    limit = TimeLimit(100.0)
    assert 99 < limit.left() <= 100
    assert not limit.half_over()
    short = TimeLimit(0.04)
    time.sleep(0.03)
    assert short.half_over()
    assert TimeLimit(AT_ONCE).left() == 0
    assert TimeLimit(AT_ONCE).half_over()
