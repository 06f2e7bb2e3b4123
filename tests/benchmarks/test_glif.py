"""The benchmark of post-processing: it measures, and its committed result is what was asked."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def benchmark_glif():
    spec = importlib.util.spec_from_file_location("benchmark_glif", ROOT / "benchmarks" / "glif.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("shape", ["narrow", "adult"])
def test_a_few_rows(benchmark_glif, shape):
    found = benchmark_glif.measure(shape, 300)
    assert found["pairs"] >= 300 * 10 / 2
    assert 0 < found["objective"] < 0.9 * found["objective_before"]  # the graph has weights that matter
