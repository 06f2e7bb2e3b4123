"""The models, people and exact values that the tests of certificates share."""

import itertools

import numpy as np
import torch
from torch import nn

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric

A, C, EPS = 0.7, 0.5, 0.01
METRIC = FairMetric(torch.tensor([[1.0], [0.0]], dtype=torch.float64))
BOX = Box([-1.0, -9.0], [1.0, 9.0])
QUICK = {"tune_steps": 12, "tune_rows": 8, "rounds": 4}


def linear_model():
    model = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[A, C]]))
    return model


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(-1, 1, n), rng.uniform(-3, 3, n)])


def exact(x):
    s = A * (1 + np.abs(x[:, 0]))
    return (np.sqrt((s**2).mean()) + C * np.sqrt(EPS)) ** 2


def net(seed=0, outputs=2, hidden=(8,)):
    torch.manual_seed(seed)
    sizes = [3, *hidden, outputs]
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


NET_METRIC = FairMetric(torch.tensor([[1.0, 0.3], [0.0, 1.0], [0.0, 0.5]]))
NET_BOX = Box(-torch.ones(3), torch.ones(3), binary=[0])


def net_people(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    x[:, 0] = np.sign(x[:, 0])
    return x
