"""A model card in the style of Hugging Face: Markdown with a YAML head."""

from __future__ import annotations

import json
import re

from evenhand.report.findings import Findings, number, share_of
from evenhand.report.names import NAMES


def model_card(f: Findings) -> str:
    """The card of the fair model; text from the data is quoted so that it cannot change the Markdown."""
    key, score = f.score
    head = {
        "library_name": "evenhand",
        "tags": [f"tabular-{f.metrics['task']}", "fairness", "individual-fairness"],
        "metrics": [key],
    }
    lines = ["---", *(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()), "---", ""]
    lines += [f"# {text(f.target)}, treated alike", "", f"{text(f.headline)} {text(f.cost)}", ""]
    kind = "a number" if f.regression else ", ".join(text(label) for label in f.labels)
    seen = "It sees these columns." if f.metrics["schema"]["see_sensitive"] else "It does not see these columns."
    learned = [proxy["name"] for proxy in f.metrics["proxies"]]
    lines += [
        "## Model",
        "",
        f"- Predicts {text(f.target)} ({kind}) from a table.",
        f"- {f.kind_words}, trained by SenSeI, rho = {f.metrics['chosen']['rho']:g}, eps = {f.trained_eps:g}.",
        f"- Sensitive: {', '.join(map(text, f.sensitive))}. {seen}"
        + (f" What predicts {', '.join(map(text, learned))} counts as no difference." if learned else ""),
    ]
    if not f.regression:
        lines += [f"- {text(f.threshold_words.split('. ')[0].rstrip('.'))}."]
    lines += ["", "## How to use it", "", *snippet(f), ""]
    lines += ["Loading runs no code from the file.", ""]
    lines += ["## Evaluation", "", f"On {f.fair['n']:,} held-out rows.", "", *table(f)]
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
        f"Data: {text(f.made_by['data'])}, SHA-256 {f.made_by.get('sha256', 'unknown')}.",
        "",
    ]
    return "\n".join(lines)


def snippet(f: Findings) -> list[str]:
    """Python that runs as it stands, in the folder where the command was given."""
    model = json.dumps(f"{f.made_by.get('out') or '.'}/model.evenhand")
    read, call_to_read = _reading(f)
    call = "model.predict(people)" if f.regression else "model.predict(people), model.predict_proba(people)"
    return [
        "```python",
        f"from evenhand.tables import {read}",
        "from evenhand.workflow import load_model",
        "",
        f"model = load_model({model})",
        f"people = {call_to_read}",
        call,
        "```",
    ]


def _reading(f: Findings) -> tuple[str, str]:
    """The function that reads the table as the run did, and its call."""
    how = dict(f.made_by.get("read") or {})
    if "sql" in how:
        return "read_sql", f"read_sql({json.dumps(how['sql'])}, {json.dumps(how['url'])})"
    options = "".join(f", {name}={value!r}" for name, value in how.items())
    return "read_table", f"read_table({json.dumps(f.made_by.get('path') or 'people.csv')}{options})"


def table(f: Findings) -> list[str]:
    """The models beside each other."""
    key, score = f.score
    questions = f.metrics["questions"]
    lines = [
        f"| model | {score} | "
        + " | ".join(f"changed by {text(q)}" for q in questions)
        + " | similar / strangers | R found |"
    ]
    lines += ["|---|---" + "|---" * len(questions) + "|---|---|"]
    for name, m in f.models.items():
        shares = " | ".join(f"{m['changed'][q]['share']:.2%}" for q in questions)
        low, high = m["intervals"][key]
        relative = m["audit"]["relative"]
        said = "undefined" if relative is None else share_of(relative)
        value = (
            f"{m[key]:.1%} ({low:.1%} to {high:.1%})" if not f.regression else f"{m[key]:.3f} ({low:.3f} to {high:.3f})"
        )
        lines.append(f"| {NAMES[name]} | {value} | {shares} | {said} | {number(m['audit']['r_low'])} |")
    return lines


def text(value: str) -> str:
    """Plain text in Markdown: characters that would mean something are escaped, line ends removed."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", " ".join(str(value).split()))
