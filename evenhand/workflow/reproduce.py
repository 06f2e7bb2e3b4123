"""The paper from one command: run its experiments and put tables and figures beside the published values.

Behind ``evenhand reproduce adult|toxicity|bios|synthetic``. The experiments are scripts in the repository's folder
experiments/; each keeps what it has finished, so an interrupted reproduction goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand.atomic import write_whole

__all__ = ["EXPERIMENTS", "Reproduced", "experiments_folder", "run", "write_table"]

SCRIPTS: dict[str, tuple[str, ...]] = {
    "adult": ("table3_adult", "table3_more", "frontier_adult"),
    "toxicity": ("table1_toxicity", "fig2_tradeoff"),
    "bios": ("table2_bios", "fig2_tradeoff"),
    "synthetic": ("fig1_rho", "fig4_sensr_eps", "ranking"),
}
QUICK: dict[str, tuple[str, ...]] = {"table3_adult": ("--splits", "1")}  # quick enough as it is
EXPERIMENTS = tuple(SCRIPTS)
PICTURES = (".png", ".svg", ".html")
JOINED = {"table3": ("table3_adult", "table3_more")}  # one table of the paper made by two scripts
STATE = "finished.json"  # which scripts are through, and whether they were quick


@dataclass(frozen=True)
class Reproduced:
    """What a reproduction wrote."""

    folder: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]

    def __str__(self) -> str:
        names = ", ".join(sorted({path.stem for path in (*self.tables, *self.figures)}))
        return f"{len(self.tables)} tables and {len(self.figures)} pictures in {self.folder}: {names}"


def run(name: str, *, quick: bool = False, out: str | os.PathLike[str] | None = None) -> Reproduced:
    """Run the experiments of one data set and write CSV, Markdown and LaTeX tables and figures into one folder.

    quick: few steps and splits, to see that everything runs; the numbers then mean nothing. out: the folder, by default
    runs/reproduce/<name>, or runs/quick/<name>. Call it again after an interruption: scripts that are through are not
    run again unless they have changed, and those that were stopped go on from what they had finished.
    """
    if name not in SCRIPTS:
        raise ValueError(f"there is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}")
    scripts = experiments_folder()
    folder = Path(out) if out is not None else Path("runs") / ("quick" if quick else "reproduce") / name
    finished = _finished(folder, quick)
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(scripts.parent), os.environ.get("PYTHONPATH", "")])
    for script in SCRIPTS[name]:
        code = hashlib.sha256((scripts / f"{script}.py").read_bytes()).hexdigest()
        if finished.get(script) == code:
            continue
        _write_state(folder, quick, finished)
        command = [sys.executable, str(scripts / f"{script}.py"), "--out", str(folder.resolve())]
        command += QUICK.get(script, ("--quick",)) if quick else ()
        done = subprocess.run(command, cwd=scripts, env={**os.environ, "PYTHONPATH": path}, check=False)
        if done.returncode != 0:
            raise RuntimeError(
                f"{script}.py ended with code {done.returncode}; its message is above. What was finished is kept in "
                f"{folder}: call again to go on"
            )
        finished[script] = code
        _write_state(folder, quick, finished)
    for joined, parts in JOINED.items():
        if all((folder / f"{part}.csv").exists() for part in parts):
            rows = pd.concat([pd.read_csv(folder / f"{part}.csv") for part in parts], ignore_index=True)
            rows.to_csv(folder / f"{joined}.csv", index=False, lineterminator="\n")
    for table in sorted(folder.glob("*.csv")):
        if not table.stem.endswith(("_runs", "_runs_quick", "_tuning")):
            write_table(pd.read_csv(table), table.with_suffix(""))
    figures = tuple(sorted(path for path in folder.iterdir() if path.suffix in PICTURES))
    return Reproduced(folder, tuple(sorted(folder.glob("*.md"))), figures)


def _finished(folder: Path, quick: bool) -> dict[str, str]:
    """The scripts that are through, with the hash of their code; a quick run and a full one never share a folder."""
    if not (folder / STATE).exists():
        return {}
    state = json.loads((folder / STATE).read_text())
    if state["quick"] != quick:
        kind = "quick" if state["quick"] else "full"
        raise ValueError(f"{folder} holds a {kind} run; choose another folder, or remove it")
    finished: dict[str, str] = state["finished"]
    return finished


def _write_state(folder: Path, quick: bool, finished: Mapping[str, str]) -> None:
    write_whole(folder / STATE, json.dumps({"quick": quick, "finished": finished}, indent=1).encode() + b"\n")


def experiments_folder() -> Path:
    """The folder of the experiment scripts, which an installed package does not have."""
    folder = Path(__file__).resolve().parents[2] / "experiments"
    if not (folder / "fig1_rho.py").exists():
        raise FileNotFoundError(
            "the experiment scripts are not part of the installed package; clone the repository and run "
            "`pip install -e .[report]` there, then `evenhand reproduce` again"
        )
    return folder


def write_table(table: pd.DataFrame, path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write a table as Markdown and as LaTeX beside its CSV."""
    markdown, latex = Path(f"{os.fspath(path)}.md"), Path(f"{os.fspath(path)}.tex")
    cells = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    markdown.write_text(as_markdown([str(name) for name in table.columns], cells))
    latex.write_text(as_latex([str(name) for name in table.columns], cells))
    return markdown, latex


def as_markdown(header: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A pipe table; bars inside cells are escaped."""
    rows = [header, ["---"] * len(header), *cells]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def as_latex(header: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A tabular environment; characters that LaTeX would interpret are escaped."""
    lines = [" & ".join(_escaped(cell) for cell in row) + r" \\" for row in [header, *cells]]
    body = "\n".join([lines[0], r"\hline", *lines[1:]])
    return f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}\n{body}\n\\end{{tabular}}\n"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.0f}" if value.is_integer() and abs(value) >= 2 else f"{value:.3g}"
    return str(value)


def _escaped(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text
