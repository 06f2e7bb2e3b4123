"""The built wheel and sdist hold what is needed, import fast, and need nothing optional."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OPTIONAL = (
    "typer rich jinja2 altair vl_convert sentence_transformers transformers safetensors skops onnx onnxruntime mlflow "
    "polars pyarrow fairlearn dask matplotlib"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the wheel and the sdist, built from a copy of the sources without network."""
    pytest.importorskip("setuptools")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in ("evenhand", "pyproject.toml", "README.md", "LICENSE"):
        if not (ROOT / name).exists():
            pytest.skip(f"{name} is missing: not a checkout of the sources")
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    program = f"from setuptools import build_meta as b; b.build_wheel({str(out)!r}); b.build_sdist({str(out)!r})"
    run = subprocess.run([sys.executable, "-c", program], cwd=source, capture_output=True, text=True)
    if "error: invalid command 'bdist_wheel'" in run.stderr:
        pytest.skip("building a wheel needs a newer setuptools")
    assert run.returncode == 0, run.stderr[-2000:]
    return out


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """The wheel, unpacked by pip into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    (wheel,) = built.glob("*.whl")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(target),
        str(wheel),
    ]
    run = subprocess.run(command, capture_output=True, text=True)
    if "No module named pip" in run.stderr:
        pytest.skip("needs pip")
    assert run.returncode == 0, run.stderr
    return target


def python(program: str, first: Path) -> str:
    """Run a program with the installed package, not the checkout, in front."""
    environment = os.environ | {"PYTHONPATH": str(first)}
    run = subprocess.run([sys.executable, "-c", program], cwd=first, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_both_archives_hold_every_module_and_data_file(built):
    wanted = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "evenhand").rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix in (".py", ".txt", ".xz", ".typed", ".j2", ".css", ".js")
    }
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    assert wanted <= inside, wanted - inside
    assert any(name.endswith("licenses/LICENSE") for name in inside)
    with tarfile.open(sdist) as archive:
        packed = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert wanted <= packed, wanted - packed
    assert not [name for name in inside if name.startswith(("tests", "experiments", "benchmarks"))]


def test_the_installed_package_works_without_anything_optional(installed):
    blocked = f"""
import sys
sys.modules.update(dict.fromkeys({OPTIONAL.split()!r}))  # None: importing it fails, as if it were not installed
import evenhand, pathlib
assert pathlib.Path(evenhand.__file__).is_relative_to({str(installed)!r}), evenhand.__file__
import numpy as np
x = np.random.default_rng(0).random((60, 3)).astype("float32")
model = evenhand.SenSeIClassifier(evenhand.FairMetric(np.eye(3)[:, :1]), hidden=(4,), steps=3, random_state=0)
model.fit(x, x[:, 0] > 0.5)
found = evenhand.audit(model, x)
print(found.n, len(evenhand.datasets.adult_frame()) > 1000)
"""
    assert python(blocked, installed) == "60 True"


def test_importing_loads_nothing_but_itself(installed):
    """Names are loaded when first used, so that the import is next to nothing."""
    others = [*OPTIONAL.split(), "torch", "numpy", "scipy", "sklearn", "pandas"]
    program = f"import sys, evenhand; print(sorted(set({others!r}) & set(sys.modules)))"
    assert python(program, installed) == "[]"


@pytest.mark.parametrize("how", ["the script", "python -m"])
def test_the_command_says_what_it_needs(installed, how):
    (scripts,) = installed.glob("*.dist-info/entry_points.txt")
    module, function = re.search(r"^evenhand = (.+):(.+)$", scripts.read_text(), re.MULTILINE).groups()
    run = (
        f"import {module} as m; m.{function}()"
        if how == "the script"
        else "runpy.run_module('evenhand', None, '__main__')"
    )
    program = f"import sys, runpy; sys.modules['typer'] = None; sys.argv = ['evenhand', '--help']; {run}"
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, cwd=installed, env=environment, capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr == "the command line needs typer: pip install 'evenhand[cli,report,io]'\n"
