"""The data of the large run: the right shape, the same whatever their number, and sensitive by proxy."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

spec = importlib.util.spec_from_file_location("large", Path(__file__).parents[2] / "benchmarks" / "large.py")
large = importlib.util.module_from_spec(spec)
spec.loader.exec_module(large)


def test_files_are_written_block_by_block(tmp_path):
    large.write(tmp_path, 2500, block=1000)
    x, y = np.load(tmp_path / "x.npy", mmap_mode="r"), np.load(tmp_path / "y.npy", mmap_mode="r")
    assert (x.shape, x.dtype, y.shape) == ((2500, large.COLUMNS), np.float32, (2500,))
    assert set(np.unique(x[:, 0])) == {0.0, 1.0}
    assert 0.3 < np.corrcoef(x[:, 0], x[:, 1])[0, 1] < 0.9  # the second column gives the first away
    assert 0.3 < y.mean() < 0.7
    assert not np.array_equal(x[:1000], x[1000:2000])


def test_the_peak_can_be_counted_anew():
    assert 0.01 < large.peak() < 100
    large.forget_peak()
    assert large.peak() > 0.01


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_people_are_like_those_of_adult_and_judged_beside_another_network():
    x, y, box = large.adult_like(600)
    assert x.shape == (600, 41)
    assert box.contains(large.torch.from_numpy(x)).all()
    assert 0.15 < y.mean() < 0.35
    found = large.many_people(600, predicted=3000)
    assert found["people"] == 600
    assert found["r_low"]["audit, learned direction free"] > found["r_low"]["audit"] > 0
    assert all(stage["cpu_seconds"] >= 0 for stage in found["stages"].values())
    assert sum("MLPClassifier" in name for name in found["stages"]) == 3
