"""The README's code runs, its map and links point at something."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def test_snippets_run():
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted > 12
    assert result.failed == 0


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+?\.\w+)\)", README)) - {""}))
def test_links_lead_somewhere(link):
    assert link.startswith("https://") or (ROOT / link).exists()


PATHS = sorted(set(re.findall(r"`((?:evenhand|experiments)/[\w/.]*)`", README)))


@pytest.mark.parametrize("path", PATHS)
def test_the_map_is_true(path):
    assert (ROOT / path).exists() or (ROOT / "evenhand" / path).exists()


def test_the_map_names_every_room():
    named = {path.split("/")[1].removesuffix(".py") for path in PATHS if path.startswith("evenhand/")}
    rooms = {
        path.stem for path in (ROOT / "evenhand").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert {room for room in rooms if not room.startswith("__")} - named == set()
