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


@pytest.mark.filterwarnings("ignore")
def test_fair_training(example):
    plain, fair = example.main(steps=40, rho=0.0), example.main(steps=40)
    key = "decisions that depend on the sensitive feature"
    assert fair[key] < plain[key]
    assert fair["accuracy"] > 0.6


@pytest.mark.filterwarnings("ignore")
def test_accumulated_batches_give_the_gradient_of_one_large_batch(example, tmp_path):
    import torch

    from evenhand import FairMetric, FairRegularizer, GradientSearch
    from evenhand.datasets import synthetic

    X, y = synthetic(16, seed=0)
    data = [{"x": torch.tensor(r, dtype=torch.float32), "labels": torch.tensor(label)} for r, label in zip(X, y)]
    steps = []
    for batch, accumulate in ((16, 1), (4, 4)):
        torch.manual_seed(0)
        model = example.Net(2)
        before = torch.cat([p.detach().clone().ravel() for p in model.parameters()])
        # enough steps that the search ends in the same corner of the box whatever noise it started from
        search = GradientSearch(subspace_step=0.5, subspace_steps=20, full_steps=0, starts=4)
        fair = FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.0, bounds=(-1.0, 1.0), search=search)
        arguments = example.TrainingArguments(
            str(tmp_path), max_steps=1, per_device_train_batch_size=batch, gradient_accumulation_steps=accumulate,
            learning_rate=1e-2, optim="sgd", lr_scheduler_type="constant", max_grad_norm=0.0, report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True, seed=0,
        )  # fmt: skip
        example.FairTrainer(model, arguments, train_dataset=data, fair=fair, rho=5.0).train()
        steps.append(torch.cat([p.detach().ravel() for p in model.parameters()]) - before)
    assert steps[0].norm() > 0
    assert torch.allclose(steps[0], steps[1], atol=1e-3 * float(steps[0].abs().max()))
