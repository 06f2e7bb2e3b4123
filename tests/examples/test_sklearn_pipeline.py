import importlib.util
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_raw_frame_to_fair_decisions():
    scores = load("sklearn_pipeline").main(steps=80, rows=3000)
    assert scores["balanced accuracy"] > 0.7
    assert scores["consistency under sex and race"] > 0.95
