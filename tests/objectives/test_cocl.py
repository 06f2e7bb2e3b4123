import numpy as np
import pytest
import torch
from torch import nn

from evenhand.objectives import Batch
from evenhand.objectives.cocl import CoCL, covariance_by_class


def test_covariance_against_numpy():
    rng = np.random.default_rng(0)
    p, e, y = rng.uniform(size=60), rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    expected = []
    for k in range(3):
        q, f = p[y == k], e[y == k]
        expected.append(np.linalg.norm([np.cov(q, f[:, j], bias=True)[0, 1] for j in range(3)]))
    found = covariance_by_class(torch.tensor(p), torch.tensor(e), torch.tensor(y), 4)  # a class without rows: left out
    assert found.item() == pytest.approx(np.mean(expected), abs=1e-5)


def test_constant_probability_or_embedding_costs_nothing():
    e, y = torch.randn(20, 2), torch.arange(20) % 2
    assert covariance_by_class(torch.full((20,), 0.3), e, y, 2).item() == pytest.approx(0, abs=1e-5)
    assert covariance_by_class(torch.rand(20), torch.ones(20, 2), y, 2).item() == pytest.approx(0, abs=1e-5)


def test_objective_is_loss_plus_penalty_of_the_rows_in_the_batch():
    model, x, y = nn.Linear(3, 2), torch.randn(8, 3), torch.arange(8) % 2
    embedding = torch.randn(100, 2)
    rows = torch.arange(8) * 10
    value = CoCL(embedding, rho=2.0)(model, Batch(x, y, None, rows))
    p = model(x).softmax(-1)[torch.arange(8), y]
    expected = nn.functional.cross_entropy(model(x), y) + 2 * covariance_by_class(p, embedding[rows], y, 2)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(CoCL(embedding, rho=2.0)(model, Batch(x, y)), nn.functional.cross_entropy(model(x), y))


def test_gradient_is_finite_where_the_covariance_vanishes():
    p = torch.full((6,), 0.5, requires_grad=True)
    covariance_by_class(p, torch.zeros(6, 2), torch.zeros(6, dtype=torch.long), 2).backward()
    assert torch.isfinite(p.grad).all()


@pytest.mark.parametrize(
    ("embedding", "rho", "message"),
    [(torch.zeros(3, 0), 1.0, "matrix"), (torch.full((3, 1), torch.nan), 1.0, "NaN"), (torch.zeros(3, 1), -1.0, "rho")],
)
def test_bad_input(embedding, rho, message):
    with pytest.raises(ValueError, match=message):
        CoCL(embedding, rho)
