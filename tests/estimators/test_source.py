"""One fit over arrays or streams: weights, held-out rows, classes, and what a second call goes on from."""

import types

import numpy as np
import pytest
import torch
from scipy import sparse

from evenhand.domain import FreeBox
from evenhand.estimators import (
    ERMClassifier,
    ProjectClassifier,
    SenSeIBoostingClassifier,
    SenSeIClassifier,
    SenSeIRegressor,
    SenSRClassifier,
)
from evenhand.estimators.source import canonical_order
from evenhand.fair_metrics import FairMetric
from evenhand.files import load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)).astype(np.float32)
Y = (X[:, 0] + 0.5 * X[:, 1] > 0.5).astype(int)
SMALL = {"hidden": (6,), "steps": 40, "batch_size": 50, "lr": 0.02, "random_state": 0}
METRIC = FairMetric([[1.0], [0.5], [0.0]])


def weights_of(model):
    return torch.cat([p.detach().reshape(-1) for p in model.module_.parameters()])


def test_a_weight_of_two_is_a_row_given_twice_also_with_held_out_rows():
    twice = RNG.random(200) < 0.5
    weight = np.where(twice, 2.0, 1.0)
    repeated = np.concatenate([X, X[twice]]), np.concatenate([Y, Y[twice]])
    settings = SMALL | {"validation_fraction": 0.3, "patience": 5}
    one = SenSeIClassifier(METRIC, **settings).fit(X, Y, sample_weight=weight)
    other = SenSeIClassifier(METRIC, **settings).fit(*repeated)
    torch.testing.assert_close(weights_of(one), weights_of(other), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.history_["validation"], other.history_["validation"], rtol=1e-4)


def test_rows_are_held_out_with_their_copies_and_in_the_share_asked_for():
    seen = []

    class Seeing(ERMClassifier):
        def _align(self, objective, rows):
            seen.append(rows)

    doubled = np.concatenate([X, X]), np.concatenate([Y, Y])
    Seeing(**SMALL, validation_fraction=0.25).fit(*doubled)
    (kept,) = seen
    assert sorted(kept.tolist()) == sorted(((kept + 200) % 400).tolist())
    assert 0.65 < len(kept) / 400 < 0.85


def test_an_empty_part_is_an_error():
    with pytest.raises(ValueError, match="leaves one of the parts empty"):
        ERMClassifier(**SMALL, validation_fraction=1e-9).fit(X, Y)


def test_class_weights_set_how_often_a_class_is_drawn():
    rare = (X[:, 2] > 1.3).astype(int)  # one in ten, unrelated to the decision that is asked for below
    noise = X[:, :2]
    share = {}
    for name, weight in {"balanced": "balanced", "as they are": None, "mostly ones": {0: 0.01, 1: 10.0}}.items():
        share[name] = ERMClassifier(**SMALL, class_weight=weight).fit(noise, rare).predict_proba(noise)[:, 1].mean()
    assert share["balanced"] == pytest.approx(0.5, abs=0.1)
    assert share["as they are"] == pytest.approx(rare.mean(), abs=0.1)
    assert share["mostly ones"] > 0.9


def test_class_weights_of_a_stream():
    labels = np.array(["no", "yes"])[(X[:, 2] > 1.3).astype(int)]
    batches = [(X[i : i + 50, :2], labels[i : i + 50]) for i in range(0, 200, 50)]
    share = [
        ERMClassifier(**SMALL, class_weight=weight).fit_stream(batches).predict_proba(X[:, :2])[:, 1].mean()
        for weight in (None, "balanced", {"no": 0.01, "yes": 10.0})
    ]
    assert share[0] < 0.3 < share[1] < 0.7 < share[2]


def test_optimizer_and_weight_decay_reach_the_loop():
    plain = ERMClassifier(**SMALL).fit(X, Y)
    decayed = ERMClassifier(**SMALL, weight_decay=10.0).fit(X, Y)
    assert weights_of(decayed).norm() < 0.5 * weights_of(plain).norm()
    sgd = ERMClassifier(**SMALL, optimizer=torch.optim.SGD).fit(X, Y)
    still = ERMClassifier(**SMALL | {"lr": 1e-12}).fit(X, Y)
    one_step = SMALL | {"steps": 1, "lr": 0.5}
    moved = ERMClassifier(**one_step, optimizer=torch.optim.SGD).fit(X, Y)
    assert not torch.equal(weights_of(sgd), weights_of(plain))
    gradient = (weights_of(still) - weights_of(moved)) / 0.5
    assert gradient.abs().max() < 1  # a step of SGD is the gradient itself, where Adam's has length lr in every weight


