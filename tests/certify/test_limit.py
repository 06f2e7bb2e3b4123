"""A limit of time ends what is told of it; a certificate within one is a true statement about whoever was reached."""

import pytest

from certify.models import BOX, EPS, METRIC, NET_BOX, NET_METRIC, QUICK, exact, linear_model, net, net_people, people
from evenhand import certify
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
