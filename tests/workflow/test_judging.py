"""Every model before its judges: numbers of the held-out part, pairs within the distance, one person's example."""

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from evenhand.workflow.judging import (
    as_shown,
    certificate,
    comparisons,
    describe,
    example,
    how_many,
    measure,
    positive_code,
    search,
    seldom,
)


@pytest.fixture(scope="module")
def audited(small):
    frame = small.task.parts["held_out"].frame.head(6)
    return frame, search(small.models["plain"], frame, small.task, small.settings)


def test_scores_of_the_held_out_part(small):
    part = small.task.parts["held_out"]
    for model in small.models.values():
        said = measure(model, small.task, small.settings, part)
        assert said["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(part.y, model.codes(part.frame)))
        assert said["n"] == len(part.y)
        assert said["sees"] == (["sex"] if model.name == "plain" else [])
        assert bool(said["people"]) == (model.name == "plain")  # nobody's score changes under a model that is blind
    assert "thresholds" in said  # of the fair one


def test_listed_pairs_are_similar_possible_and_really_decided_so(small, audited):
    frame, found = audited
    said = describe(found, small.models["plain"], frame, small.task, small.settings)
    assert said["r_low"] == found.r_low
    assert said["relative"] == pytest.approx(found.r_low / found.strangers)
    assert said["people"], "sex decides under the plain model, so somebody similar is treated differently"
    assert [p["d_y"] for p in said["people"]] == sorted((p["d_y"] for p in said["people"]), reverse=True)
    for person in said["people"]:
        assert person["d_x"] <= small.settings.eps_certified
        own = small.task.parts["held_out"].frame.loc[[int(person["row"])]]
        other = own.copy()
        for name, (was, would) in person["changed"].items():
            assert was != would
            other[name] = np.float32(would) if name == "pay" else would
        assert set(other["sex"]) <= {"f", "m"}
        p = small.models["plain"].probabilities(other)[0, 1]
        assert person["score_other"] == pytest.approx(p, abs=2e-3)  # as shown: four digits


def test_one_persons_example(small, audited):
    frame, found = audited
    said = describe(found, small.models["plain"], frame, small.task, small.settings)
    measured = {"plain": {"audit": said}, "fair": {}}
    part = small.task.parts["held_out"]
    one = example(small.models, measured, "plain", small.task, part)
    assert set(one["said"]) == {"plain", "fair"}
    y = dict(zip(part.frame.index, part.y))
    assert one["truth"] == str(y[int(one["row"])] + 1)  # the table's own 1 and 2
    assert one["said"]["fair"]["score"] == pytest.approx(
        small.models["fair"].probabilities(part.frame.loc[[int(one["row"])]])[0, 1]
    )
    assert example(small.models, {"plain": {"audit": {"people": []}}}, "plain", small.task, part) is None


def test_comparisons_are_differences(small):
    part = small.task.parts["held_out"]
    ours, theirs = (balanced_accuracy_score(part.y, small.models[n].codes(part.frame)) for n in ("fair", "plain"))
    found = comparisons(small.models, small.task, part)
    assert found.keys() == {"plain"}
    assert found["plain"]["difference"] == pytest.approx(ours - theirs)
    assert found["plain"]["interval"][0] <= ours - theirs <= found["plain"]["interval"][1]


def test_who_is_shown_and_who_is_selected(small):
    people = [{"row": "3", "record": {"sex": "f"}}]
    assert as_shown(people, "none") == []
    assert as_shown(people, "id") == [{"row": "3", "record": {}}]
    assert as_shown(people, "all") == people
    assert positive_code(small.task, small.settings) == 1
    assert positive_code(small.task, dataclasses.replace(small.settings, positive="1")) == 0
    with pytest.raises(ValueError, match="'3', but the target has '1', '2'"):
        positive_code(small.task, dataclasses.replace(small.settings, positive="3"))


def test_fewer_people_in_wide_tables():
    assert [how_many(None, 500, 100, d) for d in (10, 100, 250, 5000)] == [500, 500, 200, 100]
    assert how_many(7, 500, 100, 5000) == 7


def test_what_is_quick_is_silent(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("evenhand.workflow.judging.time.monotonic", lambda: now[0])
    said = []
    tell = seldom(said.append, 15)
    for at in (1, 14, 16, 20, 31, 40):
        now[0] = at
        tell(f"at {at}")
    assert said == ["at 16", "at 31"]


@pytest.mark.parametrize(("part", "says"), [("train", "x_train"), ("tuning", "x_tune")])
def test_nobody_who_trained_or_tuned_is_held_out_for_the_certificate(small, part, says):
    told = []
    found = certificate(small.task, small.settings, small.models["fair"], small.task.parts[part], told.append)
    assert found.keys() == {"refused"}
    assert says in found["refused"]
    assert told[-1] == f"no certificate: {found['refused']}"
