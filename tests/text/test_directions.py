import numpy as np
import pytest

from evenhand.fair_metrics import face
from evenhand.text.directions import main_directions, scatter
from evenhand.variations import Variations


def versions(values):
    return Variations(values, np.arange(len(values)))


def test_of_one_kind_they_are_those_of_face():
    rng = np.random.default_rng(0)
    some = versions(rng.normal(size=(30, 4, 6)) * [9, 5, 3, 1, 0.5, 0.1])
    ours, theirs = main_directions([some], 3), face(some, 3).directions.numpy()
    np.testing.assert_allclose(np.abs(ours.T @ theirs), np.eye(3), atol=1e-5)


def test_every_kind_counts_the_same_however_many_there_are():
    many = versions(np.tile([[[1.0, 0, 0], [-1.0, 0, 0]]], (500, 1, 1)))
    few = versions(np.array([[[0, 2.0, 0], [0, -2.0, 0]]]))
    np.testing.assert_allclose(main_directions([many, few], 1).ravel(), [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(scatter(few), np.diag([0, 4.0, 0]))


def test_no_more_than_versions_differ_in_and_fewer_than_features():
    line = versions(np.array([[[0.0, 1, 5], [3.0, 1, 5]]]))
    none = versions(np.empty((0, 2, 3)))
    assert main_directions([line, none], 2).shape == (3, 1)
    assert main_directions([versions(np.random.default_rng(0).normal(size=(9, 3, 3)))], 7).shape == (3, 2)


def test_parts_give_the_same_as_all_at_once(monkeypatch):
    some = versions(np.random.default_rng(1).normal(size=(40, 3, 5)).astype(np.float32))
    whole = scatter(some)
    monkeypatch.setattr("evenhand.text.directions.CHUNK", 50)
    np.testing.assert_allclose(scatter(some), whole, rtol=1e-12)
    assert whole.dtype == np.float64
    assert np.trace(whole) == pytest.approx(np.var(some.values.astype(float), axis=1).sum(axis=1).mean())
