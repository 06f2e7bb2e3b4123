"""Every model that a run can hold has a name, a sentence and a colour."""

from types import SimpleNamespace

from evenhand.report.charts import COLOURS
from evenhand.report.names import LONG_NAMES, NAMES, WITHOUT_FAIRNESS
from evenhand.workflow import Settings
from evenhand.workflow.baselines import names_of


def test_whatever_is_trained_can_be_named_and_drawn():
    assert NAMES.keys() == LONG_NAMES.keys() == COLOURS.keys()
    assert len(set(NAMES.values())) == len(NAMES)
    task = SimpleNamespace(schema=SimpleNamespace(regression=False))
    trained = names_of(task, Settings(sensr=True))
    assert set(NAMES) == {*trained, "fair", "fair_network", "fair_trees"}
    assert list(NAMES)[-1] == "fair"  # the tables end with it


def test_what_is_trained_without_fairness_does_nothing_about_it():
    assert [name for name in NAMES if name in WITHOUT_FAIRNESS] == list(WITHOUT_FAIRNESS)
    fair = {"project", "sensr", "fair_network", "fair_trees", "fair"}
    assert set(WITHOUT_FAIRNESS) == set(NAMES) - fair
