"""The audit against closed forms, and its promises: any model, any chunking, own units, never the word fair."""

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from certify.models import METRIC, A, C, linear_model, people
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from evenhand.audit import _differs, audit, check_inside
from evenhand.domain import Box
from evenhand.dual.confidence import betting_upper
from evenhand.fair_metrics.metric import FairMetric
from evenhand.headline import percent
from evenhand.output_distances import mean_squared_logits, squared_error, total_variation
from evenhand.search import CandidateSearch
from evenhand.search.thorough import leaner, plan
from evenhand.variations import Variations


def exact(x, eps):
    """R of h = a x_0 + c x_1 with x_0 free in [-1, 1]: (sqrt(mean s^2) + c sqrt(eps))^2, s = a (1 + |x_0|)."""
    s = A * (1 + np.abs(x[:, 0]))
    return (np.sqrt((s**2).mean()) + C * np.sqrt(eps)) ** 2


@pytest.mark.parametrize("eps", [0.0, 0.01, 0.1])
def test_a_linear_model_is_audited_almost_exactly(eps):
    x = people(200)
    found = audit(linear_model(), x, METRIC, eps, ([-1.0, -9.0], [1.0, 9.0]))
    assert found.r_low <= exact(x, eps) + 1e-9
    assert found.r_low >= 0.98 * exact(x, eps)
    assert 0 < found.lower <= exact(people(100_000, 1), eps)


def test_black_boxes_are_audited_too():
    x = people(200)
    bounds = ([-1.0, -9.0], [1.0, 9.0])
    found = audit(lambda rows: np.asarray(rows) @ np.array([A, C]), x, METRIC, 0.01, bounds)
    assert 0.9 * exact(x, 0.01) <= found.r_low <= exact(x, 0.01) + 1e-6
    forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(x, x[:, 0] + x[:, 1] > 0)
    probability = audit(forest, x, METRIC, 0.01, bounds, output_distance=total_variation)
    assert 0.2 < probability.r_low <= 1
    blind = LogisticRegression().fit(np.column_stack([0 * x[:, 0], x[:, 1]]), x[:, 1] > 0)
    assert audit(blind, x, METRIC, 0.0, bounds).r_low < 1e-9  # ignores the sensitive column, nothing else is free


def test_strength_does_not_depend_on_n_and_chunks_do_not_matter():
    x = people(600)
    bounds = ([-1.0, -9.0], [1.0, 9.0])
    whole = audit(linear_model(), x, METRIC, 0.01, bounds)
    parts = audit(linear_model(), (x[i : i + 150] for i in range(0, 600, 150)), METRIC, 0.01, bounds, chunk=64)
    assert parts.n == 600
    assert parts.r_low == pytest.approx(whole.r_low, rel=0.01)
    few = audit(linear_model(), x[:50], METRIC, 0.01, bounds)
    assert few.r_low == pytest.approx(exact(x[:50], 0.01), rel=0.02)


def test_nothing_needs_to_be_kept_for_each_person():
    x, bounds = people(600), ([-1.0, -9.0], [1.0, 9.0])
    whole = audit(linear_model(), x, METRIC, 0.01, bounds, chunk=200)
    parts = audit(linear_model(), iter([x]), METRIC, 0.01, bounds, per_person=False)
    assert whole.r_low * (1 - 1e-4) <= parts.r_low <= whole.r_low + 1e-12
    assert parts.lower == whole.lower
    assert parts.share == pytest.approx(whole.share, abs=0.01)
    assert list(parts.rows) == list(whole.rows)
    assert parts.pairs(3).equals(whole.pairs(3))
    assert (whole.d_y.shape, parts.d_y.shape, parts.n) == ((600,), (0,), 600)


def test_a_model_that_ignores_the_sensitive_column_has_nothing_to_find_at_eps_zero():
    model = linear_model()
    with torch.no_grad():
        model.weight[0, 0] = 0.0
    found = audit(model, people(50), METRIC, 0.0, ([-1.0, -9.0], [1.0, 9.0]))
    assert found.r_low == pytest.approx(0, abs=1e-12)
    assert "fair" not in str(found).lower()


