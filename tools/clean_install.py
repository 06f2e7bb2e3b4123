"""Build the wheel and the sdist, install each into a clean environment with core dependencies only, and use it there.

    python tools/clean_install.py --out benchmarks/results/install.json

Needs a package index that has torch, or --find-links; about 2 GB of disk for a while. Import times are CPU times beside
torch's own, in turns: of the bare package, whose names are loaded when first used, and of what a training run needs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = {
    *("typer", "rich", "altair", "vl-convert-python", "sentence-transformers", "transformers", "safetensors", "skops"),
    *("onnx", "onnxruntime", "mlflow", "polars", "pyarrow", "fairlearn", "dask", "matplotlib"),
}
USE = """
import numpy as np, evenhand
x = np.random.default_rng(0).random((120, 3)).astype("float32")
metric = evenhand.FairMetric(np.eye(3)[:, :1])
model = evenhand.SenSeIClassifier(metric, hidden=(4,), steps=5, random_state=0).fit(x, x[:, 0] + x[:, 1] > 1)
assert evenhand.audit(model, x, eps=0.01).n == 120
assert len(evenhand.datasets.adult_frame()) > 1000
"""
API = "from evenhand import FairMetric, FairRegularizer, SenSeIClassifier, audit, certify, fair_metrics"


def build(out: Path) -> dict[str, Path]:
    """Both archives, from a copy of the sources, so that nothing is left behind here."""
    source = out / "source"
    source.mkdir()
    for name in ("evenhand", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    program = f"from setuptools import build_meta as b; b.build_wheel({str(out)!r}); b.build_sdist({str(out)!r})"
    subprocess.run([sys.executable, "-c", program], cwd=source, check=True, capture_output=True)
    return {"wheel": next(out.glob("*.whl")), "sdist": next(out.glob("*.tar.gz"))}


def seconds(python: Path, statement: str, folder: Path) -> float:
    program = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
    run = subprocess.run([python, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    return float(run.stdout)


def install(archive: Path, folder: Path, turns: int) -> dict[str, Any]:
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    command = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", archive]
    subprocess.run(command, check=True)
    began = time.monotonic()
    subprocess.run([python, "-c", USE], cwd=folder, check=True)
    used = time.monotonic() - began
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], capture_output=True, text=True, check=True
    )
    names = {each["name"].lower(): each["version"] for each in json.loads(listed.stdout)}
    ratios: dict[str, list[float]] = {"import_ratio": [], "api_ratio": []}
    for _ in range(turns):
        alone = seconds(python, "import torch", folder)
        ratios["import_ratio"].append(seconds(python, "import evenhand", folder) / alone)
        ratios["api_ratio"].append(seconds(python, API, folder) / alone)
    found = {name: round(statistics.median(values), 3) for name, values in ratios.items()}
    return {"seconds": round(used, 1), **found, "packages": names, "extra": sorted(OPTIONAL & set(names))}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--only", choices=["wheel", "sdist"])
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    result: dict[str, Any] = {"python": sys.version.split()[0], "archives": {}}
    with tempfile.TemporaryDirectory() as name:
        for kind, archive in build(Path(name)).items():
            if given.only in (None, kind):
                result["archives"][kind] = install(archive, Path(name) / kind, given.turns)
                print(kind, {k: v for k, v in result["archives"][kind].items() if k != "packages"}, flush=True)
    if given.out:
        given.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
