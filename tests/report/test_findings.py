"""The sentences of the report."""

import json

import pytest

from evenhand.report.findings import compact, in_100, in_words, number, times
from evenhand.report.page import _dots
from evenhand.tables.read import TableError
from evenhand.workflow.folder import Folder
from evenhand.workflow.output import read_findings


def test_summary_sentences(run_folder):
    f = read_findings(Folder(run_folder))
    assert f.headline.startswith("Of a hundred people, 13 would get another decision")
    assert f.headline.endswith("With the fair model: fewer than one (0.4 on average).")
    assert f.cost == "The price is 3.0 points of balanced accuracy: 83.0% became 80.0%."
    words = " ".join(f.certificate_words)
    assert "With 95% confidence" in words
    assert "at most 0.0123" in words
    assert "24.4 times more" in words  # .3 / .0123


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


def test_large_ratios_are_written_out():
    assert [times(ratio) for ratio in (1.449, 39.04, 998.6, 999.6, 9491.0)] == ["1.45", "39", "999", "1,000", "9,490"]
