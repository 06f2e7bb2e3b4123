"""Mini-batches against what they promise: every class equally often, rows by weight, parts of ranks that fit."""

import pytest
import torch
from torch import nn

from evenhand import ranks
from evenhand.training.batches import balanced_batches, sampled, streamed, uniform_batches

Y = torch.tensor([0] * 90 + [1] * 9 + [2])


def seeded():
    return torch.Generator().manual_seed(0)


def test_every_class_equally_often():
    for rows in balanced_batches(Y, 30, 20, generator=seeded()):
        assert torch.bincount(Y[rows], minlength=3).tolist() == [10, 10, 10]


def test_a_remainder_goes_to_classes_by_chance():
    counts = torch.stack([torch.bincount(Y[r], minlength=3) for r in balanced_batches(Y, 31, 300, generator=seeded())])
    assert (counts.sum(1) == 31).all()
    assert counts.min() == 10
    assert counts.max() == 11
    assert ((counts == 11).float().mean(0) - 1 / 3).abs().max() < 0.1
    assert all(len(rows) == 2 for rows in balanced_batches(Y, 2, 5, generator=seeded()))  # fewer than the classes


def test_rows_of_a_class_are_drawn_uniformly_or_by_weight():
    y = torch.zeros(4, dtype=torch.long)
    rows = torch.cat(list(balanced_batches(y, 100, 200, generator=seeded())))
    assert (torch.bincount(rows, minlength=4) / len(rows) - 0.25).abs().max() < 0.02
    weight = torch.tensor([0.0, 1.0, 3.0, 0.0])
    rows = torch.cat(list(balanced_batches(y, 100, 200, weight, seeded())))
    assert (torch.bincount(rows, minlength=4) / len(rows) - weight / 4).abs().max() < 0.02


def test_uniform_batches_do_not_look_at_the_classes():
    rows = torch.cat(list(uniform_batches(Y, 100, 100, generator=seeded())))
    shares = torch.bincount(Y[rows], minlength=3) / len(rows)
    assert (shares - torch.tensor([0.9, 0.09, 0.01])).abs().max() < 0.02


def test_a_batch_knows_its_rows():
    x = torch.arange(100.0)[:, None]
    for batch, share in sampled(x, Y, balanced_batches(Y, 12, 3, generator=seeded())):
        assert share == 1.0
        assert torch.equal(batch.x, x[batch.rows])
        assert torch.equal(batch.y, Y[batch.rows])


def test_a_stream_goes_on_behind_what_was_done():
    parts = [(torch.full((2, 1), float(i)), torch.zeros(2)) for i in range(3)]
    first = next(streamed(parts, nn.Linear(1, 1), 4))[0]
    assert first.x[0, 0] == 1.0  # three in the first round, then the second of the next
    single = [(torch.ones(1, 1), torch.zeros(1))]
    assert len(next(streamed(single, nn.Linear(1, 1), 0))[0].x) == 1
    with pytest.raises(ValueError, match="gave no batch"):
        next(streamed(iter([]), nn.Linear(1, 1), 0))


def test_a_stream_ends_with_the_first_rank_that_has_no_more(monkeypatch):
    parts = [(torch.ones(2, 1), torch.zeros(2))]
    monkeypatch.setattr(ranks, "gather", lambda row: [row, [6]])
    assert next(streamed(parts, nn.Linear(1, 1), 0))[1] == 2 / 8  # its share of what both have
    monkeypatch.setattr(ranks, "gather", lambda row: [row, [0]])
    assert next(streamed(parts, nn.Linear(1, 1), 0), None) is None
