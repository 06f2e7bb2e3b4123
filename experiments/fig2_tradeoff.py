"""Figures 2 and 5: prediction consistency, CTF score and balanced accuracy against rho, for SenSeI and CLP, on both
text tasks.

    python experiments/fig2_tradeoff.py [--quick]

Uses the embeddings that the two tables have cached, and their runs of the same splits for Baseline and the rho of the
tables; all other settings are those of the tables too.
"""

from pathlib import Path

import pandas as pd
import table1_toxicity
import table2_bios
from text_tables import RESULTS, Runs, Setting, arguments, encoder, fit

from evenhand.counterfactuals import GenderSwap

RHOS = (1.0, 5.0, 20.0)
SEEDS = range(1)
SHOWN = ("PC", "CTF", "BA")


def points(settings: dict[str, Setting], rhos: tuple[float, ...]) -> list[tuple[str, Setting]]:
    """What the table does not have."""
    return [(m, {**settings[m], "rho": rho}) for m in ("SenSeI", "CLP") for rho in rhos if rho != settings[m]["rho"]]


def main() -> None:
    given = arguments(__doc__)
    embed = encoder(given.encoder)
    rhos, seeds, suffix = (RHOS[1:2], range(1), "_quick") if given.quick else (RHOS, SEEDS, "")
    less = {"steps": 20, "hidden": (50,)} if given.quick else {}

    toxicity = Runs(given.out / f"fig2_toxicity_runs{suffix}.csv")
    comments = table1_toxicity.load(None, embed)
    for seed in seeds:
        split, groups = table1_toxicity.prepare(comments, embed, seed, tuning=False)
        for method, setting in points(table1_toxicity.SETTINGS, rhos):
            toxicity.run(
                seed,
                method,
                setting,
                lambda s=split, g=groups, m=method, o=setting, i=seed: table1_toxicity.scores(
                    fit(m, s, o, table1_toxicity.TRAINING | less, i), s, g
                ),
            )

    bios = Runs(given.out / f"fig2_bios_runs{suffix}.csv")
    people = table2_bios.load(None, 600 if given.quick else table2_bios.SENTENCES)
    x, swapped = embed(people.texts), GenderSwap()(people.texts).map(embed)
    for seed in seeds:
        split, gender = table2_bios.prepare(people, x, swapped, seed, tuning=False)
        for method, setting in points(table2_bios.SETTINGS, rhos):
            bios.run(
                seed,
                method,
                setting,
                lambda s=split, g=gender, m=method, o=setting, i=seed: table2_bios.scores(
                    fit(m, s, o, table2_bios.TRAINING | less, i), s, g
                ),
            )

    tables = given.out if not given.quick else RESULTS
    curves = pd.concat(
        [
            curve(toxicity.frame, tables / "table1_toxicity_runs.csv", seeds, "Toxicity"),
            curve(bios.frame, tables / "table2_bios_runs.csv", seeds, "Bios"),
        ],
        ignore_index=True,
    )
    curves.to_csv(given.out / f"fig2_tradeoff{suffix}.csv", index=False, lineterminator="\n")
    print(curves.to_string())
    draw(curves, given.out / f"fig2_tradeoff{suffix}")


def curve(runs: pd.DataFrame, table: Path, seeds: range, data: str) -> pd.DataFrame:
    """Mean over the seeds for each method and rho, with the runs of the table; Baseline is rho = 0 of both."""
    more = pd.read_csv(table, keep_default_na=False, na_values=[""])
    more = more[more["seed"].isin(seeds) & more["method"].isin(["Baseline", "SenSeI", "CLP"])]
    runs = pd.concat([more, runs], ignore_index=True)
    runs = runs.assign(rho=runs["setting"].fillna("").str.extract(r"rho=([\d.]+)")[0].astype(float).fillna(0.0))
    means = runs.groupby(["method", "rho"])[list(SHOWN)].mean().round(4).reset_index()
    return means.assign(data=data)[["data", "method", "rho", *SHOWN]]


def draw(curves: pd.DataFrame, path: Path) -> None:
    import altair as alt

    plain = curves[curves["method"] == "Baseline"]
    both = pd.concat([curves[curves["method"] != "Baseline"], *(plain.assign(method=m) for m in ("SenSeI", "CLP"))])
    rows = []
    for data in ("Toxicity", "Bios"):
        panels = [
            alt.Chart(both[both["data"] == data])
            .mark_line(point=True)
            .encode(
                alt.X("rho:Q", scale=alt.Scale(type="symlog", constant=0.5), title="ρ"),
                alt.Y(f"{score}:Q", scale=alt.Scale(zero=False), title=score),
                alt.Color("method:N", sort=["SenSeI", "CLP"], scale=alt.Scale(range=["#1f5fa8", "#c8641e"])),
                alt.StrokeDash("method:N", sort=["SenSeI", "CLP"]),
            )
            .properties(width=220, height=170, title=f"{data}: {score}")
            for score in SHOWN
        ]
        rows.append(alt.hconcat(*panels))
    chart = alt.vconcat(*rows).configure_axis(labelFontSize=11, titleFontSize=12)
    chart.save(f"{path}.svg")
    chart.save(f"{path}.png", ppi=110)


if __name__ == "__main__":
    main()