def test_the_sentence():
    found = audit(linear_model(), people(100), METRIC, 0.1, ([-1.0, -9.0], [1.0, 9.0]), tau=0.8)
    text = str(found)
    assert text.startswith(f"R(h) >= {found.r_low:.3g} at eps=0.1 (mean squared logits; n=100); similar people can be ")
    assert percent(found.relative.low) in text
    assert "decision" not in text  # one output, no threshold: nothing is decided
    assert "fair" not in text
    assert f"at least {found.r_low:.3g}" in found._repr_html_()
    assert found.share == pytest.approx((found.d_y > 0.8).mean())


def pipeline_and_people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 300),
            "job": rng.choice(["clerk", "nurse", "smith"], 300),
            "sex": rng.choice(["Female", "Male"], 300),
        },
        index=[f"p{i}" for i in range(300)],
    )
    y = (frame["age"] / 80 + (frame["sex"] == "Male") + 0.3 * rng.random(300)) > 1.2
    encode = make_column_transformer(
        (StandardScaler(), ["age"]),
        (OneHotEncoder(sparse_output=False), ["job"]),
        (OneHotEncoder(drop="first"), ["sex"]),
    )
    return make_pipeline(encode, LogisticRegression()).fit(frame, y), frame


def test_pairs_are_in_the_users_units_and_categories():
    model, frame = pipeline_and_people()
    encoded = model[:-1].transform(frame)
    box = Box(encoded.min(0), encoded.max(0), blocks=[(1, 2, 3)], binary=[4])
    directions = torch.zeros(5, 1)
    directions[4] = 1.0
    found = audit(model, frame, FairMetric(directions), 0.01, box)
    pairs = found.pairs(5)
    assert list(pairs.columns[:5]) == ["d_X", "d_Y", "prediction", "prediction_worst", "changed"]
    assert len(pairs) == 5
    assert set(pairs.index) <= set(frame.index)
    assert set(pairs["sex"]) | set(pairs["sex (worst)"]) == {"Female", "Male"}
    for label, row in pairs.iterrows():
        assert row["sex"] == frame.loc[label, "sex"]
        assert "sex: " in row["changed"]
        if "age" in pairs:
            assert row["age"] == pytest.approx(frame.loc[label, "age"])
    assert found.pairs(10**6).shape[0] == len(found.rows)
    assert len(found.pairs()) == 10
    assert (pairs["d_X"] <= 0.01).all()
    assert (pairs["d_Y"].diff().dropna() <= 1e-12).all()  # most different first


def test_rows_outside_the_bounds_are_counted_and_refused():
    x = people(60)
    x[:3, 1] = 50.0
    with pytest.raises(ValueError, match=r"3 of 60 rows lie outside the bounds, in column\(s\) \[1\]"):
        audit(linear_model(), x, METRIC, 0.1, ([-1.0, -9.0], [1.0, 9.0]))


def test_rows_outside_along_a_free_direction_are_said_to_be_and_can_be_left_out():
    x = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [0.0, 1.0, 2.0]})
    free = Box([0.0, 0.0], [2.0, 2.0]).freed([[1.0], [-1.0]], x.to_numpy())
    held_out = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 0.0]})
    metric = FairMetric([[1.0], [-1.0]])
    with pytest.raises(ValueError, match=r"1 of 2 rows lie outside the bounds, .* or along the free directions;"):
        audit(linear_model(), held_out, metric, 0.1, free)
    assert free.contains(held_out).tolist() == [True, False]
    assert Box([0.0, 0.0], [1.0, 1.0]).contains(held_out.to_numpy()).tolist() == [True, False]


def test_bounds_in_the_units_before_a_pipelines_first_step_are_recognised():
    x = torch.rand(60, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, x[:, 1] > 0.5)
    with pytest.raises(ValueError, match="units that the last step of a Pipeline is given"):
        audit(pipe, x, METRIC, 0.1, ([0.0, 0.0], [1.0, 1.0]))


