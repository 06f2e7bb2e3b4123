import importlib.util
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fair_training_on_sequences():
    scores = load("sequences").main(steps=60)
    plain, fair = scores["plain"], scores["fair"]
    assert plain["decisions that depend on the level"] > 0.4
    assert fair["decisions that depend on the level"] < 0.5 * plain["decisions that depend on the level"]
    first = next(iter(plain))
    assert fair[first] > plain[first]
