"""Fill the blocks of docs/text.md from the committed results, so that no number is typed by hand.

python experiments/text_docs.py
"""

import json
import re
from pathlib import Path

import pandas as pd
import table1_toxicity
import table2_bios
from text_tables import RESULTS, markdown

GUIDE = RESULTS.parents[1] / "docs" / "text.md"
BLOCK = re.compile(r"(<!-- (\w+) -->\n)(?:.*?\n)??(<!-- end -->)", re.DOTALL)

# What SenSeI was to gain over Baseline: score, asked, what the paper's table has.
ASKED = {
    "table1_toxicity": [
        ("CTF cut", "at least 65 %", "60 %"),
        ("PC", "at least +.27", "+.152"),
        ("BA", "at least -.012", "-.016"),
        ("BA STD", "lower", "-.009"),
        ("ACC STD", "lower", "-.029"),
    ],
    "table2_bios": [
        ("CTF cut", "at least 97 %", "89 %"),
        ("PC", "at least +.19", "+.035"),
        ("BA", "at least 0", "+.001"),
        ("Gap RMS cut", "at least 20 %", "28 %"),
    ],
}
SCORES = {"table1_toxicity": table1_toxicity.SCORES, "table2_bios": table2_bios.SCORES}


def filled(text: str, results: Path = RESULTS) -> str:
    """The document with every block made anew."""
    return BLOCK.sub(lambda m: m[1] + block(m[2], results) + "\n" + m[3], text)


def block(name: str, results: Path) -> str:
    for table, scores in SCORES.items():
        if name == table:
            return markdown(pd.read_csv(results / f"{table}.csv"), scores)
        if name == f"{table}_gains":
            return gains(pd.read_csv(results / f"{table}.csv").set_index("method"), ASKED[table])
        if name == f"{table}_chance":
            return chance(pd.read_csv(results / f"{table}_runs.csv"))
        if name == f"{table}_tuning":
            return tuning(pd.read_csv(results / f"{table}_tuning.csv"), scores)
        if name == f"{table}_cost":
            return cost(pd.read_csv(results / f"{table}_runs.csv"))
    if name == "table1_toxicity_groups":
        return groups(pd.read_csv(results / f"{name}.csv"))
    if name == "table1_toxicity_directions":
        return directions(pd.read_csv(results / f"{name}.csv"))
    if name == "encoder_throughput":
        return throughput(json.loads((results / f"{name}.json").read_text()))
    raise ValueError(f"docs/text.md has a block {name!r} that nothing fills")


def rows(header: list[str], body: list[list[str]]) -> str:
    lines = [header, *body]
    shown = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([shown[0].replace("|  |", "| |"), "|---" * len(header) + "|", *shown[1:]])


def gains(result: pd.DataFrame, asked: list[tuple[str, str, str]]) -> str:
    plain, fair = result.loc["Baseline"], result.loc["SenSeI"]
    body = []
    for what, goal, paper in asked:
        score = what.removesuffix(" cut")
        cut, difference = 100 * (1 - fair[score] / plain[score]), fair[score] - plain[score]
        body.append([what, f"{goal} [{paper}]", f"{cut:.1f} %" if what.endswith("cut") else f"{difference:+.3f}"])
    return rows(["SenSeI against Baseline", "asked [paper]", "measured"], body)


def chance(runs: pd.DataFrame) -> str:
    """The mean of each score that has a column `chance`, beside what random groups of the same sizes give."""
    names = [column.removesuffix(" chance") for column in runs if column.endswith(" chance")]
    means = runs.groupby("method", sort=False).mean(numeric_only=True)
    header = ["", *(part for name in names for part in (name, "by chance"))]
    body = [
        [str(method), *(f"{row[column]:.3f}" for name in names for column in (name, f"{name} chance"))]
        for method, row in means.iterrows()
    ]
    return rows(header, body)


def tuning(runs: pd.DataFrame, scores: tuple[str, ...]) -> str:
    body = [
        [row["method"], row["setting"] if isinstance(row["setting"], str) else "", *(f"{row[s]:.4f}" for s in scores)]
        for _, row in runs.sort_values("method", kind="stable").iterrows()
    ]
    return rows(["", "setting", *scores], body)


def cost(runs: pd.DataFrame) -> str:
    return (
        f"{len(runs)} runs of {runs['seed'].nunique()} splits took {runs['cpu_seconds'].sum() / 60:.0f} minutes of one "
        "core, training and scoring together."
    )


def groups(shares: pd.DataFrame) -> str:
    body = [[r["group"], f"{r['comments']:,}", f"{100 * r['toxic share']:.1f} %"] for _, r in shares.iterrows()]
    return rows(["comments that mention", "number", "share toxic"], body)


def directions(outside: pd.DataFrame) -> str:
    training, test = (f"{100 * outside[part].mean():.0f} %" for part in ("training", "test"))
    return (
        f"Outside these directions lies {training} of how the versions of a training comment differ (squared length, "
        f"mean of {len(outside)} splits), and {test} of how those of a test comment do, which include unknown tokens."
    )


def throughput(measured: dict[str, float]) -> str:
    return (
        f"Without a cache and without repeated texts it runs at {100 * measured['ratio']:.0f} % of the encoder's own "
        f"throughput (median of {measured['rounds']} rounds on {measured['texts']} texts, CPU time side by side); on "
        f"the 50 versions of {measured['comments']} short comments at {100 * measured['ratio versions']:.0f} %."
    )


if __name__ == "__main__":
    GUIDE.write_text(filled(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
