"""The state of a run: what is kept, and that a checkpoint brings all of it back."""

import pytest
import torch
from torch import nn

from evenhand import FairMetric, FairRegularizer
from evenhand.objectives import Batch, SenSeI
from evenhand.training.checkpoints import CheckpointError
from evenhand.training.state import Run, agree_on_data, restore, weights


def made(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    search_seed = torch.Generator().manual_seed(seed)
    fair = FairRegularizer(FairMetric([[1.0], [0.0]]), bounds=(-9.0, 9.0), generator=search_seed)
    return Run.start(model, SenSeI(fair, 5.0), 0.01, torch.Generator().manual_seed(seed))


def steps(run, count):
    """So many steps, each on rows that the run's own generator draws."""
    for _ in range(count):
        x = torch.randn(16, 2, generator=run.generator)
        run.optimizer.zero_grad()
        run.objective(run.model, Batch(x, (x[:, 1] > 0).long())).backward()
        run.optimizer.step()
        run.step += 1
    return run


def test_a_run_from_its_checkpoint_ends_in_the_same_bits(tmp_path):
    whole = steps(made(), 7)
    steps(made(), 3).save(tmp_path / "run", {"data": "x"})
    other = made(seed=5)  # other weights, other draws, another lam
    other.resume(tmp_path / "run", {"data": "x"})
    assert other.step == 3
    steps(other, 4)
    for mine, theirs in zip(whole.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert torch.equal(whole.objective.regularizer.lam, other.objective.regularizer.lam)


def test_another_runs_checkpoint_is_refused_by_name(tmp_path):
    made().save(tmp_path / "run", {"rho": 0.0})
    with pytest.raises(CheckpointError, match=r"another run: .*rho"):
        made().resume(tmp_path / "run", {"rho": 50.0})
    fresh = made()
    fresh.resume(tmp_path / "nothing-there", {"rho": 50.0})
    assert fresh.step == 0


def test_the_best_is_the_smallest_so_far():
    run = made()
    for step, value in enumerate([3.0, 1.0, 2.0, 1.0]):
        run.step, run.good = step, (f"weights {step}", {})
        run.keep_best(value)
    assert (run.best[0], run.best_value, run.waited, run.history.best_step) == ("weights 1", 1.0, 2, 1)


def test_kept_weights_are_copies():
    run = made()
    kept = weights(run.model, run.objective)
    steps(run, 2)
    assert not torch.equal(kept[0]["0.weight"], run.model[0].weight)
    restore(run.model, run.objective, kept)
    assert torch.equal(kept[0]["0.weight"], run.model[0].weight)


def test_alone_nobody_can_disagree():
    agree_on_data(torch.zeros(3), None)