def test_columns_within_the_rounding_of_their_range_are_not_blamed():
    box = Box(torch.tensor([-1.0, -1.0, -1.0, 0.0]), torch.tensor([1.0, 1.0, 1.0, 100.0]))
    row = torch.tensor([[-1.0 - 1e-6, 5.0, 1.0 + 1e-6, 100.00005]], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"1 of 1 rows lie outside the bounds, in column\(s\) \[1\];"):
        check_inside(box, row)
    row[0, 1] = 1.0
    check_inside(box, row)


def test_what_counts_as_changed():
    """Numbers by a millionth of their column's largest, texts and numbers written as texts by how they read."""
    for a, b, expected in [
        ([0.0, 0.0], [0.0, 0.0], [False, False]),
        ([1.0, 2.0], [1.0, 2.1], [False, True]),
        ([0.0, 0.0], [0.5, 1e6], [False, True]),
        ([1e6, 0.5], [1e6, 0.0], [False, False]),
        (["a", "b"], ["a", "c"], [False, True]),
        ([1, 2], ["1", "x"], [False, True]),
    ]:
        assert _differs(pd.Series(a), pd.Series(b)).tolist() == expected


def test_who_enters_the_confidence_bounds_and_with_which_part_of_the_error():
    """Ten of forty rows tune; the statement about strangers shares its error with that about R(h), which has two."""
    seen = []

    def recorded(values, high, alpha):
        seen.append((len(values), alpha))
        return betting_upper(values, high, alpha)

    audit(linear_model(), people(40), METRIC, 0.01, ([-1.0, -9.0], [1.0, 9.0]), interval=recorded)
    assert {n for n, _ in seen} == {30, 15}  # everybody else, and pairs of them
    alone, shared, percentile = sorted({round(alpha, 9) for n, alpha in seen if n == 30})
    (strangers,) = {round(alpha, 9) for n, alpha in seen if n == 15}
    assert (shared, percentile) == (0.025, 0.05)
    assert 2 * alone + strangers == pytest.approx(0.05)


def test_where_people_differ_only_in_what_is_free_there_is_no_yardstick():
    x = people(30)
    x[:, 1] = 0.5
    found = audit(linear_model(), x, METRIC, 0.01, ([-1.0, -9.0], [1.0, 9.0]))
    assert np.isnan(found.yardstick)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"fair_metric": None}, "fair_metric is needed"),
        ({"bounds": None}, "bounds are needed"),
        ({"x": np.zeros((0, 2))}, "empty"),
        ({"x": np.full((5, 2), np.nan)}, "NaN"),
        ({"model": 7}, "model must be"),
    ],
)
def test_what_is_missing_is_named(change, says):
    given = {"model": linear_model(), "x": people(20), "fair_metric": METRIC, "bounds": ([-1.0, -9.0], [1.0, 9.0])}
    with pytest.raises((ValueError, TypeError), match=says):
        audit(**{**given, **change}, eps=0.1)


def test_the_model_is_left_as_it_was():
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2)).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    audit(model, people(40), METRIC, 0.1, ([-1.0, -9.0], [1.0, 9.0]), output_distance=squared_error)
    assert model.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
def test_the_order_of_the_rows_does_not_matter(order):
    x, bounds = people(800), ([-1.0, -9.0], [1.0, 9.0])
    size = np.abs(x[:, 0])
    rows = {"random": np.arange(800), "ascending": np.argsort(size), "descending": np.argsort(-size)}[order]
    found = audit(linear_model(), x[rows], METRIC, 0.01, bounds)
    assert found.lower <= exact(people(100_000, 1), 0.01)  # descending: the first rows used to tune, the best were left
    assert found.lower >= 0.85 * exact(x, 0.01)
    np.testing.assert_allclose(found.d_y, (A * (1 + size[rows]) + C * np.sqrt(found.d_x)) ** 2, rtol=0.05)


def test_a_visibly_sorted_stream_is_refused():
    x, bounds = people(600), ([-1.0, -9.0], [1.0, 9.0])
    x = x[np.argsort(x[:, 1])]
    with pytest.raises(ValueError, match=r"column 1 follows the row number .* shuffle the rows"):
        audit(linear_model(), (x[i : i + 200] for i in range(0, 600, 200)), METRIC, 0.01, bounds)
    assert audit(linear_model(), x[:60], METRIC, 0.01, bounds).n == 60  # one table: shuffled here


