"""The lowest versions are those that pyproject.toml states."""

import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("versions", Path(__file__).parents[2] / "tools" / "versions.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def test_lowest_and_as_stated():
    assert tool.pinned("numpy>=1.26") == "numpy==1.26.*"
    stated, lowest = tool.requirements(lowest=False), tool.requirements(lowest=True)
    assert len(stated) == len(lowest) > 10
    assert all("==" in line for line in lowest)
    assert not any(line.startswith("torch") for line in lowest)  # constraints.txt says which


def test_a_python_that_is_not_there_is_said(tmp_path):
    assert tool.case("2.99", False, tmp_path / "env", [])["result"] == "this Python is not on the machine"
