"""The site builds without a warning, its snippets run, and the command line page is true."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = ["quickstart", "journeys", "choosing"]


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page):
    result = doctest.testfile(str(ROOT / "docs" / f"{page}.md"), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0


@pytest.mark.slow
def test_the_site_builds(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs-material is not installed")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-3000:]
    page = (tmp_path / "site" / "api" / "index.html").read_text()
    assert "SenSeIClassifier" in page


def test_every_command_is_on_its_page():
    typer = pytest.importorskip("typer")
    from evenhand.cli import app

    text = (ROOT / "docs" / "cli.md").read_text()
    commands = typer.main.get_command(app).commands
    for name, command in commands.items():
        assert f"evenhand {name}" in text
        options = {option for parameter in command.params for option in parameter.opts}
        for line in re.findall(rf"^    evenhand {name} .*$", text, flags=re.M):
            for used in re.findall(r"--[\w-]+", line):
                assert used in options, f"{name} has no {used}"
