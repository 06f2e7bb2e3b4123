import json

import pytest
import torch

from evenhand import FairMetric, FairRegularizer
from evenhand.integrations.memory import kept, restore


def regularizer(lam, generator=None):
    return FairRegularizer(FairMetric([[1.0], [0.0]]), lam=lam, generator=generator)


def test_kept_and_restored_through_text():
    fair = regularizer(0.3, torch.Generator().manual_seed(3))
    torch.rand(5, generator=fair.generator)
    text = json.dumps(kept(fair))
    expected = torch.rand(4, generator=fair.generator)
    fresh = regularizer(1.0, torch.Generator())
    restore(fresh, json.loads(text))
    assert fresh.lam.item() == pytest.approx(0.3)
    torch.testing.assert_close(torch.rand(4, generator=fresh.generator), expected)
    without = regularizer(1.0)
    restore(without, json.loads(text))
    assert without.lam.item() == pytest.approx(0.3)
