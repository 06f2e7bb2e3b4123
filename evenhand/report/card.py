"""A model card in the style of Hugging Face: Markdown with a YAML head."""

from __future__ import annotations

import json
import re

from evenhand.report.findings import NAMES, Findings, number


def model_card(f: Findings) -> str:
    """The card of the fair model; text from the data is quoted so that it cannot change the Markdown."""
    fair = f.models["fair"]
    head = {
        "library_name": "evenhand",
        "tags": ["tabular-classification", "fairness", "individual-fairness"],
        "metrics": ["balanced_accuracy"],
    }
    lines = ["---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()), "---", ""]
    lines += [f"# {text(f.target)}, treated alike", "", f"{text(f.headline)} {text(f.cost)}", ""]
    lines += ["## Model", ""]
    lines += [
        f"- Predicts {text(f.target)} ({', '.join(text(label) for label in f.labels)}) from a table.",
        f"- Network with hidden layers {', '.join(map(str, f.metrics['settings']['hidden']))}, trained by SenSeI, "
        f"rho = {f.metrics['chosen']['rho']:g}, eps = {f.metrics['settings']['eps']:g}.",
        f"- Sensitive: {', '.join(map(text, f.sensitive))}"
        + (f"; proxies learned for {', '.join(map(text, f.metrics['proxies']))}." if f.metrics["proxies"] else "."),
        "",
    ]
    lines += ["## How to use it", "", "```python", "import evenhand.files as files", ""]
    lines += ['model = files.load("model.evenhand")', "model.predict(frame)", "```", ""]
    lines += ["or `evenhand predict model.evenhand data.csv`. Loading runs no code from the file.", ""]
    lines += ["## Evaluation", "", f"On {fair['n']:,} held-out rows.", ""]
    questions = f.metrics["questions"]
    lines += [
        "| model | balanced accuracy | " + " | ".join(f"changed by {text(q)}" for q in questions) + " | R found |"
    ]
    lines += ["|---|---" + "|---" * len(questions) + "|---|"]
    for name, m in f.models.items():
        shares = " | ".join(f"{m['changed'][q]['share']:.2%}" for q in questions)
        lines.append(f"| {NAMES[name]} | {m['balanced_accuracy']:.2%} | {shares} | {number(m['audit']['r_low'])} |")
    lines += ["", "## Certificate", "", *(text(sentence) for sentence in f.certificate_words), ""]
    lines += [
        "## Limits",
        "",
        "The statements hold for the notion of similarity above and for people like those in the table. They say "
        "nothing about the fairness of the labels, about causal counterfactuals, or about equal rates between groups.",
        "",
        "## Made by",
        "",
        f"`{f.made_by['command'].replace('`', '')}`",
        "",
    ]
    return "\n".join(lines)


def text(value: str) -> str:
    """Plain text in Markdown: characters that would mean something are escaped, line ends removed."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", " ".join(str(value).split()))
