from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.special import logit

from tests.explanations.made import BAD_NAME, BONDS, LABELS, SAMPLES, explanation
from tg_mlc.explanations.explanation import Faithfulness

pytest.importorskip("jinja2")
pytest.importorskip("rdkit")


class Page(HTMLParser):
    """The elements of a page, and the text of those that hold code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.code: dict[str, str] = {}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        self.code[self.inside] = self.code.get(self.inside, "") + data

    @property
    def data(self):
        return json.loads(self.code["data"])

    def components(self, sample: int) -> set[int]:
        """The components that have an element in the drawing of a sample."""
        drawn, inside = set(), None
        for tag, attributes in self.elements:
            inside = None if tag in ("fieldset", "section") else inside
            inside = attributes.get("data-drawing", inside)
            if inside == str(sample) and "data-component" in attributes:
                drawn.add(int(attributes["data-component"]))
        return drawn


def test_nothing_is_loaded_from_anywhere():
    text = explanation().to_html()
    page = Page(text)
    assert "http:" not in text
    assert "https:" not in text
    loading = {"a", "link", "img", "iframe", "object", "embed", "base", "form", "use", "image"}
    assert not loading & {tag for tag, _ in page.elements}
    attributes = set().union(*(attributes for _, attributes in page.elements))
    assert not {"src", "href", "xlink:href", "action"} & attributes
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest|WebSocket|import\(", text)
    [policy] = [
        attributes["content"]
        for _, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; ")


def test_names_and_texts_of_samples_are_escaped():
    text = explanation().to_html()
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.elements) == 2
    assert page.data["labels"] == LABELS
    assert not {"b", "em"} & {tag for tag, attributes in page.elements if not attributes}
    assert BAD_NAME in unescape(text)
    assert BAD_NAME not in text


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_component_has_an_element(kind: str):
    page = Page(explanation(kind).to_html())
    [sample] = page.data["samples"]
    assert page.components(0) == set(range(len(sample["components"])))
    tags = {tag for tag, attributes in page.elements if "data-component" in attributes}
    assert ("circle" in tags) == (kind == "molecule")


def test_a_bond_is_shaded_between_its_atoms():
    text = explanation("molecule").to_html()
    shade = r'class="shade" data-component="(\d+)"'
    atoms = dict(re.findall(rf'<circle {shade} cx="([\d.]+ *)" cy=', text))
    bonds = re.findall(rf'<path {shade} d="M([\d.]+) [\d.]+L([\d.]+) [\d.]+"/>', text)
    for (place, start, end), ends in zip(bonds, BONDS.values(), strict=True):
        assert int(place) in range(11, 21)  # after ten atoms and a fingerprint
        assert (start, end) == tuple(atoms[str(atom)] for atom in ends)


def test_a_text_is_shaded_where_its_words_stand():
    text = explanation("text").to_html()
    drawn = re.search(r'<div class="drawing"[^>]*>(.*?)</div>', text, re.DOTALL)[1]
    words = re.findall(r'<span data-component="(\d)">(\w+)</span>', drawn)
    assert " ".join(map("".join, words)) == "0A 1b 2bold 1b 3word 0a 2bold 4claim"


def test_repeated_words_in_order_are_shaded_one_by_one():
    made = explanation("text")
    sample = replace(made[0], raw="no, no and no", components=["no", "no", "and", "no", "x", "y"])
    text = replace(made, samples=[sample]).to_html()
    assert re.findall(r'data-component="(\d)">no<', text) == ["0", "1", "3"]


def test_numbers_of_the_page_are_those_of_the_explanation():
    made = explanation("molecule")
    made[0].scores["occlusion"][3] = np.nan
    data, sample = Page(made.to_html()).data, made[0]
    [shown] = data["samples"]
    order = np.argsort(-sample.probability)
    assert shown["labels"] == order.tolist()
    np.testing.assert_allclose(shown["probability"], sample.probability[order], atol=1e-4)
    np.testing.assert_allclose(shown["states"], sample.states[:, order], atol=1e-4)
    assert shown["truth"] == [None if np.isnan(each) else each for each in sample.truth[order]]
    for method, found in shown["scores"].items():
        values = np.array(found["values"], float) / 99 * np.array(found["scales"])[:, None]
        _, scores = sample.scored(method)
        np.testing.assert_allclose(values, scores[:, order].T, atol=0.02)
    assert shown["components"][-10:] == sample.bonds
    nouns = [method["noun"] for method in data["methods"]]
    assert nouns == ["components", "components", "components and bonds"]
    for label, effects in zip(order, shown["effects"], strict=True):
        assert {each[0] for each in effects} == {0, 1, 2, 3} - {label}
        for j, effect, attention, absent, present in effects:
            found = [sample.label_effects[j, label], sample.label_attention[..., j, label].mean()]
            np.testing.assert_allclose([effect, attention], found, rtol=0.006)
            np.testing.assert_allclose([absent, present], sample.clamped[j, :, label], rtol=0.006)
    logits = logit(sample.probability[order])
    np.testing.assert_allclose(sum(map(np.array, shown["parts"].values())), logits, atol=1e-3)
    assert data["graph"] == [[0, 1, 1], [1, 2, 1], [2, 0, 1]]
    assert [each["signed"] for each in data["methods"]] == [True, False, True]


def test_a_model_without_messages_has_neither_states_nor_effects():
    page = Page(explanation("row", messages=False).to_html())
    data = page.data
    assert (data["states"], data["effects"], data["samples"][0]["effects"]) == ([], False, [])
    assert "canvas" not in {tag for tag, _ in page.elements}


def test_given_labels_and_their_effects_without_messages():
    made = explanation("row")
    assert Page(made.to_html()).data["samples"][0]["given"] == []
    made[0].given = np.array([1.0, np.nan, 0.0, np.nan])
    made[0].label_effects = made[0].label_effects[:0]
    data = Page(made.to_html()).data
    assert (data["messages"], data["effects"], data["clamped"]) == (False, True, True)
    [shown] = data["samples"]
    assert dict(zip(shown["labels"], shown["given"], strict=True)) == {0: 1, 1: None, 2: 0, 3: None}
    for label, effects in zip(shown["labels"], shown["effects"], strict=True):
        for j, effect, _, absent, present in effects:
            assert effect is None
            np.testing.assert_allclose([absent, present], made[0].clamped[j, :, label], rtol=0.006)


def test_categories_stand_beside_the_cell_of_their_column():
    made = explanation("row")
    row = replace(made[0], raw={"soil": "clay", "a": 1}, components=["soil=clay", "soil=sand"])
    page = replace(made, samples=[row]).to_html()
    cells = re.findall(r'<span data-component="\d">(.*?)</span></th><td>(.*?)</td>', page)
    assert cells == [("soil=clay", "clay"), ("soil=sand", "clay")]


def test_labels_that_do_not_fit_are_left_out_but_those_that_apply(monkeypatch: pytest.MonkeyPatch):
    numbers_per_label = 3 * 2 + 10 * 27 + 2 * 4 + 10
    monkeypatch.setattr("tg_mlc.explanations.report.MAX_NUMBERS", 6 * numbers_per_label)
    names = [f"label {number}" for number in range(60)]
    made = explanation("row", labels=names)
    [sample] = Page(made.to_html()).data["samples"]
    order, size = np.argsort(-made[0].probability), len(sample["labels"])
    assert 20 < size < 60
    applies = [place for place in order if made[0].truth[place] == 1]
    assert set(sample["labels"]) == {*applies, *order[:6]}


def test_a_subset_of_labels_keeps_the_effects_of_all():
    made = explanation("molecule")
    sample = made[0]
    for name in ("probability", "decision", "truth"):
        setattr(sample, name, getattr(sample, name)[2:])
    for name in ("states", "label_effects", "clamped", "label_attention", "attention"):
        setattr(sample, name, getattr(sample, name)[..., 2:])
    sample.bond_scores = {method: values[:, 2:] for method, values in sample.bond_scores.items()}
    sample.scores = {method: values[:, 2:] for method, values in sample.scores.items()}
    sample.parts = {name: values[2:] for name, values in sample.parts.items()}
    made = replace(made, labels=LABELS[2:], threshold=made.threshold[2:])
    data = Page(made.to_html()).data
    [shown] = data["samples"]
    assert data["asked"] == len(shown["labels"]) == 2  # none is left out
    assert set(shown["labels"]) == {2, 3}
    assert {each[0] for each in shown["effects"][0]} == {0, 1, 2, 3} - {shown["labels"][0]}


def test_twenty_molecules_of_27_labels_fit_into_two_megabytes():
    names, atoms = [f"label of some length {number}" for number in range(27)], 60
    made, rng = explanation("molecule", labels=names), np.random.default_rng(0)
    components = [f"C{i}" for i in range(atoms)]
    options = {"smiles": "C" * atoms, "components": components, "atoms": np.arange(atoms)}
    sample = replace(made[0], **options)
    sample.scores = {f"method {number}": rng.normal(size=(atoms, 27)) for number in range(5)}
    sample.bonds = [f"C{i}-C{i + 1}" for i in range(atoms - 1)]
    sample.bond_atoms = np.stack([np.arange(atoms - 1), np.arange(1, atoms)], axis=1)
    sample.bond_scores = {"method 4": rng.normal(size=(atoms - 1, 27))}
    assert len(replace(made, samples=[sample] * 20).to_html().encode()) < 2e6


def test_words_of_the_page_are_those_of_the_explanation(tmp_path):
    made = explanation("dna")
    text = made.to_html(tmp_path / "report.html", title="A & B")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    parts = "Readouts and attention are those of label message passing"
    for words in ("<h1>A &amp; B</h1>", "The label graph.", "Faithfulness: the area", parts):
        assert words in text
    metrics = {"roc_auc_macro": 0.75, "f1_micro": 0.5, "f1_macro": 0.25}
    made.facts = {"versions": {"tg_mlc": "1", "numpy": "2", "torch": "3"}, "test": metrics}
    made.faithfulness[made.method] = Faithfulness(0.25, 0.5, 7)
    text = made.to_html()
    assert "Scores of attention tell how much" in text
    assert "trained with tg_mlc 1, torch 3." in text
    assert "The label graph is not part of this file." in text
    assert "Faithfulness, mean of 7 curves: the area" in text
    for fact in ("<dd>0.250 (n = 7)</dd>", "<dt>F1, macro, test</dt><dd>0.25</dd>"):
        assert fact in text
    text = replace(made, faithfulness={}).to_html()
    assert "How faithful the methods are was not measured" in text
    with pytest.raises(ValueError, match=r"at least one sample \(got none\)"):
        replace(made, samples=[]).to_html()


def test_a_label_graph_may_have_no_edges():
    made = explanation("row")
    made.facts["label_graph"] = [[], []]
    assert Page(made.to_html()).data["graph"] == []
