import pickle

import numpy as np
import torch
from sklearn.base import clone

from evenhand.estimators import ERMClassifier
from evenhand.text.worst_version import WorstVersionClassifier

TRAINING = {"hidden": (20,), "steps": 150, "batch_size": 64, "lr": 1e-2, "random_state": 0}


def people(n=400):
    """The label is told by column 1 and, for these people only, by column 0, in which versions differ."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    x = np.column_stack([y + 0.3 * rng.normal(size=n), y + 0.8 * rng.normal(size=n)]).astype(np.float32)
    return x, y


def versions(g=50):
    rng = np.random.default_rng(1)
    values = np.repeat(rng.normal(size=(g, 1, 2)), 4, axis=1)
    values[:, :, 0] = rng.normal(0.5, 1, size=(g, 4))
    return values.astype(np.float32)


def moves(net):
    """How far the decision moves between versions."""
    margin = net._outputs(versions().reshape(-1, 2)) @ np.array([-1.0, 1.0])
    return float(margin.reshape(-1, 4).std(axis=1).mean())


def test_versions_are_treated_more_alike_the_larger_rho():
    x, y = people()
    plain = ERMClassifier(**TRAINING).fit(x, y)
    some, more = (WorstVersionClassifier((versions(),), rho=rho, **TRAINING).fit(x, y) for rho in (0.1, 5.0))
    assert moves(more) < 0.6 * moves(some) < 0.6 * 0.6 * moves(plain)
    assert more.score(x, y) > 0.65  # what column 1 tells


def test_the_same_seed_gives_the_same_network():
    x, y = people()
    net = WorstVersionClassifier((versions(),), rho=1.0, **TRAINING)
    assert np.array_equal(net.fit(x, y)._outputs(x), clone(net).fit(x, y)._outputs(x))


def test_a_pickle_holds_no_data():
    x, y = people()
    net = WorstVersionClassifier((versions(5000),), rho=1.0, **TRAINING).fit(x, y)
    kept = pickle.dumps(net)
    assert len(kept) < 40_000
    assert np.array_equal(pickle.loads(kept)._outputs(x), net._outputs(x))


def test_so_many_are_drawn_as_said():
    net = WorstVersionClassifier((versions(),), rho=1.0, drawn=7, **TRAINING)
    net.fit(*people())  # what a fit needs before there is a loss
    assert net._objective(torch.Generator()).drawn == 7
