import pytest

from tg_mlc.datasets.card import DatasetCard
from tools import render_cards


def test_the_page_is_up_to_date():
    text = render_cards.PAGE.read_text(encoding="utf-8")
    assert render_cards.render(text) == text, "run: python tools/render_cards.py"


def test_text_outside_of_the_marks_is_kept():
    page = render_cards.render("before\n<!-- cards -->\nBEFORE\n<!-- end of cards -->\nafter")
    assert page.startswith("before\n<!-- cards -->\n| data set |")
    assert page.endswith("<!-- end of cards -->\nafter")
    assert "BEFORE" not in page
    assert render_cards.render(page) == page
    with pytest.raises(ValueError, match="Expected the marks"):
        render_cards.render("nothing")


def test_a_row_has_the_fields_of_its_card():
    facts = {"name": "toy", "title": "two samples, as words (of mine)", "licence": "MIT"}
    counts = {"samples": 2000, "labels": 3, "num_inputs": 40, "never_positive": 1, "missing": 0.25}
    card = DatasetCard(**facts, **counts, kind="bag")
    expected = "| toy * | two samples | bag, 40 | 2,000 | 3 (1 never) | 25.0% | MIT |"
    assert render_cards.row(card) == expected
