"""The strength of the audit on tiny versions of the benchmark's models."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location(
    "audit_strength", Path(__file__).parents[2] / "benchmarks" / "audit_strength.py"
)
audit_strength = importlib.util.module_from_spec(spec)
sys.modules["audit_strength"] = audit_strength  # dataclasses look their module up
spec.loader.exec_module(audit_strength)


@pytest.mark.parametrize("name", ["full-rank 6-20-3 random", "boosted trees"])
def test_a_tiny_run(name):
    result = audit_strength.measure(name, people=12, harder=3.0, starts=1)
    assert result["people"] == 12
    assert 0.8 <= result["ratio"] <= 1
    assert result["ratio"] == pytest.approx(
        result["r_low"] / max(result["r_low"], result["harder"], result["adam"] or 0), abs=1e-4
    )
    json.dumps(result)


def test_a_black_box_hides_the_network_that_it_calls():
    open_, hidden = (audit_strength.a_net((4, 5, 2), audit_strength.full_rank(4), False, 8, h) for h in (False, True))
    assert hidden.inside is not None
    assert open_.inside is None
    assert hidden.model(open_.x) == pytest.approx(open_.model(open_.x).detach().numpy())
