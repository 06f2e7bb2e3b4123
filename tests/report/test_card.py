"""The model card: its head is YAML, its table is the run's numbers, and text from the data stays text."""

import copy
import json
from dataclasses import replace

import pytest

from evenhand.report.card import model_card, snippet, table, text
from evenhand.workflow.folder import Folder
from evenhand.workflow.output import read_findings


@pytest.fixture
def findings(run_folder):
    return read_findings(Folder(run_folder))


def changed(findings, change):
    """Findings of the same run with other numbers."""
    metrics = copy.deepcopy(findings.metrics)
    change(metrics)
    return replace(findings, metrics=metrics)


def test_the_whole_card(findings):
    card = model_card(findings)
    _, head, body = card.split("---\n", 2)
    lines = dict(line.split(": ", 1) for line in head.splitlines())
    assert json.loads(lines["library_name"]) == "evenhand"
    assert json.loads(lines["tags"])[0] == "tabular-classification"
    assert json.loads(lines["metrics"]) == ["balanced_accuracy"]
    assert "<script>" not in body.replace("evenhand train '<script>", "")  # but in the command, which is code
    assert "rho = 5, eps = 0.1" in body
    assert "It does not see these columns. What predicts sex counts as no difference." in body
    assert "On 1,000 held-out rows." in body
    assert "SHA-256 unknown" in body
    headings = [line for line in body.splitlines() if line.startswith("#")]
    assert headings[1:] == [
        f"## {name}" for name in ("Model", "How to use it", "Evaluation", "Certificate", "Limits", "Made by")
    ]


def test_what_the_model_sees_is_said(findings):
    def sees(metrics):
        metrics["schema"]["see_sensitive"], metrics["proxies"] = True, []

    card = model_card(changed(findings, sees))
    assert "It sees these columns." in card
    assert "counts as no difference" not in card


def test_one_row_a_model_with_its_numbers(findings):
    head, rule, *rows = table(findings)
    assert len(rows) == len(findings.models)
    assert {line.replace("\\|", "").count("|") for line in (head, rule, *rows)} == {8}
    cells = {row.split(" | ")[0]: row for row in rows}
    assert cells["| Plain network"].startswith("| Plain network | 83.0% (82.0% to 84.0%) | 7.80% | 6.50% | 13.00% |")
    assert cells["| Plain network"].endswith("| 7.5% | 0.3 |")

    def undefined(metrics):
        metrics["models"]["plain"]["audit"]["relative"] = None

    assert "| undefined | 0.3 |" in table(changed(findings, undefined))[2]


def test_the_snippet_is_python_with_the_users_own_paths(findings):
    made = replace(findings, made_by={**findings.made_by, "out": 'a "b"', "path": "c\\d.csv"})
    code = "\n".join(snippet(made)[1:-1])
    names = {}
    for line in code.splitlines():
        if "(" in line and "=" in line:
            name, call = line.split(" = ")
            names[name] = eval(call, {"load_model": str, "read_table": str})
    assert names == {"model": 'a "b"/model.evenhand', "people": "c\\d.csv"}
    compile(code, "card", "exec")


def test_text_cannot_become_markdown():
    assert text("a *b* [c](d)\n# e | f") == r"a \*b\* \[c\](d) \# e \| f"
    assert text("<b>`x`</b>") == r"\<b\>\`x\`\</b\>"
