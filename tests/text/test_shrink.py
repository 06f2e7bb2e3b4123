import numpy as np
import pytest

from evenhand.text.shrink import Shrinkage
from evenhand.variations import Variations


def test_a_direction_shrinks_by_how_much_versions_differ_along_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3)).astype(np.float32)
    away = np.array([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]])  # variance 4 between versions, 1 between texts
    versions = Variations((x[:50, None] + away).astype(np.float32), np.arange(50))
    shrunk = Shrinkage.learned([versions], x, strength=2.0)
    assert np.abs(shrunk.directions).round(3).tolist() == [[1], [0], [0]]
    assert shrunk.factors == pytest.approx([1 / np.sqrt(1 + 2 * 4)], rel=0.05)
    moved = shrunk(x)
    assert moved[:, 0] == pytest.approx(x[:, 0] * shrunk.factors[0], abs=1e-5)
    assert moved[:, 1:] == pytest.approx(x[:, 1:], abs=1e-5)
    assert shrunk(versions.values).shape == (50, 2, 3)
    other = Variations(versions.values[:, :, [1, 0, 2]], np.arange(50))
    both = Shrinkage.learned([versions, other], x, strength=2.0)
    assert both(x)[:, :2] == pytest.approx(x[:, :2] / 3, abs=0.1)  # each kind counts as if it were alone


def test_without_versions_or_strength_everything_stays():
    x = np.ones((5, 2), np.float32)
    versions = Variations(np.arange(8, dtype=np.float32).reshape(2, 2, 2), [0, 1])
    none = Variations(np.empty((0, 2, 2), np.float32), np.empty(0, int))
    for shrunk in (Shrinkage.learned([versions], x, 0.0), Shrinkage.learned([none], x, 9.0), Shrinkage.none(2)):
        assert (shrunk(x) == x).all()


def test_one_shrinkage_after_another():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5)).astype(np.float32)
    versions = Variations(rng.normal(size=(30, 4, 5)) * np.array([3.0, 1.0, 0.1, 0.0, 0.5]), np.arange(30))
    weak, strong = (Shrinkage.learned([versions], x, strength) for strength in (3.0, 30.0))
    assert np.allclose(weak(x) @ weak.to(strong), strong(x), atol=1e-5)
    assert np.allclose(weak.to(weak), np.eye(5), atol=1e-6)
    assert np.allclose(Shrinkage.none(5).to(strong), strong(np.eye(5)), atol=1e-6)
