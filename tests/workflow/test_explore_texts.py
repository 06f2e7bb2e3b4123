import json
import threading
import urllib.request

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from evenhand.counterfactuals import TokenSwap
from evenhand.datasets import templates
from evenhand.tables.errors import TableError
from evenhand.text import TextClassifier
from evenhand.workflow.explore import serve
from evenhand.workflow.explore_texts import TextExplorer

COUNTS = HashingVectorizer(n_features=64, norm="l2")
COMMENTS = templates(200, seed=0)
TOKENS = list(COMMENTS.groups.columns)


@pytest.fixture(scope="module")
def explorer():
    def embed(texts):
        return COUNTS.transform(texts).toarray()

    options = {"hidden": (8,), "steps": 30, "k": 4, "batch_size": 32, "rho": 0.3}
    model = TextClassifier(embed, TokenSwap(TOKENS, sample=2), **options).fit(COMMENTS.texts, COMMENTS.y)
    model.metadata_ = {"labels": ["fine", "toxic"], "target": "toxic"}
    return TextExplorer(model, COMMENTS.texts[:3])


def test_every_version_is_shown_the_worst_first(explorer):
    text = next(text for text in COMMENTS.texts if " gay " in text)
    said = explorer.ask({"text": text})
    assert len(said["versions"]) == len(TOKENS) - 1  # training drew two of them
    assert said["read_alike"]
    assert not explorer.ask({"text": "Nobody sings."})["read_alike"]
    versions = TokenSwap(TOKENS)([text]).values[0]
    p = explorer.model.predict_proba(versions.tolist())[:, 1]
    assert said["scores"]["toxic"] == pytest.approx(p[0])
    assert [v["moves_by"] for v in said["versions"]] == pytest.approx(sorted(np.abs(p[1:] - p[0]), reverse=True))
    worst = said["versions"][0]
    assert worst["text"] == versions[1 + int(np.abs(p[1:] - p[0]).argmax())]
    assert worst["decision"] == ("toxic" if worst["scores"]["toxic"] >= explorer.model.threshold_ else "fine")


def test_words_that_are_left_are_named_and_a_text_without_versions_has_none(explorer):
    said = explorer.ask({"text": "He bought a black hat."})
    assert said["versions"] == []
    assert {"word": "black", "why": "idiom"} in said["left"]
    with pytest.raises(TableError, match="write a text first"):
        explorer.ask({"text": " "})


def test_the_page_is_served_and_asks(explorer):
    server = serve(explorer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        assert b"A text" in urllib.request.urlopen(f"{address}/").read()
        body = json.dumps({"person": {"text": COMMENTS.texts[0]}, "model": "fair"}).encode()
        request = urllib.request.Request(f"{address}/ask", body, {"Content-Type": "application/json"})
        assert json.loads(urllib.request.urlopen(request).read())["decision"] in ("fine", "toxic")
        row = urllib.request.Request(f"{address}/row", b'{"row": 1}', {"Content-Type": "application/json"})
        assert json.loads(urllib.request.urlopen(row).read()) == {"text": COMMENTS.texts[1]}
    finally:
        server.shutdown()
        server.server_close()


def test_a_folder_without_a_text_model_is_another_kind_of_run(tmp_path):
    assert TextExplorer.of(tmp_path) is None


def test_beside_columns_the_usual_values_stand_in_for_what_is_not_said():
    def embed(texts):
        return COUNTS.transform(texts).toarray()

    table = pd.DataFrame({"says": COMMENTS.texts, "age": np.arange(200.0), "kind": ["a", "b"] * 100})
    options = {"hidden": (8,), "steps": 30, "k": 4, "batch_size": 32, "rho": 0.3, "text": "says"}
    model = TextClassifier(embed, TokenSwap(TOKENS, sample=2), **options).fit(table, COMMENTS.y)
    model.metadata_ = {"labels": ["fine", "toxic"], "text": "says"}
    asked = TextExplorer(model, []).ask({"text": "a gay man", "kind": "b"})
    assert asked["beside"]["kind"] == "b"
    row = pd.DataFrame({"says": ["a gay man"], **asked["beside"]})
    assert asked["scores"]["toxic"] == pytest.approx(model.predict_proba(row)[0, 1])
    assert len(asked["versions"]) == len(TOKENS) - 1
