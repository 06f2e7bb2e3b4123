"""The model on paper of many workers: its arithmetic, and what it must do as workers and networks change."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("ddp", Path(__file__).parents[2] / "benchmarks" / "ddp.py")
ddp = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ddp)


def test_a_ring_sends_twice_the_gradient_but_for_one_share():
    found = ddp.model_of(64, 6_400_000, step=1.0, latency=0.0)
    assert found["bytes_sent_per_worker_and_step"] == 2 * 63 * 100_000
    assert found["communication_seconds"]["1 Gbit/s"] == pytest.approx(12.6e6 / 1.25e8, abs=1e-4)
    assert found["efficiency_at_504_rows_per_worker"]["1 Gbit/s"] == pytest.approx(1 / (1 + 12.6e6 / 1.25e8), abs=1e-3)


def test_one_worker_sends_nothing_and_faster_networks_help():
    assert ddp.model_of(1, 1000, step=1.0)["bytes_sent_per_worker_and_step"] == 0
    efficiency = list(ddp.model_of(64, 6_400_000, step=0.5)["efficiency_at_504_rows_per_worker"].values())
    assert efficiency == sorted(efficiency)
    assert all(0 < share < 1 for share in efficiency)


def test_times_are_those_of_single_steps():
    assert ddp._each([0.0, 3.0, 9.0]) == [3.0 / ddp.EVERY, 6.0 / ddp.EVERY]
