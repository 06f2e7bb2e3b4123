import shutil
from pathlib import Path

import pandas as pd
import pytest

from evenhand.workflow import reproduce


def test_every_script_exists_or_is_named_nowhere():
    folder = reproduce.experiments_folder()
    missing = [s for scripts in reproduce.SCRIPTS.values() for s in scripts if not (folder / f"{s}.py").exists()]
    assert missing == []


def test_unknown_experiment():
    with pytest.raises(ValueError, match="adult, toxicity, bios, synthetic"):
        reproduce.run("adults")


def test_a_wheel_says_that_a_clone_is_needed(tmp_path, monkeypatch):
    shutil.copy(reproduce.__file__, tmp_path / "reproduce.py")
    monkeypatch.setattr(reproduce, "__file__", str(tmp_path / "evenhand" / "workflow" / "reproduce.py"))
    with pytest.raises(FileNotFoundError, match="clone the repository"):
        reproduce.run("adult", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def fake(tmp_path: Path, monkeypatch, code: str) -> None:
    scripts = tmp_path / "experiments"
    scripts.mkdir()
    for name in ("fig1_rho", "fig4_sensr_eps", "ranking"):
        (scripts / f"{name}.py").write_text(code.replace("NAME", name))
    monkeypatch.setattr(reproduce, "experiments_folder", lambda: scripts)


WRITES = """
import argparse, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--out", type=pathlib.Path)
parser.add_argument("--quick", action="store_true")
given = parser.parse_args()
assert given.quick
(given.out / "NAME.csv").write_text("method,a_b\\none & two,0.25\\n")
(given.out / "NAME_runs.csv").write_text("method\\n")
(given.out / "NAME.svg").write_text("<svg/>")
"""


def test_tables_in_three_formats_and_figures_in_one_folder(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, WRITES)
    found = reproduce.run("synthetic", quick=True, out=tmp_path / "out")
    assert [path.stem for path in found.tables] == ["fig1_rho", "fig4_sensr_eps", "ranking"]
    assert len(found.figures) == 3
    assert (tmp_path / "out" / "ranking.md").read_text() == "| method | a_b |\n| --- | --- |\n| one & two | 0.25 |\n"
    assert r"one \& two & 0.25 \\" in (tmp_path / "out" / "ranking.tex").read_text()
    assert "3 tables and 3 pictures" in str(found)


COUNTS = """
import argparse, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--out", type=pathlib.Path)
parser.add_argument("--quick", action="store_true")
given = parser.parse_args()
with (given.out / "log.txt").open("a") as log:
    log.write("NAME ")
if "NAME" == "ranking" and not (given.out / "second").exists():
    (given.out / "second").touch()
    raise SystemExit(9)
(given.out / "NAME.csv").write_text("a\\n1\\n")
"""


def test_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, COUNTS)
    with pytest.raises(RuntimeError, match="call again to go on"):
        reproduce.run("synthetic", out=tmp_path / "out")
    assert len(reproduce.run("synthetic", out=tmp_path / "out").tables) == 3
    assert (tmp_path / "out" / "log.txt").read_text() == "fig1_rho fig4_sensr_eps ranking ranking "
    (tmp_path / "experiments" / "fig1_rho.py").write_text(COUNTS.replace("NAME", "fig1_rho") + "# changed")
    reproduce.run("synthetic", out=tmp_path / "out")
    assert (tmp_path / "out" / "log.txt").read_text().split() == [
        "fig1_rho",
        "fig4_sensr_eps",
        "ranking",
        "ranking",
        "fig1_rho",
    ]
    with pytest.raises(ValueError, match="holds a full run"):
        reproduce.run("synthetic", out=tmp_path / "out", quick=True)


def test_a_script_that_fails_is_named(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, "raise SystemExit(3)")
    with pytest.raises(RuntimeError, match=r"fig1_rho\.py ended with code 3"):
        reproduce.run("synthetic", quick=True, out=tmp_path / "out")


def test_table_cells():
    table = pd.DataFrame({"method": ["a|b"], "x": [0.123456], "none": [float("nan")], "n": [9045]})
    cells = [[reproduce._cell(v) for v in row] for row in table.itertuples(index=False)]
    assert cells == [["a|b", "0.123", "-", "9045"]]
    assert "a\\|b" in reproduce.as_markdown(list(table), cells)
