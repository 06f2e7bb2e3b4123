import pytest


@pytest.fixture(scope="module")
def example(load):
    pytest.importorskip("transformers", reason="needs the extra text: pip install evenhand[text]")
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate: pip install accelerate")
    return load("huggingface_trainer")


@pytest.fixture(autouse=True)
def no_datasets(example, monkeypatch):
    """The folder tests/datasets must not be taken for the package of that name."""
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)


@pytest.mark.filterwarnings("ignore")
def test_fair_training(example):
    plain, fair = example.main(steps=40, rho=0.0), example.main(steps=40)
    key = "decisions that depend on the sensitive feature"
    assert fair[key] < plain[key]
    assert fair["accuracy"] > 0.6
    assert example.main(steps=40, bf16=True)[key] < plain[key]
