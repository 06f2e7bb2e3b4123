"""Figures 2 and 5: prediction consistency, CTF score and balanced accuracy against rho, for SenSeI and CLP.

On the validation part of the first split: the runs with which the tables were tuned, and further values of rho at the
same settings. Uses the embeddings that the two tables have cached.

    python experiments/fig2_tradeoff.py [--quick]
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import table1_toxicity
import table2_bios
from text_tables import RESULTS, Runs, Setting, Task, arguments, encoder, fit

from evenhand.counterfactuals import GenderSwap

RHOS = {"Toxicity": (1.0, 5.0, 20.0), "Bios": (1.0, 5.0, 20.0, 50.0)}
BIOS_TRAINING = table2_bios.TRAINING | {"steps": 150}  # as in the tuning of Table 2
SHOWN = ("PC", "CTF", "BA")


def complete(
    data: str, settings: dict[str, Setting], runs: Runs, tuned: pd.DataFrame, score: Callable[[str, Setting], dict]
) -> pd.DataFrame:
    """The tuning runs at the settings of the table whatever rho, and those that are still missing."""
    wanted = [("Baseline", {})] + [(m, {**settings[m], "rho": rho}) for m in ("SenSeI", "CLP") for rho in RHOS[data]]
    for method, setting in wanted:
        written = " ".join(f"{name}={value:g}" for name, value in setting.items())
        if not ((tuned["method"] == method) & (tuned["setting"].fillna("") == written)).any():
            runs.run(0, method, setting, lambda m=method, o=setting: score(m, o))
    everything = pd.concat([tuned, runs.frame], ignore_index=True)
    everything["setting"] = everything["setting"].fillna("")
    everything["rho"] = everything["setting"].str.extract(r"rho=([\d.]+)")[0].astype(float).fillna(0.0)
    rest = everything["setting"].str.replace(r"rho=[\d.]+ ?", "", regex=True)
    same = [
        rest[i] == " ".join(f"{k}={v:g}" for k, v in settings.get(m, {}).items() if k != "rho")
        for i, m in enumerate(everything["method"])
    ]
    kept = everything[np.array(same) & everything["method"].isin(["Baseline", "SenSeI", "CLP"])]
    curve = kept[["method", "rho", *SHOWN]].sort_values(["method", "rho"]).round(4)
    return curve.assign(data=data)[["data", "method", "rho", *SHOWN]]


def main() -> None:
    given = arguments(__doc__)
    embed = encoder(given.encoder)
    suffix, less = ("_quick", {"steps": 20, "hidden": (50,)}) if given.quick else ("", {})

    def runs_of(data: str, name: str, split: Task, groups: object, experiment, training: dict) -> pd.DataFrame:
        tuned = (
            pd.read_csv(RESULTS / f"{name}_tuning.csv")
            if not given.quick
            else pd.DataFrame(columns=["method", "setting"])
        )
        return complete(
            data,
            experiment.SETTINGS,
            Runs(given.out / f"fig2_{data.lower()}_runs{suffix}.csv"),
            tuned,
            lambda m, o: experiment.scores(fit(m, split, o, training | less, 0), split, groups),
        )

    comments = table1_toxicity.load(None, embed)
    split, groups = table1_toxicity.prepare(comments, embed, 0, tuning=True)
    first = runs_of("Toxicity", "table1_toxicity", split, groups, table1_toxicity, table1_toxicity.TRAINING)
    people = table2_bios.load(None, 600 if given.quick else table2_bios.SENTENCES)
    x, swapped = embed(people.texts), GenderSwap()(people.texts).map(embed)
    split, gender = table2_bios.prepare(people, x, swapped, 0, tuning=True)
    second = runs_of("Bios", "table2_bios", split, gender, table2_bios, BIOS_TRAINING)

    curves = pd.concat([first, second], ignore_index=True)
    curves.to_csv(given.out / f"fig2_tradeoff{suffix}.csv", index=False, lineterminator="\n")
    print(curves.to_string())
    draw(curves, given.out / f"fig2_tradeoff{suffix}")


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
