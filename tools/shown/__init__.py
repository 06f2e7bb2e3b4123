"""What the documents show of the results. Each function here returns the text of one block; cog puts it in its place.

    make numbers           # fill README.md and docs/ from the results files
    make verify-results    # fails where a document says something else than the results

A block in a document:  <!-- [[[cog show(demo()) ]]] -->  ...  <!-- [[[end]]] -->
"""

from shown.benchmarks import (
    ddp,
    fairness,
    fuzz,
    install,
    kills,
    large,
    many,
    million,
    mutants,
    peers,
    soak,
    speed,
    versions,
)
from shown.certificates import (
    coverage,
    frontier,
    headline,
    own_nets,
    public_nets,
    soundness,
    text_size,
    tightness,
    wide,
)
from shown.experiments import case_study, demo, relative_objective, search_study, table3
from shown.tables import results, table
from shown.texts import text_block

__all__ = [
    "case_study", "coverage", "ddp", "demo", "fairness", "frontier", "fuzz", "headline", "install", "kills", "large",
    "many", "million", "mutants", "own_nets", "peers", "public_nets", "relative_objective", "results", "search_study",
    "show", "soak", "soundness", "speed", "table", "table3", "text_block", "text_size", "tightness", "versions", "wide",
]  # fmt: skip


def show(text: str) -> None:
    """Put the text into the document, with the empty lines around it that Markdown wants."""
    import cog

    cog.outl(f"\n{text}\n")
