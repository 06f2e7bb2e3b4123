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


@pytest.fixture(scope="module")
def example():
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


@pytest.mark.filterwarnings("ignore")
def test_accumulated_batches_give_the_gradient_of_one_large_batch(example, tmp_path):
    import torch

    from evenhand import FairMetric, FairRegularizer
    from evenhand.datasets import synthetic
    from evenhand.search.worst_cases import WorstCases

    def exact(model, gain, x, fair_metric, lam, bounds=None, generator=None, rows=None):
        """The worst of the two ends of the sensitive feature: no chance in it, so that batches can be compared."""
        ends = torch.stack([torch.stack([torch.full_like(x[:, 0], v), x[:, 1]], 1) for v in (-1.0, 1.0)])
        with torch.no_grad():
            gains = torch.stack([gain(model(end)) for end in ends])
        best = gains.argmax(0)
        x_worst = ends[best, torch.arange(len(x))]
        return WorstCases(x_worst, torch.zeros(len(x)), gains.max(0).values)

    X, y = synthetic(16, seed=0)
    data = [{"x": torch.tensor(r, dtype=torch.float32), "labels": torch.tensor(label)} for r, label in zip(X, y)]
    steps = []
    for batch, accumulate in ((16, 1), (4, 4)):
        torch.manual_seed(0)
        model = example.Net(2)
        before = torch.cat([p.detach().clone().ravel() for p in model.parameters()])
        fair = FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.0, search=exact)
        arguments = example.TrainingArguments(
            str(tmp_path), max_steps=1, per_device_train_batch_size=batch, gradient_accumulation_steps=accumulate,
            learning_rate=1e-2, optim="sgd", lr_scheduler_type="constant", max_grad_norm=0.0, report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True, seed=0,
        )  # fmt: skip
        example.FairTrainer(model, arguments, train_dataset=data, fair=fair, rho=5.0).train()
        steps.append(torch.cat([p.detach().ravel() for p in model.parameters()]) - before)
    assert steps[0].norm() > 0
    assert torch.allclose(steps[0], steps[1], atol=1e-3 * float(steps[0].abs().max()))
