"""The demo's task is the paper's: its columns, its split, its metric; and its table the paper's scores."""

import numpy as np

from evenhand.datasets import adult
from evenhand.workflow.demo import SPOUSE, demo_task, lines


def test_the_papers_columns_split_and_directions():
    frame, task = demo_task(seed=1)
    train, test = adult(1)
    rows = {name: frame.index[part.frame.index] for name, part in task.parts.items()}
    held_out = rows.pop("held_out")
    np.testing.assert_array_equal(np.sort(held_out), np.sort(test.X.index))
    np.testing.assert_array_equal(np.sort(np.concatenate(list(rows.values()))), np.sort(train.X.index))
    assert task.view.box.d == train.X.shape[1] == 41
    order = np.argsort(held_out)
    np.testing.assert_array_equal(task.parts["held_out"].y[order], test.y[np.argsort(test.X.index)])
    assert set(frame["race"]) == {"White", "Non-White"}
    white = train.race == "White"
    np.testing.assert_array_equal(frame.loc[train.X.index, "race"] == "White", white)
    assert task.view.fair_metric.directions.shape == (41, 4)  # sex, race, and what predicts sex
    assert {flip.name for flip in task.questions} >= {"sex", "race", "sex or race", SPOUSE.name}


def test_a_line_is_consistency_not_change():
    model = {
        "balanced_accuracy": 0.8,
        "changed": {"sex or race": {"share": 0.1}, SPOUSE.name: {"share": 0.25}, "sex": {"share": 0.9}},
        "groups": {"sex": {"rms": 0.05}, "race": {"rms": 0.02}},
        "audit": {"relative": 0.01, "decisions": None},
    }
    (line,) = lines({"models": {"boosted_blind": model}})
    assert line.name == "Boosted trees, blind"
    assert (line.balanced_accuracy, line.spouse_consistency, line.sex_race_consistency) == (0.8, 0.75, 0.9)
    assert (line.gap_sex, line.gap_race, line.relative, line.decisions) == (0.05, 0.02, 0.01, None)
