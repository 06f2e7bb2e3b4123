"""The sentences of the report."""

import json

import pytest

from evenhand.report.findings import compact, in_100, in_words, line_of, number, share_of
from evenhand.report.page import _dots
from evenhand.tables.errors import TableError
from evenhand.workflow.folder import Folder
from evenhand.workflow.output import read_findings


def test_summary_sentences(run_folder):
    f = read_findings(Folder(run_folder))
    assert f.headline == (
        "A search finds similar people whom the fair model treats as differently as 0.05% of how it treats strangers. "
        "For the best model without fairness (boosted trees, blind) it finds 5%."
    )
    assert f.cost == ("The price is 3.0 points (95% interval 2.0 to 4.0) of balanced accuracy: 83.0% against 80.0%.")
    assert "That is within the 3 points" in f.price_is_kept
    words = " ".join(f.certificate_words)
    assert "With 95% confidence" in words
    assert "at most 0.0123" in words
    assert "rows are independent draws" in words
    assert "10 held-out rows with a category that training did not have were left out" in words
    assert f.flipped == "plain"
    assert "from a probability of 0.300 on" in f.threshold_words


def test_each_other_model_is_weighed(run_folder):
    f = read_findings(Folder(run_folder))
    words = {one["key"]: one["words"] for one in f.over_each}
    assert words["plain"].startswith("more accurate by 3.0 points")
    assert "7.5% of how strangers are, against 0.05%" in words["plain"]
    assert "13.0% of its decisions depend on" in words["plain"]
    assert words["project"].startswith("as accurate as far as can be told")
    better = json.loads(json.dumps(f.metrics))
    better["models"]["project"]["audit"]["relative"] = 1e-5
    better["comparisons"]["project"] = {"difference": -0.02, "interval": [-0.03, -0.01]}
    again = type(f)(better, f.made_by, f.frontier, f.certificate)
    assert "consider using it instead" in {o["key"]: o["words"] for o in again.over_each}["project"]
    assert any("Compare with Project" in step for step in again.next_steps)


def test_more_than_strangers_is_said_in_english(run_folder):
    f = read_findings(Folder(run_folder))
    metrics = json.loads(json.dumps(f.metrics))
    metrics["models"]["plain"]["audit"]["relative"] = 3.8
    metrics["models"]["boosted_blind"]["audit"]["relative"] = 1.14
    odd = type(f)(metrics, f.made_by, f.frontier, f.certificate)
    words = {one["key"]: f"{one['is']} {one['words']}" for one in odd.over_each}
    assert "treated 3.8 times as differently as strangers are, against" in words["plain"]
    assert words["plain"].startswith("is ")
    assert words["boosted_blind"].startswith("are ")
    assert odd.headline.endswith("it finds 114%.")


def test_a_price_above_what_was_allowed_is_explained(run_folder):
    f = read_findings(Folder(run_folder))
    metrics = json.loads(json.dumps(f.metrics))
    metrics["chosen"]["within"] = False
    missed = type(f)(metrics, f.made_by, f.frontier, f.certificate)
    assert missed.price_is_kept.startswith("No weight of fairness came within the 3 points")
    assert any(step.startswith("Look at the price") for step in missed.next_steps)
    assert not any(step.startswith("Look at the price") for step in f.next_steps)


def test_a_gain_is_told_with_an_interval_of_its_own_sign(run_folder):
    f = read_findings(Folder(run_folder))
    metrics = json.loads(json.dumps(f.metrics))
    usual = metrics["models"][f.reference]["balanced_accuracy"]

    def told(gain):
        metrics["models"]["fair"]["balanced_accuracy"] = usual + gain
        metrics["comparisons"][f.reference] = {"difference": gain, "interval": [gain - 0.03, gain + 0.03]}
        after = type(f)(metrics, f.made_by, f.frontier, f.certificate)
        return after.cost, after.price_is_kept

    assert told(0.02)[0].endswith("2.0 points more (95% interval -1.0 to +5.0).")
    assert told(0.0)[0].endswith("83.0% against 83.0%, as much (95% interval -3.0 to +3.0).")
    assert told(0.02)[1] == told(0.0)[1] == ""  # nothing was given up
    assert told(-0.02)[1].startswith("That is within the 3 points")


def test_what_to_do_next(run_folder):
    steps = " ".join(read_findings(Folder(run_folder)).next_steps)
    assert "40% of the differences between people are declared free" in steps
    assert "sex = Female may be below four fifths of that of Male" in steps
    assert "Nothing can be said about sex = Other: too few people" in steps


def test_scores_that_say_nothing_are_caught(run_folder):
    f = read_findings(Folder(run_folder))
    metrics = json.loads(json.dumps(f.metrics))
    metrics["models"]["fair"]["auc"] = 0.5
    metrics["models"]["fair"]["audit"]["relative"] = None
    empty = type(f)(metrics, f.made_by, f.frontier, f.certificate)
    assert empty.collapsed
    assert "of no use" in empty.headline
    assert empty.next_steps[0].startswith("Do not use this model")
    assert line_of(metrics["models"]["fair"])["similar/strangers"] == "-"


def test_without_certificate_nothing_is_claimed(run_folder, tmp_path):
    for path in run_folder.glob("*.*"):
        if path.name != "certificate.json":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert "nothing is proved" in read_findings(Folder(tmp_path)).certificate_words[0]
    (tmp_path / "certificate.json").write_text(json.dumps({"refused": "the network has a layer of another kind"}))
    assert "No certificate could be given: the network" in read_findings(Folder(tmp_path)).certificate_words[0]


def test_folders_that_are_no_run(tmp_path, run_folder):
    with pytest.raises(TableError, match="is not a folder"):
        read_findings(Folder(tmp_path / "no"))
    with pytest.raises(TableError, match=r"has no metrics\.json"):
        read_findings(Folder(tmp_path))
    (tmp_path / "metrics.json").write_text("{")
    with pytest.raises(TableError, match="is damaged"):
        read_findings(Folder(tmp_path))
    (tmp_path / "metrics.json").write_text("{}")
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(TableError, match="lacks 'models'"):
        read_findings(Folder(tmp_path))


@pytest.mark.parametrize(
    ("share", "text"), [(0, "none"), (0.01, "fewer than one"), (0.4, "0.4"), (1.0, "1"), (12.6, "13")]
)
def test_in_100(share, text):
    assert in_100(share) == text


def test_numbers_and_json_for_scripts():
    assert number(0.01234) == "0.0123"
    assert number(1.2e-7) == "1.2e-07"
    assert "</script" not in compact({"a": "</script><!--"})
    assert json.loads(compact({"a": "</script>&"})) == {"a": "</script>&"}


def test_nobody_is_a_tenth_of_a_person():
    assert in_words(0.12) == "fewer than one (0.12 on average)"
    assert (in_words(0.01), in_words(0), in_words(3.04), in_words(12.4)) == ("fewer than one", "none", "3", "12")


@pytest.mark.parametrize("share", [0.0, 0.12, 7.0, 38.5, 100.0])
def test_the_marked_area_is_the_share(share):
    full = 5.2**2
    assert sum(dot["r"] ** 2 for dot in _dots(share)) / full == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0034, "0.34%"), (0.53, "53%"), (1.14, "114%"), (1.8, "1.8 times"), (1e-7, "less than 0.001%")],
)
def test_shares(value, text):
    assert share_of(value) == text
