"""A metric per token is that of one token, summed."""

import pytest
import torch

from evenhand import Box, FairMetric, SenSeIClassifier, audit, certify
from evenhand.fair_metrics import TokenMetric, per_token


def sigma():
    root = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    return FairMetric(sigma=root.T @ root)


def sequences():
    return torch.randn(2, 5, 7, 4, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("one", [FairMetric(torch.eye(4)[:, :2]), sigma(), FairMetric.euclidean(4)])
def test_the_distance_is_the_sum_over_tokens(one):
    x, x_other = sequences()
    by_hand = sum(one(x[:, t], x_other[:, t]) for t in range(7))
    torch.testing.assert_close(per_token(one)(x, x_other), by_hand)
    slope = torch.autograd.functional.jacobian(lambda delta: per_token(one).cost(delta).sum(), x)
    torch.testing.assert_close(per_token(one).cost_gradient(x), slope)


def test_a_copy_in_another_dtype_keeps_its_mask():
    metric = per_token(FairMetric(torch.eye(4)[:, :1]), mask="there")
    other = metric.matching(sequences()[0].double())
    assert isinstance(other, TokenMetric)
    assert (other.mask, other.directions.dtype) == ("there", torch.float64)
    assert "of each token" in repr(other)


def test_the_file_holds_the_metric_of_one_token(tmp_path):
    metric = per_token(FairMetric(torch.eye(4)[:, :1]))
    metric.save(tmp_path / "metric.npz")
    again = FairMetric.load(tmp_path / "metric.npz")
    x, x_other = sequences()
    torch.testing.assert_close(per_token(again)(x, x_other), metric(x, x_other))


def test_what_is_about_rows_of_one_width_refuses_it():
    """Not a wrong number, also where a row is as wide as a token."""
    metric, x = per_token(FairMetric(torch.eye(4)[:, :1])), torch.rand(80, 4)
    model = torch.nn.Linear(4, 2)
    box = Box.of((0.0, 1.0), 4)
    for use in (
        lambda: metric(x, x),
        lambda: metric.rows(sequences()[0][:, :, :3]),
        lambda: audit(model, x, metric, eps=0.1, bounds=box),
        lambda: certify(model, x, metric, eps=0.1, bounds=box),
        lambda: SenSeIClassifier(metric, steps=1).fit(x.numpy(), torch.arange(80).numpy() % 2),
    ):
        with pytest.raises(ValueError, match=r"one per token, of sequences \(n, T, [4K]\)"):
            use()
    with pytest.raises(ValueError, match="sequences of one length"):
        metric.pairwise(*sequences())
