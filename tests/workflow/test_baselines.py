"""The models of a run: what each sees, and that a killed fit goes on."""

import dataclasses
import shutil

import numpy as np
import pytest

from evenhand.tables.errors import TableError
from evenhand.workflow import Folder
from evenhand.workflow.baselines import names_of, train_one, view_of
from evenhand.workflow.trained import Trees


def quiet(text):
    pass


def test_what_each_model_sees(small):
    sees = {
        name: "sex" in view_of(name, small.task).columns for name in (*names_of(small.task, small.settings), "fair")
    }
    assert sees == {
        "plain": True,
        "blind": False,
        "boosted": True,
        "boosted_blind": False,
        "project": False,
        "fair": False,
    }
    with_sensr = names_of(small.task, dataclasses.replace(small.settings, sensr=True))
    assert set(with_sensr) - set(sees) == {"sensr"}


def test_a_finished_model_is_read_and_a_damaged_one_named(small, tmp_path):
    again = train_one("plain", small.task, small.settings, small.folder, quiet)
    frame = small.task.parts["held_out"].frame
    np.testing.assert_array_equal(again.probabilities(frame), small.models["plain"].probabilities(frame))
    assert not list(small.folder.path.rglob("*.checkpoint*"))
    other = Folder(tmp_path)
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "plain.evenhand").write_bytes(b"PK but no model")
    with pytest.raises(TableError, match=r"Delete .*plain\.evenhand and run the same command again"):
        train_one("plain", small.task, small.settings, other, quiet)


def test_an_interrupted_fit_goes_on_to_the_same_weights(small, tmp_path, monkeypatch):
    """Stopped after the checkpoint of half its steps; the damaged or foreign checkpoint of another run is named."""
    from evenhand.training.state import Run

    (tmp_path / "stages").mkdir()
    saved = []

    def save(self, path, identity):
        kept(self, path, identity)
        saved.append(self.step)
        if self.step >= small.settings.steps // 2:
            raise KeyboardInterrupt

    kept = Run.save
    with monkeypatch.context() as patched:
        patched.setattr(Run, "save", save)
        with pytest.raises(KeyboardInterrupt):
            train_one("fair", small.task, small.settings, Folder(tmp_path), quiet, 2)
    assert saved[-1] == small.settings.steps // 2
    assert (tmp_path / "stages" / "fair.checkpoint").exists()
    shutil.copytree(tmp_path, tmp_path / "other")
    with pytest.raises(TableError, match="is the checkpoint of another run"):
        train_one("fair", small.task, small.settings, Folder(tmp_path / "other"), quiet, 3)  # another rho
    finished = train_one("fair", small.task, small.settings, Folder(tmp_path), quiet, 2)
    frame = small.task.parts["held_out"].frame
    np.testing.assert_array_equal(finished.probabilities(frame), small.models["fair"].probabilities(frame))
    assert not (tmp_path / "stages" / "fair.checkpoint").exists()


def test_boosted_trees_are_calibrated_and_learn(small):
    trees = train_one("boosted", small.task, dataclasses.replace(small.settings, trees=40), small.folder, quiet)
    assert isinstance(trees, Trees)
    part = small.task.parts["held_out"]
    assert (trees.codes(part.frame) == part.y).mean() > 0.8
    assert trees.probabilities(part.frame)[:, 1].mean() == pytest.approx(part.y.mean(), abs=0.1)
