"""The report of a run on texts: one page, the worst versions side by side."""

from __future__ import annotations

import html
import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.counterfactuals.changes import Span, changed_places

__all__ = ["render_texts"]

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%;margin:1rem 0}td,th{padding:.35rem .6rem;border-bottom:1px solid #ddd;
text-align:right;vertical-align:top}td:first-child,th:first-child,.text{text-align:left}.text{width:28%}
.range{white-space:nowrap}.range .note{display:block}
.warning{background:#fff3cd;border-left:4px solid #c8641e;padding:.6rem 1rem}.note{color:#666}mark{background:#ffe08a}
.table{overflow-x:auto}p,.text{overflow-wrap:anywhere}
@media(max-width:40rem){.cards tr:first-child{display:none}.cards tr,.cards td{display:block;width:auto;
text-align:left;border:0;padding:.15rem 0}.cards tr{border-bottom:1px solid #ddd;padding:.5rem 0}
.cards td::before{content:attr(data-is) ": ";color:#666}.range .note{display:inline}}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}td,th,.cards tr{border-color:#444}
.warning{background:#3a2f14}.note,.cards td::before{color:#aaa}mark{background:#7a5a00;color:#fff}}
"""
SAME = 1e-6  # a move of the probabilities that is none
WORDS = 60  # of a long text, around what a version changes
_READINGS = {"plain_": "plain model", "as_they_stand_": "fair model, read as they stand", "": "fair model"}
_SCORES = [
    ("balanced_accuracy", "balanced accuracy"),
    ("auc", "AUC"),
    ("equal_error_rate", "equal error rate"),
    ("false_positive_rate", "harmless texts flagged"),
    ("false_negative_rate", "harmful texts missed"),
    ("fped", "FPED"),
    ("fned", "FNED"),
    ("consistency", "texts decided alike in all versions"),
    ("ctf", "CTF score"),
    ("worst_move", "mean move of the worst version"),
]
_MEANINGS = {
    "equal_error_rate": "Equal error rate: the share of both errors at the threshold where they are equal.",
    "fped": "FPED, FNED: how far the two errors of each term lie from those of all texts, summed over the terms.",
    "ctf": "CTF score: how far the probabilities of a text's versions lie apart.",
    "worst_move": "Mean move: how far they lie at most from those of the text, between 0 and 1, on average.",
}


def render_texts(findings: Mapping[str, Any], worst: Sequence[Mapping[str, Any]], made_by: Mapping[str, Any]) -> str:
    """The page. Everything that comes from the data is escaped; nothing is loaded from a network."""
    models = findings["models"]
    parts = ["<h1>A classifier of texts, and who is treated how</h1>"]
    n, versions, columns = findings["texts"], findings["versions"], findings.get("columns")
    empty = "left out because they have no text" if columns is None else "counted as an empty text"
    parts.append(
        f"<p>{n['trained']:,} texts to train on, {n['held_out']:,} held out to judge. Swap: "
        f"{_said(findings['swap'])}. {versions['texts']:,} held-out texts have versions, {versions['each'] - 1} each; "
        f"{versions['blind']:,} of them look the same to the encoder in every version and are not counted as treated "
        "alike."
        + "".join(
            f" Rows of the table that were {what}: {n[key]:,}."
            for key, what in (("without_text", empty), ("without_label", "left out because they have no label"))
            if n.get(key)
        )
        + "</p>"
    )
    if columns is not None:
        parts.append(_columns(columns))
    if findings["warning"]:
        parts.append(f"<p class='warning'>{_said(findings['warning'])}</p>")
    head = ["", *(_said(name) for name in models)]
    labels = [str(label) for label in findings.get("labels", [])]
    if len(labels) == 2 and (columns is not None or labels != ["0", "1"]):  # in the words of the table
        named = {"false_positive_rate": f"{labels[0]} taken for {labels[1]}"}
        named["false_negative_rate"] = f"{labels[1]} taken for {labels[0]}"
    else:
        named = {}
    rows = [
        [_said(named.get(key, label)), *(_number(model.get(key)) for model in models.values())]
        for key, label in _SCORES
        if any(model.get(key) is not None for model in models.values())
    ]
    one = findings.get("at_one_fpr")
    if one is not None:
        missed = named.get("false_negative_rate", "harmful texts missed")
        at = next((i + 1 for i, row in enumerate(rows) if row[0] == _said(missed)), len(rows))
        rows.insert(at, [f"{_said(missed)} at one rate ({one['fpr']:.3f})", *map(_number, one["missed"].values())])
    parts += ["<h2>Both models on held-out texts</h2>", _table(head, rows), _meanings(models)]
    parts += _thresholds(findings)
    parts += _read_alike(models)
    parts += _attributes(models, labels)
    certificate = findings["certificate"]
    parts.append("<h2>Certificate</h2>")
    for proved in (certificate, *certificate.get("attributes", {}).values()):
        parts.append(f"<p>{_said(proved.get('statement') or 'No certificate: ' + proved['refused'])}</p>")
    named_worst = certificate.get("worst") or {}
    parts.append("<h2>The worst version of a text</h2>")
    others = [named_worst[key] for key in ("as_they_stand", "plain") if named_worst.get(key)]
    for said in [named_worst, *others] if named_worst else []:
        whose = "Of the fair model: " if others and said is named_worst else ""
        parts.append(f"<p>{whose}{_said(said['statement'])}</p>")
    if made_by.get("show_people") == "none":
        parts.append("<p>Single texts are not shown, as was asked for.</p>")
    else:
        parts.append(_versions(worst, findings.get("labels", [])))
    parts += _terms(models) + _classes(models)
    parts.append(
        "<h2>What was not shown</h2><p>A lexical swap changes a word and nothing of what would follow from it. Words "
        "that are not in the list, other languages and texts of another kind were not looked at. Rates of terms with "
        "few texts are wide: read the intervals.</p>"
    )
    parts.append(f"<p class='note'>{_said(made_by.get('command', ''))}</p>")
    body = "\n".join(parts)
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>evenhand: texts</title><style>{_STYLE}</style><body>{body}</body></html>\n"
    )


def _meanings(models: Mapping[str, Any]) -> str:
    """What those scores mean whose names do not say it."""
    said = [text for key, text in _MEANINGS.items() if any(model.get(key) is not None for model in models.values())]
    return f"<p class='note'>{' '.join(said)}</p>" if said else ""


def _read_alike(models: Mapping[str, Any]) -> list[str]:
    """What holds by construction, and what training achieves where the list does not reach."""
    parts = []
    for name, model in models.items():
        if model.get("read_alike") is None:
            continue
        stand = model["as_they_stand"]
        parts.append(
            f"<p>The {_said(name)} model reads a text alike whoever of the list it is about: {model['read_alike']:.1%} "
            "of the texts with versions get the same answer in all of them, by construction and not because it has "
            "learned to; in the others the rules do not see a word of the list in every version. What training "
            "achieves shows where the versions are read as they stand, as words that are in no list are: texts decided "
            f"alike {_number(stand['consistency'])}, CTF score {_number(stand['ctf'])}, mean move of the worst version "
            f"{_number(stand['worst_move'])}. It has seen these words in training; of words that it has not, expect "
            "less.</p>"
        )
    return parts


def _columns(columns: Mapping[str, Any]) -> str:
    """Which columns the model sees beside the text, which it does not and why."""
    used = ", ".join(f"{_said(c['name'])} ({_said(c['kind'])})" for c in columns["used"]) or "none"
    parts = [f"<p>Columns beside the text that the model sees: {used}."]
    if columns["left_out"]:
        left = "; ".join(f"{_said(name)}: {_said(why)}" for name, why in columns["left_out"].items())
        parts.append(f" Left out: {left}.")
    for name, told in columns["sensitive"].items():
        parts.append(
            f" {_said(name)} is sensitive and no feature; text and columns "
            + (
                f"take away {told['explained']:.0%} of the uncertainty about it, and what does is free."
                if told
                else "do not tell it better than chance."
            )
        )
    return "".join(parts) + "</p>"


def _attributes(models: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """How groups of the sensitive columns fare with each model."""
    shares = {"right": "decided rightly"}
    if len(labels) == 2:
        shares = {"selected": f"get {labels[1]}", "false_positive": f"wrongly {labels[1]}"}
        shares["false_negative"] = f"wrongly {labels[0]}"
    parts = []
    first = next(iter(models.values()))
    for name, rows in first.get("groups", {}).items():
        parts.append(f"<h2>By {_said(name)}</h2>")
        alike = [
            f"{_said(model)} {_number(found['levels'][name]['consistency'])}"
            for model, found in models.items()
            if name in found.get("levels", {})
        ]
        if alike:
            parts.append(
                f"<p>Rows that are decided alike when what gives {_said(name)} away is set to the mean of each of its "
                f"groups: {', '.join(alike)}.</p>"
            )
        kinds = [key for key in shares if any(key in row for row in rows)]
        head = ["group", "rows", *(f"{_said(model)}: {_said(shares[key])}" for key in kinds for model in models)]
        lines = []
        for i, row in enumerate(rows):
            cells = [_rate(found["groups"][name][i], key) for key in kinds for found in models.values()]
            lines.append([_said(row["group"]), f"{row['n']:,}", *cells])
        parts += [*_once(models, "in each group"), _table(head, lines, cards=True)]
    return parts


def _thresholds(findings: Mapping[str, Any]) -> list[str]:
    """By which thresholds the models decide, and how they were made comparable."""
    found, one = findings.get("thresholds"), findings.get("at_one_fpr")
    if one is None or found is None:
        return []
    shown = ", ".join(f"{_said(name)} {value:.3f}" for name, value in found.items())
    how = (
        "as was asked for"
        if findings.get("threshold_asked_for")
        else "chosen on validation texts so that both flag the same share of harmless ones there; on other texts they "
        "need not"
    )
    return [
        f"<p>Thresholds: {shown}, {how}. At one rate: what each model misses if both flag the share of these held-out "
        f"harmless texts that the plain one flags, {one['fpr']:.1%}; these thresholds are read off the held-out texts, "
        "of both models alike, to compare them and not to decide by.</p>"
    ]


def _versions(worst: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    """The worst version of each text: that of the fair model beside what the others make of the same text."""
    if not worst:
        return "<p>No held-out text has a version that a model tells from it.</p>"
    readings = [prefix for prefix in _READINGS if f"{prefix}moves_by" in worst[0]] or [""]
    texts = "text" in worst[0]
    which = [next((p for p in reversed(readings) if line.get(f"{p}moves_by", 1.0) >= SAME), "") for line in worst]
    one = _READINGS[which[0]] if len(readings) > 1 and len(set(which)) == 1 else ""
    rows = []
    for line, shown in zip(worst, which):
        row = f"row {_said(line['row'])}" if "row" in line else ""
        cells = [row]
        if texts:
            passage = "<span class='note'>a passage: </span>" if _true(line.get("passage")) else ""
            text, version = _differences(str(line["text"]), str(line[f"{shown}worst_version"]))
            whose = f"<span class='note'>{_READINGS[shown]}: </span>" if len(readings) > 1 and not one else ""
            cells = [f"<span class='note'>{row}{' ' if row else ''}</span>{passage}{text}", f"{whose}{version}"]
        rows.append([*cells, *(_move(line, prefix) for prefix in readings)])
    of = f"probability of {_said(labels[1])}" if len(labels) == 2 else "probability of its class"
    heads = [_READINGS[prefix] for prefix in readings] if len(readings) > 1 else [of]
    note = f"<p class='note'>Of each model: the {of}, and what the worst version makes of it.</p>" if heads[1:] else ""
    note += (
        "<p class='note'>Of a long text the passage around its first swapped word is shown, and its version is "
        "compared with the passage; the probability of the whole text, by which it is decided, stands below.</p>"
        if any(_true(line.get("passage")) for line in worst)
        else ""
    )
    names = ["text", f"its worst version{f' ({one})' if one else ''}"] if texts else ["text"]
    return note + _table([*names, *heads], rows, wide=len(names), cards=True)


def _move(line: Mapping[str, Any], prefix: str) -> str:
    """From which probability to which the worst version of a model moves a text, and with which words."""
    whole, passage = line.get(f"{prefix}probability"), _true(line.get("passage"))
    below = f"<br><span class='note'>whole text {whole:.2f}</span>" if passage and whole is not None else ""
    before = line.get(f"{prefix}compared_with", whole)
    if line.get(f"{prefix}moves_by", 1.0) < SAME:
        return f"{before:.2f}, no version moves it{below}"
    words = f"<br>with {_said(line[f'{prefix}words'])}" if line.get(f"{prefix}words") else ""
    changes = "<br><strong>decision changes</strong>" if _true(line[f"{prefix}decision_changes"]) else ""
    after = line[f"{prefix}probability_of_worst"]
    return f"<span class='range'>{before:.2f} → {after:.2f}</span>{words}{changes}{below}"


def _true(value: Any) -> bool:
    """Yes or no, also as a file of texts writes it."""
    return str(value) == "True"


def _differences(text: str, version: str) -> tuple[str, str]:
    """Both texts, what differs marked; long ones cut to the words around the first difference."""
    places = changed_places(text, version)
    return _marked(text, [ours for ours, _ in places]), _marked(version, [theirs for _, theirs in places])


def _marked(text: str, places: Sequence[Span]) -> str:
    """The text from so many words before the first place to as many behind it."""
    first = places[0][0] if places else 0
    words = [match.start() for match in re.finditer(r"\S+", text)]
    here = bisect(words, first)
    start = words[here - WORDS // 2] if here > WORDS // 2 else 0
    stop = words[here + WORDS // 2] if here + WORDS // 2 < len(words) else len(text)
    pieces, end = ["… " if start else ""], start
    for one, other in places:
        if one < stop and other > one:
            pieces += [_said(text[end:one]), f"<mark>{_said(text[one:other])}</mark>"]
            end = other
    return "".join([*pieces, _said(text[end:stop].rstrip()), " …" if stop < len(text) else ""])


def _terms(models: Mapping[str, Any]) -> list[str]:
    """Errors by term of every model, side by side."""
    first = next(iter(models.values())).get("terms") or []
    if not first:
        return []
    head = ["term", "harmless", *(f"flagged, {_said(name)}" for name in models)]
    head += ["harmful", *(f"missed, {_said(name)}" for name in models)]
    rows = []
    for i, term in enumerate(first):
        flagged, missed = (
            [_rate(model["terms"][i], key) for model in models.values()] for key in ("false_positive", "false_negative")
        )
        rows.append([_said(term["term"]), f"{term['harmless']:,}", *flagged, f"{term['harmful']:,}", *missed])
    return [
        "<h2>Errors by term (95 % intervals)</h2>",
        *_once(models, "here and for FPED and FNED"),
        _table(head, rows, cards=True),
    ]


def _classes(models: Mapping[str, Any]) -> list[str]:
    """Errors by class of every model, where there are more than two."""
    first = next(iter(models.values())).get("classes") or []
    if not first:
        return []
    head = ["class", "texts", *(f"missed, {_said(name)}" for name in models)]
    head += [f"others taken for it, {_said(name)}" for name in models]
    rows = [
        [_said(one["class"]), f"{one['n']:,}"]
        + [_rate(model["classes"][i], key) for key in ("false_negative", "false_positive") for model in models.values()]
        for i, one in enumerate(first)
    ]
    return ["<h2>Errors by class (95 % intervals)</h2>", *_once(models), _table(head, rows, cards=True)]


def _once(models: Mapping[str, Any], where: str = "here") -> list[str]:
    """How many rows repeat another, where some do: they are no further observations."""
    copies = next(iter(models.values())).get("copies")
    if not copies:
        return []
    rows = "row repeats" if copies == 1 else "rows repeat"
    return [f"<p class='note'>Each text counts once {where}: {copies:,} held-out {rows} another.</p>"]


def _rate(term: Mapping[str, Any], name: str) -> str:
    interval = term[f"{name}_interval"]
    if interval is None:
        return "undefined"
    between = f"<span class='note'>({interval[0]:.2f} to {interval[1]:.2f})</span>"
    return f"<span class='range'>{term[name]:.2f} {between}</span>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], wide: int = 0, cards: bool = False) -> str:
    """wide: so many columns hold texts. cards: on a narrow screen each line is a card, and says what its parts are."""

    def cells(row: Sequence[str], tag: str) -> str:
        kinds = [" class='text'" if i < wide else "" for i in range(len(row))]
        if cards and tag == "td":
            kinds = [f"{kind} data-is='{name}'" for kind, name in zip(kinds, head)]
        return "<tr>" + "".join(f"<{tag}{kind}>{cell}</{tag}>" for cell, kind in zip(row, kinds)) + "</tr>"

    start = "<div class='table'><table class='cards'>" if cards else "<div class='table'><table>"
    return start + cells(head, "th") + "".join(cells(row, "td") for row in rows) + "</table></div>"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _said(text: Any) -> str:
    return html.escape(str(text))
