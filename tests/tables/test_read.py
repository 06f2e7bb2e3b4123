"""Tables as people have them: any separator, decimal commas, byte order marks, compression."""

import bz2
import gzip
import lzma
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.tables.read import TableError, find_column, read_table

FRAME = pd.DataFrame({"age": [39.5, 50.25, 21.0], "job": ["baker; chef", "doctor", "Koch, Küche"], "n": [1, 2, 3]})


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_separator_decimal_and_encoding_are_found(tmp_path, sep, decimal, encoding):
    if sep == decimal:
        pytest.skip("ambiguous by nature")
    path = tmp_path / "table.csv"
    path.write_bytes(FRAME.to_csv(index=False, sep=sep, decimal=decimal).encode(encoding))
    read = read_table(path)
    assert read.columns.tolist() == FRAME.columns.tolist()
    assert read["age"].tolist() == FRAME["age"].tolist()
    assert read["job"].tolist() == FRAME["job"].tolist()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zip"])
def test_compressed(tmp_path, suffix):
    data = FRAME.to_csv(index=False).encode()
    path = tmp_path / f"table.csv{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("table.csv", data)
    else:
        path.write_bytes({".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix](data))
    assert read_table(path)["n"].tolist() == [1, 2, 3]


def test_parquet_and_tsv(tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")
    FRAME.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    for name in ("t.parquet", "t.tsv"):
        assert read_table(tmp_path / name)["job"].tolist() == FRAME["job"].tolist()


def test_question_marks_and_spaces_as_in_the_published_adult_file(tmp_path):
    (tmp_path / "a.csv").write_text("age, job\n39, ?\n50, Sales\n")
    read = read_table(tmp_path / "a.csv")
    assert read.columns.tolist() == ["age", "job"]
    assert read["job"].isna().tolist() == [True, False]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    numbers=st.lists(st.floats(-1e6, 1e6).map(lambda v: round(v, 3)), min_size=2, max_size=20),
    sep=st.sampled_from(";\t|"),
    decimal=st.sampled_from(".,"),
)
def test_numbers_survive(tmp_path, numbers, sep, decimal):
    frame = pd.DataFrame({"x": np.array(numbers) + 0.5, "y": "a"})
    (tmp_path / "t.csv").write_text(frame.to_csv(index=False, sep=sep, decimal=decimal))
    assert np.allclose(read_table(tmp_path / "t.csv")["x"], frame["x"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n", "header but no rows"),
        ("t.csv", b"alone\n1\n2\n", "does not look like a table.*--separator"),
        ("t.csv", b"\x00\x01\x02\x03" * 50, "binary file"),
        ("t.csv.gz", b"not gzip at all", "cannot be unpacked"),
        ("t.parquet", b"PAR1 not really", "not a parquet file"),
        ("t.xlsx", b"PK", r"ends in \.xlsx"),
        ("t.csv", b"a,b\n1,2\n" + b"1,2\n" * 60 + b"1,2,3\n", "cannot be read.*line 63"),
    ],
)
def test_bad_files_are_told_apart(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / name)


def test_two_columns_of_one_name_are_refused(tmp_path):
    """pandas would call the second one "a.1" and go on."""
    for name, text in (("t.csv", "\n a ,b,a\n1,2,3\n"), ("t.tsv", "a\tb\ta\n1\t2\t3\n"), ("u.csv", '"a";b;a\n1;2;3\n')):
        (tmp_path / name).write_text(text)
        with pytest.raises(TableError, match="more than one column named 'a'; rename all but one"):
            read_table(tmp_path / name)
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table([[1], [2], [3]], names=["a", "b", "a"]), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="more than one column named 'a'; rename all but one"):
        read_table(tmp_path / "t.parquet")
    (tmp_path / "ok.csv").write_text("a,a.1,,\n1,2,,\n")  # a name with a number, columns without a name: not twins
    assert read_table(tmp_path / "ok.csv").columns.tolist()[:2] == ["a", "a.1"]


def test_missing_file_offers_the_neighbours(tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"did you mean people\.csv"):
        read_table(tmp_path / "peple.csv")
    with pytest.raises(TableError, match="no folder"):
        read_table(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)


def test_find_column():
    assert find_column("sex", ["age", "sex"], "sensitive") == "sex"
    with pytest.raises(TableError, match="no column 'Sexx' for --sensitive; did you mean 'sex'"):
        find_column("Sexx", ["age", "sex"], "sensitive")


def test_leading_zeros_are_kept(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("name, code , share,zero\nA,01307,0.5,0\nB,99999,0.25,10\nC,,1,0\n")
    frame = read_table(path)
    assert frame["code"].tolist()[:2] == ["01307", "99999"]
    assert frame["code"].isna().tolist() == [False, False, True]
    assert frame["share"].tolist() == [0.5, 0.25, 1.0]
    assert frame["zero"].tolist() == [0, 10, 0]
