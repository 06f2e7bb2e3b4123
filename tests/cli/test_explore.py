"""evenhand explore in a real browser: changing a column changes score, decision and counterparts; nothing leaves."""

import json
import shutil
import threading

import pytest

from evenhand.tables import read_table
from evenhand.workflow.explore import Explorer, serve

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def explorer(trained):
    folder, _ = trained
    return Explorer.of(folder / "run", read_table(folder / "people.csv"))


@pytest.fixture(scope="module")
def address(explorer):
    server = serve(explorer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def page(address):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine; install it to test the page in a browser")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=180_000)
        page = browser.new_page(viewport={"width": 400, "height": 900})
        page.set_default_timeout(120_000)
        page.log, page.requests = [], []
        page.on("console", lambda m: page.log.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: page.log.append(str(e)))
        page.on("request", lambda r: page.requests.append(r.url))
        page.goto(address)
        ready(page)
        yield page
        browser.close()


def ready(page, asked=1):
    """Wait for the answers to question number ``asked``; no script is evaluated: the page's policy forbids it."""
    page.wait_for_selector(f"#answers[data-state=ready][data-asked='{asked}']")


def asked(page):
    return int(page.locator("#answers").get_attribute("data-asked"))


def card(page, model):
    return page.locator(f"#model-{model}")


def changed(page, column, value):
    """The texts of the fair and the plain card after a column was changed."""
    before = asked(page)
    field = page.locator(f"[data-column='{column}']")
    if column == "sex":
        field.select_option(value)
    else:
        field.fill(value)
        field.press("Tab")
    ready(page, before + 1)
    return [card(page, model).inner_text() for model in ("fair", "plain")]


def test_what_if(page, explorer, address):
    assert page.locator("h1").inner_text() == "What if? approved"
    female = changed(page, "sex", "female")
    male = changed(page, "sex", "male")
    assert female[0].split("Nearest")[0] == male[0].split("Nearest")[0]  # the fair model does not see sex
    assert "Does not see sex" in male[0]
    assert female[1] != male[1]
    scores = [card(page, "fair").locator(".scores").inner_text()]
    for pay in ("5", "60"):
        changed(page, "pay", pay)
        scores.append(card(page, "fair").locator(".scores").inner_text())
    assert len(set(scores)) == 3
    assert "Similar person treated most differently" in card(page, "fair").inner_text()
    assert page.log == []
    assert {url.removeprefix(address).split("/")[0] for url in page.requests} <= {"", "form", "ask", "row"}


def test_a_row_of_the_table_and_its_counterpart(page, explorer):
    decisions = explorer.models["fair"].predict(explorer.people)
    rows = [int((decisions == label).argmax()) for label in explorer.models["fair"].schema.classes]
    seen = []
    for row, label in zip(rows, explorer.models["fair"].schema.labels):
        before = asked(page)
        page.locator("#row").fill(str(row))
        page.locator("#take").click()
        ready(page, before + 1)
        assert float(page.locator("[data-column='pay']").input_value()) == explorer.row(row)["pay"]
        assert card(page, "fair").locator(".decision").inner_text() == label
        nearest = card(page, "fair").locator("p", has_text="Nearest person decided otherwise")
        assert nearest.locator(".other").count() == 1  # somebody who is decided otherwise, and marked
        seen.append(nearest.inner_text())
    assert seen[0] != seen[1]
    for model in explorer.models:  # nothing is cut off at 400 px
        box = card(page, model).bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 400


def test_the_command(trained, invoke, monkeypatch):
    folder, _ = trained

    def interrupted(self, poll_interval=0.5):
        raise KeyboardInterrupt

    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupted)
    done = invoke("explore", folder / "run", folder / "people.csv", "--port", "0", "--json")
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["address"].startswith("http://127.0.0.1:")
    assert set(said["models"]) >= {"plain", "blind", "project", "fair"}
    assert "is not a folder" in invoke("explore", folder / "nowhere").stderr
