import json
import shutil
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

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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


def test_every_version_is_shown_the_worst_first(explorer, monkeypatch):
    text = next(text for text in COMMENTS.texts if " gay " in text)
    assert explorer.ask({"text": text})["read_alike"]
    assert not explorer.ask({"text": "Nobody sings."})["read_alike"]
    monkeypatch.setattr(explorer.model.features_, "alike", None)  # read alike, none of them moves
    said = explorer.ask({"text": text})
    assert len(said["versions"]) == len(TOKENS) - 1  # training drew two of them
    versions = TokenSwap(TOKENS)([text]).values[0]
    p = explorer.model.predict_proba(versions.tolist())[:, 1]
    assert said["scores"]["toxic"] == pytest.approx(p[0])
    assert [v["moves_by"] for v in said["versions"]] == pytest.approx(sorted(np.abs(p[1:] - p[0]), reverse=True))
    worst = said["versions"][0]
    assert worst["text"] == versions[1 + int(np.abs(p[1:] - p[0]).argmax())]
    assert worst["decision"] == ("toxic" if worst["scores"]["toxic"] >= explorer.model.threshold_ else "fine")


def test_of_two_classes_the_page_knows_which_is_flagged_and_from_where_on(explorer, monkeypatch):
    """By its label: a page sorts labels that are numbers, whichever comes second."""
    assert explorer.form()["flagged"] == {"label": "toxic", "threshold": explorer.model.threshold_}
    monkeypatch.setattr(explorer.model, "metadata_", {"labels": ["1", "0"]})
    assert explorer.form()["flagged"]["label"] == "0"
    monkeypatch.setattr(explorer.model, "metadata_", {"labels": ["a", "b", "c"]})
    assert explorer.form()["flagged"] is None


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


def test_a_long_text_is_said_as_predict_does_and_its_versions_are_compared_with_the_passage(explorer):
    swaps, explorer.model.swaps = explorer.model.swaps, TokenSwap(TOKENS, passage=6)
    alike, explorer.model.features_.alike = explorer.model.features_.alike, None
    try:
        text = "I met a gay man today" + " and then the day was bad and I hate it" * 4
        said = explorer.ask({"text": text})
        p = explorer.model.predict_proba([text, said["passage"]["text"], said["versions"][0]["text"]])[:, 1]
    finally:
        explorer.model.swaps, explorer.model.features_.alike = swaps, alike
    assert [said["scores"]["toxic"], said["passage"]["scores"]["toxic"]] == pytest.approx(p[:2])
    assert said["text"] == text
    assert len(said["passage"]["text"]) < len(text)
    assert said["versions"][0]["moves_by"] == pytest.approx(abs(p[2] - p[1]))
    assert said["versions"][0]["words"] in said["versions"][0]["text"]
    assert len(said["versions"][0]["words"].split()) < 3
    assert explorer.ask({"text": "a gay man"})["passage"] is None


@pytest.fixture(scope="module")
def beside():
    table = pd.DataFrame({"says": COMMENTS.texts, "age": np.arange(200.0), "kind": ["a", "b"] * 100})
    options = {"hidden": (8,), "steps": 30, "k": 4, "batch_size": 32, "rho": 0.3, "text": "says"}
    model = TextClassifier(lambda texts: COUNTS.transform(texts).toarray(), TokenSwap(TOKENS, sample=2), **options)
    model.fit(table, COMMENTS.y)
    model.metadata_ = {"labels": ["fine", "toxic"], "text": "says"}
    clean = table[["age", "kind"]].assign(age=table["age"].astype(np.float32) + np.float32(0.1))
    clean.loc[1, "age"] = np.nan
    return TextExplorer(model, COMMENTS.texts, clean)


def test_columns_beside_the_text_can_be_filled_in_and_a_row_chosen(beside):
    columns = beside.form()["columns"]
    assert columns["kind"] == {"kind": "choice", "choices": ["a", "b"], "start": "a"}
    assert columns["age"]["kind"] == "number"
    assert columns["age"]["low"] < columns["age"]["start"] < columns["age"]["high"]
    assert beside.row(2) == {"text": COMMENTS.texts[2], "age": 2.1, "kind": "a"}
    assert beside.row(1) == {"text": COMMENTS.texts[1], "kind": "b"}  # a missing number is the usual one
    said = beside.ask(beside.row(2))
    row = pd.DataFrame({"says": [COMMENTS.texts[2]], "age": [2.1], "kind": ["a"]})
    assert said["scores"]["toxic"] == pytest.approx(beside.model.predict_proba(row)[0, 1])
    assert said["beside"] == {"age": 2.1, "kind": "a"}
    assert beside.ask({"text": "x", "age": "", "kind": "b"})["beside"]["age"] == columns["age"]["start"]
    with pytest.raises(TableError, match="'age' is a number; write one"):
        beside.ask({"text": "x", "age": "old"})
    with pytest.raises(TableError, match="the table has rows 0 to 199"):
        beside.row(200)


def test_a_table_without_the_texts_is_refused(beside):
    with pytest.raises(TableError, match="reads its texts from the column 'says'; the table has a, b"):
        TextExplorer.of(beside.model, pd.DataFrame({"a": ["x"], "b": [1]}))
    assert TextExplorer.of(beside.model, pd.DataFrame({"other": ["x", None]})).texts == ["x", ""]
    assert TextExplorer.of(beside.model).texts == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_on_a_narrow_screen_nothing_is_cut_off_and_no_word_broken(explorer, monkeypatch):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    monkeypatch.setattr(explorer.model, "metadata_", {"labels": ["acceptable", "unacceptable"], "target": "toxic"})
    server = serve(explorer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with playwright.sync_playwright() as p:
            browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=180_000)
            page = browser.new_page(viewport={"width": 400, "height": 900})
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
            page.locator("#text").fill("My gay neighbour sings.")
            page.locator("#ask").click()
            page.wait_for_selector("#answer table")
            said = page.locator("#answer").inner_text()
            box = page.locator("#answer table").bounding_box()
            heights = [
                page.locator("tr", has_text=word).first.bounding_box()["height"] for word in ("blind", "straight")
            ]
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
    of = explorer.ask({"text": "My gay neighbour sings."})["scores"]["unacceptable"]
    assert f"probability of unacceptable: {of:.2f}; from {explorer.model.threshold_:.2f} on the decision is un" in said
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 400
    assert max(heights) < 40  # one line each
