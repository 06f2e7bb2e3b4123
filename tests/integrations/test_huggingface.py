"""The Trainer with a model of transformers' kind, and with a tiny BERT of random weights: nothing is downloaded."""

import json

import pytest
import torch
from torch import nn

from evenhand import FairMetric, FairRegularizer
from evenhand.datasets import synthetic
from evenhand.regularizer import gradient_rule
from evenhand.search.worst_cases import WorstCases

pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="the Trainer needs accelerate: pip install accelerate")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def no_datasets(monkeypatch):
    """The folder tests/datasets must not be taken for the package of that name."""
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


class Scaled(Net):
    """Takes the number of items of all accumulated batches, as the models of transformers do."""

    accepts_loss_kwargs = True

    def forward(self, x, labels=None, num_items_in_batch=None, **kwargs):
        logits = self.layers(x)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits, labels, reduction="sum") / (num_items_in_batch or len(x))
        return {"loss": loss, "logits": logits}


def shift(model, gain, x, fair_metric, lam, bounds=None, generator=None, rows=None):
    """A fixed move: no chance in it, so that batches can be compared."""
    x_worst = x + 0.3
    with torch.no_grad():
        return WorstCases(x_worst, fair_metric(x, x_worst), gain(model(x_worst)))


def people(n=16):
    X, y = synthetic(n, seed=0)
    return [{"x": torch.tensor(r, dtype=torch.float32), "labels": torch.tensor(label)} for r, label in zip(X, y)]


def trained(folder, model, fair, resume=None, rho=5.0, data=None, **options):
    from transformers import TrainingArguments

    from evenhand.integrations.huggingface import FairTrainer

    settings = {
        "max_steps": 4, "per_device_train_batch_size": 4, "learning_rate": 1e-2, "optim": "sgd", "report_to": [],
        "lr_scheduler_type": "constant", "max_grad_norm": 0.0, "save_strategy": "no", "logging_strategy": "no",
        "disable_tqdm": True, "use_cpu": True, "seed": 0,
    } | options  # fmt: skip
    arguments = TrainingArguments(str(folder), **settings)
    trainer = FairTrainer(model, arguments, train_dataset=data or people(), fair=fair, rho=rho)
    trainer.train(resume_from_checkpoint=resume)
    return torch.cat([p.detach().ravel() for p in model.parameters()])


def regularizer(**options):
    options = {"eps": 0.5, "search": shift, "lam_rule": gradient_rule(0.1)} | options
    return FairRegularizer(FairMetric([[1.0], [0.0]]), **options)


def made(kind=Net):
    torch.manual_seed(0)
    return kind()


@pytest.mark.parametrize("kind", [Net, Scaled])
def test_accumulated_batches_are_one_batch_for_weights_and_lam(kind, tmp_path):
    weights, lams = [], []
    for batch, accumulate in ((16, 1), (4, 4)):
        model, fair = made(kind), regularizer()
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        weights.append(
            trained(tmp_path, model, fair, per_device_train_batch_size=batch, gradient_accumulation_steps=accumulate)
        )
        lams.append(fair.lam.item())
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-4, atol=1e-5)
    assert lams[0] == pytest.approx(lams[1], abs=1e-6)
    assert lams[0] != pytest.approx(1.0, abs=0.01)


def test_lam_and_the_random_numbers_go_on_from_a_checkpoint(tmp_path):
    def fair():
        return regularizer(search=None, generator=torch.Generator().manual_seed(1), eps=0.05)

    whole = fair()
    expected = trained(tmp_path / "whole", made(), whole, max_steps=4)
    first = fair()
    options = {"save_strategy": "steps", "save_steps": 2}
    trained(tmp_path / "part", made(), first, max_steps=4, **options)
    state = json.loads((tmp_path / "part" / "checkpoint-2" / "trainer_state.json").read_text())
    assert state["stateful_callbacks"]["evenhand"]["attributes"]["lam"] != whole.lam.item()
    again = fair()
    resumed = trained(tmp_path / "part", made(), again, resume=str(tmp_path / "part" / "checkpoint-2"), max_steps=4)
    torch.testing.assert_close(resumed, expected, rtol=1e-5, atol=1e-6)
    assert again.lam.item() == pytest.approx(whole.lam.item(), abs=1e-7)


