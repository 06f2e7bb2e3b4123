import pickle

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from evenhand import FairMetric, FairRegularizer
from evenhand.datasets import synthetic
from evenhand.regularizer import gradient_rule
from evenhand.search.worst_cases import WorstCases

lightning = pytest.importorskip("lightning", reason="Lightning is not installed: pip install lightning")
pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own advice about workers and devices


class Net(lightning.LightningModule):
    def __init__(self, rho=0.0, fair=None):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
        self.own = [fair]  # in a list: the reference loop keeps it out of the module
        self.rho = rho

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        return loss if self.rho == 0 else loss + self.rho * self.own[0](self.net, batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def shift(model, gain, x, fair_metric, lam, bounds=None, generator=None, rows=None):
    x_worst = x + 0.3
    with torch.no_grad():
        return WorstCases(x_worst, fair_metric(x, x_worst), gain(model(x_worst)))


def regularizer(search=shift):
    return FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.5, search=search, lam_rule=gradient_rule(0.1))


def trained(module, callbacks, batch=16, folder=None, **options):
    X, y = synthetic(32, seed=0)
    data = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    settings = {"max_epochs": 2, "accelerator": "cpu", "logger": False, "enable_checkpointing": False} | options
    trainer = lightning.Trainer(
        callbacks=callbacks, enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder, **settings
    )
    trainer.fit(module, DataLoader(data, batch_size=batch))
    return torch.cat([p.detach().ravel() for p in module.parameters()]), trainer


def made(*args):
    torch.manual_seed(0)
    return Net(*args)


def test_the_callback_does_what_the_term_in_the_loss_does(tmp_path):
    from evenhand.integrations.lightning import FairCallback

    mine, by_hand = regularizer(), regularizer()
    ours, _ = trained(made(), [FairCallback(mine, 5.0)], folder=tmp_path)
    reference, _ = trained(made(5.0, by_hand), [], folder=tmp_path)
    plain, _ = trained(made(), [], folder=tmp_path)
    torch.testing.assert_close(ours, reference)
    assert not torch.allclose(ours, plain)
    assert mine.lam.item() == pytest.approx(by_hand.lam.item())


def test_accumulated_batches_are_one_batch(tmp_path):
    from evenhand.integrations.lightning import FairCallback

    one, four = regularizer(), regularizer()
    weights = [
        trained(made(), [FairCallback(one, 5.0)], 32, tmp_path)[0],
        trained(made(), [FairCallback(four, 5.0)], 8, tmp_path, accumulate_grad_batches=4)[0],
    ]
    torch.testing.assert_close(*weights, rtol=1e-5, atol=1e-6)
    assert one.lam.item() == pytest.approx(four.lam.item(), abs=1e-6)


def test_lam_is_in_the_checkpoint_and_mixed_precision_runs(tmp_path):
    from evenhand.integrations.lightning import FairCallback

    fair = regularizer(None)
    weights, trainer = trained(made(), [FairCallback(fair, 5.0)], folder=tmp_path, precision="bf16-mixed")
    assert torch.isfinite(weights).all()
    trainer.save_checkpoint(tmp_path / "run.ckpt")
    other = regularizer(None)
    callback = FairCallback(other, 5.0)
    stored = torch.load(tmp_path / "run.ckpt", weights_only=True)["callbacks"]
    callback.load_state_dict(next(iter(stored.values())))
    assert other.lam.item() == pytest.approx(fair.lam.item())
    assert fair.lam.item() != 1.0


def test_batches_that_are_no_pairs_and_modules_that_optimise_by_hand_are_told():
    from evenhand.integrations.lightning import FairCallback, first_part

    with pytest.raises(TypeError, match="say what of it are the inputs"):
        first_part({"x": 1})
    module = made()
    module.automatic_optimization = False
    with pytest.raises(ValueError, match="optimises by hand"):
        FairCallback(regularizer(), 1.0).on_fit_start(None, module)
    with pytest.raises(ValueError, match="rho must be zero or positive"):
        FairCallback(regularizer(), -1.0)
    with pytest.raises(ValueError, match="rho must be zero or positive, got '5'"):
        FairCallback(regularizer(), "5")


def test_it_can_be_sent_to_other_processes_as_ddp_spawn_does():
    from evenhand.integrations.lightning import FairCallback

    sent = pickle.loads(pickle.dumps(FairCallback(regularizer(), 5.0)))
    module = made()
    assert sent.rho == 5.0
    assert sent.model(module) is module
