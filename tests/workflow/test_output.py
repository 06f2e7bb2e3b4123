"""The finished folder: complete, and a message where somebody has altered it."""

import hashlib
import json
import shutil

import pandas as pd
import pytest
from report.conftest import run_folder  # noqa: F401  (a fixture: the files of a run, made by hand)

from evenhand.tables.errors import TableError
from evenhand.workflow import Folder
from evenhand.workflow.output import data_hash, summary, write_report


@pytest.fixture
def copy(run_folder, tmp_path):  # noqa: F811
    """A finished run that may be damaged."""
    shutil.copytree(run_folder, tmp_path / "run")
    return tmp_path / "run"


def test_the_report_is_made_from_the_files_alone(copy):
    write_report(Folder(copy))
    page, card = ((copy / name).read_text() for name in ("report.html", "model_card.md"))
    assert "Fair (SenSeI)" in page
    assert card.startswith("---")
    said = summary(Folder(copy))
    assert set(said["models"]) == set(json.loads((copy / "metrics.json").read_text())["models"])


DEEP = "[" * 100_000
HOSTILE = {
    "metrics.json": ["", "[]", "7", "null", DEEP, '{"models": 3}', b"\xff\xfe\x00", '{"a": 1e999}', "NaN"],
    "run.json": ["", "[1]", '"text"', DEEP],
    "certificate.json": ["", "3", '{"upper": "large", "confidence": []}', '{"upper": null, "confidence": 0.9}', DEEP],
    "frontier.csv": ["rho,accuracy\n1,2\n", "rho,accuracy,unfairness,front\nmuch,1,1,True\n"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in HOSTILE.items() for text in texts])
def test_files_that_somebody_altered(copy, name, text):
    (copy / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    before = (copy / "report.html").read_bytes() if (copy / "report.html").exists() else None
    with pytest.raises(TableError, match=r"metrics\.json|run\.json|certificate\.json|frontier\.csv"):
        write_report(Folder(copy))
    assert ((copy / "report.html").read_bytes() if before is not None else None) == before


@pytest.mark.parametrize("wrong", [None, [1, "text"]], ids=repr)
def test_a_value_of_another_kind_is_shown_or_refused(copy, wrong):
    """Whatever is put in place of a value: a page, or a message; never another exception."""
    whole = json.loads((copy / "metrics.json").read_text())
    places = [("models", "fair"), ("models", "fair", "audit"), ("models", "fair", "changed"), ("settings", "hidden")]
    places += [("schema", "sensitive"), ("comparisons", "plain"), ("example", "said"), ("columns",)]
    refused = 0
    for path in places:
        tree = json.loads(json.dumps(whole))
        inside = tree
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = wrong
        (copy / "metrics.json").write_text(json.dumps(tree))
        try:
            write_report(Folder(copy))
        except TableError:
            refused += 1
    assert refused >= 4


def test_the_hash_is_of_the_file_or_of_the_values(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert data_hash(str(tmp_path / "a.csv"), frame) == hashlib.sha256((tmp_path / "a.csv").read_bytes()).hexdigest()
    assert data_hash(None, frame) == data_hash("-", frame.copy()) != data_hash(None, frame + 1)
