"""A hook of mkdocs: the charts lie beside the results they are drawn from, outside docs/; copy them into the site."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("benchmarks/results", "experiments/results")


def on_post_build(config: Any, **_: Any) -> None:
    """Pages lie one folder deep in the site: ../benchmarks/results/step.png is right there and in the source."""
    for folder in FOLDERS:
        for image in sorted(path for path in (ROOT / folder).iterdir() if path.suffix in (".png", ".svg")):
            target = Path(config["site_dir"]) / folder / image.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(image, target)
