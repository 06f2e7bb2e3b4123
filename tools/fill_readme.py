"""Write the numbers of the README from the results files: python tools/fill_readme.py

Each block between <!-- begin:name --> and <!-- end:name --> is made by the function of that name below;
tests/docs/test_readme.py fails when the README says something else than the results.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def peers() -> str:
    results = json.loads((ROOT / "benchmarks/results/peers.json").read_text())
    libraries = list(next(iter(results.values())))
    lines = [f"| | {' | '.join(libraries)} |", "|---|" + "---|" * len(libraries)]
    for trial, row in results.items():
        lines.append(f"| {trial.replace('_', ' ')} | " + " | ".join("yes" if row[name] else "no" for name in libraries) + " |")
    return "\n".join(lines)


BLOCKS = {"peers": peers}


def filled(text: str) -> str:
    """The text with every known block made anew."""
    for name, make in BLOCKS.items():
        pattern = re.compile(f"(<!-- begin:{name} -->\n).*?(<!-- end:{name} -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"the README has no block {name!r}")
        body = make()
        text = pattern.sub(lambda found, body=body: f"{found[1]}{body}\n{found[2]}", text)
    return text


if __name__ == "__main__":
    README.write_text(filled(README.read_text()))
