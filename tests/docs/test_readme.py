"""The README's code runs, its numbers are those of the results files, its map and links point at something."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()

spec = importlib.util.spec_from_file_location("fill_readme", ROOT / "tools" / "fill_readme.py")
fill_readme = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fill_readme)


def test_snippets_run():
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0


def test_numbers_are_those_of_the_results():
    assert fill_readme.filled(README) == README, "run tools/fill_readme.py"


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+?\.\w+)\)", README)) - {""}))
def test_links_lead_somewhere(link):
    assert link.startswith("https://") or (ROOT / link).exists()


PATHS = sorted(set(re.findall(r"`((?:evenhand|fair_metrics|experiments|search)/[\w/.]*)`", README)))


@pytest.mark.parametrize("path", PATHS)
def test_the_map_is_true(path):
    assert (ROOT / path).exists() or (ROOT / "evenhand" / path).exists()
