"""Blocks about the certificates; as a script it draws the certified frontier: python tools/shown/certificates.py"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "results"
NAMES = {
    "linear": "logistic regression",
    "plain": "plain net",
    "two layers": "plain net 50-50",
    "SenSeI": "SenSeI",
    "certified": "certified fine-tuning",
}
DEFAULT_STRENGTH = {"SenSeI": 10.0, "certified": 30.0}  # rho, and the weight of the bound, in certify_adult.py


def adult_runs() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "certify_adult.csv")


def main_runs() -> pd.DataFrame:
    table = adult_runs()
    return table[table["strength"].isna()]


def tightness() -> str:
    lines = [
        "| model | BA | R_low | R_high | gap (worst split) | 95 % statement | audit | certificate |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for model, name in NAMES.items():
        runs = main_runs()[main_runs()["model"] == model]
        mean = runs.mean(numeric_only=True)
        lines.append(
            f"| {name} | {mean['BA']:.3f} | {mean['r_low']:.3g} | {mean['r_high']:.3g} | "
            f"{mean['gap']:.2f} ({runs['gap'].max():.2f}) | {mean['lower']:.3g} to {mean['upper']:.3g} | "
            f"{_seconds(mean['audit_seconds'])} | {_seconds(mean['certify_seconds'])} |"
        )
    splits = main_runs().groupby("model")["seed"].nunique()
    counts = ", ".join(f"{name} {splits[model]}" for model, name in NAMES.items())
    n = int(main_runs()["n"].iloc[0])
    lines += [
        "",
        f"Means over splits ({counts}), n = {n:,} held-out people each, 41-100-2 unless said, eps = 0.01; CPU seconds "
        "of one core.",
    ]
    return "\n".join(lines)


def _seconds(value: float) -> str:
    return "not run" if pd.isna(value) else f"{value:.0f} s"


def headline() -> str:
    runs = main_runs()
    plain = runs[runs["model"] == "plain"].set_index("seed")
    lines = [
        "| fair model | 95 % upper bound of R(h) | times below what a search finds for the plain net (worst split) | "
        "points of BA below it (worst split) |",
        "|---|---|---|---|",
    ]
    for model in ("SenSeI", "certified"):
        fair = runs[runs["model"] == model].set_index("seed")
        seeds = plain.index.intersection(fair.index)
        times = plain.loc[seeds, "r_low"] / fair.loc[seeds, "upper"]
        cost = 100 * (plain.loc[seeds, "BA"] - fair.loc[seeds, "BA"])
        lines.append(
            f"| {NAMES[model]} | {fair.loc[seeds, 'upper'].mean():.2g} | {times.mean():.0f} ({times.min():.0f}) | "
            f"{cost.mean():.1f} ({cost.max():.1f}) |"
        )
    return "\n".join(lines)


def frontier() -> str:
    """Every run of the split that has most of them: strengths of SenSeI and of certified fine-tuning."""
    table, seed = frontier_runs()
    lines = ["| model | weight | BA | R_low | certified 95 % upper bound |", "|---|---|---|---|---|"]
    for model in ("plain", "SenSeI", "certified"):
        for _, run in table[table["model"] == model].sort_values("strength").iterrows():
            weight = "" if model == "plain" else f"{run['strength']:g}"
            lines.append(f"| {NAMES[model]} | {weight} | {run['BA']:.3f} | {run['r_low']:.3g} | {run['upper']:.3g} |")
    picture = "![Certified upper bound of R(h) against balanced accuracy](images/certified_frontier.svg)"
    return "\n".join([*lines, "", f"Split {seed}.", "", picture])


def frontier_runs() -> tuple[pd.DataFrame, int]:
    table = adult_runs()
    seed = int(table["seed"].mode().min())
    table = table[(table["seed"] == seed) & table["model"].isin(["plain", "SenSeI", "certified"])]
    return table.assign(strength=table["strength"].fillna(table["model"].map(DEFAULT_STRENGTH))), seed


def draw_frontier(path: Path) -> None:
    """What is proven against what it costs, for SenSeI and for fine-tuning on the bound itself."""
    import altair as alt

    table, _ = frontier_runs()
    table = table.assign(
        model=table["model"].map(NAMES),
        label=[
            "" if m == "plain" else f"{'rho' if m == 'SenSeI' else 'weight'} {s:g}"
            for m, s in zip(table["model"], table["strength"])
        ],
    )
    base = alt.Chart(table[["BA", "upper", "r_low", "model", "label"]]).encode(
        x=alt.X("BA:Q", scale=alt.Scale(zero=False, padding=25), title="balanced accuracy"),
        color=alt.Color("model:N", sort=list(NAMES.values()), legend=alt.Legend(orient="top", title=None)),
    )
    log = alt.Scale(type="log")
    certified = base.mark_point(filled=True, size=90).encode(
        y=alt.Y("upper:Q", scale=log, title="R(h) at eps .01: found by search to proven with 95 % confidence (log)")
    )
    bracket = base.mark_rule(strokeWidth=2, opacity=0.6).encode(y=alt.Y("r_low:Q", scale=log), y2="upper:Q")
    text = base.mark_text(align="left", dx=8, fontSize=11).encode(y=alt.Y("upper:Q", scale=log), text="label:N")
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = alt.layer(bracket, certified, text).properties(width=520, height=320)
    drawn.save(path.with_suffix(".svg"))
    drawn.save(path.with_suffix(".png"), scale_factor=2)


def public_nets() -> str:
    table = pd.read_csv(RESULTS / "certify_public.csv")
    lines = [
        "| net | layers | free | eps | R_low | R_high | gap | 95 % upper bound | CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for _, row in table.iterrows():
        lines.append(
            f"| {row['net']} | {row['layers']} | {row['free']} | {row['eps']:g} | {row['r_low']:.3g} | "
            f"{row['r_high']:.3g} | {row['gap']:.2f} | {row['upper']:.3g} | {row['seconds']:.0f} |"
        )
    gaps = table[table["free"] == "sex"].groupby("eps")["gap"].agg(["median", "max"])
    said = "; ".join(f"{row['median']:.2f} (largest {row['max']:.2f}) at eps {eps:g}" for eps, row in gaps.iterrows())
    return "\n".join([*lines, "", f"n = {table['n'].iloc[0]:,} held-out people each. Median gap, sex free: {said}."])


def own_nets() -> str:
    table = pd.read_csv(RESULTS / "certify_own.csv")
    lines = [
        "| people | layers | free | units | eps | R_low | R_high | gap | 95 % upper bound | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for _, row in table.iterrows():
        units = "odd" if row["odd_units"] else "as they are"
        lines.append(
            f"| {row['people']} | {row['layers']} | {row['free']} | {units} | {row['eps']:g} | {row['r_low']:.3g} | "
            f"{row['r_high']:.3g} | {row['gap']:.2f} | {row['upper']:.3g} | {row['seconds']:.0f} |"
        )
    gaps = table.groupby("eps")["gap"].agg(["median", "max"])
    said = "; ".join(f"{row['median']:.2f} (largest {row['max']:.2f}) at eps {eps:g}" for eps, row in gaps.iterrows())
    return "\n".join([*lines, "", f"n = {table['n'].iloc[0]:,} held-out people each. Median gap: {said}."])


def soundness() -> str:
    table = pd.read_csv(RESULTS / "certify_soundness.csv")
    lines = [
        "| x' | pairs | above the bound of d_Y - lam d_X | above that of everybody | within eps | "
        "above the bound of d_Y | a proven decision turned | outside the proven scores |",
        "|---|---|---|---|---|---|---|---|",
    ]
    counts = ["pairs", "violations", "everybody_violations", "similar", "d_y_violations", "decision_violations"]
    counts.append("range_violations")
    for kind, part in [*table.groupby("kind", sort=False), ("all", table)]:
        lines.append(f"| {kind} | " + " | ".join(f"{part[name].sum():,}" for name in counts) + " |")
    return "\n".join([*lines, "", f"Networks: {'; '.join(table['model'].unique())}."])


def coverage() -> str:
    table = pd.read_csv(RESULTS / "certify_coverage.csv")
    lines = [
        f"n = {table['n'].iloc[0]:,}, {table['repetitions'].min():,} repetitions, "
        f"nominal {table['nominal'].iloc[0]:.2f}.",
        "",
        "| population | order | tuning people | interval | R(h) | relative | decisions "
        "| excess of R(h)'s upper bound |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for _, row in table.iterrows():
        split = "given apart" if row["split"] == "apart" else "a fifth of the sample"
        covered = " | ".join(f"{row[f'coverage_{number}']:.3f}" for number in ("R", "relative", "decisions"))
        lines.append(
            f"| {row['population']} | {row['order']} | {split} | {row['interval']} | {covered} | "
            f"{100 * row['excess_R']:.1f} % |"
        )
    return "\n".join(lines)


def wide() -> str:
    path = RESULTS / "certify_wide.csv"
    if not path.exists():
        return "Not measured."
    lines = [
        "| net | free directions | eps | people | R_low | R_high | gap | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for _, row in pd.read_csv(path).iterrows():
        lines.append(
            f"| {row['net'].split(',')[0]} | {row['free']} | {row['eps']:g} | {row['n']:,} | {row['r_low']:.3g} | "
            f"{row['r_high']:.3g} | {row['gap']:.2f} | {row['seconds']:.0f} |"
        )
    return "\n".join(
        [
            *lines,
            "",
            "`experiments/certify_wide.py`: networks trained on made-up people, the domain [-4, 4] in every column.",
        ]
    )


def text_size() -> str:
    path = RESULTS / "certify_text_size.json"
    if not path.exists():
        return "Not measured."
    found = json.loads(path.read_text())
    return (
        f"A {found['layers']} net with k = {found['k']} free directions has S of size {found['size_of_S']:,}. A tuning "
        f"step takes {found['step_seconds']:.0f} s, the factorisations {found['factor_seconds']:.0f} s and each person "
        f"{found['person_seconds']:.2f} s (CPU seconds of one core), so that 100 tuning steps and 1,000 people take "
        f"about {found['minutes_for_100_steps_and_1000_people']:.0f} minutes."
    )


if __name__ == "__main__":
    draw_frontier(ROOT / "docs" / "images" / "certified_frontier")
