import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from evenhand import FairMetric, FairRegularizer
from evenhand.datasets import synthetic

skorch = pytest.importorskip("skorch", reason="skorch is not installed: pip install skorch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def net(rho, **options):
    from evenhand.integrations.skorch import FairMixin

    class FairClassifier(FairMixin, skorch.NeuralNetClassifier):
        pass

    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    fair = FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.01, bounds=(-1.0, 1.0), lam=0.1)
    return FairClassifier(
        module, criterion=nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=0.01, max_epochs=10, verbose=0,
        fair=fair, rho=rho, train_split=None, **options,
    )  # fmt: skip


def changed(classifier, X):
    """The share of decisions that depend on the sensitive feature."""
    low, high = (classifier.predict(np.column_stack([np.full(len(X), v, np.float32), X[:, 1]])) for v in (-1, 1))
    return float((low != high).mean())


def test_fair_training_through_skorch():
    X, y = synthetic(512, seed=0)
    X = X.astype(np.float32)
    plain, fair = net(0.0).fit(X, y), net(20.0).fit(X, y)
    assert changed(fair, X) < 0.5 * changed(plain, X)
    assert fair.fair.lam.item() == pytest.approx(0.1)  # the parameter is as it was given
    assert fair.fair_.lam.item() != pytest.approx(0.1, abs=1e-6)


def test_rho_is_a_parameter_like_others():
    classifier = clone(net(20.0)).set_params(rho=3.0)
    assert classifier.get_params()["rho"] == 3.0
    assert classifier.get_params()["fair"].eps == 0.01
    X, y = synthetic(64, seed=0)
    with pytest.raises(ValueError, match="rho must be zero or positive"):
        classifier.set_params(rho=-1.0).fit(X.astype(np.float32), y)
    with pytest.raises(ValueError, match="rho must be zero or positive, got '3'"):
        classifier.set_params(rho="3").fit(X.astype(np.float32), y)