def test_what_is_no_function_of_the_person_is_refused():
    bounds, rng = ([-1.0, -9.0], [1.0, 9.0]), np.random.default_rng(0)
    with pytest.raises(ValueError, match="other answers when asked again"):
        audit(lambda rows: rng.random((len(rows), 1)), people(50), METRIC, 0.1, bounds)
    with pytest.raises(ValueError, match="without looking at the other rows"):
        audit(lambda rows: rows[:, :1] - rows[:1, :1], people(50), METRIC, 0.1, bounds)
    with pytest.raises(ValueError, match="NaN or infinity"):
        audit(lambda rows: rows[:, :1] / 0.0, people(50), METRIC, 0.1, bounds)
    with pytest.raises(ValueError, match=r"give confidence=0\.95"):
        audit(linear_model(), people(50), METRIC, 0.1, bounds, confidence=95)
    with pytest.raises(ValueError, match="eps must be"):
        audit(linear_model(), people(50), METRIC, -1.0, bounds)


def versions_of(x, seed=0):
    """Two altered versions of every second person."""
    rng = np.random.default_rng(seed)
    rows = np.arange(0, len(x), 2)
    values = np.stack([x[rows], x[rows] * [-1.0, 1.0], x[rows] + rng.normal(0, 0.3, (len(rows), 2))], axis=1)
    return Variations(values, rows)


@pytest.mark.parametrize("same", [True, False])
def test_an_exact_audit_of_a_black_box_over_versions(same):
    """min over lam of lam*eps + mean max_j (d_Y - lam d_X), with the table in one piece or in parts."""
    x = people(120)
    versions = versions_of(x)
    d_y, d_x = np.zeros((120, 3)), np.zeros((120, 3))
    move = versions.values - x[versions.rows][:, None]
    d_y[versions.rows] = (move @ [A, C]) ** 2
    d_x[versions.rows] = 0.0 if same else move[..., 1] ** 2
    lams = np.linspace(0, 400, 40_001)
    exact = min(lam * 0.01 + (d_y - lam * d_x).max(1).mean() for lam in lams)

    def model(rows):
        return np.asarray(rows, dtype=np.float64) @ [A, C]

    search = CandidateSearch(versions, same_individual=same)
    metric = None if same else METRIC
    found = audit(model, x, metric, 0.01, search=search)
    assert found.r_low == pytest.approx(exact, rel=1e-4)
    parts = audit(model, (x[i : i + 40] for i in range(0, 120, 40)), metric, 0.01, search=search, chunk=16)
    assert parts.r_low == pytest.approx(found.r_low, rel=1e-9)
    assert found.d_y[1::2].max() == 0  # who has no versions is not altered


def test_versions_of_strangers_are_refused():
    x = people(40)
    with pytest.raises(ValueError, match="differ from version 0"):
        audit(linear_model(), x[::-1].copy(), METRIC, 0.01, search=CandidateSearch(versions_of(x)))
    with pytest.raises(ValueError, match="fair_metric is needed to price the versions"):
        audit(linear_model(), x, None, 0.01, search=CandidateSearch(versions_of(x), same_individual=False))
    with pytest.raises(TypeError, match=r"certify\(model, versions, eps=0.0\)"):
        audit(linear_model(), versions_of(x), METRIC, 0.01)


def two_class_net(scale=1.0, shift=False):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)).double()
    with torch.no_grad():
        net[-1].weight *= scale
        net[-1].bias *= scale
    return (lambda x: net(x).log_softmax(-1)) if shift else net


