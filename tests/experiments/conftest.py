import contextlib
import io
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a script as its command does, in this process; gives what it said. What it wrote is in ``tmp_path``."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    threads, before = torch.get_num_threads(), set(sys.modules)

    def call(script, *options):
        path, said = EXPERIMENTS / f"{script}.py", io.StringIO()
        monkeypatch.setattr(sys, "argv", [str(path), "--out", str(tmp_path), *options])
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(path), run_name="__main__")
        return said.getvalue()

    yield call
    torch.set_num_threads(threads)
    for name in set(sys.modules) - before:  # scripts change the settings of those they import
        if str(EXPERIMENTS) in os.fspath(getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.fixture
def command(tmp_path):
    """The same in a process of its own."""
    path = os.pathsep.join([str(EXPERIMENTS.parent), str(EXPERIMENTS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "EVENHAND_CACHE": str(tmp_path / "cache")}

    def call(script, *options):
        line = [sys.executable, str(EXPERIMENTS / f"{script}.py"), "--out", str(tmp_path), *options]
        done = subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return call
