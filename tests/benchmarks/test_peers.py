"""Our own column of the comparison holds in every test run; the other one is in the committed results."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
spec = importlib.util.spec_from_file_location("peers", ROOT / "benchmarks" / "peers.py")
peers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(peers)


@pytest.mark.parametrize("trial", [peers.control, *peers.TRIALS], ids=lambda trial: trial.__name__)
def test_our_answer_is_yes(trial):
    assert trial(peers.Ours)
