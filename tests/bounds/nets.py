"""Small problems that the tests of the bounds share."""

import itertools

import torch

from evenhand.bounds.layers import Layer
from evenhand.bounds.problem import Problem
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric


def random_layers(sizes, seed, scale=1.0):
    g = torch.Generator().manual_seed(seed)
    return [
        Layer(
            scale * torch.randn(b, a, generator=g, dtype=torch.float64) / a**0.5,
            0.5 * torch.randn(b, generator=g, dtype=torch.float64),
        )
        for a, b in itertools.pairwise(sizes)
    ]


def with_activations(layers, *kinds):
    """The same layers with other activations: every kind for a share of the units of each hidden layer."""
    given = []
    for layer in layers[:-1]:
        sizes = [len(part) for part in torch.arange(layer.bias.shape[0]).tensor_split(len(kinds))]
        given.append(Layer(3 * layer.weight, layer.bias, tuple(zip(kinds, sizes, strict=True))))
    return [*given, layers[-1]]


def random_metric(d, k, seed, given_sigma=False):
    g = torch.Generator().manual_seed(100 + seed)
    directions = torch.randn(d, k, generator=g, dtype=torch.float64)
    if not given_sigma:
        return FairMetric(directions)
    q = torch.linalg.qr(directions).Q
    project = torch.eye(d, dtype=torch.float64) - q @ q.T
    root = project @ torch.diag(0.5 + torch.rand(d, generator=g, dtype=torch.float64)) @ project
    return FairMetric(sigma=root @ root)


def random_problem(sizes=(5, 12, 2), k=1, seed=0, given_sigma=False, discrete=True):
    d = sizes[0]
    box = Box(-torch.ones(d), torch.ones(d), binary=[0] if discrete else [])
    if discrete:  # column 0 is a sensitive binary column, k further directions are random
        metric = random_metric(d, k + 1, seed)
        directions = metric.directions.clone()
        directions[:, 0] = torch.eye(d, dtype=torch.float64)[0]
        metric = FairMetric(directions)
    else:
        metric = random_metric(d, k, seed, given_sigma) if k else FairMetric.euclidean(d, torch.float64)
    return Problem(random_layers(sizes, seed), metric, box)


def random_points(problem, n, seed):
    g = torch.Generator().manual_seed(1000 + seed)
    low, high = problem.box
    x = low + (high - low) * torch.rand(n, problem.d, generator=g, dtype=torch.float64)
    return problem.box.round(x)


def other_points(problem, x, n, seed):
    """Many x' for each x: uniform, vertices, near, along the fibre. (len(x), 4n, d)"""
    g = torch.Generator().manual_seed(2000 + seed)
    low, high = problem.box
    shape = (len(x), n, problem.d)
    uniform = low + (high - low) * torch.rand(shape, generator=g, dtype=torch.float64)
    vertex = torch.where(torch.rand(shape, generator=g) < 0.5, low, high)
    near = x[:, None] + 0.2 * torch.randn(shape, generator=g, dtype=torch.float64)
    q = torch.linalg.eigh(problem.sigma)
    free = q.eigenvectors[:, q.eigenvalues < 1e-9]
    along = x[:, None] + torch.randn(len(x), n, free.shape[1], generator=g, dtype=torch.float64) @ free.T
    return problem.box.round(torch.cat([uniform, vertex, near, along], 1))
