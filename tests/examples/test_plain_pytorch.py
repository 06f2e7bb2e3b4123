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


def test_the_term_makes_decisions_depend_less_on_sex():
    example = load("plain_pytorch")
    plain, fair = example.main(steps=60, rho=0.0), example.main(steps=60)
    assert fair["decisions that depend on sex"] < plain["decisions that depend on sex"]
