"""The console in a real browser: Debian's Chromium, without a window. `CROWN_SHOTS=directory` keeps the screenshots."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import crown
from tests.support.browser import WHY_NOT, Browser, browser

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

SCHEMA = """
CREATE TABLE tag (id BIGINT PRIMARY KEY, name STRING);
CREATE TABLE message_tag (message BIGINT, tag BIGINT);
CREATE TABLE message (id BIGINT PRIMARY KEY, creator BIGINT, length INT);
CREATE TABLE knows (p1 BIGINT, p2 BIGINT)"""
SQL = """\
SELECT t.name, m.id, m.length
FROM tag t
JOIN message_tag mt ON mt.tag = t.id
JOIN message m ON m.id = mt.message
WHERE m.length > 3 AND t.name <> '<script>alert(1)</script>'
  AND EXISTS (SELECT 1 FROM knows k WHERE k.p1 = m.creator)"""


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


def shot(page: Browser, name: str) -> None:
    if directory := os.environ.get("CROWN_SHOTS"):
        page.screenshot(Path(directory) / f"{name}.png")


@contextmanager
def changing() -> Iterator[crown.View]:
    """A view whose tables change while it is looked at, with a key that is far more frequent than the others."""
    view = crown.View(SQL, SCHEMA, on_invalid="quarantine")
    view.insert("tag", [(n, f"tag {n}") for n in range(50)] + [(50, "<img src=x onerror=alert(1)>")])
    view.delete("knows", [(1, 1)])
    stop = threading.Event()

    def work() -> None:
        numbers, first = random.Random(3), 0
        while not stop.wait(0.02):
            view.insert("message", [(first + n, int(numbers.paretovariate(1)) % 500, n % 90) for n in range(50)])
            view.insert("message_tag", [(first + n, numbers.randrange(51)) for n in range(50)])
            view.insert("knows", [(int(numbers.paretovariate(0.7)) % 500, first + n) for n in range(20)])
            first += 50

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield view
    finally:
        stop.set()
        thread.join()


def opened(page: Browser, url: str, frames: int = 3) -> None:
    page.open(url)
    page.wait_for(f"Number(document.body.dataset.frames || 0) >= {frames}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 500])
def test_a_running_view_is_shown_alive(page: Browser, width: int, scheme: str) -> None:
    page.resize(width, 900)
    page.prefer(scheme)
    with changing() as view, view.console(name="messages by tag", budget=50e6) as console:
        opened(page, console.url, 4)
        shot(page, f"embedded-{width}-{scheme}")
        assert page.overlaps() == []
        assert page.errors() == []
        text = page.text()
        for words in ("messages by tag", "Updates per second", "of 50.0 MB", "Where the work goes", "Hot keys"):
            assert words in text
        figures = page.run("return [...document.querySelectorAll('#tree .figures')].map((text) => text.textContent)")
        assert figures and all("rows" in figure for figure in figures)
        page.wait_for("document.querySelectorAll('#tree .edge.busy').length > 0")
        page.wait_for(
            "[...document.querySelectorAll('#tree .rate')].some((text) => /[1-9].*s$/.test(text.textContent))"
        )
        ground = page.run("return getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(11, 15, 19)") == (scheme == "dark")


def test_rows_are_paged_and_searched(page: Browser) -> None:
    page.resize(1280, 900)
    view = crown.View("SELECT x, name FROM r", "CREATE TABLE r (x INT PRIMARY KEY, name STRING)")
    view.insert("r", [(n, f"name {n}") for n in range(55)])
    with view.console() as console:
        opened(page, console.url, 1)
        rows = "document.querySelectorAll('#rows-body tbody tr').length"
        page.wait_for(f"{rows} === 20")
        page.click("#rows-next")
        page.wait_for("document.querySelector('#rows-note').textContent.startsWith('Rows 21 to 40')")
        page.click("#rows-next")
        page.wait_for(f"{rows} === 15 && document.querySelector('#rows-next').disabled")
        page.run(
            "const field = document.querySelector('#rows-search'); field.value = arguments[0];"
            "field.dispatchEvent(new Event('input'))",
            "name 42",
        )
        page.wait_for(f"{rows} === 1")
        assert "name 42" in page.text()


def test_changes_rejects_and_the_query_have_their_tabs(page: Browser) -> None:
    page.resize(1280, 900)
    page.prefer("light")
    with changing() as view, view.console(name="messages by tag") as console:
        opened(page, console.url)
        page.click("#tab-deltas")
        page.wait_for("document.querySelectorAll('#tab tr.insert').length > 0")
        shot(page, "embedded-changes")
        page.click("#tab-rejected")
        page.wait_for("document.querySelector('#tab').innerText.includes('CROWN-CHANGE-ABSENT')")
        shot(page, "embedded-rejected")
        page.click("#tab-query")
        assert "<script>alert(1)</script>" in page.text()
        shot(page, "embedded-query")
        assert page.errors() == []


def test_an_empty_view_says_so(page: Browser) -> None:
    view = crown.View(SQL, SCHEMA)
    with view.console() as console:
        opened(page, console.url, 2)
        page.wait_for("document.body.innerText.includes('The view is empty')")
        shot(page, "embedded-empty")
        page.click("#tab-deltas")
        assert "No changes yet" in page.text()
        page.click("#tab-rejected")
        assert "No change was rejected" in page.text()
        assert page.errors() == []


def test_a_wide_query_with_long_names_fits(page: Browser) -> None:
    columns = ", ".join(f"a_rather_long_column_name_{n} BIGINT" for n in range(12))
    tables = ";".join(f"CREATE TABLE a_rather_long_table_name_{n} (k BIGINT, {columns})" for n in range(7))
    joins = " ".join(f"JOIN a_rather_long_table_name_{n} t{n} ON t{n}.k = t0.k" for n in range(1, 7))
    outputs = ", ".join(f"t{n}.a_rather_long_column_name_{n} AS output_{n}" for n in range(7))
    view = crown.View(f"SELECT {outputs} FROM a_rather_long_table_name_0 t0 {joins}", tables)
    view.insert("a_rather_long_table_name_0", [tuple(range(13))])
    for width in (1280, 500):
        page.resize(width, 900)
        with view.console(name="a view with quite a long name that must be cut somewhere " * 2) as console:
            opened(page, console.url, 2)
            shot(page, f"embedded-wide-{width}")
            assert [found for found in page.overlaps() if not found.startswith("cut: a view")] == []


def test_the_page_says_when_the_console_is_closed(page: Browser) -> None:
    console = crown.View(SQL, SCHEMA).console()
    opened(page, console.url, 1)
    console.close()
    page.wait_for("document.querySelector('#status').className.includes('ended')")
    time.sleep(0.1)
    assert "closed" in page.text()