def test_warm_start_goes_on_and_a_new_fit_starts_anew():
    model = ERMClassifier(**SMALL, warm_start=True).fit(X, Y)
    first, loss = model.module_, model.history_["loss"].iloc[-1]
    model.fit(X, Y)
    assert model.module_ is first
    assert model.history_["loss"].iloc[-1] < loss
    cold = ERMClassifier(**SMALL).fit(X, Y)
    again = weights_of(cold)
    assert torch.equal(weights_of(cold.fit(X, Y)), again)
    with pytest.raises(ValueError, match="with warm_start, must map"):
        model.fit(X[:, :2], Y)


def test_a_regressor_goes_on_in_its_own_unit():
    target = 1000 * X[:, 0] + 5000
    model = SenSeIRegressor(**SMALL | {"steps": 150}, rho=0.0, warm_start=True).fit(X, target)
    before = model.score(X, target)
    model.set_params(lr=1e-12).fit(X, target)  # unit of training and back: nothing else happens
    assert model.score(X, target) == pytest.approx(before, abs=1e-4)


def test_partial_fit_goes_on_where_it_was():
    model = ERMClassifier(**SMALL | {"steps": 400})
    model.partial_fit(X[:100], Y[:100], classes=[0, 1])
    first = model.module_
    scores = [model.partial_fit(X, Y).score(X, Y) for _ in range(5)]
    assert model.module_ is first
    assert scores[-1] > 0.9
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(X, Y + 5)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], Y)


@pytest.mark.parametrize("method", [SenSeIClassifier, SenSeIRegressor, ProjectClassifier])
def test_a_warm_start_has_the_metric_and_the_domain_that_it_is_given(method):
    model = method(METRIC, **SMALL, warm_start=True).fit(X, Y)
    other, module, far = FairMetric([[0.0], [0.0], [1.0]]), model.module_, 2 * X
    model.set_params(fair_metric=other, lr=1e-12).fit(far, Y)
    torch.testing.assert_close(model.fair_metric_.directions, other.directions)
    if method is ProjectClassifier:
        np.testing.assert_allclose(model.decision_function(X), model.decision_function(X * [1, 1, 0]), atol=1e-6)
        return
    assert model.module_ is module or method is SenSeIRegressor  # whose output is in the unit of the targets
    torch.testing.assert_close(model.bounds_.free, other.directions.double())
    assert bool(model.bounds_.contains(torch.from_numpy(far)).all())
    assert not bool(model.bounds_.contains(1.5 * torch.from_numpy(far)).all())


def test_a_warm_start_takes_no_other_classes():
    """Of the classes a, b the network knows b as the second; of b, c it would be the first."""
    first, other = np.array(["a", "b"])[Y], np.array(["c", "b"])[Y]
    model = ERMClassifier(**SMALL, warm_start=True).fit(X, first)
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"the classes of the fit before, \['a', 'b'\], and y holds others"):
        model.fit(X, other)
    assert (model.predict(X) == before).all()  # what was fitted stays
    assert set(model.set_params(warm_start=False).fit(X, other).classes_) == {"b", "c"}


def test_a_warm_start_is_taught_by_new_sensitive_features():
    model = SenSeIClassifier(**SMALL, warm_start=True)
    for column in (0, 2, 1):
        group = (X[:, column] > 0).astype(int)
        model.fit(X, Y, sensitive_features=group)
        wanted = SenSeIClassifier(**SMALL).fit(X, Y, sensitive_features=group)
        torch.testing.assert_close(model.fair_metric_.directions, wanted.fair_metric_.directions)


