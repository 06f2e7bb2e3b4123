"""Figures 2 and 5: prediction consistency, CTF score and balanced accuracy against rho, for SenSeI and CLP.

The runs with which the tables were tuned (validation parts of the first splits); what is missing
of them is made, with the embeddings that the two tables have cached.

With --default the same of the default recipe: what `TextClassifier` saw of each rho it tried, on the validation texts
of all splits of moderation.py and occupations.py, which have to be run before.

    python experiments/fig2_tradeoff.py [--quick] [--default]
"""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import table1_toxicity
import table2_bios
from text_tables import QUICK, TUNED, TUNING_SEEDS, Runs, Task, arguments, compare, encoder, written

RHOS = {  # their scales differ: a worst case is larger than a mean over known versions
    "Toxicity": {"SenSeI": (0.3, 0.5, 1.0, 2.0), "CLP": (1.0, 2.0, 5.0, 20.0)},
    "Bios": {"SenSeI": (20.0, 50.0, 100.0), "CLP": (20.0, 50.0, 100.0, 200.0)},
}
SHOWN = ("PC", "CTF", "BA")
COLOURS = ["#1f5fa8", "#c8641e"]


def curve(
    data: str, experiment: ModuleType, splits: Callable[[], list[tuple[Task, Any]]], training: dict, runs: Runs
) -> pd.DataFrame:
    """The scores at each rho, the other settings being those of the table; Baseline is rho = 0."""
    settings = experiment.SETTINGS
    wanted = [("Baseline", {})]
    wanted += [(method, {**settings[method], "rho": rho}) for method, rhos in RHOS[data].items() for rho in rhos]
    if not all(runs.has(TUNED, method, setting) for method, setting in wanted):
        compare(wanted, splits(), experiment.scores, training, runs)
    rows = []
    for method, setting in wanted:
        run = runs.frame[
            (runs.frame["method"] == method) & (runs.frame["setting"].fillna("") == written(setting))
        ].iloc[0]
        scores = {score: round(float(run[score]), 4) for score in SHOWN}
        rows.append({"data": data, "method": method, "rho": setting.get("rho", 0.0), **scores})
    return pd.DataFrame(rows)


def by_default(out: Path) -> pd.DataFrame:
    """The mean scores over the splits at each rho that the default recipe tried; Baseline is its plain model."""
    parts = []
    for data, name in (("Toxicity", "moderation_choice"), ("Bios", "occupations_choice")):
        runs = pd.read_csv(out / f"{name}.csv")
        runs["rho"] = runs["setting"].str.removeprefix("rho=").astype(float)
        plain = runs[runs["method"] == "Baseline"]
        fair = ["SenSeI + mentions", "CLP + mentions"] if data == "Toxicity" else ["SenSeI", "CLP"]
        tried = runs[runs["method"].isin(fair) & (runs["rho"] > 0)]
        tried = tried.assign(method=tried["method"].str.removesuffix(" + mentions"))
        means = pd.concat([plain, tried]).groupby(["method", "rho"], as_index=False)[list(SHOWN)].mean().round(4)
        parts.append(means.assign(data=data))
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    given = arguments(__doc__)
    if given.default:
        curves = by_default(given.out)
        curves.to_csv(given.out / "fig2_default.csv", index=False, lineterminator="\n")
        draw(curves, given.out / "fig2_default")
        return
    suffix, less = ("_quick", QUICK) if given.quick else ("", {})
    embed = encoder(given.encoder)

    def comments() -> list[tuple[Task, Any]]:
        everything = table1_toxicity.load(None, table1_toxicity.QUICK_COMMENTS if given.quick else None)
        return [table1_toxicity.prepare(everything, embed, seed, tuning=True) for seed in TUNING_SEEDS]

    def people() -> list[tuple[Task, Any]]:
        everything = table2_bios.load(None, table2_bios.QUICK_SENTENCES if given.quick else table2_bios.SENTENCES)
        x, swapped = table2_bios.embedded(everything, embed, pronouns=False)
        return [table2_bios.prepare(everything, x, swapped, seed, tuning=True) for seed in TUNING_SEEDS]

    curves = pd.concat(
        [
            curve(data, module, splits, module.TRAINING | less, Runs(given.out / f"{name}{suffix}_tuning.csv"))
            for data, module, splits, name in (
                ("Toxicity", table1_toxicity, comments, "table1_toxicity"),
                ("Bios", table2_bios, people, "table2_bios"),
            )
        ],
        ignore_index=True,
    )
    curves.to_csv(given.out / f"fig2_tradeoff{suffix}.csv", index=False, lineterminator="\n")
    print(curves.to_string())
    draw(curves, given.out / f"fig2_tradeoff{suffix}")


def draw(curves: pd.DataFrame, path: Path) -> None:
    """One row a data set, one panel a score; the Baseline is a dashed line across."""
    import altair as alt

    rows = []
    for data in ("Toxicity", "Bios"):
        here = curves[curves["data"] == data]
        plain, fair = here[here["method"] == "Baseline"], here[here["method"] != "Baseline"]
        panels = []
        for score in SHOWN:
            rho = alt.X(
                "rho:Q",
                scale=alt.Scale(type="log", nice=False, padding=12),
                axis=alt.Axis(values=sorted(set(fair["rho"])), grid=False),
            )
            by_method = alt.Color(
                "method:N",
                sort=["SenSeI", "CLP"],
                scale=alt.Scale(domain=["SenSeI", "CLP"], range=COLOURS),
                legend=alt.Legend(title=None, orient="top"),
            )
            value = alt.Y(f"{score}:Q", scale=alt.Scale(zero=False), title=score)
            lines = (
                alt.Chart(fair)
                .mark_line(point=alt.OverlayMarkDef(size=45))
                .encode(rho.title("\u03c1"), value, by_method, alt.Shape("method:N", legend=None))
            )
            level = alt.Chart(plain).mark_rule(strokeDash=[5, 4], color="#666").encode(value)
            label = (
                alt.Chart(plain)
                .mark_text(align="right", baseline="bottom", dx=-4, dy=-2, color="#666")
                .encode(value, x=alt.value(220), text=alt.value("Baseline"))
            )
            panels.append((level + label + lines).properties(width=220, height=170, title=f"{data}: {score}"))
        rows.append(alt.hconcat(*panels))
    chart = alt.vconcat(*rows).configure_axis(labelFontSize=11, titleFontSize=12)
    chart.save(f"{path}.svg")
    chart.save(f"{path}.png", ppi=110)


if __name__ == "__main__":
    main()