class WithGradients(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


@pytest.fixture(scope="module")
def plain_audit():
    return audit(two_class_net(), people(160), METRIC, 0.01, ([-1.0, -9.0], [1.0, 9.0]))


@pytest.mark.parametrize("scale", [0.05, 1e9])
def test_squeezing_the_last_layer_changes_no_headline(plain_audit, scale):
    """As of a COMPAS model whose R(h) fell four hundredfold with every decision the same."""
    found = audit(two_class_net(scale), people(160), METRIC, 0.01, ([-1.0, -9.0], [1.0, 9.0]))
    assert found.r_low == pytest.approx(scale**2 * plain_audit.r_low, rel=0.01)
    assert found.relative.low == pytest.approx(plain_audit.relative.low, rel=0.01)
    assert found.decisions.low == pytest.approx(plain_audit.decisions.low, abs=0.01)
    assert found.percentile.low == pytest.approx(plain_audit.percentile.low, rel=0.01)
    assert found.yardstick == pytest.approx(plain_audit.yardstick)


def test_relative_is_r_over_strangers(plain_audit):
    with torch.no_grad():
        h = two_class_net()(torch.tensor(people(160)))
    margin = (h[:, 1] - h[:, 0]).numpy()
    assert plain_audit.strangers == pytest.approx(2 * margin.var() / 4, rel=0.15)  # centred: a quarter of the margin's
    assert plain_audit.relative.low == pytest.approx(plain_audit.r_low / plain_audit.strangers)
    assert plain_audit.yardstick == pytest.approx(0.01 / (2 * 3), rel=0.15)  # twice the variance of what is not free
    assert 0 <= plain_audit.decisions.lower <= plain_audit.decisions.low <= 1
    assert plain_audit.free_share == pytest.approx((1 / 3) / (1 / 3 + 3), rel=0.2)


def test_a_shift_of_all_logits_is_nothing(plain_audit):
    shifted = WithGradients(two_class_net(shift=True))
    found = audit(shifted, people(160), METRIC, 0.01, ([-1.0, -9.0], [1.0, 9.0]))
    assert found.r_low == pytest.approx(plain_audit.r_low, rel=0.02)


def test_models_that_only_give_probabilities_are_judged_on_them():
    x, bounds = people(160), ([-1.0, -9.0], [1.0, 9.0])
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, x[:, 0] + x[:, 1] > 0)
    found = audit(forest, x, METRIC, 0.01, bounds)
    assert found.distance == "total variation"
    assert found.r_low <= 1
    assert 0 <= found.relative.lower <= found.relative.low  # a range is known, so there is a bound in general
    with pytest.raises(ValueError, match="only gives probabilities"):
        audit(forest, x, METRIC, 0.01, bounds, output_distance=mean_squared_logits)


def test_decisions_of_a_linear_model_are_counted_exactly():
    x, eps = people(200), 0.04
    model = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[A, C]]))
    found = audit(model, x, METRIC, eps, ([-1.0, -9.0], [1.0, 9.0]), threshold=0.3)
    score, reach = x @ np.array([A, C]), C * np.sqrt(eps)
    low, high = -A + C * x[:, 1] - reach, A + C * x[:, 1] + reach
    turned = np.where(score > 0.3, low <= 0.3, high > 0.3)
    assert found.decisions.low == pytest.approx(turned.mean(), abs=0.06)
    assert found.decisions.lower < turned.mean()
    assert audit(model, x, METRIC, eps, ([-1.0, -9.0], [1.0, 9.0])).decisions is None


def test_where_the_module_runs_changes_nothing_and_no_such_device_is_an_error():
    seen = []

    class Watched(nn.Linear):
        def forward(self, x):
            seen.append(x.device.type)
            return super().forward(x)

    model, x = Watched(3, 2), torch.rand(40, 3)
    metric = FairMetric(torch.eye(3)[:, :1])
    found = [audit(model, x, metric, 0.1, (0.0, 1.0), device=where) for where in ("cpu", torch.device("cpu", 0))]
    assert found[0].r_low == found[1].r_low > 0
    assert set(seen) == {"cpu"}
    with pytest.raises(RuntimeError):
        audit(model, x, metric, 0.1, (0.0, 1.0), device="meta")  # it does run there, where nothing has a value
    assert seen[-1] == "meta"


