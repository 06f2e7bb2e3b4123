"""What-if questions: answers are the models' own, questions from elsewhere and nonsense are refused."""

import http.client
import json
import threading

import numpy as np
import pytest

from evenhand.tables.errors import TableError
from evenhand.workflow import load_model
from evenhand.workflow.explore import LARGEST, Explorer, serve


@pytest.fixture(scope="module")
def explorer(small):
    models = {name: load_model(small.folder.path / "stages" / f"{name}.evenhand") for name in ("plain", "fair")}
    return Explorer(models, models["plain"].schema.apply(small.frame), eps=0.01)


@pytest.fixture(scope="module")
def ask(explorer):
    server = serve(explorer)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def call(method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
        text = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, text, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer, answer.read()

    yield call
    server.shutdown()
    server.server_close()


def test_the_answer_is_the_models_own(explorer, small):
    person = explorer.row(4)
    said = explorer.ask(person, "fair")
    model = explorer.models["fair"]
    p = model.predict_proba(small.frame.iloc[[4]])[0]
    assert said["scores"] == pytest.approx({"1": p[0], "2": p[1]})
    assert said["decision"] == str(model.predict(small.frame.iloc[[4]])[0])
    near = said["nearest"]
    others = small.frame[model.predict(small.frame) != model.predict(small.frame.iloc[[4]])[0]]
    assert near["row"] in others.index
    assert near["decision"] != said["decision"]


def test_the_nearest_is_the_nearest(explorer):
    """By hand: the smallest d_X among those who are decided otherwise."""
    model = explorer.models["fair"]
    x = model.pipeline[0].transform(explorer.people[list(model.columns)]).to_numpy(dtype=float)
    q = model.fair_metric.directions.numpy().astype(float)
    moved = x - x[4]
    cost = np.square(moved - moved @ q @ q.T).sum(1)
    codes = model.codes(explorer.people)
    cost[codes == codes[4]] = np.inf
    said = explorer.ask(explorer.row(4), "fair")["nearest"]
    assert said["d_x"] == pytest.approx(cost.min(), rel=1e-4, abs=1e-9)
    assert cost[said["row"]] == pytest.approx(cost.min(), rel=1e-4, abs=1e-9)


def test_the_worst_counterpart_is_similar(explorer):
    said = explorer.ask(explorer.row(4), "plain")["worst"]
    assert said["d_x"] <= 0.01
    assert "sex" in said["changed"]


def test_numbers_are_shown_as_they_were_written(explorer, small):
    assert explorer.row(0)["pay"] == pytest.approx(small.frame["pay"][0], nan_ok=True)
    assert all(len(str(explorer.row(i)["pay"])) <= 4 for i in range(20))  # 30.1, or None
    form = explorer.form()
    assert list(form["models"]) == ["fair", "plain"]
    assert form["columns"]["town"]["choices"] == ["a", "b", "c"]
    assert form["labels"] == ["1", "2"]


def test_over_http(ask, explorer):
    answer, page = ask("GET", "/")
    assert answer.status == 200
    assert b"What if?" in page
    assert "default-src 'none'" in answer.getheader("Content-Security-Policy")
    answer, body = ask("POST", "/ask", {"person": explorer.row(4), "model": "fair"})
    assert json.loads(body)["decision"] == explorer.ask(explorer.row(4), "fair")["decision"]
    assert ask("GET", "/etc/passwd")[0].status == 404
    assert ask("POST", "/elsewhere", {})[0].status == 404


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/ask", {"person": {}, "model": "fair"}, {"Host": "evil.example"}),  # another site's page must not ask
        ("/ask", {"person": {}, "model": "fair"}, {"Content-Type": "text/plain"}),
        ("/ask", b" " * (LARGEST + 1), {}),
        ("/ask", b"{", {}),
        ("/ask", {"person": [1], "model": "fair"}, {}),
        ("/ask", {"person": {"pay": "much"}, "model": "fair"}, {}),
        ("/ask", {"person": {}, "model": "../fair"}, {}),
        ("/row", {"row": 10**9}, {}),
        ("/row", {"row": None}, {}),
    ],
)
def test_nonsense_is_refused(ask, path, body, headers):
    assert ask("POST", path, body, **headers)[0].status == 400


def test_folders_that_are_no_run(tmp_path):
    with pytest.raises(TableError, match="is not a folder"):
        Explorer.of(tmp_path / "no")
    for text in ("[]", '{"settings": {"eps_certified": "near"}}', '{"settings": {"eps_certified": -1}}'):
        (tmp_path / "metrics.json").write_text(text)
        with pytest.raises(TableError, match=r"metrics\.json"):
            Explorer.of(tmp_path)
