"""FairMetric: positive semi-definite, zero along its directions, whatever the directions look like."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenhand.fair_metrics import FairMetric
from evenhand.fair_metrics.metric import check_free_share, free_share

entries = st.floats(-10, 10, allow_nan=False, width=32)


@settings(max_examples=60, deadline=None)
@given(directions=arrays(np.float64, (5, 3), elements=entries).filter(lambda a: np.abs(a).max() > 1e-2))
def test_positive_semidefinite_and_free_along_the_directions(directions):
    metric = FairMetric(directions)
    assert np.linalg.eigvalsh(metric.sigma.numpy()).min() > -1e-10
    x = torch.zeros(1, 5, dtype=torch.float64)
    for column in torch.tensor(directions).T:
        length = column.norm().item()
        if length > 1e-2:  # shorter than the rank cut of the others is rounding
            assert metric(x, x + column / length).item() < 1e-9
    torch.testing.assert_close(
        metric.directions.T @ metric.directions, torch.eye(metric.directions.shape[1], dtype=torch.float64)
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), given_sigma=st.booleans())
def test_call_cost_and_pairwise_are_the_quadratic_form(seed, given_sigma):
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    metric = FairMetric(sigma=a @ a.T) if given_sigma else FairMetric(a)
    x, z = (torch.randn(n, 6, generator=generator, dtype=torch.float64) for n in (4, 3))
    loop = torch.stack([torch.stack([(p - q) @ metric.sigma @ (p - q) for q in z]) for p in x])
    torch.testing.assert_close(metric.pairwise(x, z), loop)
    torch.testing.assert_close(metric(x[:3], z), loop.diagonal())
    torch.testing.assert_close(metric.cost(x[:3] - z), loop.diagonal())
    delta = (x[:3] - z).requires_grad_(True)
    (slope,) = torch.autograd.grad(metric.cost(delta).sum(), delta)
    torch.testing.assert_close(metric.cost_gradient(delta.detach()), slope)
    if given_sigma:
        torch.testing.assert_close(metric.sigma, a @ a.T)


@pytest.mark.parametrize(
    "columns", [[(1, 0, 0), (2, 0, 0)], [(1, 0, 0), (1, 1e-9, 0)], [(1, 0, 0), (0, 0, 0)], [(1, 0, 0), (1, 0, 0)]]
)
def test_collinear_zero_and_duplicate_directions_count_once(columns):
    metric = FairMetric(np.array(columns, dtype=float).T)
    assert metric.directions.shape == (3, 1)
    torch.testing.assert_close(metric.sigma, torch.diag(torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64)))


def test_sigma_null_space_becomes_the_directions():
    metric = FairMetric(sigma=np.diag([0.0, 4.0, 0.0, 1.0]))
    assert metric.directions.shape == (4, 2)
    assert metric(np.zeros((1, 4)), np.array([[5.0, 1.0, 7.0, 2.0]])).item() == pytest.approx(8)
    assert metric.factor is not None


def test_euclidean_and_project():
    metric = FairMetric.euclidean(3)
    x, z = torch.randn(4, 3), torch.randn(4, 3)
    torch.testing.assert_close(metric(x, z), (x - z).square().sum(1))
    assert torch.equal(metric.project(x), x)
    sensitive = FairMetric([[1.0], [0.0], [0.0]])
    assert (sensitive.project(x)[:, 0] == 0).all()
    assert torch.equal(sensitive.project(x)[:, 1:], x[:, 1:])


@pytest.mark.parametrize("given_sigma", [True, False])
def test_save_and_load(tmp_path, given_sigma):
    a = np.random.default_rng(0).normal(size=(4, 2))
    metric = FairMetric(sigma=a @ a.T) if given_sigma else FairMetric(a)
    metric.save(tmp_path / "metric.npz")
    loaded = FairMetric.load(tmp_path / "metric.npz")
    x, z = torch.randn(5, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    assert torch.equal(loaded(x, z), metric(x, z))
    assert [path.name for path in tmp_path.iterdir()] == ["metric.npz"]
    (tmp_path / "other").write_text("nothing of ours")
    with pytest.raises(ValueError, match=r"not a fair metric written by FairMetric\.save"):
        FairMetric.load(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        FairMetric.load(tmp_path / "absent")


def test_dtype_follows_the_input_and_to_returns_self():
    assert FairMetric(np.eye(3, dtype=np.float32)[:, :1]).directions.dtype == torch.float32
    assert FairMetric(np.eye(3, dtype=int)[:, :1]).directions.dtype == torch.float32
    metric = FairMetric(np.eye(3)[:, :1])
    assert metric.directions.dtype == torch.float64
    assert metric.to(torch.float32) is metric
    assert metric(torch.zeros(1, 3), torch.ones(1, 3)).dtype == torch.float32
    assert metric.matching(torch.zeros(1, 3, dtype=torch.float64)).directions.dtype == torch.float64
    assert metric.directions.dtype == torch.float32
    assert "3 features, 1 free directions" in repr(metric)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FairMetric(), "either directions"),
        (lambda: FairMetric([[1.0]], sigma=[[1.0]]), "either directions"),
        (lambda: FairMetric(np.zeros((3, 2))), "span nothing"),
        (lambda: FairMetric(np.zeros((3, 0))), "at least one row and one column"),
        (lambda: FairMetric([[float("nan")], [1.0]]), "NaN or infinite"),
        (lambda: FairMetric(sigma=np.ones((2, 3))), "must be square"),
        (lambda: FairMetric(sigma=[[1.0, 2.0], [0.0, 1.0]]), "must be symmetric"),
        (lambda: FairMetric(sigma=-np.eye(2)), "positive semi-definite"),
        (lambda: FairMetric(sigma=[[0.0, 3.0], [3.0, 0.0]]), "its smallest eigenvalue is -3"),
        (lambda: FairMetric([[1.0], [0.0]])(torch.zeros(1, 3), torch.zeros(1, 3)), "built for 2 features"),
    ],
)
def test_errors_say_what_came(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_pickle_in_a_metric_file_is_not_run(tmp_path):
    mark = tmp_path / "ran"

    class Boom:
        def __reduce__(self):
            return mark.touch, ()

    np.savez(tmp_path / "m.npz", directions=np.array([Boom()], dtype=object))
    mark.unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"not a fair metric written by FairMetric\.save"):
        FairMetric.load(tmp_path / "m.npz")
    assert not mark.exists()


@pytest.mark.parametrize("directions", [[[2.0], [0.0]], [[1.0, 1.0], [0.0, 0.0]]], ids=["long", "twice"])
def test_directions_in_a_file_are_orthonormal(tmp_path, directions):
    np.savez(tmp_path / "m.npz", directions=np.array(directions))
    with pytest.raises(ValueError, match="not orthonormal"):
        FairMetric.load(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"factor": np.ones((2, 3))}, "do not fit together"),
        ({"factor": np.ones(2)}, "do not fit together"),
        ({"directions": np.ones(2)}, "do not fit together"),
        ({"factor": np.array([[1.0, np.nan]])}, "not finite numbers"),
        ({"factor": np.array([[1, 2]])}, "not finite numbers"),
    ],
)
def test_matrices_in_a_file_are_checked(tmp_path, parts, says):
    np.savez(tmp_path / "m.npz", **{"directions": np.array([[1.0], [0.0]]), **parts})
    with pytest.raises(ValueError, match=says):
        FairMetric.load(tmp_path / "m.npz")


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_a_matrix_is_judged_in_its_own_unit(unit):
    with pytest.raises(ValueError, match="positive semi-definite"):
        FairMetric(sigma=unit * np.array([[0.0, 1e-3], [1e-3, 1.0]]))  # no move is free and turns another dear
    rounded = FairMetric(sigma=unit * np.array([[1.0, 1e-9], [0.0, 2.0]]))  # asymmetric by rounding only
    assert rounded.directions.shape == (2, 0)
    torch.testing.assert_close(rounded.sigma / unit, torch.diag(torch.tensor([1.0, 2.0], dtype=torch.float64)))


def test_half_precision_does_not_bend_the_directions():
    metric = FairMetric(torch.randn(7, 2, generator=torch.Generator().manual_seed(0)))
    exact = metric.directions.clone()
    for dtype in (torch.float16, torch.bfloat16):
        assert torch.equal(metric.to(dtype).directions, exact)
    assert metric.double().directions.dtype == torch.float64


def test_how_much_of_the_difference_between_people_is_free():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3)) * [1.0, 2.0, 3.0] + 100
    metric = FairMetric(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    assert free_share(metric, x) == pytest.approx(5 / 14, rel=0.05)
    assert free_share(FairMetric.euclidean(3), x) == 0
    assert free_share(FairMetric(sigma=torch.diag(torch.tensor([0.0, 1.0, 1.0]))), x) == pytest.approx(1 / 14, rel=0.05)
    with pytest.warns(UserWarning, match="35% of the difference between people"):
        check_free_share(metric, x)
    with pytest.raises(ValueError, match="makes nearly everybody alike"):
        check_free_share(FairMetric(torch.eye(3)), x)
    assert check_free_share(FairMetric(torch.tensor([[1.0], [0.0], [0.0]])), x) < 0.1
