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


@pytest.mark.filterwarnings("ignore")  # Lightning's own advice about workers and devices
def test_lightning():
    pytest.importorskip("lightning", reason="Lightning is not installed: pip install lightning")
    example = load("lightning_module")
    plain, fair = example.main(epochs=4, rho=0.0), example.main(epochs=4)
    mixed = example.main(epochs=4, precision="bf16-mixed")
    assert mixed["changed"] < plain["changed"]
    assert fair["changed"] < plain["changed"]
    assert fair["accuracy"] > 0.6
    assert "fair.lam" in example.FairNet().state_dict()  # saved in every checkpoint
