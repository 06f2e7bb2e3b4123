"""evenhand explore: ask what-if questions of one person on a page of one's own machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import Talk, guarded, print_json
from evenhand.cli.options import Encoder, Json, Table, grouped


@guarded
@grouped
def explore(
    run: Annotated[Path, typer.Argument(help="The folder that evenhand train or demo wrote.")],
    table: Table,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8642,
    encoder: Encoder = None,
    as_json: Json = False,
) -> None:
    """Open a page on this machine (loopback only, nothing leaves it): change the columns of a person, see score and
    decision of every network of the run, the nearest person who is decided otherwise, and the worst counterpart. For a
    run on texts: write a text, or choose a row of DATA, see what is made of each of its versions.

    Example: evenhand explore run people.csv
    """
    from evenhand.cli.text_model import opened_text, text_model
    from evenhand.workflow.explore import Answers, Explorer, serve
    from evenhand.workflow.explore_texts import TextExplorer

    with Talk(quiet=as_json) as say:
        frame = None if table.data is None and table.sql is None else table.read(say, one_column=True)
        path = text_model(run, encoder)
        texts = None if path is None else TextExplorer.of(opened_text(path, encoder), frame)
        explorer: Answers = texts if texts is not None else Explorer.of(run, frame)
        server = serve(explorer, port)
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        if as_json:
            print_json({"address": address, "models": list(explorer.form()["models"])})
        say(f"open {address} in a browser; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
