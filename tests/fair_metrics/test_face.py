import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.fair_metrics.face import face, face_stream
from evenhand.variations import Variations


def projector(directions):
    q = np.linalg.qr(np.asarray(directions, dtype=np.float64))[0]
    return q @ q.T


@given(seed=st.integers(0, 1000), g=st.integers(8, 40), d=st.integers(6, 20), k=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_pairs_equal_the_svd_of_their_differences(seed, g, d, k):
    rng = np.random.default_rng(seed)
    x, x_other = rng.normal(size=(2, g, d))
    metric = face(Variations(np.stack([x, x_other], axis=1), np.arange(g)), k)
    top = np.linalg.svd(x - x_other, full_matrices=False)[2][:k]
    assert metric.directions.shape == (d, k)
    np.testing.assert_allclose(projector(metric.directions.numpy()), projector(top.T), atol=1e-7)


def test_tall_and_wide_data_give_the_same_directions():
    """More rows than features goes through the (d, d) matrix, fewer through the SVD itself."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 4, 30))
    few = face(Variations(values, np.arange(5)), 3)
    many = face(Variations(np.concatenate([values, values]), np.arange(10)), 3)
    np.testing.assert_allclose(projector(few.directions), projector(many.directions), atol=1e-9)


def test_finds_a_planted_subspace_whatever_the_individuals_look_like():
    rng = np.random.default_rng(1)
    planted = np.linalg.qr(rng.normal(size=(40, 3)))[0]
    people = 100 * rng.normal(size=(60, 1, 40))  # the differences between individuals are large and must not count
    values = people + rng.normal(size=(60, 10, 3)) @ planted.T + 0.01 * rng.normal(size=(60, 10, 40))
    metric = face(Variations(values, np.arange(60)), 3)
    assert np.linalg.norm(projector(metric.directions) - projector(planted), 2) < 0.01
    x = values[0]
    assert float(metric(x[:1], x[1:2])[0]) < 0.02  # versions of one individual are alike
    assert float(metric(values[0, :1], values[1, :1])[0]) > 1000


def test_float32_is_kept():
    values = np.random.default_rng(0).normal(size=(20, 2, 5)).astype(np.float32)
    assert str(face(Variations(values, np.arange(20)), 2).directions.dtype) == "torch.float32"


@pytest.mark.parametrize(
    ("values", "k", "message"),
    [
        (np.empty((0, 50)), 3, "nobody with versions"),
        (np.array([["a", "b"]], dtype=object), 1, "encode texts first"),
        (np.zeros((4, 2, 3)), 1, "only 0 directions"),
        (np.arange(24.0).reshape(4, 2, 3), 2, "only 1 directions"),
        (np.full((4, 2, 3), np.nan), 1, "NaN"),
        (np.zeros((4, 2, 3)), 0, "k must be"),
        (np.zeros((4, 2, 3)), 3, "k must be"),
    ],
)
def test_bad_input(values, k, message):
    with pytest.raises(ValueError, match=message):
        face(Variations(values, np.arange(len(values))), k)


@pytest.mark.parametrize("learn", [face, lambda values, k: face_stream([values], k)])
@pytest.mark.parametrize("values", [np.zeros((4, 2, 3)), torch.zeros(4, 2, 3)])
def test_an_array_does_not_say_whose_versions_it_holds(learn, values):
    with pytest.raises(TypeError, match=r"Variations\(values, rows\), .*; got (ndarray|Tensor)"):
        learn(values, 1)
