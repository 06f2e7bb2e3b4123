"""What was found of a text model, on a terminal: the result in a few lines, errors by term, the worst versions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from evenhand.cli.console import print_table

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 40  # worst versions in the report
TERMS = 12  # on a terminal


def show(findings: dict[str, Any], *, terms: bool = False) -> None:
    """The result in a few lines. terms: also the errors by term, or by class where there are several."""
    models, one = findings["models"], findings.get("at_one_fpr")
    keys = {"balanced_accuracy": "bal. acc.", "auc": "AUC", "equal_error_rate": "EER", "false_positive_rate": "flagged"}
    keys |= {"false_negative_rate": "missed", "fped": "FPED", "fned": "FNED", "consistency": "consistent", "ctf": "CTF"}
    keys = {key: name for key, name in keys.items() if any(m.get(key) is not None for m in models.values())}
    rows = [
        [name, *("" if model.get(key) is None else f"{model[key]:.3f}" for key in keys)]
        for name, model in models.items()
    ]
    judged = "texts" if findings["texts"].get("known") else "held-out texts"
    if keys:
        print_table(f"On {findings['texts']['held_out']:,} {judged}:", ["model", *keys.values()], rows)
    compared = next(iter(models.values())).get("compared")
    if compared is not None:
        have = "text has" if compared == 1 else "texts have"
        sys.stdout.write(f"Consistent, CTF: {compared:,} {have} versions that the encoder tells apart\n")
    if one is not None:
        missed = ", ".join(f"{name} {share:.3f}" for name, share in one["missed"].items())
        sys.stdout.write(f"Missed where both flag {one['fpr']:.3f} of these harmless texts: {missed}\n")
    if terms:
        _show_rates(models)
    names = dict.fromkeys(name for model in models.values() for name in model.get("levels", {}))
    for name in names:
        said = ", ".join(f"{key} {model['levels'][name]['consistency']:.3f}" for key, model in models.items())
        sys.stdout.write(f"decided alike whatever gives {name} away: {said}\n")
    for key, model in models.items():
        if model.get("read_alike") is not None:
            stand, which = model["as_they_stand"], "" if key == "model" else f"{key} "
            sys.stdout.write(
                f"The {which}model reads words of the list alike: {model['read_alike']:.1%} of the texts with versions "
                "get one answer by construction. Read as they stand, as words in no list are: "
                f"consistent {stand['consistency']:.3f}, CTF {stand['ctf']:.3f}\n"
            )
    certificate = findings["certificate"]
    for proved in (certificate, *certificate.get("attributes", {}).values()):
        sys.stdout.write("\n" + (proved.get("statement") or f"No certificate: {proved['refused']}") + "\n")
    worst = certificate.get("worst") or {}
    for named in (worst, worst.get("as_they_stand"), worst.get("plain")):
        if named:
            sys.stdout.write(f"{named['statement']}\n")
    if findings["warning"]:
        sys.stdout.write(f"Warning: {findings['warning']}\n")


def _show_rates(models: dict[str, Any]) -> None:
    """Errors by term, those with most texts first, or by class: how many are flagged and missed by each model."""
    first = next(iter(models.values()))
    kind, counts = ("classes", ("n",)) if first.get("classes") else ("terms", ("harmless", "harmful"))
    named, lines = "class" if kind == "classes" else "term", first.get(kind) or []
    if not lines:
        return
    which = [""] if len(models) == 1 else [f", {name}" for name in models]
    words = ("others taken for it", "missed") if kind == "classes" else ("flagged", "missed")
    head = [named, *counts, *(f"{words[0]}{one}" for one in which), *(f"{words[1]}{one}" for one in which)]
    rows = []
    for i, line in enumerate(lines[:TERMS]):
        rates = [model[kind][i][key] for key in ("false_positive", "false_negative") for model in models.values()]
        rates = ["" if rate is None else f"{rate:.2f}" for rate in rates]
        rows.append([str(line[named]), *(f"{line[count]:,}" for count in counts), *rates])
    more = f", the {TERMS} of {len(lines):,} with most texts" if len(lines) > TERMS else ""
    copies = first.get("copies", 0)
    once = f"; each text once, {copies:,} rows repeat another" if copies else ""
    print_table(f"Errors by {named}{more} (few texts: wide intervals, see --json{once}):", head, rows)


def show_line(line: dict[str, Any]) -> None:
    """A text and its worst version as the model reads it; as it stands where it reads all versions alike."""
    from evenhand.workflow.text_judging import AS_THEY_STAND, PLAIN, SAME

    readings = {"": "", AS_THEY_STAND: ", read as it stands", PLAIN: ", plain model"}
    some = [prefix for prefix in readings if line.get(f"{prefix}moves_by", 0.0) >= SAME]
    if not some:
        return
    prefix, whole = some[0], f" (of the whole text {line['probability']:.2f})" if line["passage"] else ""
    before, after = line[f"{prefix}compared_with"], line[f"{prefix}probability_of_worst"]
    if "text" not in line:
        said = f"row {line['row']} with {line[f'{prefix}words']!r}: {before:.2f} -> {after:.2f}{whole}"
        sys.stdout.write(f"  {said}{readings[prefix]}\n")
        return
    what = "passage of row" if line["passage"] else "row"
    sys.stdout.write(f"  {what} {line['row']}{readings[prefix]}{whole}\n")
    sys.stdout.write(f"  {before:.2f}: {line['text'][:110]}\n")
    sys.stdout.write(f"  {after:.2f}: {line[f'{prefix}worst_version'][:110]}\n")


def shown(worst: pd.DataFrame, made_by: dict[str, Any]) -> list[Any]:
    """The first lines of the worst versions that move any reading at all, a text that is there twice only once; none
    where nobody may be shown."""
    from evenhand.workflow.text_judging import SAME

    if made_by.get("show_people") == "none" or len(worst) == 0:
        return []
    moves = worst[[name for name in worst if str(name).endswith("moves_by")]]
    worst = worst[(moves >= SAME).any(axis=1)]
    if "text" in worst:
        worst = worst.drop_duplicates([name for name in worst if name == "text" or str(name).endswith("worst_version")])
    return list(worst.head(SHOWN).to_dict("records"))
