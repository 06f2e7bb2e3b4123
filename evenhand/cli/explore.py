"""evenhand explore: ask what-if questions of one person on a page of one's own machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import Talk, guarded, print_json
from evenhand.cli.options import Data, Decimal, Json, NoHeader, Separator, read


@guarded
def explore(
    run: Annotated[Path, typer.Argument(help="The folder that evenhand train or demo wrote.")],
    data: Data = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8642,
    separator: Separator = None,
    decimal: Decimal = None,
    no_header: NoHeader = False,
    as_json: Json = False,
) -> None:
    """Open a page on this machine (loopback only, nothing leaves it): change the columns of a person, see score and
    decision of every network of the run, the nearest person who is decided otherwise, and the worst counterpart. For a
    run on texts: write a text, see what is made of each of its versions.

    Example: evenhand explore run people.csv
    """
    from evenhand.workflow.explore import Answers, Explorer, serve
    from evenhand.workflow.explore_texts import TextExplorer

    with Talk(quiet=as_json) as say:
        frame = None if data is None else read(data, separator, decimal, no_header, say=say)
        explorer: Answers
        texts = TextExplorer.of(run, frame)
        explorer = texts if texts is not None else Explorer.of(run, frame)
        server = serve(explorer, port)
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        if as_json:
            print_json({"address": address, "models": list(explorer.form()["models"])})
        say(f"open {address} in a browser; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
