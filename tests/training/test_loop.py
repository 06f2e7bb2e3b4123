"""The training loop: batches, validation, divergence, determinism, threads."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from evenhand.fair_metrics import FairMetric
from evenhand.objectives import ERM, Batch, Objective, SenSeI
from evenhand.regularizer import FairRegularizer
from evenhand.training.loop import (
    TrainingDiverged,
    _largest_product,
    balanced_batches,
    threads_for,
    train,
    uniform_batches,
)


def task(n=400, seed=0):
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    return x, (x[:, 0] + 0.5 * x[:, 1] > 0.8).long()


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))


def sensei(rho=1.0):
    metric = FairMetric(torch.eye(3)[:, :1])
    fair = FairRegularizer(metric, bounds=(-5.0, 5.0), generator=torch.Generator().manual_seed(2))
    return SenSeI(fair, rho)


def seeded(seed=1):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("batch_size", [30, 32, 2])
def test_every_class_equally_often(batch_size):
    y = torch.tensor([0] * 90 + [1] * 9 + [7])
    counts = torch.zeros(3)
    for rows in balanced_batches(y, batch_size, 200, None, seeded()):
        assert len(rows) == batch_size
        one = torch.stack([(y[rows] == c).sum() for c in (0, 1, 7)])
        assert one.max() - one.min() <= 1
        counts += one
    torch.testing.assert_close(counts / counts.sum(), torch.full((3,), 1 / 3), rtol=0, atol=0.05)


def test_rows_of_a_class_are_drawn_uniformly_or_by_weight():
    y = torch.tensor([0, 1, 0, 1, 0])
    drawn = torch.cat(list(balanced_batches(y, 100, 200, None, seeded())))
    share = torch.bincount(drawn, minlength=5) / len(drawn)
    torch.testing.assert_close(share, torch.tensor([1 / 6, 1 / 4, 1 / 6, 1 / 4, 1 / 6]), rtol=0, atol=0.01)
    weight = torch.tensor([1.0, 0.0, 3.0, 2.0, 0.0])
    drawn = torch.cat(list(balanced_batches(y, 100, 200, weight, seeded())))
    share = torch.bincount(drawn, minlength=5) / len(drawn)
    torch.testing.assert_close(share, torch.tensor([1 / 8, 0, 3 / 8, 1 / 2, 0]), rtol=0, atol=0.01)
    drawn = torch.cat(list(uniform_batches(y, 100, 200, weight, seeded())))
    share = torch.bincount(drawn, minlength=5) / len(drawn)
    torch.testing.assert_close(share, weight / weight.sum(), rtol=0, atol=0.01)


def test_training_learns_and_records():
    x, y = task()
    model = net()
    seen = []
    history = train(
        model,
        sensei(rho=0.1),
        x,
        y,
        steps=200,
        batch_size=64,
        lr=0.02,
        evaluate_every=50,
        generator=seeded(),
        progress=lambda step, steps, record: seen.append((step, steps)),
    )
    assert F.cross_entropy(model(x), y).item() < 0.6 * F.cross_entropy(net()(x), y).item()
    assert [record["step"] for record in history.records] == [50, 100, 150, 200]
    assert set(history.records[0]) >= {"objective", "loss", "lam", "d_x", "d_y"}
    assert seen == [(50, 200), (100, 200), (150, 200), (200, 200)]
    assert history.steps == 200
    assert not history.stopped_early


def test_same_seed_same_bits():
    x, y = task()
    results = []
    for _ in range(2):
        model = net()
        train(model, sensei(), x, y, steps=30, batch_size=32, generator=seeded())
        results.append(model)
    for a, b in zip(results[0].parameters(), results[1].parameters()):
        assert torch.equal(a, b)


def test_the_global_random_state_is_not_touched():
    x, y = task()
    model, before = net(), torch.get_rng_state()
    train(model, sensei(), x, y, steps=5, batch_size=32, generator=seeded())
    assert torch.equal(before, torch.get_rng_state())


def test_warm_up_is_plain_training():
    x, y = task()
    warm, plain = net(), net()
    train(warm, sensei(), x, y, steps=20, batch_size=32, warm_up=1.0, generator=seeded())
    train(plain, ERM(), x, y, steps=20, batch_size=32, generator=seeded())
    for a, b in zip(warm.parameters(), plain.parameters()):
        assert torch.equal(a, b)
    half, objective = net(), sensei()
    train(half, objective, x, y, steps=20, batch_size=32, warm_up=0.5, generator=seeded())
    assert not torch.equal(half[0].weight, plain[0].weight)


class Counting(ERM):
    """How often it is asked for the plain loss, and for itself."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def plain(self, model, batch):
        self.asked.append("plain")
        return super().plain(model, batch)

    def forward(self, model, batch):
        self.asked.append("whole")
        return super().plain(model, batch)


