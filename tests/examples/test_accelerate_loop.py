import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
def test_accelerate():
    pytest.importorskip("accelerate", reason="Accelerate is not installed: pip install accelerate")
    example = load("accelerate_loop")
    plain, fair = example.main(epochs=4, rho=0.0), example.main(epochs=4)
    assert fair["changed"] < plain["changed"]
    assert fair["accuracy"] > 0.6
    assert fair["lam"] != 1.0
    assert example.main(epochs=4, mixed_precision="bf16")["changed"] < plain["changed"]
