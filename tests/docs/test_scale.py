"""Every measured number of docs/scale.md comes from a committed results file, and what was promised holds there."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("fill_scale", ROOT / "tools" / "fill_scale.py")
fill_scale = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fill_scale)
PAGE = (ROOT / "docs" / "scale.md").read_text()


def results(name):
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path.name} is not there: no full run yet")
    return json.loads(path.read_text())


def test_the_page_shows_what_the_results_hold():
    assert fill_scale.filled(PAGE) == PAGE, "run python tools/fill_scale.py"


@pytest.mark.parametrize("name", list(fill_scale.BLOCKS))
def test_every_result_has_its_place_on_the_page(name):
    assert f"<!-- measured: {name} -->" in PAGE


def test_every_kill_resumed_to_identical_weights():
    found = results("kills")
    assert found["kills"] >= 100
    assert found["identical"] == found["kills"]
    assert sum(found["by kind"].values()) == found["kills"]


def test_ten_million_rows_fit_in_two_gigabytes_and_memory_does_not_follow_the_people():
    found = results("large")
    assert (found["rows"], found["columns"]) == (10_000_000, 40)
    assert found["peak_gb"] < 2
    for kind in ("audit", "certify"):
        few, many = (stage["peak_gb"] for name, stage in found["stages"].items() if name.startswith(kind))
        assert many < 1.1 * few


def test_the_soak_had_no_failure_and_did_not_grow():
    found = results("soak")
    assert found["seconds"] >= 1800
    assert found["failures"] == []
    assert found["growth"] < 0.05


def test_no_damaged_file_ended_in_another_error():
    found = results("fuzz")
    assert set(found["readers"]) == {"checkpoint", "model", "metric", "table"}
    assert all(reader["files"] > 1000 and reader["failures"] == [] for reader in found["readers"].values())


def test_two_processes_are_faster_than_one():
    found = results("ddp")
    assert found["speed_up"]["compute"] >= 1.5
    assert found["model_of_64_workers"]["workers"] == 64


def test_clean_installations_hold_nothing_optional_and_import_fast():
    found = results("install")
    assert set(found["archives"]) == {"wheel", "sdist"}
    for archive in found["archives"].values():
        assert archive["extra"] == []
        assert archive["import_ratio"] < 1.5