@pytest.mark.parametrize("method", [SenSeIClassifier, SenSeIRegressor])
def test_the_domain_of_parts_is_that_of_all_of_them(method, tmp_path):
    order, x = np.argsort(X[:, 1]), X.copy()
    x[:, 2] = x[:, 2] > 0
    model, some = method(METRIC, **SMALL), Y[order[:100]].copy()
    some[0] = 1 - some[0]
    model.partial_fit(x[order[:100]], some)
    save(model, tmp_path / "model")
    for part in (model, load(tmp_path / "model")):
        part.partial_fit(x[order[100:]], Y[order[100:]])
        known = method(METRIC, **SMALL).fit(x, Y).bounds_
        assert part.bounds_.binary == known.binary == (2,)
        for name in ("low", "high", "free_low", "free_high"):
            torch.testing.assert_close(getattr(part.bounds_, name), getattr(known, name))
        assert bool(part.bounds_.contains(torch.from_numpy(x)).all())


def test_a_regressor_goes_on_with_the_scale_of_the_first_call():
    """With a rate of nearly zero nothing may change, whatever the targets of later calls are."""
    target = 1000 * X[:, 0] + 5000
    model = SenSeIRegressor(METRIC, **SMALL | {"steps": 1500}, rho=0.0).partial_fit(X[:150], target[:150])
    first, scale = model.score(X, target), model.targets_.scale
    assert first > 0.5
    assert model.partial_fit(X, target).score(X, target) > first
    before = model.predict(X)
    model.set_params(lr=1e-12, lam=5.0).partial_fit(X[:9], target[:9] * 1e-3)
    np.testing.assert_allclose(model.predict(X), before, rtol=1e-5, atol=0.1)
    np.testing.assert_array_equal(model.targets_.scale, scale)
    with pytest.raises(ValueError, match=r"y holds 2 number\(s\) for each row, but 1 in the calls before"):
        model.partial_fit(X, np.stack([target, target], axis=1))


@pytest.mark.parametrize("method", [SenSeIClassifier, SenSeIRegressor])
def test_sensitive_features_of_the_first_partial_fit_teach_the_metric(method):
    group = (X[:, 2] > 0).astype(int)
    model = method(**SMALL).partial_fit(X, Y, sensitive_features=group)
    wanted = method(**SMALL).fit(X, Y, sensitive_features=group).fair_metric_.directions
    assert wanted.shape[1] > 0
    torch.testing.assert_close(model.fair_metric_.directions, wanted)
    model.partial_fit(X, Y, sensitive_features=1 - (X[:, 1] > 0))
    torch.testing.assert_close(model.fair_metric_.directions, wanted)


def test_the_only_class_is_not_shown():
    for model in (ERMClassifier(**SMALL), SenSeIBoostingClassifier(trees=1)):
        with pytest.raises(ValueError, match=r"y holds one class only$"):
            model.fit(X, np.full(200, "Jane Doe"))


def one_more(lam, mean_d_x, eps):
    """A rule by which lam counts the steps."""
    return lam + 1


@pytest.mark.parametrize("method", [SenSeIClassifier, SenSeIRegressor, SenSRClassifier])
def test_lam_goes_on_where_it_was_and_a_new_fit_starts_anew(method):
    model = method(METRIC, **SMALL, lam=0.0, lam_rule=one_more)
    assert [model.fit(X, Y).lam_ for _ in range(2)] == [40, 40]
    model.set_params(warm_start=True)
    assert [model.fit(X, Y).lam_ for _ in range(2)] == [80, 120]
    again = method(METRIC, **SMALL, lam=0.0, lam_rule=one_more)
    assert [again.partial_fit(X, Y).lam_ for _ in range(3)] == [4, 8, 12]