def test_warm_up_is_a_share_of_the_steps_and_evaluations_are_twenty():
    x, y = task()
    objective = Counting()
    history = train(net(), objective, x, y, steps=40, batch_size=8, warm_up=0.25, generator=seeded())
    assert objective.asked == ["plain"] * 10 + ["whole"] * 30
    assert [record["step"] for record in history.records] == list(range(2, 41, 2))


class Breaking(torch.optim.SGD):
    """Leaves one weight of the last layer undefined."""

    def step(self, closure=None):
        super().step(closure)
        self.param_groups[0]["params"][-1].data[0] = float("nan")


def test_weights_that_are_not_finite_are_no_model():
    x, y = task()
    with pytest.raises(TrainingDiverged, match="the last of 1 steps left non-finite weights"):
        train(net(), ERM(), x, y, steps=1, batch_size=8, optimizer=Breaking, generator=seeded())


def test_zero_weight_rows_do_not_matter():
    x, y = task()
    poisoned, weight = x.clone(), torch.ones(len(x))
    poisoned[:50], weight[:50] = 1e3, 0.0
    a, b = net(), net()
    train(a, ERM(), x, y, steps=30, batch_size=32, sample_weight=weight, generator=seeded())
    train(b, ERM(), poisoned, y, steps=30, batch_size=32, sample_weight=weight, generator=seeded())
    assert torch.equal(a[0].weight, b[0].weight)


def test_early_stopping_restores_the_best():
    """Validation labels are noise, so training soon makes them worse."""
    x, y = task(60)
    validation = (torch.randn(200, 3, generator=seeded(5)), torch.arange(200) % 2)
    model = net()
    history = train(
        model,
        ERM(),
        x,
        y,
        steps=400,
        batch_size=32,
        lr=0.05,
        decay=False,
        validation=validation,
        patience=3,
        evaluate_every=10,
        generator=seeded(),
    )
    assert history.stopped_early
    assert history.records[-1]["step"] < 400
    best = min(history.records, key=lambda record: record["validation"])
    assert history.best_step == best["step"]
    reached = F.cross_entropy(model(validation[0]), validation[1]).item()
    assert reached == pytest.approx(best["validation"], rel=1e-5)


def test_validation_uses_the_fair_objective_and_leaves_lam_alone():
    x, y = task()
    objective = sensei(rho=5.0)
    history = train(
        net(),
        objective,
        x,
        y,
        steps=4,
        batch_size=64,
        validation=(x[:50], y[:50]),
        evaluate_every=4,
        generator=seeded(),
    )
    model, other = net(), sensei(rho=5.0)
    train(model, other, x, y, steps=4, batch_size=64, generator=seeded())
    assert other.regularizer.lam.item() == pytest.approx(objective.regularizer.lam.item())
    loss = F.cross_entropy(model(x[:50]), y[:50]).item()
    assert history.records[-1]["validation"] > loss + 1e-3


class Explodes(Objective):
    def __init__(self, at):
        super().__init__()
        self.calls, self.at = 0, at

    def forward(self, model, batch: Batch):
        self.calls += 1
        value = self.plain(model, batch)
        return value * float("nan") if self.calls == self.at else value


def test_divergence_names_the_step_and_keeps_the_last_good_weights():
    x, y = task()
    model, reference = net(), net()
    with pytest.raises(TrainingDiverged, match="at step 26 of 40"):
        train(model, Explodes(26), x, y, steps=40, batch_size=32, decay=False, evaluate_every=10, generator=seeded())
    train(reference, ERM(), x, y, steps=20, batch_size=32, decay=False, generator=seeded())
    for a, b in zip(model.parameters(), reference.parameters()):
        assert torch.equal(a, b)


