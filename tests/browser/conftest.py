"""A browser for pages, which ``make test-browser`` installs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REASON = "Playwright is not installed: make test-browser"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason=REASON)
    with playwright.sync_playwright() as driver:
        path = next(filter(None, map(shutil.which, BROWSERS)), driver.chromium.executable_path)
        if not Path(path).exists():
            pytest.skip(f"none of the browsers {BROWSERS} is installed: make test-browser")
        chromium = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_file(browser: Any) -> Iterator[Any]:
    """Returns a function that opens a file, which must not log, fail or load another file."""
    pages, problems = [], []

    def open_file(url: str, size: dict[str, int] = DESK, **options: Any) -> Any:
        page = browser.new_page(viewport=size, **options)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.extend([request.url] * (request.url != url)))
        page.goto(url)
        pages.append(page)
        return page

    yield open_file
    for page in pages:
        page.close()
    assert not problems


def check_accessibility(page: Any, width: int) -> None:
    """Checks that a page is not wider than the window, and that axe finds no violation."""
    reason = "axe is not installed: make test-browser"
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=reason)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    results = axe.Axe().run(page)
    assert not results.response["violations"], results.generate_report()
