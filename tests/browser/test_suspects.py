"""Tests the report of an audit in a browser, which ``make test-browser`` installs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import DESK, PHONE, check_accessibility
from tests.explanations.made import BAD_NAME, make_audit

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make test-browser")
pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("audit") / "suspects.html"
    audit, _ = make_audit()
    audit.report(path, number=30, names=[f"@row {row}" for row in range(20)])
    return path.as_uri()


def status(page: Any) -> str:
    text: str = page.locator("#status").inner_text()
    return text


def exported(page: Any) -> list[list[str]]:
    with page.expect_download() as download:
        page.locator("#export").click()
    assert download.value.suggested_filename == "decisions.csv"
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_keys_decide_and_move_on(open_file: Any, url: str) -> None:
    page = open_file(url)
    assert page.locator("#label-title").inner_text().startswith(BAD_NAME)
    assert page.locator("#export").is_disabled()
    for key in ("w", "r", "u"):
        page.keyboard.press(key)
    assert status(page) == "3 of 30 decided."
    assert page.locator("#place").text_content() == "4 of 30"
    page.keyboard.press("ArrowLeft")
    assert page.locator('[aria-pressed="true"][data-decision]').inner_text() == "? Unsure"
    page.keyboard.press("u")  # The same key again clears a decision.
    assert status(page) == "2 of 30 decided."
    assert page.locator("#place").text_content() == "3 of 30"
    page.keyboard.press("ArrowRight")
    page.locator("#previous").click()
    page.get_by_role("button", name="Record is wrong").click()
    assert [row[4] for row in exported(page)] == ["decision", "wrong", "right", "wrong"]


def test_decisions_and_notes_are_kept_and_exported(open_file: Any, url: str) -> None:
    page = open_file(url)
    page.keyboard.press("w")
    page.keyboard.press("n")
    page.keyboard.type('=1+1, "sic"')
    page.keyboard.press("Enter")
    page.keyboard.type("w")  # A letter of the note, not a decision.
    page.reload()
    assert status(page) == "1 of 30 decided."
    header, first, second = exported(page)
    assert header == ["row", "name", "label", "recorded", "decision", "note"]
    # No cell begins like a formula.
    assert first[:3] == ["3", "'@row 3", BAD_NAME]
    assert first[4:] == ["wrong", ""]
    assert second[4:] == ["", '\'=1+1, "sic"\nw']


def test_search_keeps_the_suspects_that_match(open_file: Any, url: str) -> None:
    page = open_file(url)
    page.keyboard.press("/")
    page.keyboard.type("=A")
    texts = page.locator("[data-suspect]:visible").all_inner_texts()
    assert texts
    assert all(text.startswith("=a") for text in texts)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    assert page.locator("#label-title").inner_text().startswith("=a")


def test_a_browser_without_storage_says_so(open_file: Any, url: str) -> None:
    page = open_file(url)
    failing = "throw new DOMException('no', 'QuotaExceededError')"
    page.evaluate(f"() => {{ Storage.prototype.setItem = () => {{ {failing}; }}; }}")
    page.keyboard.press("w")
    assert "QuotaExceededError" in page.locator("#stored").inner_text()
    assert [row[4] for row in exported(page)] == ["decision", "wrong"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_axe_finds_no_violation(open_file: Any, url: str, size: Any, scheme: str) -> None:
    page = open_file(url, size, color_scheme=scheme, reduced_motion="reduce")
    page.keyboard.press("w")
    check_accessibility(page, size["width"])
