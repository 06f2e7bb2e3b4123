import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_metric_frame_and_scorers():
    pytest.importorskip("fairlearn", reason="fairlearn is not installed")
    found = load("scores_elsewhere").main(rows=1500)
    assert found["by group"].index.tolist() == ["Female", "Male"]
    assert 0 < found["consistency"] <= 1
    assert found["gap"] == pytest.approx(float(found["by group"]["balanced accuracy"].diff().abs().iloc[-1]))
