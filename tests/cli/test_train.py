"""evenhand train: one folder, honest messages, no tracebacks, resumable."""

import json

import numpy as np
import pandas as pd
import pytest

from evenhand.workflow import judging

from .conftest import QUICK, QuickAudit, people


@pytest.fixture
def no_search(monkeypatch):
    monkeypatch.setattr(judging, "search", lambda model, frame, task, settings: QuickAudit(frame))


def test_folder_and_messages(trained):
    folder, result = trained
    run = folder / "run"
    written = {path.name for path in run.iterdir()}
    assert written >= {
        "model.evenhand", "metric.npz", "metrics.json", "frontier.csv", "report.html", "model_card.md", "run.json",
    }  # fmt: skip
    assert "column 'joined' is left out: a date; --keep-dates uses it" in result.stderr
    assert "SenSeI" in result.stdout
    assert "% change by sex" in result.stdout
    made_by = json.loads((run / "run.json").read_text())
    assert made_by["versions"]["evenhand"]
    assert made_by["rows"] == 320
    metrics = json.loads((run / "metrics.json").read_text())
    kinds = {c["name"]: c["kind"] for c in metrics["columns"]}
    assert kinds == {"age": "number", "pay": "number", "job": "category", "sex": "binary", "joined": "date"}
    assert sum(metrics["rows"].values()) == 320


def test_a_column_to_ignore_is_left_out_and_named(tmp_path, invoke, no_search):
    people().to_csv(tmp_path / "p.csv", index=False)
    args = ["train", tmp_path / "p.csv", "--target", "approved", "--sensitive", "sex", "--out", tmp_path / "run"]
    done = invoke(*args, *QUICK, "--ignore", "job,age")
    assert done.exit_code == 0
    assert "column 'job' is left out: you asked for it" in done.stderr
    columns = json.loads((tmp_path / "run" / "metrics.json").read_text())["columns"]
    assert {c["name"] for c in columns if c["kind"] == "dropped"} == {"job", "age"}


def test_running_again_goes_on_and_other_options_are_refused(trained, invoke, no_search):
    folder, _ = trained
    run = folder / "run"
    args = ["train", folder / "people.csv", "--target", "approved", "--sensitive", "sex", "--out", run]
    model = (run / "stages" / "fair.evenhand").read_bytes()
    again = invoke(*args, *QUICK, "--json")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["models"]["fair"]["balanced_accuracy"] > 0
    assert again.stderr == ""
    assert (run / "stages" / "fair.evenhand").read_bytes() == model
    other = invoke(*args, *QUICK, "--seed", "1")
    assert other.exit_code == 2
    assert "holds another run (other data or other options)" in other.stderr
    assert "--out names another folder, --overwrite uses this one" in other.stderr


def test_ctrl_c_leaves_a_folder_to_go_on_with(tmp_path, invoke, monkeypatch, no_search):
    people().to_csv(tmp_path / "p.csv", index=False)
    args = [
        "train",
        tmp_path / "p.csv",
        "--target",
        "approved",
        "--sensitive",
        "sex",
        "--out",
        tmp_path / "run",
        *QUICK,
    ]

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(judging, "search", stop)
        result = invoke(*args)
    assert result.exit_code == 130
    assert "What was finished is kept" in result.stderr
    trained_at = (tmp_path / "run" / "stages" / "fair.evenhand").stat().st_mtime_ns
    result = invoke(*args)
    assert result.exit_code == 0
    assert "going on with the run" in result.stderr
    assert (tmp_path / "run" / "stages" / "fair.evenhand").stat().st_mtime_ns == trained_at
    assert (tmp_path / "run" / "report.html").exists()


def test_missing_sensitive_values(tmp_path, invoke, no_search):
    frame = people()
    frame.loc[[4, 9], "sex"] = None
    frame.to_csv(tmp_path / "p.csv", index=False)
    args = ["train", tmp_path / "p.csv", "--target", "approved", "--sensitive", "sex", "--out", tmp_path / "run"]
    result = invoke(*args)
    assert result.exit_code == 2
    assert "sensitive values are missing: 2 in 'sex' (lines 6, 11)" in result.stderr
    assert "--missing-sensitive drop" in result.stderr
    assert not (tmp_path / "run").exists()
    result = invoke(*args, *QUICK, "--missing-sensitive", "drop")
    assert result.exit_code == 0
    assert "2 rows left out: a sensitive value is missing (2 in 'sex')" in result.stderr


