import pytest


@pytest.mark.filterwarnings("ignore")
def test_accelerate(load):
    pytest.importorskip("accelerate", reason="Accelerate is not installed: pip install accelerate")
    example = load("accelerate_loop")
    plain, fair = example.main(epochs=4, rho=0.0), example.main(epochs=4)
    assert fair["changed"] < plain["changed"]
    assert fair["accuracy"] > 0.6
    assert fair["lam"] != 1.0
    assert example.main(epochs=4, mixed_precision="bf16")["changed"] < plain["changed"]