def test_modes_and_threads_are_restored():
    x, y = task()
    model, objective = net().eval(), sensei().eval()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        train(model, objective, x, y, steps=3, batch_size=32, generator=seeded())
        assert torch.get_num_threads() == 2
        with pytest.raises(TrainingDiverged):
            train(model, Explodes(2), x, y, steps=3, batch_size=32, generator=seeded())
        assert torch.get_num_threads() == 2
        for work, number in ((10, 1), (2**24 - 1, 1), (2**24, 2)):
            with threads_for(work):
                assert torch.get_num_threads() == number
        with threads_for(10**9):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert not model.training
    assert not objective.training


def test_every_step_is_taken_in_train_mode():
    x, y = task()
    model, objective = net(), sensei()
    seen = []
    model.register_forward_hook(lambda *_: seen.append(all(part.training for part in model.modules())))

    def reports(step, steps, numbers):
        model[0].eval(), objective.regularizer.eval()

    train(model, objective, x, y, steps=4, batch_size=32, evaluate_every=1, progress=reports, generator=seeded())
    assert seen
    assert all(seen)
    assert objective.regularizer.lam != 1.0  # which rests in eval mode


class Watching(ERM):
    def __init__(self):
        super().__init__()
        self.weights = []

    def forward(self, model, batch):
        self.weights.append(model[0].weight.detach().clone())
        return super().forward(model, batch)


@pytest.mark.parametrize("decay", [True, False])
def test_decay_ends_at_rest(decay):
    """The cosine makes the last steps tiny; without it they stay as long as the learning rate says."""
    x, y = task()
    objective = Watching()
    train(net(), objective, x, y, steps=100, batch_size=64, lr=0.01, decay=decay, generator=seeded())
    moves = [(b - a).abs().max().item() for a, b in pairwise(objective.weights)]
    assert (moves[-1] < 0.02 * moves[0]) is decay


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "at least 1"),
        ({"batch_size": 0}, "at least 1"),
        ({"lr": 0.0}, "lr must be positive"),
        ({"warm_up": 1.5}, "share of the steps"),
    ],
)
def test_bad_numbers_are_refused(options, message):
    x, y = task()
    with pytest.raises(ValueError, match=message):
        train(net(), ERM(), x, y, **options)


def test_the_largest_layer_decides_on_threads():
    assert _largest_product(nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 2))) == 35
    assert _largest_product(nn.ReLU()) == 0


def test_progress_is_a_line_an_evaluation_where_nobody_watches(capsys, monkeypatch):
    x, y = task()
    for watched, ends in ((False, "\n\n"), (True, "\r\n")):
        monkeypatch.setattr("sys.stderr.isatty", lambda watched=watched: watched)
        train(net(), ERM(), x, y, steps=2, batch_size=8, progress=True, evaluate_every=1, generator=seeded())
        said = capsys.readouterr().err
        assert "".join(c for c in said if c in "\r\n") == ends
        assert said.startswith("step 1/2  objective ")


def test_rows_must_match():
    x, y = task()
    for wrong in ({"x": x.numpy(), "y": y}, {"x": x, "y": y.tolist()}):
        with pytest.raises(TypeError, match="x and y must be tensors"):
            train(net(), ERM(), **wrong)
    with pytest.raises(ValueError, match="same, positive number of rows"):
        train(net(), ERM(), x, y[:-1])


class Falling(Objective):
    """The validation value that a list says, one after the other; the model does not matter."""

    def __init__(self, values):
        super().__init__()
        self.values, self.modes = list(values), []

    def forward(self, model, batch):
        if self.training:
            return model(batch.x).square().mean()
        self.modes.append(model.training)
        return torch.tensor(self.values.pop(0))


def test_patience_counts_evaluations_without_improvement():
    """Best at the second of eight evaluations, patience 3: the fifth is the last."""
    x, y = task()
    objective = Falling([0.5, 0.25, 0.5, 0.25, 0.75, 0.1, 0.1, 0.1])
    history = train(
        net(), objective, x, y, steps=80, evaluate_every=10, validation=(x[:40], y[:40]), patience=3,
        batch_size=40, generator=seeded(),
    )  # fmt: skip
    assert (history.steps, history.best_step, history.stopped_early) == (50, 20, True)
    assert [record["validation"] for record in history.records] == [0.5, 0.25, 0.5, 0.25, 0.75]


def test_validation_sees_the_model_in_eval_mode():
    x, y = task()
    objective = Falling([1.0] * 4)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    train(model, objective, x, y, steps=20, evaluate_every=10, validation=(x[:80], y[:80]), batch_size=40)
    assert objective.modes == [False] * 4