@pytest.mark.parametrize("who", ["the best model", "a callback that comes last"])
def test_lam_is_in_a_checkpoint_whoever_asked_for_it(who, tmp_path):
    from transformers import TrainerCallback, TrainingArguments

    from evenhand.integrations.huggingface import FairTrainer

    class Asks(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            control.should_save = state.global_step == 2

    best = {"save_strategy": "best", "eval_strategy": "steps", "eval_steps": 2, "metric_for_best_model": "eval_loss"}
    arguments = TrainingArguments(
        str(tmp_path), max_steps=2, per_device_train_batch_size=4, report_to=[], logging_strategy="no",
        disable_tqdm=True, use_cpu=True, seed=0, **best if who == "the best model" else {"save_strategy": "no"},
    )  # fmt: skip
    fair = regularizer()
    trainer = FairTrainer(made(), arguments, train_dataset=people(), eval_dataset=people(), fair=fair, rho=5.0)
    if who != "the best model":
        trainer.add_callback(Asks())
    trainer.train()
    state = json.loads((tmp_path / "checkpoint-2" / "trainer_state.json").read_text())
    assert state["stateful_callbacks"]["evenhand"]["attributes"]["lam"] == fair.lam.item() != 1.0


def test_mixed_precision_and_plain_evaluation(tmp_path):
    model, fair = made(), regularizer(search=None)
    weights = trained(tmp_path, model, fair, bf16=True)
    assert torch.isfinite(weights).all()
    assert fair.lam.item() != 1.0


def test_a_transformer_whose_embeddings_move(tmp_path):
    from transformers import BertConfig, BertForSequenceClassification, TrainingArguments

    from evenhand.integrations.huggingface import FairTrainer

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=2
    )
    model = BertForSequenceClassification(config)
    tokens = torch.randint(20, (8, 6))
    data = [{"input_ids": t, "attention_mask": torch.ones(6, dtype=torch.long), "labels": t[0] % 2} for t in tokens]
    fair = FairRegularizer(FairMetric(torch.eye(8)[:, :2]), at="bert.pooler", lam=0.01)
    arguments = TrainingArguments(
        str(tmp_path), max_steps=2, per_device_train_batch_size=4, report_to=[], save_strategy="no",
        logging_strategy="no", disable_tqdm=True, use_cpu=True, seed=0, bf16=True,
    )  # fmt: skip
    trainer = FairTrainer(model, arguments, train_dataset=data, fair=fair, rho=5.0)
    trainer.train()
    assert fair.lam.item() != pytest.approx(0.01, abs=1e-9)
    inputs = {"input_ids": tokens, "attention_mask": torch.ones(8, 6, dtype=torch.long)}
    result = fair.eval().evaluate(trainer.model, inputs)
    assert result.found.x_worst.shape == (8, 8)


@pytest.mark.parametrize("rho", [-1.0, "5"])
def test_rho_below_zero_is_refused(rho, tmp_path):
    with pytest.raises(ValueError, match=f"rho must be zero or positive, got {rho!r}"):
        trained(tmp_path, made(), regularizer(), rho=rho)


class Deaf(Net):
    """Takes the number of items, as its signature says, and gives the mean over the batch all the same."""

    accepts_loss_kwargs = True

    def forward(self, x, labels=None, **kwargs):
        return super().forward(x, labels)


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=2,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return BertForSequenceClassification(config)


@pytest.mark.parametrize("kind", [Net, Scaled, Deaf, bert])
def test_rho_weighs_the_same_however_many_batches_are_accumulated(kind, tmp_path):
    """One step over the same 16 people, as one batch and as four: the loss and R(h) have the same shares in it, whether
    the Trainer averages the model's loss over the four or, as for a BERT, adds it up."""
    tokens = torch.randint(20, (16, 6), generator=torch.Generator().manual_seed(0))
    data = [{"input_ids": t, "attention_mask": torch.ones(6, dtype=torch.long), "labels": t[0] % 2} for t in tokens]
    steps = {}
    for rho in (0.0, 50.0):
        for batch, accumulate in ((16, 1), (4, 4)):
            torch.manual_seed(0)
            model = kind()
            for module in model.modules():
                module.p = 0.0 if isinstance(module, nn.Dropout) else getattr(module, "p", None)
            at = {"at": "bert.pooler"} if kind is bert else {}
            metric = FairMetric(torch.eye(8 if at else 2)[:, :1])
            fair = FairRegularizer(metric, eps=0.5, search=shift, lam_rule=gradient_rule(0.1), **at)
            before = torch.cat([p.detach().ravel().clone() for p in model.parameters()])
            options = {"max_steps": 1, "per_device_train_batch_size": batch, "learning_rate": 1.0}
            more = {"gradient_accumulation_steps": accumulate, "data": data if at else None}
            steps[rho, accumulate] = trained(tmp_path, model, fair, rho=rho, **options, **more) - before
    added_up = 4.0 if kind in (Deaf, bert) else 1.0  # by the Trainer itself
    for rho in (0.0, 50.0):
        torch.testing.assert_close(steps[rho, 4], added_up * steps[rho, 1], rtol=1e-3, atol=1e-5)
    fairness = steps[50.0, 1] - steps[0.0, 1]
    assert fairness.norm() > 0.1 * steps[0.0, 1].norm()
