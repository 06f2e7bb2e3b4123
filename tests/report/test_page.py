"""The report in a real browser: it renders, works by keyboard, loads nothing, and runs nothing from the data."""

import re
import shutil
from pathlib import Path

import pytest

from evenhand.report import render
from evenhand.workflow.folder import Folder
from evenhand.workflow.output import read_findings

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def html(run_folder, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(read_findings(Folder(run_folder))), "utf-8")
    return path


def test_one_small_file_without_links(html):
    text = html.read_text("utf-8")
    assert html.stat().st_size < 6_000_000
    page = re.sub(r"<script>.*?</script>", "", text, flags=re.S)  # the inlined runtime names addresses it never loads
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert "<script>window.hacked" not in text
    assert "&lt;script&gt;window.hacked=1" in text


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine; install it to test the report in a browser")
    with playwright.sync_playwright() as p:
        yield_browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=180_000)
        yield yield_browser
        yield_browser.close()


@pytest.fixture
def opened(browser, html):
    """Opens the report with a given context; gathers console messages, errors and requests."""
    contexts = []

    def open_page(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.log, page.requests = [], []
        page.on("console", lambda m: page.log.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: page.log.append(str(e)))
        page.on("request", lambda r: page.requests.append(r.url))
        page.goto(html.as_uri())
        page.wait_for_function("document.documentElement.dataset.charts === 'ready'")
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_in_the_browser(opened, html):
    page = opened(viewport={"width": 1200, "height": 900})
    assert page.log == []
    assert page.requests == [html.as_uri()]
    assert page.evaluate("window.hacked") is None
    for name in ("tradeoff", "distribution", "groups", "calibration", "directions"):
        assert page.locator(f"#chart-{name} svg").count() == 1, name
        assert page.locator(f"#chart-{name} svg").get_attribute("aria-label")
        assert page.locator(f"#chart-{name} svg path").count() > 3, name

    # sort: by number down, up; by text
    rows = "#people-boosted_blind-searched tbody tr:visible th"
    change = page.locator("#people-boosted_blind-searched thead button", has_text="Change")
    change.click()
    down = page.locator(rows).all_inner_texts()
    assert down[0] == "0"
    change.click()
    assert page.locator(rows).all_inner_texts() == down[::-1]
    assert page.locator("#people-boosted_blind-searched th[aria-sort=ascending]").count() == 1

    # search, and the other model
    page.fill("#search", "male work3")
    shown = page.locator(rows).count()
    assert 0 < shown < 40
    assert page.locator("#count").inner_text() == f"{shown} of 40 people"
    page.locator(".tabs button", has_text="Fair").first.click()
    assert page.locator("#people-boosted_blind-searched").is_hidden()
    assert page.locator("#people-fair-searched").is_visible()
    page.fill("#search", "nobody is called this")
    assert page.locator("#count").inner_text() == "0 of 40 people"

    # the price of another threshold
    page.locator("#threshold").fill("8")
    assert page.locator("#threshold-value").inner_text() == "0.90"
    assert "10.0%" in page.locator("#threshold-numbers").inner_text()

    # hover on the trade-off shows the numbers
    page.locator("#chart-tradeoff svg path[aria-roledescription=point]").first.hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "balanced accuracy" in page.locator("#vg-tooltip-element").inner_text()


def test_narrow_and_dark(opened):
    page = opened(viewport={"width": 400, "height": 800}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    paper, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map(c => "
        "c.match(/[0-9]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0))"
    )
    assert paper < 150 < 500 < ink
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()
    assert page.log == []


def test_by_keyboard_and_for_screen_readers(opened):
    page = opened(viewport={"width": 1000, "height": 800})
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator("html[lang]").count() == 1
    assert page.locator("h1").count() == 1
    assert page.evaluate(
        "[...document.querySelectorAll('section')]"
        ".every(s => document.getElementById(s.getAttribute('aria-labelledby')))"
    )
    assert page.evaluate("[...document.querySelectorAll('svg[role=img]')].every(s => s.getAttribute('aria-label'))")
    assert page.evaluate("[...document.querySelectorAll('thead th')].every(t => t.getAttribute('scope') === 'col')")
    page.locator("#people-boosted_blind-searched thead button").nth(1).focus()
    page.keyboard.press("Enter")
    assert page.locator("#people-boosted_blind-searched th[aria-sort]").count() == 1
