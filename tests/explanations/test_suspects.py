from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from scipy.special import expit

from tests.explanations.made import AUDITED, BAD_NAME, make_audit
from tests.explanations.test_report import Page
from tg_mlc.explanations import suspects

pytest.importorskip("jinja2")
pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def audited():
    return make_audit()


@pytest.fixture(scope="module")
def text(audited):
    return audited[0].report(explained=3)


def test_the_page_shows_the_suspects_of_the_audit(audited, text):
    audit, texts = audited
    data, cells, evidence = Page(text).data, audit.cells, audit.evidence
    assert [suspect["label"] for suspect in data["suspects"]] == cells["label"].tolist()
    assert [suspect["row"] for suspect in data["suspects"]] == cells["row"].tolist()
    first = data["suspects"][0]
    assert (first["row"], first["label"], first["title"]) == (3, BAD_NAME, "Row 3")
    assert first["probability"] == pytest.approx(cells["probability"][0], rel=0.01)
    present = expit(evidence.base_logits[3])
    recorded = evidence.y[3]
    by_inputs = present[1] if recorded[1] == 1 else 1 - present[1]
    assert first["inputs"] == pytest.approx(by_inputs, rel=0.01)
    # The label that it repeats speaks against it.
    label, value, probability, effect = first["voices"][0]
    assert (label, value) == ("=a", recorded[0])
    assert probability == pytest.approx(present[0], rel=0.01)
    assert np.sign(effect) == (1 if recorded[1] == 0 else -1)
    drawings = re.findall(r'data-drawing="\d+" hidden>(.*?)</div></div>', text, re.DOTALL)
    words = [re.sub("<[^>]*>", "", drawing) for drawing in drawings]
    assert unescape(words[first["drawing"]]).strip() == texts[3]


def test_names_and_texts_are_escaped_and_nothing_is_loaded(audited):
    text = audited[0].report(title="<i>A</i>", names=["<em>"] * 20)
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.elements) == 2
    assert not {"b", "em", "img", "link", "a"} & {tag for tag, _ in page.elements}
    assert BAD_NAME not in text
    assert page.data["suspects"][0]["name"] == "<em>"
    assert not re.search(r"https?:|url\((?!#)|@import|fetch\(|XMLHttpRequest|import\(", text)
    policy = [attributes.get("content") or "" for tag, attributes in page.elements if tag == "meta"]
    assert any(content.startswith("default-src 'none'; ") for content in policy)


def test_the_numbers_of_suspects_and_explained_inputs_are_bounded(audited, text):
    audit = audited[0]
    scored = [suspect["scores"] is not None for suspect in Page(text).data["suspects"]]
    assert scored == [True] * 3 + [False] * (len(scored) - 3)
    some = audit.report(number=5, explained=None)
    assert [suspect["scores"] for suspect in Page(some).data["suspects"]] == [None] * 5
    assert "The 5 most suspicious of 59 recorded labels" in some
    assert "are shaded" not in some


def test_the_word_that_tells_a_label_has_the_largest_score(audited, text):
    suspect, texts = Page(text).data["suspects"][0], audited[1]
    assert np.abs(suspect["scores"]).argmax() == 0  # "alpha" or "beta"
    assert np.sign(suspect["scores"][0]) == (1 if "alpha" in texts[3] else -1)


def test_a_model_that_was_fitted_to_the_records_is_not_explained(audited):
    audit = audited[0]
    text = replace(audit, evidence=replace(audit.evidence, is_fitted=True)).report()
    assert {suspect["scores"] for suspect in Page(text).data["suspects"]} == {None}
    assert "Inputs are not shaded" in text


def test_rows_and_names_of_the_caller_are_shown(audited, tmp_path):
    audit = audited[0]
    rows, names = range(100, 120), [f"drug {number}" for number in range(20)]
    text = audit.report(tmp_path / "page.html", number=2, explained=None, rows=rows, names=names)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text
    first = Page(text).data["suspects"][0]
    assert (first["row"], first["name"], first["title"]) == (103, "drug 3", "Row 103, drug 3")
    keys = {Page(audit.report(number=n, explained=None)).data["key"] for n in (1, 2)}
    assert len(keys) == 1  # Decisions about one table stay, whatever the page shows of it.


def test_a_wide_table_shows_the_columns_of_the_largest_scores(monkeypatch):
    monkeypatch.setattr(suspects, "MAX_COMPONENTS", 2)
    from tg_mlc.inputs.vectors import Vectors

    class Source:
        label_names = AUDITED

        def __getitem__(self, rows):
            from tg_mlc.data import from_arrays

            x = np.arange(4.0)[None].repeat(len(rows), 0)
            return from_arrays(x, np.zeros((len(rows), 3)), label_names=AUDITED)

    class Model:
        kind = Vectors()

    Model.kind.feature_names = list("abcd")
    inputs = suspects._Inputs(Model, Source(), None, [5])
    drawing = inputs.draw(5, np.array([0.0, 1.0, 0.5, 2.0]))
    assert drawing == {"cells": [(3, "d", "3"), (1, "b", "1")], "more": 2}
    assert inputs.draw(5, None)["cells"] == [(0, "a", "0"), (1, "b", "1")]


def test_a_column_of_texts_is_read_by_position(audited):
    audit, texts = audited
    column = pd.Series(texts, index=range(len(texts), 0, -1))
    expected = Page(audit.report(raw=texts)).data
    assert Page(audit.report(raw=column)).data == expected
    raw = replace(audit, evidence=replace(audit.evidence, raw=column))
    assert Page(raw.report()).data["suspects"] == Page(audit.report()).data["suspects"]


def test_wrong_arguments_are_refused(audited):
    audit = audited[0]
    for name in ("raw", "names", "rows"):
        with pytest.raises(ValueError, match=rf"'{name}' for each of the 20 samples \(got 1\)"):
            audit.report(**{name: [0]})
    with pytest.raises(ValueError, match="'number' to be a whole number of at least 1"):
        audit.report(number=0)
    with pytest.raises(ValueError, match="at least one known label"):
        replace(audit, cells=audit.cells.head(0)).report()
