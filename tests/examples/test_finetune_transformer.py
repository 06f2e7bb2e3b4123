"""The example itself, with a tiny BERT of random weights: nothing is downloaded."""

import json
import shutil

import pytest


@pytest.fixture(scope="module")
def example(load):
    pytest.importorskip("transformers", reason="needs the extra text: pip install evenhand[text]")
    return load("finetune_transformer")


def test_the_fairness_term_starts_after_the_warm_up_however_few_the_steps(example, monkeypatch):
    learned = []
    face = example.fair_metrics.face
    monkeypatch.setattr(example.fair_metrics, "face", lambda *a: learned.append(1) or face(*a))
    comments = example.templates(40, seed=0)
    encoder, tokenizer = example.tiny_bert(comments.texts)
    seen = example.TokenSwap(list(comments.groups.columns))(comments.texts)
    model = example.PooledClassifier(encoder, tokenizer, hidden=8)
    example.finetune(model, comments.texts, comments.y, seen, rho=1.0, k=2, steps=7, batch_size=8)
    assert learned  # it starts at step 2, no multiple of the 25 steps after which it is learned anew


@pytest.mark.slow
def test_fine_tuning_learns_and_versions_are_treated_more_alike(example):
    scores = example.main("tiny", n=300, steps=120)
    plain, fair = scores["plain"], scores["SenSeI"]
    assert plain["last loss"] < 0.6 * plain["first loss"]
    assert plain["BA"] > 0.8
    assert fair["BA"] > 0.75
    assert fair["CTF"] < 0.75 * plain["CTF"]


def test_the_regularizer_reaches_the_encoder(example):
    """The gradient of rho * fair(head, pooled) goes through the head into the transformer."""
    import torch

    from evenhand.fair_metrics import FairMetric
    from evenhand.regularizer import FairRegularizer
    from evenhand.search import GradientSearch

    encoder, tokenizer = example.tiny_bert(["a gay editor", "a straight editor"])
    model = example.PooledClassifier(encoder, tokenizer, hidden=8)
    metric = FairMetric(torch.eye(32)[:, :4])
    fair = FairRegularizer(metric, eps=0.0, search=GradientSearch(subspace_step=1.0, full_steps=0))
    fair(model.head, model.pooled(["a gay editor", "a straight editor"])).backward()
    assert float(model.head[0].weight.grad.abs().sum()) > 0
    assert float(encoder.embeddings.word_embeddings.weight.grad.abs().sum()) > 0


@pytest.fixture
def trainer(monkeypatch):
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate: pip install accelerate")
    # the folder tests/datasets must not be taken for the package of that name
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_goes_on_from_a_checkpoint_with_its_lam(example, trainer, tmp_path):
    whole = example.main("tiny", n=60, steps=6, trainer=True, folder=tmp_path)
    assert {each.name for each in (tmp_path / "SenSeI").iterdir()} == {"checkpoint-3", "checkpoint-6"}
    state = json.loads((tmp_path / "SenSeI" / "checkpoint-3" / "trainer_state.json").read_text())
    halfway = state["stateful_callbacks"]["evenhand"]["attributes"]["lam"]
    assert len({1.0, round(halfway, 6), round(whole["SenSeI"]["lam"], 6)}) == 3
    shutil.rmtree(tmp_path / "SenSeI" / "checkpoint-6")
    again = example.main("tiny", n=60, steps=6, trainer=True, folder=tmp_path)
    assert again["SenSeI"]["lam"] == pytest.approx(whole["SenSeI"]["lam"], abs=1e-3)  # batches come in another order
    assert abs(again["SenSeI"]["lam"] - halfway) > 0.02


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_trainer_treats_versions_more_alike(example, trainer):
    scores = example.main("tiny", n=300, steps=80, trainer=True)
    plain, fair = scores["plain"], scores["SenSeI"]
    assert plain["BA"] > 0.8
    assert fair["BA"] > 0.7
    assert fair["CTF"] < 0.6 * plain["CTF"]
    assert fair["PC"] > plain["PC"]