def test_of_many_people_everybody_is_searched_equally_hard_in_any_order_and_in_parts(monkeypatch):
    monkeypatch.setattr(sys.modules["evenhand.audit"], "MANY", 150)
    asked = []

    def spared(attack, *rest):
        asked.append(attack.effort)
        return leaner(attack, *rest)

    monkeypatch.setattr(sys.modules["evenhand.audit"], "leaner", spared)
    bounds = ([-1.0, -9.0], [1.0, 9.0])
    x = people(200)
    found = audit(linear_model(), x, METRIC, 0.01, bounds)
    assert 0.98 * exact(x, 0.01) <= found.r_low <= exact(x, 0.01) + 1e-9
    assert len(asked) == 1
    again = audit(linear_model(), x[np.argsort(x[:, 0])], METRIC, 0.01, bounds)
    assert again.r_low == pytest.approx(found.r_low, rel=1e-3)  # others choose where to search
    parts = audit(linear_model(), (x[i : i + 40] for i in range(0, 200, 40)), METRIC, 0.01, bounds)
    assert len(asked) == 3  # of a stream it is known after some parts, and none of them is lost
    assert parts.n == 200
    assert parts.r_low == pytest.approx(found.r_low, rel=0.01)
    audit(linear_model(), x[:150], METRIC, 0.01, bounds)
    assert len(asked) == 3


def test_people_whose_lam_was_misjudged_are_searched_again(monkeypatch):
    """With the plan ten times too high the search stays near everybody; the sample itself shows it."""
    module = sys.modules["evenhand.audit"]
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).double()
    x, metric = np.random.default_rng(0).uniform(-2, 2, (24, 4)), FairMetric.euclidean(4, torch.float64)
    planned = audit(net, x, metric, 0.3, (-2.0, 2.0)).r_low
    monkeypatch.setattr(module, "plan", lambda *a: [10 * lam for lam in plan(*a)])
    again = audit(net, x, metric, 0.3, (-2.0, 2.0))
    monkeypatch.setattr(module, "MOST_AGAIN", 0)
    once = audit(net, x, metric, 0.3, (-2.0, 2.0))
    assert again.r_low >= 0.97 * planned
    assert once.r_low < 0.999 * again.r_low
    assert once.lower == again.lower  # about the sample only


def test_arrow_tables_are_audited_as_the_frames_they_are():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    model, frame = pipeline_and_people()
    frame, bounds = frame.reset_index(drop=True), (-9.0, 9.0)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    metric = FairMetric(torch.eye(5)[:, 4:])
    wanted = audit(model, frame, metric, 0.1, bounds)
    found = audit(model, table, metric, 0.1, bounds)
    in_parts = audit(model, iter([table]), metric, 0.1, bounds)
    assert found.r_low == wanted.r_low == pytest.approx(in_parts.r_low, rel=0.1)
    pd.testing.assert_frame_equal(found.pairs(3), wanted.pairs(3))


@pytest.mark.parametrize("change", [{"eps": "0.01"}, {"eps": None}, {"confidence": "0.95"}])
def test_what_is_no_number_is_named(change):
    (name,) = change
    with pytest.raises(ValueError, match=f"{name} must be a number, .* of type (str|NoneType)"):
        audit(linear_model(), people(20), METRIC, bounds=(-9.0, 9.0), **{"eps": 0.1, **change})


def test_images_are_audited_as_their_flat_rows_are():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    images, metric = torch.rand(40, 1, 3, 3), FairMetric(torch.ones(9, 1))
    wanted = audit(nn.Sequential(nn.Unflatten(1, (1, 3, 3)), net), images.flatten(1), metric, 0.01, (0.0, 1.0))
    for x in (images, images.numpy(), images.tolist()):
        found = audit(net, x, metric, 0.01, (0.0, 1.0))
        assert found.r_low == pytest.approx(wanted.r_low, rel=1e-9)
        assert found.rows.tolist() == wanted.rows.tolist()
    assert list(found.pairs(1).columns[-2:]) == list(wanted.pairs(1).columns[-2:])


@pytest.mark.parametrize("n", [1, 2])
def test_of_too_few_people_nothing_is_said_of_strangers(n):
    bounds = ([-1.0, -9.0], [1.0, 9.0])
    found = audit(linear_model(), people(n), METRIC, 0.01, bounds)
    assert found.relative is None
    assert "too few people" in str(found)
    assert "alike" not in str(found)
    assert "strangers are treated alike" in str(audit(lambda x: 0 * x[:, 0], people(40), METRIC, 0.01, bounds))
