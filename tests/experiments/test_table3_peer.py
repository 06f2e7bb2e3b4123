"""The peer's runs: a tiny one where inFairness is installed, and scores of a model that is known."""

import importlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def peer(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    return importlib.import_module("table3_peer")


@pytest.mark.filterwarnings("ignore")  # the peer's own
def test_a_few_steps_give_every_score_and_weights_that_can_be_judged_again(peer, tmp_path):
    pytest.importorskip("inFairness", reason="pip install --no-deps inFairness POT")
    row = peer.run(peer.NAME, 0, steps=2, weights=tmp_path)
    assert all(0 <= row[name] <= 1 for name in ("BA", "S-Con", "GR-Con", "Gap_G RMS", "Gap_R max"))
    kept = np.load(tmp_path / "0.npz")
    assert kept["0.weight"].shape == (100, 41)
    assert kept["2.weight"].shape == (2, 100)
