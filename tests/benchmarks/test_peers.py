"""Our own column of the comparison holds in every test run; the other one is in the committed results."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
spec = importlib.util.spec_from_file_location("peers", ROOT / "benchmarks" / "peers.py")
peers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(peers)


@pytest.mark.parametrize("trial", [peers.control, *peers.TRIALS], ids=lambda trial: trial.__name__)
def test_our_answer_is_yes(trial):
    assert trial(peers.Ours)


def test_the_committed_results_answer_every_trial_for_both():
    results = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text())
    assert set(results) == {trial.__name__ for trial in peers.TRIALS}
    assert all(len(row) == 2 and row["evenhand"] is True for row in results.values())
