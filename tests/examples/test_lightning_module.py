import pytest


@pytest.mark.filterwarnings("ignore")  # Lightning's own advice about workers and devices
def test_lightning(load):
    pytest.importorskip("lightning", reason="Lightning is not installed: pip install lightning")
    example = load("lightning_module")
    plain, fair = example.main(epochs=4, rho=0.0), example.main(epochs=4)
    mixed = example.main(epochs=4, precision="bf16-mixed")
    assert mixed["changed"] < plain["changed"]
    assert fair["changed"] < plain["changed"]
    assert fair["accuracy"] > 0.6
    assert "fair.lam" in example.FairNet().state_dict()  # saved in every checkpoint
