"""Tables as people have them: any separator, decimal commas, byte order marks, compression."""

import bz2
import gzip
import io
import lzma
import sqlite3
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.tables.read import TableError, read_sql, read_table

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
        ("t.csv", b"alone\n1\n2\n", "does not look like a table.*Name the separator"),
        ("t.csv", b"\x00\x01\x02\x03" * 50, "binary file"),
        ("t.csv.gz", b"not gzip at all", "cannot be unpacked"),
        ("t.parquet", b"PAR1 not really", "not a parquet file"),
        ("t.xlsx", b"PK", "not a spreadsheet"),
        ("t.docx", b"PK", r"ends in \.docx"),
        ("t.json", b"{not json", "neither JSON lines"),
        ("t.jsonl", b'{"a": [1, 2]}\n', "lists or objects inside column"),
        ("t.csv", b"a,b\n1,2\n" + b"1,2\n" * 60 + b"1,2,3\n", "cannot be read.*line 63"),
    ],
)
def test_bad_files_are_told_apart(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / name)


def test_columns_of_one_name_are_told_apart_and_that_is_said(tmp_path):
    """pandas would call the second one "a.1" and say nothing."""
    for name, text in (("t.csv", "\n a ,b,a\n1,2,3\n"), ("t.tsv", "a\tb\ta\n1\t2\t3\n"), ("u.csv", '"a";b;a\n1;2;3\n')):
        (tmp_path / name).write_text(text)
        found = read_table(tmp_path / name)
        assert found.columns.tolist() == ["a", "b", "a (2)"]
        assert found.iloc[0].tolist() == [1, 2, 3]
        assert "more than one column 'a'; number 3 is called 'a (2)'" in found.attrs["notes"][0]
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table([[1], [2], [3]], names=["a", "b", "a"]), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").columns.tolist() == ["a", "b", "a (2)"]
    (tmp_path / "ok.csv").write_text("a,a.1,,\n1,2,,\n")  # a name with a number, columns without a name: not twins
    found = read_table(tmp_path / "ok.csv")
    assert found.columns.tolist()[:2] == ["a", "a.1"]
    assert found.attrs["notes"] == []
    (tmp_path / "three.csv").write_text("a,a (2),a,a\n1,2,3,4\n")
    assert read_table(tmp_path / "three.csv").columns.tolist() == ["a", "a (2)", "a (3)", "a (4)"]


def test_line_separators_inside_a_cell(tmp_path):
    """U+2028, U+0085 and form feed end no line of a CSV file."""
    for odd in ("\u2028", "\x85", "\x0c"):
        (tmp_path / "t.csv").write_text(f"a;b\n1;x{odd}y\n" + "2;z\n" * 3, encoding="utf-8")
        assert read_table(tmp_path / "t.csv")["b"].tolist() == [f"x{odd}y", "z", "z", "z"]


def test_without_header(tmp_path):
    (tmp_path / "t.csv").write_text("39,01307,yes\n50,99999,no\n")
    found = read_table(tmp_path / "t.csv", header=False)
    assert found.columns.tolist() == ["column 1", "column 2", "column 3"]
    assert found["column 1"].tolist() == [39, 50]
    assert found["column 2"].tolist() == ["01307", "99999"]


def test_excel_json_and_databases(tmp_path):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install openpyxl")
    FRAME.to_excel(tmp_path / "t.xlsx", index=False)
    FRAME.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    FRAME.to_json(tmp_path / "t.json", orient="records")
    with sqlite3.connect(tmp_path / "t.db") as connection:
        FRAME.to_sql("people", connection, index=False)
    url = f"sqlite:///{tmp_path / 't.db'}"
    found = [read_table(tmp_path / name) for name in ("t.xlsx", "t.jsonl", "t.json")]
    found.append(read_sql("select * from people", url))
    for one in found:
        assert one.columns.tolist() == FRAME.columns.tolist()
        assert one["age"].tolist() == FRAME["age"].tolist()
        assert one["job"].tolist() == FRAME["job"].tolist()
    with pytest.raises(TableError, match=r"the query failed: .*no such table"):
        read_sql("select * from nobody", url)
    with pytest.raises(TableError, match="the query failed"):  # read only
        read_sql("drop table people", url)
    with pytest.raises(TableError, match="there is no database"):
        read_sql("select 1", f"sqlite:///{tmp_path / 'no.db'}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"a": 1}, 2]', "a row is no object"),
        ('{"a": 1}\n3\n', "a row is no object"),
        ('{"a": 1, "b": 2}\n{"a": 2, "b": [2]}\n', "lists or objects inside column.*'b'"),
        ('[{"a": {"c": 1}}, {"a": 1}]', "lists or objects inside column.*'a'"),
    ],
)
def test_json_of_which_some_rows_are_no_table(tmp_path, text, says):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(TableError, match=says):
        read_table(tmp_path / "t.json")


def test_other_sheets_are_spoken_of(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    table.to_excel(tmp_path / "one.xlsx", index=False)
    assert read_table(tmp_path / "one.xlsx").attrs["notes"] == []
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        table.to_excel(book, sheet_name="people", index=False)
        pd.DataFrame({"c": ["secret"]}).to_excel(book, sheet_name="more", index=False)
    found = read_table(tmp_path / "two.xlsx")
    assert found.columns.tolist() == ["a", "b"]
    (note,) = found.attrs["notes"]
    assert note.endswith("has 2 sheets; only the first one, 'people', is read")


def test_a_column_without_a_name_in_a_spreadsheet(tmp_path):
    pd.DataFrame([["a", None], [1, 2], [3, 4]]).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    assert read_table(tmp_path / "t.xlsx").columns.tolist() == ["a", "Unnamed: 1"]


def test_standard_input(monkeypatch):
    class Pipe:
        buffer = io.BytesIO(FRAME.to_csv(index=False).encode())

    monkeypatch.setattr("sys.stdin", Pipe())
    assert read_table("-")["n"].tolist() == [1, 2, 3]


def test_missing_file_offers_the_neighbours(tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"did you mean people\.csv"):
        read_table(tmp_path / "peple.csv")
    for i in range(5):
        (tmp_path / f"peopl{i}.csv").write_text("a\n1\n")
    with pytest.raises(TableError) as caught:
        read_table(tmp_path / "peopl.csv")
    assert str(caught.value).count(".csv") == 1 + 3  # the name that was given, and three that are near
    with pytest.raises(TableError, match="no folder"):
        read_table(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)


def test_leading_zeros_are_kept(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("name, code , share,zero\nA,01307,0.5,0\nB,99999,0.25,10\nC,,1,0\n")
    frame = read_table(path)
    assert frame["code"].tolist()[:2] == ["01307", "99999"]
    assert frame["code"].isna().tolist() == [False, False, True]
    assert frame["share"].tolist() == [0.5, 0.25, 1.0]
    assert frame["zero"].tolist() == [0, 10, 0]


def test_the_index_of_a_parquet_file_is_no_column(tmp_path):
    people = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}, index=pd.Index([7, 9], name="id"))
    people.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").columns.tolist() == ["a", "b"]
