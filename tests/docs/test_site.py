"""The site builds without a warning, its snippets run, and the command line page is true."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = ["quickstart", "journeys", "choosing", "migration", "extending"]


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page):
    result = doctest.testfile(str(ROOT / "docs" / f"{page}.md"), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0


@pytest.mark.slow
def test_the_site_builds(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs-material is not installed")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-3000:]
    site = tmp_path / "site"
    assert "SenSeIClassifier" in (site / "api" / "index.html").read_text()
    for page in site.glob("*/index.html"):
        for source in re.findall(r'<img [^>]*src="(?!https?:|data:)([^"]+)"', page.read_text()):
            assert (page.parent / source).exists(), f"{page.parent.name} shows {source}, which is not in the site"


def test_every_page_is_in_the_contents():
    contents = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f": {page.name}\n" in contents, page.name


def test_every_public_name_is_in_the_reference():
    import evenhand

    text = (ROOT / "docs" / "api.md").read_text()
    named = re.findall(r"^::: ([\w.]+)$", text, flags=re.M)
    assert len(named) == len(set(named))
    for path in named:
        module, _, name = path.rpartition(".")
        try:
            found = importlib.import_module(path)
        except ModuleNotFoundError:
            found = getattr(importlib.import_module(module), name)
        assert found.__doc__, f"{path} has no docstring"
    last = {path.rpartition(".")[2] for path in named}
    modules = {path.split(".")[1] for path in named}
    for name in evenhand.__all__:
        assert name in last | modules | {"__version__"}, f"{name} is public and not in docs/api.md"


def test_the_map_of_the_paper_names_what_exists():
    text = (ROOT / "docs" / "paper-to-code.md").read_text()
    for path in re.findall(r"`((?:evenhand|experiments)/[\w/]+(?:\.py|/))`", text):
        assert (ROOT / path).exists(), path
    sources = "\n".join(path.read_text() for path in (ROOT / "evenhand").rglob("*.py"))
    for name in re.findall(r"`(?:evaluation\.)?([A-Za-z_]\w+)(?:\(.*?\))?`", text):
        assert re.search(rf"\b{name}\b", sources), name


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
