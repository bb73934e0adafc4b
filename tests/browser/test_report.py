"""Tests the report of an explanation in a browser, which ``make test-browser`` installs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.conftest import DESK, PHONE, check_accessibility
from tests.explanations.made import BAD_NAME, LABELS, SAMPLES, make_explanation

pytest.importorskip("jinja2")
pytest.importorskip("rdkit")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns the URLs of three reports: "all" (kinds of samples), "no-messages" and "given"."""
    folder = tmp_path_factory.mktemp("reports")
    make_explanation().to_html(folder / "all.html")
    make_explanation("row", messages=False).to_html(folder / "no-messages.html")
    explanation = make_explanation("row")
    explanation[0].given = np.array([np.nan, np.nan, 1.0, np.nan])
    explanation.to_html(folder / "given.html")
    return {path.stem: path.as_uri() for path in folder.iterdir()}


@pytest.fixture
def open_page(open_file: Any, reports: dict[str, str]) -> Any:
    """Returns a function that opens a report."""

    def open_report(name: str = "all", size: dict[str, int] = DESK, **options: Any) -> Any:
        return open_file(reports[name], size, **options)

    return open_report


def label_button(page: Any, name: str) -> Any:
    return page.locator(f'[data-label="{LABELS.index(name)}"]')


def shades(page: Any) -> list[tuple[str, str]]:
    """Returns the strength and the colour of the shade of each component in the visible drawing."""
    values = ", ".join(f"e.style.getPropertyValue('{name}')" for name in ("--w", "--hue"))
    components = page.locator(".drawing:not([hidden]) [data-component]")
    return list(map(tuple, components.evaluate_all(f"es => es.map(e => [{values}])")))


@pytest.mark.parametrize("sample", range(len(SAMPLES)), ids=SAMPLES)
def test_a_click_on_a_label_shades_its_components(open_page: Any, sample: int) -> None:
    page = open_page()
    page.locator(f'[data-sample="{sample}"]').click()
    label_button(page, "skin").click()
    skin = shades(page)
    assert max(float(strength) for strength, _ in skin) == 1.0
    label_button(page, "heart").click()
    assert shades(page) != skin
    assert page.locator("#label-title").inner_text() == "heart"
    assert page.locator('[data-label][aria-pressed="true"]').count() == 1


def test_given_labels_are_marked_as_given(open_page: Any) -> None:
    page = open_page("given")
    label_button(page, "heart").click()
    assert "predicted (threshold" in page.locator("#verdict").inner_text()
    assert "(given)" not in label_button(page, "heart").inner_text()
    label_button(page, "skin").click()
    verdict = page.locator("#verdict").inner_text()
    assert verdict.startswith("given to the model as present, not predicted.")
    assert "skin (given)" in label_button(page, "skin").inner_text()


def test_shades_are_those_of_the_method(open_page: Any) -> None:
    page = open_page()
    label_button(page, "skin").click()
    first_shades, first_row = shades(page), page.locator("#components tbody tr:first-child")
    scores = first_row.text_content()
    page.get_by_role("radio", name="attention of LaMP").check()
    assert shades(page) != first_shades
    assert {hue for _, hue in shades(page)} == {"var(--raise)"}
    subtitle = page.locator("#shaded")
    assert "the part of LaMP" in subtitle.inner_text()
    page.get_by_role("radio", name="occlusion").check()
    assert "the part of" not in subtitle.inner_text()
    page.get_by_role("radio", name="attention of LaMP").check()
    assert first_row.text_content() != scores


def test_the_slider_shows_readouts_of_states(open_page: Any) -> None:
    page, explanation = open_page(), make_explanation()
    page.locator('[data-sample="0"]').click()
    numbers = page.locator("[data-probability]")
    order = (-explanation[0].probability).argsort()
    for step, values in enumerate([*explanation[0].states, explanation[0].probability]):
        page.locator("#step").fill(str(step))
        probabilities = list(map(float, numbers.all_inner_texts()))
        assert probabilities == pytest.approx(values[order], abs=0.0051)
    assert page.locator("#step-name").inner_text() == "final"


