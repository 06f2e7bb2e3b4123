"""Tables as text: whatever separator, decimal sign and encoding a table was written with, it is the same table."""

import bz2
import gzip
import lzma
import zipfile

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.tables.delimited import decode, lines_of, read_delimited
from evenhand.tables.errors import TableError

FRAME = pd.DataFrame({"name": ["Zoë, the first", "b;c"], "amount": [1.5, -2.25], "code": ["01307", "90210"]})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize(("sep", "decimal"), [(",", "."), (";", ","), ("\t", "."), ("|", ",")])
def test_the_same_table_however_it_is_written(tmp_path, sep, decimal, encoding):
    FRAME.to_csv(tmp_path / "t.csv", sep=sep, decimal=decimal, encoding=encoding, index=False)
    frame, names = read_delimited(tmp_path / "t.csv")
    assert names == list(FRAME.columns)
    assert frame.to_dict("list") == FRAME.to_dict("list")  # postcodes keep their zeros


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zip"])
def test_packed(tmp_path, ending):
    data, path = FRAME.to_csv(index=False).encode(), tmp_path / f"t.csv.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("t.csv", data)
    else:
        path.write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[ending].compress(data))
    assert read_delimited(path)[0]["amount"].tolist() == [1.5, -2.25]
    path.write_bytes(b"not packed at all")
    with pytest.raises(TableError, match="cannot be unpacked"):
        read_delimited(path)


def test_without_header_columns_are_numbered(tmp_path):
    (tmp_path / "t.csv").write_text("007,x\n012,y\n")
    frame, names = read_delimited(tmp_path / "t.csv", header=False)
    assert names == ["column 1", "column 2"]
    assert frame["column 1"].tolist() == ["007", "012"]


@pytest.mark.parametrize("strange", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c"])
def test_only_line_ends_end_lines(strange):
    assert lines_of(f"a{strange}b\r\nc\rd\ne") == [f"a{strange}b", "c", "d", "e"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40), st.integers(0, 4))
def test_a_character_cut_in_two_at_the_end_is_no_other_encoding(text, cut):
    head = ("x" * 20 + text + "é" * 3).encode()
    encoding, found = decode(head[: len(head) - cut])
    assert encoding == "utf-8-sig"
    assert found == head[: len(head) - cut].decode("utf-8-sig", errors="ignore")


def test_errors_show_nobodys_record(tmp_path):
    (tmp_path / "t.csv").write_text("Ada Lovelace\nTuring\nGrace Brewster Hopper\n")
    with pytest.raises(TableError, match="does not look like a table") as told:
        read_delimited(tmp_path / "t.csv")
    assert "Lovelace" not in str(told.value)
    (tmp_path / "b.csv").write_bytes(b"PK\x00\x01" * 50)
    with pytest.raises(TableError, match="is a binary file"):
        read_delimited(tmp_path / "b.csv")


def test_none_is_a_word_among_words_and_missing_among_numbers(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("degree,years,code\nnone,none,none\nPhD,7,01\nnone,2,02\n")
    frame, _ = read_delimited(path)
    assert frame["degree"].tolist() == ["none", "PhD", "none"]
    assert frame["years"].isna().tolist() == [True, False, False]
    assert frame["years"].iloc[1] == 7
    assert frame["code"].tolist() == ["none", "01", "02"]
    path.write_text("grade,x\nnone,1\n7,2\nA,3\n")
    assert read_delimited(path)[0]["grade"].tolist() == ["none", "7", "A"]  # some numbers do not make it one
