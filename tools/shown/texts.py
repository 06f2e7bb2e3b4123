"""Blocks about the text experiments."""

from __future__ import annotations

import json
import sys
from typing import Any

import pandas as pd

from shown.tables import ROOT, find
from shown.tables import table as markdown_table

sys.path.insert(0, str(ROOT / "experiments"))
import moderation
import occupations
import table1_toxicity
import table2_bios
from text_tables import markdown

# What SenSeI gains over Baseline in the paper's tables.
PAPER = {
    "table1_toxicity": {"CTF cut": "60 %", "PC": "+.152", "BA": "-.016", "BA STD": "-.009", "ACC STD": "-.029"},
    "table2_bios": {"CTF cut": "89 %", "PC": "+.035", "BA": "+.001", "Gap RMS cut": "28 %"},
}
SCORES = {"table1_toxicity": table1_toxicity.SCORES, "table2_bios": table2_bios.SCORES}


def text_block(name: str) -> str:
    """One block of docs/text.md or docs/text-results.md, by its name."""
    for table, scores in SCORES.items():
        if name == table:
            return markdown(pd.read_csv(find(f"{table}.csv")), scores)
        if name == f"{table}_gains":
            return gains(pd.read_csv(find(f"{table}.csv")).set_index("method"), PAPER[table])
        if name == f"{table}_chance":
            return chance(pd.read_csv(find(f"{table}_runs.csv")))
        if name == f"{table}_tuning":
            return tuning(pd.read_csv(find(f"{table}_tuning.csv")), scores)
        if name == f"{table}_cost":
            return cost(pd.read_csv(find(f"{table}_runs.csv")))
    if name == "swap_readings":
        return readings(pd.read_csv(find(f"{name}.csv")))
    if name == "sampled_versions":
        return sampled(json.loads(find(f"{name}.json").read_text()))
    if name == "moderation":
        return markdown(pd.read_csv(find("moderation.csv")), moderation.SHOWN)
    if name == "moderation_templates":
        return markdown(pd.read_csv(find("moderation.csv")), moderation.ON_TEMPLATES)
    if name == "moderation_table1":
        return markdown(beside_the_paper(pd.read_csv(find("moderation.csv"))), moderation.TABLE_1)
    if name == "moderation_choice":
        return tried(pd.read_csv(find("moderation_choice.csv")))
    if name == "occupations":
        return markdown(pd.read_csv(find("occupations.csv")), occupations.SCORES)
    if name == "occupations_gains":
        return employed(pd.read_csv(find("occupations_runs.csv")))
    if name == "fig2_default":
        return drawn(pd.read_csv(find("fig2_default.csv")))
    if name in ("finetune_transformer", "finetune_trainer"):
        return finetuned(json.loads(find(f"{name}.json").read_text()))
    if name == "moderation_gains":
        return moderated(pd.read_csv(find("moderation_runs.csv")))
    if name == "moderation_blind":
        return masked(pd.read_csv(find("moderation.csv")).set_index("method"))
    if name == "table1_toxicity_groups":
        return groups(pd.read_csv(find(f"{name}.csv")))
    if name == "table1_toxicity_directions":
        return directions(pd.read_csv(find(f"{name}.csv")))
    if name == "encoder_throughput":
        return throughput(json.loads(find(f"{name}.json").read_text()))
    raise ValueError(f"there is no block {name!r}")


def rows(header: list[str], body: list[list[str]]) -> str:
    lines = [header, *body]
    shown = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([shown[0].replace("|  |", "| |"), "|---" * len(header) + "|", *shown[1:]])


def gains(result: pd.DataFrame, paper: dict[str, str]) -> str:
    plain, fair = result.loc["Baseline"], result.loc["SenSeI"]
    body = []
    for what, published in paper.items():
        score = what.removesuffix(" cut")
        cut, difference = 100 * (1 - fair[score] / plain[score]), fair[score] - plain[score]
        body.append([what, published, f"{cut:.1f} %" if what.endswith("cut") else f"{difference:+.3f}"])
    return rows(["SenSeI against Baseline", "paper", "measured"], body)


def beside_the_paper(result: pd.DataFrame) -> pd.DataFrame:
    """The means of moderation.py with what the paper's Table 1 has for the method; mentions are not in the paper."""
    for i, score in enumerate(moderation.TABLE_1):
        of = {method: row[i] for method, row in table1_toxicity.PUBLISHED.items()}
        others = [m for m in result["method"] if m.startswith("Blind")]
        of |= dict.fromkeys(("Baseline + mentions", "Baseline, mean of 3", *others), float("nan"))
        result[f"{score} paper"] = [of.get(m, of.get(m.removesuffix(" + mentions"))) for m in result["method"]]
    return result


def drawn(curves: pd.DataFrame) -> str:
    """The points of Figure 2 of the default recipe."""
    body = [
        [str(row.data), str(row.method), f"{row.rho:g}", f"{row.PC:.3f}", f"{row.CTF:.4f}", f"{row.BA:.3f}"]
        for row in curves.itertuples()
    ]
    return rows(["", "", "rho", "PC", "CTF", "BA"], body)


