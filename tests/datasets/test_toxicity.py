import re

import numpy as np
import pytest

from evenhand.datasets import civil_comments, jigsaw_toxicity

CIVIL = """id,target,comment_text,severe_toxicity,muslim,white,homosexual_gay_or_lesbian,created_date
1,0.0,"Fine, thanks.",0,0.0,0.5,0.0,2016
2,0.5,"two
lines",0.1,1.0,0.0,0.49,2016
3,0.49,null,0,,,,2016
4,0.9,שלום 😀,0,0.6,0.6,1.0,2016
"""


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_civil_comments(tmp_path):
    comments = civil_comments(write(tmp_path / "train.csv", CIVIL))
    assert comments.texts == ["Fine, thanks.", "two\nlines", "null", "שלום 😀"]
    assert comments.y.tolist() == [0, 1, 0, 1]
    assert comments.groups.columns.tolist() == ["homosexual_gay_or_lesbian", "muslim", "white"]
    assert comments.groups["muslim"].tolist() == [False, True, False, True]
    assert comments.groups["white"].tolist() == [True, False, False, True]
    assert comments.groups["homosexual_gay_or_lesbian"].tolist() == [False, False, False, True]
    stricter = civil_comments(tmp_path / "train.csv", threshold=0.8)
    assert stricter.y.tolist() == [0, 0, 0, 1]
    assert stricter.groups["muslim"].tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CIVIL.replace("comment_text", "text"), "no column 'comment_text'"),
        (CIVIL.replace("target", "score"), "no column 'target'"),
        ("comment_text,target\na,1\n", "no identity column such as 'muslim'"),
        ("comment_text,target,white\na,,1\n", "'target' is missing in 1 rows"),
        ("comment_text,target,white\n,1,1\nb,0,0\n", "'comment_text' is missing or no text in 1 of 2 rows"),
        ("comment_text,target,white\na,high,1\n", "'target' must hold numbers"),
        ("", "not a CSV file"),
    ],
)
def test_civil_comments_says_what_is_wrong(tmp_path, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        civil_comments(write(tmp_path / "train.csv", text))


JIGSAW = 'id,comment_text,toxic,severe_toxic\n0001,"He said ""NA""",0,0\n0002,NA,1,0\n'


def test_jigsaw_toxicity(tmp_path):
    comments = jigsaw_toxicity(write(tmp_path / "train.csv", JIGSAW))
    assert comments.texts == ['He said "NA"', "NA"]
    assert comments.y.tolist() == [0, 1]
    assert comments.y.dtype == np.int64
    assert comments.groups.shape == (2, 0)
    other = jigsaw_toxicity(write(tmp_path / "c.csv", "text,label\na,1\n"), text="text", toxic="label")
    assert other.texts == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (JIGSAW.replace("toxic,", "bad,"), "no column 'toxic'"),
        (JIGSAW.replace("comment_text", "body"), "no column 'comment_text'; it has 'id', 'body', 'toxic'"),
        (JIGSAW.replace("NA,1", "NA,-1"), "must be 0 or 1, got -1.0; -1 marks"),
        (JIGSAW.replace("NA,1", "NA,"), "must be 0 or 1, got nan"),
    ],
)
def test_jigsaw_toxicity_says_what_is_wrong(tmp_path, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        jigsaw_toxicity(write(tmp_path / "train.csv", text))


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="download the data set"):
        civil_comments(tmp_path / "nothing.csv")
