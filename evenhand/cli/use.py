"""evenhand predict, report, export and reproduce."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.console import Talk, UserError, guarded, print_json
from evenhand.cli.options import Encoder, Json, Model, Table, grouped

if TYPE_CHECKING:
    import pandas as pd


@guarded
@grouped
def predict(
    model: Model,
    table: Table,
    out: Annotated[Path | None, typer.Option(help="Write a CSV file; by default to standard output.")] = None,
    encoder: Encoder = None,
    as_json: Json = False,
) -> None:
    """Decisions and probabilities for the people in a table, one line each, in its order. The table needs the columns
    that the model uses, and no others.

    Example: evenhand predict run/model.evenhand new.csv --out decisions.csv
    """
    from evenhand.cli.models import open_model
    from evenhand.cli.text_model import predict_texts, text_model
    from evenhand.workflow import TableModel
    from evenhand.workflow.folder import Folder

    if (texts := text_model(model, encoder)) is not None:
        return predict_texts(texts, table.read(_tell, one_column=True), out, as_json, encoder)
    opened = open_model(model)
    frame = table.read(_tell)
    if isinstance(opened, TableModel):
        for name, count in opened.schema.imputed(frame).items():
            _tell(f"{count:,} of {len(frame):,} values of {name!r} are missing or no numbers; the median was filled in")
        for name, count in opened.strangers(frame).items():
            unknown = "are none that training had: nothing is known of them"
            _tell(f"{count:,} of {len(frame):,} values of {name!r} {unknown}")
    decided = decisions(opened, frame)
    if as_json:
        print_json(decided.to_dict("records"))
        return
    text = escaped(decided).to_csv(index=False)
    if out is None:
        sys.stdout.write(text)
        return
    Folder(out.parent).write(out.name, text.encode())
    _tell(f"wrote {len(decided):,} decisions to {out}")


def decisions(opened: Any, frame: pd.DataFrame) -> pd.DataFrame:
    """One line a person: the decision, and the probability of each class where there are classes."""
    import pandas as pd

    from evenhand.workflow.foreign import Foreign

    if isinstance(opened, Foreign):
        p = opened.probabilities(frame)
        classes = opened.classes or list(range(p.shape[1]))
        own = opened.model.labels(frame) if hasattr(opened.model, "labels") else None
        table = pd.DataFrame({"prediction": own if own is not None else [classes[k] for k in p.argmax(1)]})
        return table.assign(**{f"probability of {label}": p[:, k] for k, label in enumerate(classes)})
    table = pd.DataFrame({"prediction": opened.predict(frame)})
    if not opened.schema.regression:
        p = opened.predict_proba(frame)
        for k, label in enumerate(opened.schema.labels):
            table[f"probability of {label}"] = p[:, k]
    return table


def escaped(table: pd.DataFrame) -> pd.DataFrame:
    """Texts that a spreadsheet would take for a formula, in cells and names, begin with an apostrophe."""

    def safe(value: Any) -> Any:
        if not isinstance(value, str) or value[:1] not in ("=", "+", "-", "@", "\t", "\r"):
            return value
        try:
            float(value)
        except ValueError:
            return f"'{value}"
        return value

    return table.rename(columns=safe).map(safe)


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


@guarded
def report(
    run: Annotated[Path, typer.Argument(help="The folder that evenhand train or demo wrote.")],
    as_json: Json = False,
) -> None:
    """Write report.html and model_card.md of a finished run again.

    Example: evenhand report run
    """
    from evenhand.cli.text import report_texts
    from evenhand.workflow import Folder
    from evenhand.workflow.output import write_report

    if report_texts(run):
        if as_json:
            print_json({"report": str(run / "report.html")})
        else:
            sys.stdout.write(f"wrote {run / 'report.html'}\n")
        return
    write_report(Folder(run))
    if as_json:
        print_json({"report": str(run / "report.html"), "model_card": str(run / "model_card.md")})
    else:
        sys.stdout.write(f"wrote {run / 'report.html'}\n")


@guarded
def export(
    model: Model,
    out: Annotated[Path, typer.Argument(help="The ONNX file to write.")],
    as_json: Json = False,
) -> None:
    """Write a model of ours as ONNX: preprocessing and network in one graph, one input for each column that the model
    uses; its labels are the table's own.

    Example: evenhand export run/model.evenhand model.onnx
    """
    from evenhand.cli.models import open_model
    from evenhand.cli.text_model import text_model
    from evenhand.files import export_onnx
    from evenhand.workflow import TableModel

    if text_model(model) is not None:
        raise UserError(
            f"{model} is a model of texts, whose encoder and swaps an ONNX file does not hold; models of tables are "
            "exported, those of texts are asked by `evenhand predict` or load_text"
        )
    opened = open_model(model)
    if not isinstance(opened, TableModel):
        raise UserError(f"{model} is not a model file of evenhand; only these are exported")
    export_onnx(opened.pipeline, out)
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