def test_wide_table_with_missing_values_and_many_categories(tmp_path, invoke, no_search):
    rng = np.random.default_rng(0)
    frame = people(400)
    for j in range(60):
        frame[f"n{j}"] = rng.normal(size=400)
    for j in range(6):
        frame[f"c{j}"] = rng.choice([f"value {i}" for i in range(150)], 400)
    hole = rng.random(frame.shape) < 0.05
    hole[:, [frame.columns.get_loc(name) for name in ("sex", "approved")]] = False
    frame.mask(hole).to_parquet(tmp_path / "wide.parquet")
    args = ["--target", "approved", "--sensitive", "sex", "--out", tmp_path / "run", *QUICK, "--json"]
    result = invoke("train", tmp_path / "wide.parquet", *args)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["models"]["plain"]["changed"].keys() == {"sex"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--target", "aproved"], "no column 'aproved' for the target; did you mean 'approved'"),
        (["--sensitive", "gender"], "no column 'gender' for the sensitive columns"),
        (["--rho", "many"], "--rho is 'auto' or numbers such as 5 or 1,5,20; got 'many'"),
        (["--rho", "-1"], "--rho must not be negative"),
        (["--hidden", "wide"], "--hidden is one or more widths"),
        (["--missing-sensitive", "guess"], "--missing-sensitive is 'error', 'drop' or 'category'"),
        (["--proxy-for", "age"], "proxies are asked for 'age', which is not sensitive: --proxy-for names"),
        (["--eps", "-1"], "--eps must be at least 0"),
    ],
)
def test_mistakes(tmp_path, invoke, args, message):
    people().to_csv(tmp_path / "p.csv", index=False)
    options = {"--target": "approved", "--sensitive": "sex", "--out": str(tmp_path / "run")}
    options |= dict(zip(args[::2], args[1::2]))
    result = invoke("train", tmp_path / "p.csv", *(part for pair in options.items() for part in pair))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    assert not (tmp_path / "run").exists()


def test_few_rows_rare_classes_and_full_folders(tmp_path, invoke):
    people(60).to_csv(tmp_path / "few.csv", index=False)
    args = ["--target", "approved", "--sensitive", "sex", "--out", tmp_path / "run"]
    result = invoke("train", tmp_path / "few.csv", *args)
    assert "only 60 usable rows" in result.stderr
    rare = people()
    rare.loc[:3, "approved"] = "perhaps"
    rare.to_csv(tmp_path / "rare.csv", index=False)
    assert "class 'perhaps' of the target has 4 rows" in invoke("train", tmp_path / "rare.csv", *args).stderr
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("keep me")
    people().to_csv(tmp_path / "p.csv", index=False)
    result = invoke("train", tmp_path / "p.csv", *args)
    assert "is not empty and holds no run" in result.stderr
    assert (tmp_path / "run" / "mine.txt").read_text() == "keep me"


def test_a_column_that_would_be_a_script(tmp_path, invoke, no_search):
    evil = "<script>alert(1)</script>"
    frame = people().rename(columns={"job": evil})
    frame[evil] = frame[evil].replace({"baker": "<img src=x onerror=alert(1)>"})
    frame.to_csv(tmp_path / "p.csv", index=False)
    result = invoke(
        "train",
        tmp_path / "p.csv",
        "--target",
        "approved",
        "--sensitive",
        f"sex,{evil}",
        "--out",
        tmp_path / "r",
        *QUICK,
    )
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "r" / "report.html").read_text()
    assert "<script>alert(1)" not in page
    assert "<img src=x" not in page


def test_a_read_only_place_is_a_message(tmp_path, invoke):
    people().to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        result = invoke("train", tmp_path / "p.csv", "--target", "approved", "--sensitive", "sex", "--out", out)
        assert result.exit_code == 2
        assert result.stderr.splitlines()[-1].startswith("error: ")
    assert pd.read_csv(tmp_path / "p.csv").shape == (320, 6)
