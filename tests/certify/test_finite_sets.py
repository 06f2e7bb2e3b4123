"""Certificates over finite sets of versions: exact, and oblique moves are free."""

import numpy as np
import pytest
import torch
from torch import nn

from certify.models import net
from evenhand.certify.certify import certify
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import squared_error, total_variation
from evenhand.variations import Variations

OBLIQUE = np.array([0.36, 0.48, 0.8])


def slanted_versions(n, seed=0, scale=1.0):
    """Versions along the oblique direction, which cost nothing, and one that costs something."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1, 3)) * 3
    free = x + rng.normal(size=(n, 3, 1)) * 5 * OBLIQUE
    return scale * np.concatenate([x, free, x + rng.normal(size=(n, 1, 3))], 1)


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e6])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_finite_sets_know_that_oblique_moves_are_free(kind, scale):
    metric = FairMetric(torch.tensor(OBLIQUE[:, None].astype(kind)))  # float32: the direction is off by rounding
    values, weight = slanted_versions(200, scale=scale).astype(kind), torch.tensor([[0.3], [-0.2], [0.1]]) / scale
    model = nn.Linear(3, 1).double()
    with torch.no_grad():
        model.weight.copy_(weight.T)
    cert = certify(model, Variations(values, np.arange(200)), metric, 0.0, output_distance=squared_error, d_y_max=1e3)
    d_y = ((values[:, :1] - values) @ weight.double().numpy())[..., 0] ** 2
    free = d_y[cert.rows][:, :4].max(1).mean()  # version 4 costs something
    assert free > 0.1
    assert cert.r_low == pytest.approx(free, rel=1e-5)
    assert cert.r_high == pytest.approx(free, rel=1e-5)
    assert cert.r_low <= cert.r_high
    assert cert.lower <= cert.upper


def test_finite_sets_cover_in_every_order():
    values = slanted_versions(300, 3)
    model = net(5)
    metric = FairMetric(torch.tensor(OBLIQUE[:, None]))
    with torch.no_grad():
        p = model(torch.tensor(slanted_versions(50_000, 9), dtype=torch.float32)).softmax(-1)
    truth = 0.5 * (p[:, :1] - p).abs().sum(-1)[:, :4].amax(1).mean().item()
    with torch.no_grad():
        p = model(torch.tensor(values, dtype=torch.float32)).softmax(-1)
    order = np.argsort((0.5 * (p[:, :1] - p).abs().sum(-1)[:, :4]).amax(1).numpy())
    for rows in (order, order[::-1]):
        cert = certify(model, Variations(values[rows], np.arange(300)), metric, 0.0, output_distance=total_variation)
        assert cert.lower <= truth <= cert.upper


def test_finite_sets_refuse_people_who_were_seen():
    values = slanted_versions(60)
    people_, given = Variations(values, np.arange(60)), {"output_distance": total_variation}
    with pytest.raises(ValueError, match="10 of 60 held-out rows are also in x_tune"):
        certify(net(5), people_, None, 0.0, x_tune=Variations(values[:10], np.arange(10)), **given)
    with pytest.raises(ValueError, match="3 of 60 held-out rows are also in x_train"):
        certify(net(5), people_, None, 0.0, x_train=values[:3, 0], **given)
    texts = Variations([["her dog", "his dog"], ["her cat", "his cat"]], [0, 1])
    with pytest.raises(ValueError, match="1 of 2 held-out rows are also in x_train"):
        certify(lambda x: x, texts, None, 0.0, x_train=["a bird", "her cat"], **given)


def test_finite_sets_are_exact():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(120, 4, 3))
    model = net(5)
    cert = certify(model, Variations(values, np.arange(120)), None, 0.0, output_distance=total_variation)
    with torch.no_grad():
        p = model(torch.tensor(values[cert.rows], dtype=torch.float32)).softmax(-1)
    exact = 0.5 * (p[:, :1] - p).abs().sum(-1).amax(1).mean().item()
    assert cert.r_low == cert.r_high == pytest.approx(exact, abs=1e-6)
    assert cert.lower <= exact <= cert.upper
    turned = (p.argmax(-1) != p.argmax(-1)[:, :1]).any(1).double().mean().item()
    assert cert.decisions.low == cert.decisions.high == pytest.approx(turned)
    assert cert.decisions.lower <= turned <= cert.decisions.upper
    assert cert.relative.low == pytest.approx(exact / cert.strangers)
    assert cert.relative.lower <= cert.relative.low <= cert.relative.upper
    with pytest.raises(ValueError, match="d_y_max"):
        certify(model, Variations(values, np.arange(120)), None, 0.0)
