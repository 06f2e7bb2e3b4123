import pickle
import re

import pandas as pd
import pytest

from evenhand.datasets import bias_in_bios

FRAME = pd.DataFrame(
    {
        "hard_text": ["She teaches, and sings.", "He flies\nplanes.", "null"],
        "profession": ["teacher", "pilot", "nurse"],
        "gender": ["F", "M", "f"],
    }
)


def write(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize("name", ["bios.csv", "bios.jsonl", "bios.json", "bios.parquet"])
def test_the_formats_read_alike(tmp_path, name):
    bios = bias_in_bios(write(FRAME, tmp_path / name))
    assert bios.texts == FRAME["hard_text"].tolist()
    assert bios.y.tolist() == ["teacher", "pilot", "nurse"]
    assert bios.gender.tolist() == ["female", "male", "female"]


@pytest.mark.parametrize("name", ["bios.csv", "bios.jsonl", "bios.parquet"])
@pytest.mark.parametrize("genders", [[1, 0, 1], ["female", "male", "Female"]])
def test_other_spellings_of_gender_and_numbered_professions(tmp_path, name, genders):
    bios = bias_in_bios(write(FRAME.assign(gender=genders, profession=[21, 3, 21]), tmp_path / name))
    assert bios.gender.tolist() == ["female", "male", "female"]
    assert bios.y.tolist() == [21, 3, 21]


def test_columns_of_other_names(tmp_path):
    frame = FRAME.rename(columns={"hard_text": "text", "profession": "occupation"})
    assert bias_in_bios(write(frame, tmp_path / "b.csv"), text="text", profession="occupation").texts[0][:3] == "She"


class Harmful:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code from the file was run')",))


@pytest.mark.parametrize("name", ["BIOS.pkl", "bios.pickle", "bios.csv", "bios.parquet", "bios.pkl.gz"])
def test_a_pickle_is_refused_whatever_its_name(tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(ValueError, match="is a pickle, which can run any code"):
        bias_in_bios(tmp_path / name)


@pytest.mark.parametrize("column", ["hard_text", "profession", "gender"])
def test_a_missing_column_is_named(tmp_path, column):
    with pytest.raises(ValueError, match=f"no column '{column}'"):
        bias_in_bios(write(FRAME.drop(columns=column), tmp_path / "bios.csv"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gender": ["F", "M", "X"]}, "'gender' must be M or F, male or female, or 0 (male) or 1 (female); got x"),
        ({"gender": ["F", "M", None]}, "got nan"),
        ({"profession": ["a", None, "b"]}, "'profession' is missing in 1 rows"),
        ({"hard_text": ["a", "b", None]}, "'hard_text' is missing or no text in 1 of 3 rows (first: row 2)"),
    ],
)
def test_bad_values_are_named(tmp_path, change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        bias_in_bios(write(FRAME.assign(**change), tmp_path / "bios.csv"))


def test_json_that_is_no_json_lines(tmp_path):
    (tmp_path / "b.json").write_text("{not json")
    with pytest.raises(ValueError, match="not JSON lines"):
        bias_in_bios(tmp_path / "b.json")
