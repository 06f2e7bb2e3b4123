"""Rates of groups against counts by hand; nobody is compared with a group of one."""

import numpy as np
import pytest

from evenhand.workflow.groups import four_fifths, group_errors, group_rates


def people(counts):
    """counts: group -> (selected and true, selected and false, missed, rightly not) -> y, codes, group."""
    rows = [
        (y, code, name)
        for name, four in counts.items()
        for (y, code), k in zip([(1, 1), (0, 1), (1, 0), (0, 0)], four)
        for _ in range(k)
    ]
    y, codes, group = (np.array(part) for part in zip(*rows))
    return y, codes, group


def rates_of(counts):
    y, codes, group = people(counts)
    p = np.stack([1 - 0.8 * codes, 0.8 * codes], 1)
    return group_rates(y, codes, p, group, 1, ("1", "2"))


def test_rates_by_hand():
    found = rates_of({"a": (30, 10, 10, 50), "b": (20, 10, 20, 50)})
    a, b = found["rates"]
    assert (a["n"], a["selection"]["rate"], a["tpr"]["rate"]) == (100, 0.4, 0.75)
    assert a["fpr"]["rate"] == pytest.approx(10 / 60)
    assert a["fnr"]["rate"] == 0.25
    assert a["said"] == pytest.approx(0.32)
    assert a["observed"]["rate"] == 0.4
    assert b["selection"]["rate"] == 0.3
    ratio = found["four_fifths"]
    assert ratio["ratio"] == pytest.approx(0.75)
    assert (ratio["lowest"], ratio["highest"]) == ("b", "a")
    assert ratio["interval"][0] < 0.75 < ratio["interval"][1]
    assert ratio["verdict"] == "open"  # with a hundred people
    assert found["per_class"] == pytest.approx({"1": 0.0, "2": 0.25})  # as the table writes them


@pytest.mark.parametrize(("few", "verdict"), [(1000, "not met"), (1900, "met")])
def test_verdicts_with_many_people(few, verdict):
    found = rates_of({"a": (2000, 0, 0, 2000), "b": (few, 0, 0, 4000 - few)})
    assert found["four_fifths"]["verdict"] == verdict


def test_a_group_of_one_takes_part_in_no_comparison():
    found = rates_of({"a": (30, 10, 10, 50), "b": (30, 10, 10, 50), "alone": (0, 0, 1, 0)})
    alone = next(r for r in found["rates"] if r["group"] == "alone")
    assert alone["small"]
    assert found["four_fifths"]["ratio"] == 1
    assert found["max"] == 0  # not 100 %
    assert found["undefined"] == [
        "class '1' in group 'alone' (no rows)",
        "class '2' in group 'alone' (1 rows, fewer than 10)",
    ]
    assert rates_of({"a": (30, 10, 10, 50), "alone": (1, 0, 0, 0)})["four_fifths"] is None


def test_nobody_selected_is_undefined():
    assert rates_of({"a": (0, 0, 50, 50), "b": (0, 0, 50, 50)})["four_fifths"] is None
    zero = rates_of({"a": (0, 0, 50, 50), "b": (40, 0, 10, 50)})["four_fifths"]
    assert (zero["ratio"], zero["interval"][0]) == (0, 0)
    assert four_fifths([]) is None


def test_errors_of_a_quantity():
    y, predicted = np.arange(80.0), np.arange(80.0) + np.repeat([1.0, -3.0], 40)
    found = group_errors(y, predicted, np.repeat(["a", "b"], 40))
    assert [r["error"]["rate"] for r in found["rates"]] == pytest.approx([1, -3])
    assert [r["absolute_error"]["rate"] for r in found["rates"]] == pytest.approx([1, 3])
