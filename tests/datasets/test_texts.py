"""Tables of texts: what is missing is named, and nothing runs when a file is read."""

import pandas as pd
import pytest

from evenhand.datasets.texts import read_texts, text_column


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_every_kind_of_file_gives_the_same(tmp_path, kind):
    frame = pd.DataFrame({"comment": ["null", "NA", 'a, "b"\nc'], "toxic": [0, 1, 0]})
    path = tmp_path / f"texts.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        frame.to_parquet(path)
    found = read_texts(path, ["comment", "toxic"], ["comment"])
    assert text_column(found, "comment") == frame["comment"].tolist()  # "null" is what somebody wrote
    assert found["toxic"].tolist() == [0, 1, 0]


def test_a_pickle_is_not_opened_whatever_it_is_called(tmp_path):
    for name in ("texts.csv", "texts.pkl"):
        pd.DataFrame({"comment": ["x"]}).to_pickle(tmp_path / "made")
        (tmp_path / "made").rename(tmp_path / name)
        with pytest.raises(ValueError, match="is a pickle"):
            read_texts(tmp_path / name, ["comment"], ["comment"])


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not there"):
        read_texts(tmp_path / "no.csv", [], [])
    (tmp_path / "t.csv").write_text("comment,toxic\nhello,1\n,0\n")
    with pytest.raises(ValueError, match="no column 'text'; it has 'comment', 'toxic'"):
        read_texts(tmp_path / "t.csv", ["text"], [])
    frame = read_texts(tmp_path / "t.csv", ["comment"], ["comment"])
    with pytest.raises(ValueError, match=r"missing or no text in 1 of 2 rows \(first: row 1\)"):
        text_column(frame, "comment")
    (tmp_path / "t.jsonl").write_text("{not json")
    with pytest.raises(ValueError, match="not JSON lines"):
        read_texts(tmp_path / "t.jsonl", [], [])
