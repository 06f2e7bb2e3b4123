"""evenhand demo: the main job on the embedded Adult data."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import Talk, guarded, print_json, print_table
from evenhand.cli.options import Json, Seed

STEPS = 1150


@guarded
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("runs/demo"),
    seed: Seed = 0,
    steps: Annotated[int, typer.Option(min=1, help="Training steps of each network.")] = STEPS,
    certificate: Annotated[bool, typer.Option(help="Certify the fair model.")] = True,
    as_json: Json = False,
) -> None:
    """Train plain, boosted, Project, SenSR and SenSeI models on Adult (the paper's features, metric and split), audit
    and certify them, and write the report. A few minutes on two cores; needs no network.

    Example: evenhand demo --out runs/demo
    """
    from evenhand.headline import percent
    from evenhand.workflow import Folder, fingerprint, run
    from evenhand.workflow.demo import SETTINGS, demo_task, lines
    from evenhand.workflow.output import data_hash, summary, write_results

    folder = Folder(out)
    with Talk(quiet=as_json) as say:
        frame, task = demo_task(seed)
        settings = replace(SETTINGS, seed=seed, steps=steps, certificate=certificate)
        say("Adult: 45,222 people, 41 features; who earns more than 50,000 dollars a year?")
        made_by = {"command": shlex.join(["evenhand", *sys.argv[1:]]), "data": "Adult", "path": None, "out": str(out),
                   "rows": len(frame), "seed": seed, "sha256": data_hash(None, frame)}  # fmt: skip
        with folder.alone():
            if folder.open(fingerprint(frame, settings.__dict__)):
                say(f"going on with the run in {out}")
            results = run(task, settings, folder, say, jobs=2)
            write_results(folder, task, results, made_by)
    table = lines(results.metrics)
    if as_json:
        print_json({**summary(folder), "table": [asdict(line) for line in table]})
        return

    def shown(share: float | None) -> str:
        return "undefined" if share is None else percent(share)

    head = ["method", "BA", "S-Con", "GR-Con", "gap sex", "gap race", "relative", "decisions"]
    cells = [
        [
            line.name,
            f"{line.balanced_accuracy:.3f}",
            f"{line.spouse_consistency:.3f}",
            f"{line.sex_race_consistency:.3f}",
            f"{line.gap_sex:.3f}",
            f"{line.gap_race:.3f}",
            shown(line.relative),
            shown(line.decisions),
        ]
        for line in table
    ]
    print_table(
        "Adult, held-out people (S-Con: same decision for Husband and Wife; GR-Con: for every sex and race; relative: "
        "how differently similar people are treated, of how differently strangers are; decisions: somebody similar "
        f"changes them; both found by search, similar is d_X <= {settings.eps_certified:g})",
        head,
        cells,
    )
    sys.stdout.write(f"\nChosen: {results.metrics['chosen']['why']}\n")
    if results.certificate is not None:
        found = results.certificate
        said = f"{found['headline']}. {found['statement']}" if "statement" in found else found["refused"]
        sys.stdout.write(f"Certificate: {said}\n")
    sys.stdout.write(
        f"Wrote {out}: report.html, model.evenhand, metrics.json, certificate.json, frontier.csv, model_card.md\n"
    )
