"""A hook of mkdocs: charts lie beside the results they are drawn from, outside docs/; the site shows them there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("benchmarks/results", "experiments/results")


def on_files(files: Files, *, config: Any) -> Files:
    for folder in FOLDERS:
        for image in sorted(path for path in (ROOT / folder).iterdir() if path.suffix in (".png", ".svg")):
            files.append(File.generated(config, f"{folder}/{image.name}", abs_src_path=str(image)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What is ../ of the source is within the site."""
    for folder in FOLDERS:
        markdown = markdown.replace(f"](../{folder}/", f"]({folder}/")
    return markdown
