"""The certificate: true on models whose R is known, and what it says holds."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from torch import nn

from certify.models import (
    BOX,
    EPS,
    METRIC,
    NET_BOX,
    NET_METRIC,
    QUICK,
    A,
    C,
    exact,
    linear_model,
    net,
    net_people,
    people,
)
from evenhand.audit import audit
from evenhand.bounds.layers import CannotCertify
from evenhand.certify.certificate import Certificate
from evenhand.certify.certify import certify, certify_individuals
from evenhand.certify.statement import searched
from evenhand.dual.confidence import empirical_bernstein_upper, hoeffding_upper
from evenhand.fair_metrics.metric import FairMetric
from evenhand.headline import percent
from evenhand.output_distances import absolute_probability, centred, squared_error, total_variation


@pytest.fixture(scope="module")
def linear_certificate():
    return certify(linear_model(), people(300), METRIC, EPS, BOX, x_tune=people(40, 1), **QUICK)


def test_a_linear_model_is_certified_almost_exactly(linear_certificate):
    cert = linear_certificate
    truth, population = exact(people(300)), exact(people(200_000, 9))
    assert cert.r_low <= truth + 1e-9 <= cert.r_high + 2e-9
    assert cert.gap <= 1.05
    assert cert.lower <= population <= cert.upper
    worst = (2 * A + C * EPS**0.5) ** 2  # at x_0 = 1; the weights are float32
    assert worst * (1 - 1e-7) <= cert.delta_everywhere <= 1.01 * worst
    assert cert.lower <= cert.r_high
    assert cert.r_high <= cert.upper


def test_what_the_certificate_says(linear_certificate):
    cert = linear_certificate
    assert cert.is_dif(cert.upper) is True
    assert cert.is_dif(cert.lower * 0.99) is False
    assert cert.is_dif((cert.lower + cert.upper) / 2) == "undecided"
    low, high = cert.share_unfair(0.5)
    truth = ((A * (1 + np.abs(people(100_000, 3)[:, 0])) + C * EPS**0.5) ** 2 > 0.5).mean()
    assert low <= truth <= high
    assert cert.share_unfair(1e9)[1] < 0.02
    text = str(cert)
    assert text.startswith(f"With 95% confidence {cert.lower:.3g} <= R(h) <= {cert.upper:.3g} at eps=0.01")
    again = Certificate.from_json(cert.to_json())
    assert again.upper == cert.upper
    assert json.loads(cert.to_json())["statement"] == text
    np.testing.assert_allclose(again.each_high, cert.each_high)


@pytest.mark.parametrize("hidden", [(8,), (6, 5)])
def test_nets_audit_below_certificate_and_grid_truth_inside(hidden):
    model, x = net(1, hidden=hidden), net_people(40)
    cert = certify(model, x, NET_METRIC, EPS, NET_BOX, x_tune=net_people(40, 1), **QUICK)
    found = audit(model, x, NET_METRIC, EPS, NET_BOX)
    assert found.r_low <= cert.r_high + 1e-9
    assert cert.r_low <= cert.r_high
    assert cert.gap < 2.5
    axis = torch.linspace(-1, 1, 41)
    other = torch.cartesian_prod(torch.tensor([-1.0, 1.0]), axis, axis)
    with torch.no_grad():
        d_y = (centred(model(torch.tensor(x, dtype=torch.float32)))[:, None] - centred(model(other))).square().mean(-1)
    d_x = NET_METRIC.pairwise(torch.tensor(x), other)
    grid = min(lam * EPS + (d_y - lam * d_x).amax(1).mean().item() for lam in np.logspace(-2, 3, 200))
    assert grid <= cert.r_high + 1e-6
    assert cert.r_low >= 0.9 * grid
    single = torch.where(d_x <= EPS, d_y, torch.zeros_like(d_y)).amax(1).numpy()
    assert (single <= cert.each_high + 1e-6).all()


@pytest.mark.parametrize("interval", [hoeffding_upper, empirical_bernstein_upper])
def test_the_interval_is_chosen_beforehand_and_only_one_is_used(interval):
    cert = certify(linear_model(), people(200), METRIC, EPS, BOX, x_tune=people(40, 1), interval=interval, **QUICK)
    values = np.minimum(cert.each_high - cert.lam * EPS, cert.r_lam_max)
    stated = cert.lam * EPS + interval(values, cert.r_lam_max, 0.025)
    assert cert.upper == pytest.approx(min(stated, cert.delta_everywhere))
    assert stated < cert.delta_everywhere


@pytest.fixture(scope="module")
def net_certificate():
    return certify(net(2), net_people(60), NET_METRIC, EPS, NET_BOX, x_tune=net_people(40, 1), **QUICK)


def test_a_persons_bound_does_not_depend_on_the_other_held_out_people(net_certificate):
    model, x, whole = net(2), net_people(60), net_certificate
    mixed = np.concatenate([x[30:], net_people(30, 5)])
    other = certify(model, mixed, NET_METRIC, EPS, NET_BOX, x_tune=net_people(40, 1), **QUICK)
    np.testing.assert_allclose(whole.each_high[30:], other.each_high[:30], rtol=1e-8, atol=1e-10)


def test_held_out_people_may_come_in_parts_with_nothing_kept_for_each():
    quick = {"tune_steps": 10, "tune_rows": 10, "rounds": 4}
    x, tune = people(90), people(30, 1)
    whole = certify(linear_model(), x, METRIC, EPS, BOX, x_tune=tune, **quick)
    streamed = (x[i : i + 40] for i in range(0, 90, 40))
    parts = certify(linear_model(), streamed, METRIC, EPS, BOX, x_tune=tune, per_person=False, **quick)
    assert parts.n == whole.n == 90
    assert parts.lam == pytest.approx(whole.lam, rel=0.5)  # chosen for another number of people
    assert whole.r_low * 0.98 <= parts.r_low <= parts.r_high <= whole.r_high * 1.2
    assert parts.lower <= parts.r_high <= parts.upper
    assert len(whole.each_low) == 90
    with pytest.raises(ValueError, match="per_person=False kept nothing"):
        parts.share_unfair(0.1)
    with pytest.raises(ValueError, match="x_tune is needed when the held-out people come in parts"):
        certify(linear_model(), iter([x]), METRIC, EPS, BOX)
    with pytest.raises(ValueError, match="30 of 30 held-out rows are also in x_tune"):
        certify(linear_model(), iter([tune]), METRIC, EPS, BOX, x_tune=tune, **quick)
    with pytest.raises(ValueError, match="nobody is held out"):
        certify(linear_model(), iter([]), METRIC, EPS, BOX, x_tune=tune, **quick)


@pytest.mark.parametrize(("distance", "outputs"), [(absolute_probability, 2), (total_variation, 3), (squared_error, 1)])
def test_other_output_distances_are_bracketed(distance, outputs):
    model, x = net(3, outputs), net_people(60)
    cert = certify(model, x, NET_METRIC, EPS, NET_BOX, x_tune=net_people(40, 1), output_distance=distance, **QUICK)
    assert 0 < cert.r_low <= cert.r_high
    assert cert.lower <= cert.upper
    if distance is not squared_error:
        assert cert.upper <= 1
    axis = torch.linspace(-1, 1, 15)
    other = torch.cartesian_prod(torch.tensor([-1.0, 1.0]), axis, axis)
    rows = torch.tensor(x, dtype=torch.float32)
    with torch.no_grad():
        d_y = torch.stack([distance(model(row[None]).expand(len(other), -1), model(other)) for row in rows])
    d_x = NET_METRIC.pairwise(rows, other)
    inside = torch.where(d_x <= EPS, d_y, torch.zeros_like(d_y)).amax(1).numpy()
    assert (inside <= cert.each_high + 1e-6).all()


def test_individuals_are_bracketed_with_a_witness():
    model, x = net(4), net_people(40)
    found = certify_individuals(model, x, NET_METRIC, 0.05, NET_BOX, **QUICK)
    assert (found.lower <= found.upper).all()
    witness = torch.tensor(found.witness, dtype=torch.float32)
    assert NET_BOX.contains(witness.double()).all()
    assert (NET_METRIC(torch.tensor(x), witness).numpy() <= 0.05 + 1e-6).all()
    with torch.no_grad():
        rows = torch.tensor(x, dtype=torch.float32)
        reached = (centred(model(rows)) - centred(model(witness))).square().mean(1).numpy()
    np.testing.assert_allclose(reached, found.lower, atol=1e-5)
    assert np.median(found.upper / np.maximum(found.lower, 1e-9)) < 2.5
    assert list(found.frame().columns[:3]) == ["lower", "upper", "d_X"]
    assert str(found).startswith("40 individuals at eps=0.05")


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_the_order_of_the_rows_does_not_matter(order):
    x = people(400, 7)
    rows = np.argsort(np.abs(x[:, 0]) * (1 if order == "ascending" else -1))
    quick = {"tune_steps": 10, "tune_rows": 15, "rounds": 4}
    cert = certify(linear_model(), x[rows], METRIC, EPS, BOX, **quick)  # a fifth tunes: no longer the first one
    assert cert.lower <= exact(people(200_000, 9)) <= cert.upper
    assert cert.n == len(cert.rows) == 320
    shown = (A * (1 + np.abs(x[rows][cert.rows, 0])) + C * np.sqrt(EPS)) ** 2  # each_high is about these rows
    assert (cert.each_high >= shown - 1e-9).all()
    assert np.corrcoef(cert.each_high, shown)[0, 1] > 0.99


@pytest.mark.parametrize("scale", [0.05, 20.0])
def test_the_headline_holds_and_does_not_change_when_the_last_layer_is_squeezed(scale):
    model, quick = linear_model(), {"tune_steps": 20, "tune_rows": 15, "rounds": 4, "threshold": 0.0}
    given = {"fair_metric": METRIC, "eps": EPS, "bounds": BOX, "x_tune": people(100, 1), "x_held_out": people(300)}
    plain = certify(model, **given, **quick)
    with torch.no_grad():
        model.weight *= scale
    squeezed = certify(model, **given, **quick)
    assert squeezed.upper == pytest.approx(scale**2 * plain.upper, rel=0.02)
    for name in ("relative", "decisions", "percentile"):
        before, after = getattr(plain, name), getattr(squeezed, name)
        for side in ("low", "high", "lower", "upper"):
            assert getattr(after, side) == pytest.approx(getattr(before, side), rel=0.02, abs=1e-9), (name, side)
    many = people(100_000, 9)
    score, reach = many @ np.array([A, C]), C * EPS**0.5
    strangers = 2 * score.var()
    turned = np.where(score > 0, -A + C * many[:, 1] - reach <= 0, A + C * many[:, 1] + reach > 0).mean()
    assert plain.relative.lower <= exact(many) / strangers <= plain.relative.upper
    assert plain.decisions.lower <= turned <= plain.decisions.upper
    assert plain.decisions.low <= plain.decisions.high
    assert plain.percentile.lower <= plain.percentile.low <= plain.percentile.high <= plain.percentile.upper
    assert plain.strangers == pytest.approx(strangers, rel=0.1)
    assert percent(plain.decisions.upper) in plain.headline
    assert "independently" in plain.assumes
    assert "inside the bounds" in plain.assumes
    assert plain.assumes in plain._repr_html_()
    assert Certificate.from_json(plain.to_json()).relative == plain.relative


def test_upper_is_never_above_what_holds_everywhere():
    cert = certify(
        linear_model(), people(12), METRIC, EPS, BOX, x_tune=people(20, 1), interval=hoeffding_upper, **QUICK
    )
    assert cert.upper <= cert.delta_everywhere
    wide = certify(linear_model(), people(12), METRIC, 100.0, BOX, x_tune=people(20, 1), **QUICK)
    largest = (2 * A + 18 * C) ** 2  # the outputs of the box differ by no more than that
    assert wide.upper <= wide.delta_everywhere <= largest * (1 + 1e-9)


def test_progress_goes_to_stderr_only_when_asked(capsys):
    certify(linear_model(), people(60), METRIC, EPS, BOX, x_tune=people(20, 1), progress=True, **QUICK)
    shown = capsys.readouterr()
    assert "R_high" in shown.err
    assert shown.out == ""


def test_ctrl_c_gives_a_statement_about_those_who_were_reached(net_certificate, monkeypatch):
    model, x, whole = net(2), net_people(60), net_certificate
    calls, certifying = [], sys.modules[certify.__module__]  # the package's attribute is the function

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 3:  # on tuning people, then the first chunk, then the second
            raise KeyboardInterrupt
        return searched(*args)

    monkeypatch.setattr(certifying, "CHUNK", 20)
    monkeypatch.setattr(sys.modules[searched.__module__], "searched", interrupted)
    some = certify(model, x, NET_METRIC, EPS, NET_BOX, x_tune=net_people(40, 1), **QUICK)
    assert some.n == len(some.rows) == 20
    np.testing.assert_allclose(some.each_high, whole.each_high[some.rows], rtol=1e-8)
    assert some.lower <= some.r_high <= some.upper
    assert some.upper >= whole.r_high


def test_trees_that_cannot_be_read_are_refused_with_the_cure():
    rows = np.column_stack([np.linspace(-1, 1, 200), np.arange(200) % 5]).astype(float)
    trees = HistGradientBoostingClassifier(max_iter=3, categorical_features=[1]).fit(rows, rows[:, 1] % 2 == 0)
    for model in (trees, make_pipeline("passthrough", trees)):
        with pytest.raises(CannotCertify, match=r"HistGradientBoostingClassifier: .* one-hot encode it instead; audit"):
            certify(model, rows[:60], METRIC, EPS, BOX, x_tune=rows[100:])


def test_the_model_is_asked_where_it_lives_and_read_on_the_cpu():
    seen = []

    class Watched(nn.Linear):
        def forward(self, x):
            if isinstance(x, torch.Tensor):  # and not a step of its forward that is only followed
                seen.append(x.device.type)
            return nn.functional.linear(x, self.weight, self.bias)

    model, x = nn.Sequential(Watched(2, 4), nn.ReLU(), nn.Linear(4, 2)), people(60)
    here = certify(model, x, METRIC, EPS, BOX, device=torch.device("cpu", 0), **QUICK)
    assert here.r_high == certify(model, x, METRIC, EPS, BOX, **QUICK).r_high
    assert set(seen) == {"cpu"}
    for ask in (certify, certify_individuals):
        with pytest.raises(RuntimeError):  # it does run there, where nothing has a value
            ask(model, x, METRIC, EPS, BOX, device="meta", **QUICK)
        assert seen.pop() == "meta"


def test_arrow_tables_are_certified_as_the_frames_they_are():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frames = [pd.DataFrame(people(n, seed), columns=["sex", "pay"]) for n, seed in ((60, 0), (20, 1), (20, 2))]
    tables = [pa.Table.from_pandas(frame, preserve_index=False) for frame in frames]

    def high(held_out, tune, train):
        return certify(linear_model(), held_out, METRIC, EPS, BOX, tune, x_train=train, **QUICK).r_high

    assert high(*tables) == high(*frames) == pytest.approx(high(iter([tables[0]]), *tables[1:]))
    with pytest.raises(ValueError, match="60 of 60 held-out rows are also in x_train"):
        high(*tables[:2], tables[0])
    found = [certify_individuals(linear_model(), x, METRIC, EPS, BOX, **QUICK) for x in (tables[1], frames[1])]
    np.testing.assert_array_equal(found[0].upper, found[1].upper)


def test_images_are_certified_as_their_flat_rows_are():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(2, 2))
    images, metric = torch.rand(60, 1, 2, 2), FairMetric(torch.ones(4, 1))
    flat = nn.Sequential(nn.Unflatten(1, (1, 2, 2)), model)
    found = certify(model, images, metric, EPS, (0.0, 1.0), **QUICK)
    wanted = certify(flat, images.flatten(1), metric, EPS, (0.0, 1.0), **QUICK)
    assert (found.r_low, found.r_high) == pytest.approx((wanted.r_low, wanted.r_high), rel=1e-9)
    recurrent = nn.Sequential(nn.Flatten(2), nn.LSTM(4, 2))
    with pytest.raises(CannotCertify, match="the model holds LSTM"):
        certify(recurrent, images, metric, EPS, (0.0, 1.0), **QUICK)
