"""Install the lowest stated version of every dependency, and every Python that can be had, and run tests there.

    python tools/versions.py --out benchmarks/results/versions.json

Each case is a virtual environment of its own: Python 3.11 with every ``>=`` of pyproject.toml made ``==``, and each of
the Pythons in ``PYTHONS`` that is on the PATH with the newest versions. torch is what constraints.txt says in all of
them: other builds weigh gigabytes. A case that cannot be installed is recorded with what pip said.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
EXTRAS = ("cli", "report", "io", "onnx", "trees")
TESTS = ["tests/domain", "tests/test_audit.py", "tests/test_regularizer.py", "tests/dual", "tests/fair_metrics",
         "tests/estimators/test_base.py", "tests/files", "tests/tables", "tests/cli/test_use.py"]  # fmt: skip
SHOWN = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "typer", "rich", "jinja2", "altair", "vl-convert-python",
         "safetensors", "skops", "onnx", "onnxscript", "onnxruntime", "lightgbm", "numba")  # fmt: skip


def requirements(lowest: bool) -> list[str]:
    """What pyproject.toml asks for, without torch; at its lowest, or as it is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = [*project["dependencies"], *(line for extra in EXTRAS for line in project["optional-dependencies"][extra])]
    stated = [line for line in stated if not line.startswith("torch")]
    return [pinned(line) for line in stated] if lowest else stated


def readers(lowest: bool) -> list[str]:
    """What the tests of tables read files with, as the extra dev states it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = [
        line for line in project["optional-dependencies"]["dev"] if line.startswith(("pyarrow", "polars", "openpyxl"))
    ]
    return [pinned(line) for line in stated] if lowest else stated


def pinned(requirement: str) -> str:
    """numpy>=1.26 -> numpy==1.26.*: the lowest of that line that pip can install."""
    name, version = requirement.split(">=")
    return f"{name}=={version}.*" if re.fullmatch(r"[\d.]+", version) else requirement


def run(command: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def case(python: str, lowest: bool, folder: Path, tests: list[str]) -> dict[str, Any]:
    """One environment: what was installed, and how its tests ended."""
    found: dict[str, Any] = {"python": python, "versions": "lowest" if lowest else "newest"}
    if shutil.which(f"python{python}") is None or run([f"python{python}", "--version"]).returncode:
        return {**found, "result": "this Python is not on the machine"}
    run([f"python{python}", "-m", "venv", str(folder)])
    inside = str(folder / "bin" / "python")
    pip = [inside, "-m", "pip", "--disable-pip-version-check", "install", "-q", "-c", str(ROOT / "constraints.txt")]
    wanted = ["torch", *requirements(lowest), *readers(lowest), "pytest", "hypothesis"]
    installed = run([*pip, *wanted])
    if installed.returncode == 0:
        installed = run([*pip, "--no-deps", str(ROOT)])
    if installed.returncode:
        return {**found, "result": "cannot be installed", "why": installed.stderr.strip().splitlines()[-3:]}
    listed = json.loads(run([inside, "-m", "pip", "list", "--format", "json"]).stdout)
    known = {entry["name"].lower(): entry["version"] for entry in listed}
    found["installed"] = {name: known[name] for name in SHOWN if name in known}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    # Warnings of old versions about each other are no failures here; with the newest they are, in the suite.
    tested = run(
        [inside, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider", *tests], cwd=ROOT, env=environment
    )
    lines = tested.stdout.strip().splitlines()
    failed = [line.split(" ")[1] for line in lines if line.startswith(("FAILED", "ERROR"))]
    return {**found, "result": "passed" if tested.returncode == 0 else "failed", "failed": failed, "said": lines[-1:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="such as 3.11-lowest 3.13-newest")
    parser.add_argument("--tests", nargs="*", default=TESTS)
    args = parser.parse_args()
    cases = [("3.11", True), *((python, False) for python in PYTHONS)]
    results = json.loads(args.out.read_text()) if args.out.exists() else {}
    for python, lowest in cases:
        name = f"{python}-{'lowest' if lowest else 'newest'}"
        if args.only and name not in args.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            results[name] = case(python, lowest, Path(folder) / "env", args.tests)
        print(
            name,
            results[name]["result"],
            results[name].get("failed") or results[name].get("why") or "",
            file=sys.stderr,
        )
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