def test_search_keeps_the_labels_that_match(open_page: Any) -> None:
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("SK")
    assert page.locator("[data-label]:visible").all_inner_texts()[0].startswith("skin")
    assert page.locator("[data-label]:visible").count() == 1


def test_keys_move_among_labels_and_samples(open_page: Any) -> None:
    page = open_page()
    chosen = page.locator('[data-label][aria-pressed="true"]')
    first = chosen.get_attribute("data-label")
    page.keyboard.press("ArrowDown")
    assert chosen.get_attribute("data-label") != first
    page.keyboard.press("ArrowUp")
    assert chosen.get_attribute("data-label") == first
    page.keyboard.press("]")
    assert page.locator("#sample-title").inner_text() == "the <em>text</em>"
    page.keyboard.press("[")
    assert page.locator('[aria-current="true"]').get_attribute("data-sample") == "0"


EFFECTS = {
    "by its messages": lambda sample: sample.label_effects,
    "if it is known to apply": lambda sample: sample.clamped[:, 1],
    "if it is known not to": lambda sample: sample.clamped[:, 0],
}


@pytest.mark.parametrize("measure", EFFECTS)
def test_a_click_on_the_largest_effect_chooses_its_label(open_page: Any, measure: str) -> None:
    page, effects = open_page(), EFFECTS[measure](make_explanation()[0])[:, 2]
    label_button(page, "skin").click()
    page.get_by_role("radio", name=measure, exact=True).check()
    largest = max((0, 1, 3), key=lambda j: abs(effects[j]))
    first = page.locator(f"{'#raised' if effects[largest] > 0 else '#lowered'} button").first
    assert first.inner_text().split("\n")[-1] == f"{effects[largest]:+.2f}".replace("-", "−")
    assert page.locator("#around .tip").count() == 3
    first.click()
    assert page.locator("#label-title").inner_text() == LABELS[largest]


def test_a_name_with_markup_is_text(open_page: Any) -> None:
    page = open_page()
    label_button(page, BAD_NAME).click()
    assert page.locator("#label-title").inner_text() == BAD_NAME
    assert page.title() == "Why these labels"
    assert page.locator("script").count() == 2


def test_a_model_without_messages_says_so(open_page: Any) -> None:
    page = open_page("no-messages")
    assert page.locator("#no-effects").is_visible()
    for selector in ("#effects", "#settle", "#settling", "#parts", ".samples"):
        assert page.locator(selector).is_hidden(), selector


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", ["all", "no-messages"])
def test_axe_finds_no_violation(open_page: Any, name: str, size: Any, scheme: str) -> None:
    page = open_page(name, size, color_scheme=scheme, reduced_motion="reduce")
    show_all = """() => {
        document.querySelectorAll('details').forEach(element => { element.open = true });
        document.querySelectorAll('[data-drawing]').forEach(element => { element.hidden = false });
    }"""
    page.evaluate(show_all)
    check_accessibility(page, size["width"])


def test_a_page_opens_within_two_seconds(browser: Any, tmp_path: Path) -> None:
    make_explanation(*["molecule"] * 20).to_html(tmp_path / "twenty.html")
    page = browser.new_page()
    page.goto((tmp_path / "twenty.html").as_uri())
    assert page.evaluate("performance.getEntriesByType('navigation')[0].duration") < 2000


def test_the_theme_can_be_changed(open_page: Any) -> None:
    page = open_page(color_scheme="dark")
    color = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(color)
    page.get_by_role("button", name="Light", exact=True).click()
    assert page.evaluate(color) != dark


@pytest.mark.skipif("TG_MLC_PICTURES" not in os.environ, reason="TG_MLC_PICTURES is not set")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_screenshots_are_saved(open_page: Any, size: dict[str, int], scheme: str) -> None:
    page = open_page(size=size, color_scheme=scheme)
    path = Path(os.environ["TG_MLC_PICTURES"]) / f"{size['width']}-{scheme}.png"
    page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 0