def test_a_loaded_model_goes_on_from_its_lam(tmp_path):
    model = SenSeIClassifier(METRIC, **SMALL, lam=3.0).fit(X, Y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.lam_ == model.lam_ < 2.9
    assert loaded.partial_fit(X, Y).lam_ < model.lam_
    assert loaded.lam_ == pytest.approx(model.partial_fit(X, Y).lam_)


def test_callbacks_are_told_every_evaluation():
    told = []
    ERMClassifier(**SMALL, callbacks=[lambda step, steps, record: told.append((step, steps, record["loss"]))]).fit(X, Y)
    assert [step for step, _, _ in told] == list(range(2, 41, 2))
    assert all(steps == 40 and np.isfinite(loss) for _, steps, loss in told)


def test_sparse_and_arrow_tables_give_what_arrays_give():
    pa = pytest.importorskip("pyarrow")
    dense = ERMClassifier(**SMALL).fit(X, Y)
    thin = ERMClassifier(**SMALL).fit(sparse.csr_matrix(X), Y)
    np.testing.assert_array_equal(thin.predict_proba(sparse.csr_matrix(X)), dense.predict_proba(X))
    table = pa.table({name: X[:, j] for j, name in enumerate("abc")})
    arrow = ERMClassifier(**SMALL).fit(table, Y)
    assert list(arrow.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(arrow.predict_proba(table), dense.predict_proba(X))


def test_the_domain_of_a_stream_is_that_of_the_arrays():
    batches = [(X[i : i + 50], Y[i : i + 50]) for i in range(0, 200, 50)]
    streamed = SenSeIClassifier(METRIC, **SMALL | {"steps": 2}).fit_stream(batches).bounds_
    whole = SenSeIClassifier(METRIC, **SMALL | {"steps": 2}).fit(X, Y).bounds_
    assert isinstance(whole, FreeBox)
    torch.testing.assert_close(streamed.free_low, whole.free_low)
    torch.testing.assert_close(streamed.high, whole.high)
    assert whole.contains(torch.tensor(X).double()).all()


def test_a_stopped_stream_of_other_people_is_refused(tmp_path):
    batches = [(X[i : i + 50], Y[i : i + 50]) for i in range(0, 200, 50)]
    ERMClassifier(**SMALL).checkpoint_to(tmp_path / "run").fit_stream(batches)
    with pytest.raises(ValueError, match=r"another run: known_as\.seen"):
        ERMClassifier(**SMALL).checkpoint_to(tmp_path / "run").fit_stream(batches[:3])


@pytest.mark.parametrize(
    ("weight", "labels"),
    [({"0": 1.0, "1": 1000.0}, r"\[0, 1\]"), ({"yes": 1000.0}, r"\[0, 1\]"), ({0: 1.0, 2: 5.0}, r"\[0, 1\]")],
)
def test_weights_of_classes_that_are_not_there(weight, labels):
    model = ERMClassifier(**SMALL, class_weight=weight)
    for fit in (lambda: model.fit(X, Y), lambda: model.fit_stream([(X, Y)])):
        with pytest.raises(ValueError, match=f"class_weight names .* but the classes are {labels}"):
            fit()


def test_weights_of_more_classes_than_a_fold_has_are_no_mistake():
    plain, more = ({0: 1.0, 1: 9.0}, {0: 1.0, 1: 9.0, 2: 5.0})
    one, other = (ERMClassifier(**SMALL, class_weight=weight).fit(X, Y) for weight in (plain, more))
    assert torch.equal(weights_of(one), weights_of(other))


def test_any_table_of_class_weights_will_do():
    table = {0: 0.01, 1: 10.0}
    for fit in (lambda model: model.fit(X, Y), lambda model: model.fit_stream([(X, Y)])):
        one, other = (
            fit(ERMClassifier(**SMALL, class_weight=weight)) for weight in (table, types.MappingProxyType(table))
        )
        assert torch.equal(weights_of(one), weights_of(other))
    with pytest.raises(ValueError, match="class_weight must give every class a weight"):
        ERMClassifier(**SMALL, class_weight={0: "heavy"}).fit(X, Y)


def test_canonical_order_of_several_numbers_a_row():
    order = np.random.default_rng(1).permutation(200)
    x, y = torch.tensor(X), torch.stack([torch.tensor(Y), torch.tensor(Y).flip(0)], 1)
    one, other = canonical_order(x, y), canonical_order(x[order], y[order])
    assert torch.equal(x[one], x[order][other])
    assert torch.equal(y[one], y[order][other])


def test_canonical_order_is_an_order_of_values():
    order = np.random.default_rng(1).permutation(200)
    x, y = torch.tensor(X), torch.tensor(Y)
    assert torch.equal(x[canonical_order(x, y)], x[order][canonical_order(x[order], y[order])])
