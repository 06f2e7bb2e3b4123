"""Whole files or none, finished stages kept."""

import json

import numpy as np
import pandas as pd
import pytest

from evenhand.tables.read import TableError
from evenhand.workflow.folder import Folder, fingerprint, plain


def test_a_stage_is_made_once(tmp_path):
    folder, calls = Folder(tmp_path / "run"), []

    def make():
        calls.append(1)
        return {"x": np.float32(1.5), "bad": float("nan")}

    assert folder.stage("a", make) == {"x": 1.5, "bad": None}
    assert folder.stage("a", make) == {"x": 1.5, "bad": None}
    assert len(calls) == 1


def test_open_goes_on_or_refuses(tmp_path):
    folder = Folder(tmp_path / "run")
    assert folder.open("a") is False
    folder.stage("s", lambda: 1)
    assert folder.open("a") is True
    with pytest.raises(TableError, match="holds another run"):
        folder.open("b")
    assert folder.open("b", overwrite=True) is False
    assert folder.stage("s", lambda: 2) == 2


def test_a_failed_write_leaves_nothing(tmp_path):
    folder = Folder(tmp_path)
    with pytest.raises(TypeError):
        folder.write("a.json", "not bytes")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_fingerprint_sees_data_and_options():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    base = fingerprint(frame, {"seed": 0})
    assert fingerprint(frame.copy(), {"seed": 0}) == base
    assert len({base, fingerprint(frame, {"seed": 1}), fingerprint(frame.assign(a=[1, 3]), {"seed": 0})}) == 3
    assert fingerprint(frame.rename(columns={"a": "c"}), {"seed": 0}) != base


def test_plain_is_json():
    value = {"a": np.arange(2), 3: (np.inf, np.int64(2), np.bool_(True)), "p": pd.Timestamp("2020-01-01")}
    assert json.loads(json.dumps(plain(value))) == {"a": [0, 1], "3": [None, 2, True], "p": "2020-01-01 00:00:00"}


def test_whose_folder_it_is(tmp_path):
    folder = Folder(tmp_path / "run")
    assert folder.open("a") is False
    folder.stage("s", lambda: 1)
    assert folder.open("a", overwrite=True) is False  # asked to start anew
    assert folder.stage("s", lambda: 2) == 2
    other = Folder(tmp_path / "other")
    other.path.mkdir()
    (other.path / ".lock").write_text("17")
    (other.path / "mine.txt").write_text("kept")
    with pytest.raises(TableError, match="is not empty and holds no run"):
        other.open("a")
    (other.path / "mine.txt").unlink()
    assert other.open("a") is False  # a lock alone is nothing


def test_a_folder_that_was_there_stays_and_one_that_was_made_for_nothing_goes(tmp_path):
    there, new = tmp_path / "there", tmp_path / "new"
    there.mkdir()
    for path in (there, new):
        with Folder(path).alone(), pytest.raises(TableError, match="another run is writing"), Folder(path).alone():
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    with Folder(new).alone():
        Folder(new).write_json("a.json", {"city": "Z\u00fcrich"})
    assert [path.name for path in new.iterdir()] == ["a.json"]
    assert "Z\u00fcrich" in (new / "a.json").read_text("utf-8")  # as people read it
    assert (new / "a.json").read_text("utf-8").endswith("}\n")


def test_a_start_that_failed_keeps_nobody_out(tmp_path):
    folder = Folder(tmp_path / "run")
    folder.open("a")
    assert folder.open("b") is False  # nothing was finished: another run may have the folder
    assert folder.open("b") is True
    folder.write("model.text", b"")
    with pytest.raises(TableError, match="holds another run"):
        folder.open("c")