def moderated(runs: pd.DataFrame) -> str:
    """What SenSeI with mentions changes against the plain model, split by split, and what it costs beside CLP."""
    whole = runs[runs.groupby("seed")["method"].transform("nunique") == runs["method"].nunique()]
    names = ("Baseline", "Baseline, mean of 3", "SenSeI + mentions", "CLP + mentions")
    plain, three, fair, clp = (whole[whole["method"] == name].set_index("seed") for name in names)
    scores = ("AUC", "AUC id", "AUC other", "BA", "PC", "t FPR")
    change = {score: float((fair[score] - plain[score]).mean()) for score in scores}
    cut = {score: 100 * float(1 - fair[score].mean() / plain[score].mean()) for score in ("CTF", "FPED")}
    times = float(fair["fit seconds"].mean() / clp["fit seconds"].mean())
    trained = 100 * float(1 - fair["CTF stand"].mean() / plain["CTF stand"].mean())
    return (
        f"SenSeI with mentions against the plain model, mean of {len(plain)} splits: CTF score {cut['CTF']:.1f} % "
        f"lower ({trained:.1f} % where the same model reads every version as it stands: so much is the training, the "
        f"rest holds by construction), consistency {change['PC']:+.3f}, AUC {change['AUC']:+.4f} (among comments that "
        f"mention an identity {change['AUC id']:+.4f}, among the others {change['AUC other']:+.4f}), balanced accuracy "
        f"{change['BA']:+.4f}; on the sentences, harmless ones flagged {change['t FPR']:+.3f} and FPED "
        f"{cut['FPED']:.0f} % lower. Against the mean of three plain networks: AUC "
        f"{float((fair['AUC'] - three['AUC']).mean()):+.4f}, balanced accuracy "
        f"{float((fair['BA'] - three['BA']).mean()):+.4f}, CTF score "
        f"{100 * float(1 - fair['CTF'].mean() / three['CTF'].mean()):.0f} % lower. A fit takes {times:.1f} times as "
        "long as one of CLP."
    )


def masked(result: pd.DataFrame) -> str:
    """What masking the known tokens does, with mentions, beside what SenSeI does."""
    plain, blind, fair = (result.loc[name] for name in ("Baseline", "Blind + mentions", "SenSeI + mentions"))
    cut = {row.name: 100 * (1 - row["CTF"] / plain["CTF"]) for row in (blind, fair)}
    return (
        f"Masking with mentions: CTF score {cut[blind.name]:.0f} % lower than the plain model's (SenSeI "
        f"{cut[fair.name]:.0f} %), consistency {blind['PC']:.3f} ({fair['PC']:.3f}), AUC {blind['AUC']:.4f} "
        f"({fair['AUC']:.4f}), harmless sentences flagged {blind['t FPR']:.3f} ({fair['t FPR']:.3f}), FPED "
        f"{blind['FPED']:.1f} ({fair['FPED']:.1f})."
    )


def tried(runs: pd.DataFrame) -> str:
    """What the rule saw at each rho: means over the splits, on validation comments."""
    fair = runs[runs["method"].isin(["SenSeI + mentions", "CLP + mentions"])]
    means = fair.groupby(["method", "setting"], sort=False)[["AUC", "CTF"]].agg(["mean", "count"])
    body = [
        [str(method), str(setting), f"{row['AUC', 'mean']:.4f}", f"{row['CTF', 'mean']:.4f}"]
        for (method, setting), row in means.iterrows()
    ]
    splits = int(means["AUC", "count"].min())
    return rows(["", f"mean of {splits} splits", "AUC", "CTF"], body)


def employed(runs: pd.DataFrame) -> str:
    """What SenSeI changes on occupations against the plain model."""
    plain, fair = (runs[runs["method"] == name].set_index("seed") for name in ("Baseline", "SenSeI"))
    cut = {score: 100 * float(1 - fair[score].mean() / plain[score].mean()) for score in ("CTF", "Gap RMS")}
    return (
        f"SenSeI against the plain model, mean of {len(fair)} splits: Gap RMS {cut['Gap RMS']:.0f} % lower, CTF score "
        f"{cut['CTF']:.0f} % lower, consistency {float((fair['PC'] - plain['PC']).mean()):+.3f}, balanced accuracy "
        f"{float((fair['BA'] - plain['BA']).mean()):+.4f}. Random genders of the same numbers give a Gap RMS of "
        f"{fair['Gap RMS chance'].mean():.3f}: so much of it is chance, and no method can take that away."
    )


def readings(frame: pd.DataFrame) -> str:
    """How many swaps strict readers found wrong, reading by reading and together."""
    together = frame.groupby("texts", sort=False).sum(numeric_only=True)
    shares = (100 * together[["wrong", "in doubt"]].div(together["names nouns titles"], axis=0)).round(1)
    said = "; ".join(f"{name}: {row['wrong']} % wrong, {row['in doubt']} % in doubt" for name, row in shares.iterrows())
    shown = markdown_table(list(frame.columns), frame.astype(str).to_numpy().tolist())
    return f"{shown}\n\nAll readings together, {said}."


def finetuned(run: dict[str, Any]) -> str:
    """Both halves of the example, beside each other."""
    scores = run["scores"]
    names = ("BA", "CTF", "PC", "CPU minutes")
    digits = {"CPU minutes": 1}
    body = [[method, *(f"{found[name]:.{digits.get(name, 3)}f}" for name in names)] for method, found in scores.items()]
    said = (
        f"{run['comments']:,} comments (seven tenths to train on), {run['steps']} steps, rho {run['rho']:g}, "
        f"{run['threads']} thread(s)."
    )
    return f"{rows(['', *names], body)}\n\n{said}"


def sampled(found: dict[str, float]) -> str:
    """What a few versions lose against all."""
    return (
        f"With {found['sample']} of {found['versions']} versions drawn, of {found['texts']} comments: the CTF score of "
        f"a plain network is {found['ctf sampled']:.4f} ± {found['ctf sampled sd']:.4f} instead of {found['ctf']:.4f}, "
        f"the mean move of the worst version {found['worst move sampled']:.3f} instead of {found['worst move']:.3f}, "
        f"and the learned directions leave out {found['outside sampled']:.1%} of how all versions differ instead of "
        f"{found['outside']:.1%}. Directions need few versions; the worst version of a text needs all of them."
    )


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
