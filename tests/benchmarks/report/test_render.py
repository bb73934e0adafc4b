import json
import re

import pytest

from benchmarks.report import render
from benchmarks.report.comparisons import compared


@pytest.mark.slow
def test_pages_are_up_to_date():
    outdated = [page for page, text in render.texts().items() if page.read_text() != text]
    assert not outdated, "run: python -m benchmarks.report.render"


@pytest.mark.slow
def test_pictures_are_up_to_date():
    outdated = [picture.path.name for picture in render.drawings() if not picture.is_current()]
    assert not outdated, "run: python -m benchmarks.report.render"


def test_every_comparison_has_a_short_and_a_full_page():
    text = "\n".join(page.read_text() for page in (render.DOCS / "results").glob("*.md"))
    for name in compared():
        marker = "planted" if name.startswith("planted-") else name
        assert f"<!-- results: {marker} -->" in text
        assert f"(full/{name}.md)" in text
    # These pages hold tables that were moved from short pages.
    other_pages = {"default", "given-labels", "messages", "next-set", "papers-lamp", "papers-mped"}
    other_pages |= {"joint", "registers"}
    pages = {*compared(), *render.ABLATIONS, *render.SPEEDS, *other_pages}
    assert {page.stem for page in render.FULL.glob("*.md")} == pages


def test_no_short_page_has_more_than_two_screens_of_tables():
    lengths = {
        page.name: len(re.findall(r"^\|", page.read_text(), re.MULTILINE))
        for page in (render.DOCS / "results").glob("*.md")
    }
    assert {name: length for name, length in lengths.items() if length > 45} == {}


def test_links_between_results_exist():
    pages = [render.DOCS / "results.md", *(render.DOCS / "results").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https:)([^)#]+)(?:#[\w-]+)?\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)


def test_unknown_result_is_an_error(results):
    with pytest.raises(FileNotFoundError, match="run the benchmark that writes them"):
        render.render("<!-- results: models-missing -->\n<!-- end of results -->")


def test_text_around_results_is_kept(results):
    fit = {"exponent": 1.25, "r2": 0.5}
    sweep = {"sizes": [1, 2], "wall_fit": fit, "cpu_fit": fit, "backends": ["csr", "csr"]}
    (results / "attention-cpu.json").write_text(json.dumps({"scaling": {"labels": sweep}}))
    marks = "<!-- results: attention-cpu growth -->\noutdated\n<!-- end of results -->"
    page = render.render(f"before\n{marks}\nafter")
    assert "| labels | 1, 2 | 1.25 | 0.500 | 1.25 | csr |\n<!-- end of results -->" in page
    assert "outdated" not in page
    assert page.startswith("before\n")
    assert page.endswith("after")
    assert render.render(page) == page
