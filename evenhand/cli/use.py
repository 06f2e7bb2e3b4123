"""evenhand predict, report, export and reproduce."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from evenhand.cli.console import Talk, UserError, guarded, print_json
from evenhand.cli.judge import DataArgument, ModelArgument
from evenhand.cli.models import open_model, probabilities
from evenhand.cli.text import predict_texts
from evenhand.cli.train import Decimal, Json, Separator
from evenhand.tables.read import read_table
from evenhand.text.files import text_model_file
from evenhand.workflow import Folder
from evenhand.workflow.output import write_report


@guarded
def predict(
    model: ModelArgument,
    data: DataArgument,
    out: Annotated[Path | None, typer.Option(help="Write a CSV file; by default to standard output.")] = None,
    separator: Separator = None,
    decimal: Decimal = None,
    as_json: Json = False,
) -> None:
    """Decisions and probabilities for the people in a table, one line each, in its order.

    Example: evenhand predict run/model.evenhand new.csv --out decisions.csv
    """
    if text_model_file(model):
        return predict_texts(model, data, out, as_json)
    opened = open_model(model)
    frame = read_table(data, separator=separator, decimal=decimal)
    p = probabilities(opened.model, opened.clean(frame))
    labels = list(opened.schema.labels) if opened.schema is not None else [str(k) for k in range(p.shape[1])]
    table = pd.DataFrame({"prediction": [labels[k] for k in p.argmax(1)]})
    for k, label in enumerate(labels):
        table[f"probability of {label}"] = p[:, k]
    if as_json:
        print_json(table.to_dict("records"))
    elif out is not None:
        table.to_csv(out, index=False)
        sys.stderr.write(f"wrote {len(table):,} decisions to {out}\n")
    else:
        table.to_csv(sys.stdout, index=False)


@guarded
def report(
    run: Annotated[Path, typer.Argument(help="The folder that evenhand train or demo wrote.")],
    as_json: Json = False,
) -> None:
    """Write report.html and model_card.md of a finished run again.

    Example: evenhand report run
    """
    write_report(Folder(run))
    if as_json:
        print_json({"report": str(run / "report.html"), "model_card": str(run / "model_card.md")})
    else:
        sys.stdout.write(f"wrote {run / 'report.html'}\n")


@guarded
def export(
    model: ModelArgument,
    out: Annotated[Path, typer.Argument(help="The ONNX file to write.")],
    as_json: Json = False,
) -> None:
    """Write a model of ours as ONNX: preprocessing and network in one graph, one input per column.

    Example: evenhand export run/model.evenhand model.onnx
    """
    from evenhand.files import export_onnx

    opened = open_model(model)
    if opened.schema is None:
        raise UserError(f"{model} is not a model file of evenhand; only these are exported")
    export_onnx(opened.model, out)
    if as_json:
        print_json({"onnx": str(out)})
    else:
        sys.stdout.write(f"wrote {out}\n")


@guarded
def reproduce(
    what: Annotated[str, typer.Argument(help="adult, toxicity, bios or synthetic.")],
    quick: Annotated[bool, typer.Option("--quick", help="A small run, to see that it works.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write; runs/reproduce/WHAT, or runs/quick/WHAT.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments again; needs the source of evenhand, where they are kept.

    Example: evenhand reproduce adult --quick
    """
    from evenhand.workflow.reproduce import run

    with Talk(quiet=as_json) as say:
        say(f"running the experiments of {what!r}")
        found = run(what, out=out, quick=quick)
    texts = [path for kind in ("*.csv", "*.tex") for path in found.folder.glob(kind)]
    written = sorted(str(path) for path in (*found.tables, *found.figures, *texts))
    if as_json:
        print_json({"files": written})
    else:
        sys.stdout.write("\n".join(written) + "\n")
