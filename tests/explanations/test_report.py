from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.special import logit

from tests.explanations.made import BAD_NAME, BONDS, LABELS, SAMPLES, make_explanation
from tg_mlc.explanations.explanation import Faithfulness

pytest.importorskip("jinja2")
pytest.importorskip("rdkit")


class Page(HTMLParser):
    """Parses a page into its elements, and the text of each id or tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.current = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.current = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self.current = ""

    def handle_data(self, data: str) -> None:
        self.texts[self.current] = self.texts.get(self.current, "") + data

    @property
    def data(self):
        return json.loads(self.texts["data"])

    def components(self, sample: int) -> set[int]:
        """Returns the indices of the components that the drawing of a sample shows."""
        components, drawing = set(), None
        for tag, attributes in self.elements:
            drawing = None if tag in ("fieldset", "section") else drawing
            drawing = attributes.get("data-drawing", drawing)
            if drawing == str(sample) and "data-component" in attributes:
                components.add(int(attributes["data-component"]))
        return components


def test_the_page_loads_no_other_file():
    text = make_explanation().to_html()
    page = Page(text)
    assert "http:" not in text
    assert "https:" not in text
    loading_tags = {"a", "link", "img", "iframe", "object", "embed", "base", "form", "use", "image"}
    assert not loading_tags & {tag for tag, _ in page.elements}
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
    text = make_explanation().to_html()
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.elements) == 2
    assert page.data["labels"] == LABELS
    assert not {"b", "em"} & {tag for tag, attributes in page.elements if not attributes}
    assert BAD_NAME in unescape(text)
    assert BAD_NAME not in text


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_component_has_an_element(kind: str):
    page = Page(make_explanation(kind).to_html())
    [sample] = page.data["samples"]
    assert page.components(0) == set(range(len(sample["components"])))
    tags = {tag for tag, attributes in page.elements if "data-component" in attributes}
    assert ("circle" in tags) == (kind == "molecule")


def test_a_bond_is_shaded_between_its_atoms():
    text = make_explanation("molecule").to_html()
    shade = r'class="shade" data-component="(\d+)"'
    atoms = dict(re.findall(rf'<circle {shade} cx="([\d.]+ *)" cy=', text))
    bonds = re.findall(rf'<path {shade} d="M([\d.]+) [\d.]+L([\d.]+) [\d.]+"/>', text)
    for (index, start, end), ends in zip(bonds, BONDS.values(), strict=True):
        assert int(index) in range(11, 21)  # Ten atoms and a fingerprint come first.
        assert (start, end) == tuple(atoms[str(atom)] for atom in ends)


def test_a_text_is_shaded_where_its_words_stand():
    text = make_explanation("text").to_html()
    drawing = re.search(r'<div class="drawing"[^>]*>(.*?)</div>', text, re.DOTALL)[1]
    words = re.findall(r'<span data-component="(\d)">(\w+)</span>', drawing)
    assert " ".join(map("".join, words)) == "0A 1b 2bold 1b 3word 0a 2bold 4claim"


def test_repeated_words_in_order_are_shaded_one_by_one():
    explanation, words = make_explanation("text"), ["no", "no", "and", "no", "x", "y"]
    sample = replace(explanation[0], raw="no, no and no", components=words)
    text = replace(explanation, samples=[sample]).to_html()
    assert re.findall(r'data-component="(\d)">no<', text) == ["0", "1", "3"]


def test_numbers_of_the_page_are_those_of_the_explanation():
    explanation = make_explanation("molecule")
    explanation[0].scores["occlusion"][3] = np.nan
    data, sample = Page(explanation.to_html()).data, explanation[0]
    [entry] = data["samples"]
    order = np.argsort(-sample.probability)
    assert entry["labels"] == order.tolist()
    np.testing.assert_allclose(entry["probability"], sample.probability[order], atol=1e-4)
    np.testing.assert_allclose(entry["states"], sample.states[:, order], atol=1e-4)
    assert entry["truth"] == [None if np.isnan(y) else y for y in sample.truth[order]]
    for method, encoded in entry["scores"].items():
        values = np.array(encoded["values"], float) / 99 * np.array(encoded["scales"])[:, None]
        _, scores = sample.scored(method)
        np.testing.assert_allclose(values, scores[:, order].T, atol=0.02)
    assert entry["components"][-10:] == sample.bonds
    nouns = [method["noun"] for method in data["methods"]]
    assert nouns == ["components", "components", "components and bonds"]
    for label, effects in zip(order, entry["effects"], strict=True):
        assert {j for j, *_ in effects} == {0, 1, 2, 3} - {label}
        for j, effect, attention, absent, present in effects:
            exact = [sample.label_effects[j, label], sample.label_attention[..., j, label].mean()]
            np.testing.assert_allclose([effect, attention], exact, rtol=0.006)
            np.testing.assert_allclose([absent, present], sample.clamped[j, :, label], rtol=0.006)
    logits = logit(sample.probability[order])
    np.testing.assert_allclose(sum(map(np.array, entry["parts"].values())), logits, atol=1e-3)
    assert data["graph"] == [[0, 1, 1], [1, 2, 1], [2, 0, 1]]
    assert [method["signed"] for method in data["methods"]] == [True, False, True]


def test_a_model_without_messages_has_neither_states_nor_effects():
    page = Page(make_explanation("row", messages=False).to_html())
    data = page.data
    assert (data["states"], data["effects"], data["samples"][0]["effects"]) == ([], False, [])
    assert "canvas" not in {tag for tag, _ in page.elements}


def test_the_page_shows_given_labels_and_their_effects_without_messages():
    explanation = make_explanation("row")
    assert Page(explanation.to_html()).data["samples"][0]["given"] == []
    sample = explanation[0]
    sample.given = np.array([1.0, np.nan, 0.0, np.nan])
    sample.label_effects = sample.label_effects[:0]
    data = Page(explanation.to_html()).data
    assert (data["messages"], data["effects"], data["clamped"]) == (False, True, True)
    [entry] = data["samples"]
    assert dict(zip(entry["labels"], entry["given"], strict=True)) == {0: 1, 1: None, 2: 0, 3: None}
    for label, effects in zip(entry["labels"], entry["effects"], strict=True):
        for j, effect, _, absent, present in effects:
            assert effect is None
            np.testing.assert_allclose([absent, present], sample.clamped[j, :, label], rtol=0.006)


def test_categories_stand_beside_the_cell_of_their_column():
    explanation, components = make_explanation("row"), ["soil=clay", "soil=sand"]
    row = replace(explanation[0], raw={"soil": "clay", "a": 1}, components=components)
    page = replace(explanation, samples=[row]).to_html()
    cells = re.findall(r'<span data-component="\d">(.*?)</span></th><td>(.*?)</td>', page)
    assert cells == [("soil=clay", "clay"), ("soil=sand", "clay")]


def test_labels_that_do_not_fit_are_skipped_unless_they_apply(monkeypatch: pytest.MonkeyPatch):
    numbers_per_label = 3 * 2 + 10 * 27 + 2 * 4 + 10
    monkeypatch.setattr("tg_mlc.explanations.report.MAX_NUMBERS", 6 * numbers_per_label)
    names = [f"label {number}" for number in range(60)]
    explanation = make_explanation("row", labels=names)
    [sample] = Page(explanation.to_html()).data["samples"]
    order = np.argsort(-explanation[0].probability)
    assert 20 < len(sample["labels"]) < 60
    assert set(sample["labels"]) == {*order[:6], *order[explanation[0].truth[order] == 1]}


def test_a_subset_of_labels_keeps_the_effects_of_all_labels():
    explanation = make_explanation("molecule")
    sample = explanation[0]
    for name in ("probability", "decision", "truth"):
        setattr(sample, name, getattr(sample, name)[2:])
    for name in ("states", "label_effects", "clamped", "label_attention", "attention"):
        setattr(sample, name, getattr(sample, name)[..., 2:])
    sample.bond_scores = {method: values[:, 2:] for method, values in sample.bond_scores.items()}
    sample.scores = {method: values[:, 2:] for method, values in sample.scores.items()}
    sample.parts = {name: values[2:] for name, values in sample.parts.items()}
    explanation = replace(explanation, labels=LABELS[2:], threshold=explanation.threshold[2:])
    data = Page(explanation.to_html()).data
    [entry] = data["samples"]
    assert data["asked"] == len(entry["labels"]) == 2  # No label is left out.
    assert set(entry["labels"]) == {2, 3}
    assert {source for source, *_ in entry["effects"][0]} == {0, 1, 2, 3} - {entry["labels"][0]}


def test_twenty_molecules_of_27_labels_fit_into_two_megabytes():
    names, num_atoms = [f"label of some length {number}" for number in range(27)], 60
    explanation, rng = make_explanation("molecule", labels=names), np.random.default_rng(0)
    components = [f"C{i}" for i in range(num_atoms)]
    options = {"smiles": "C" * num_atoms, "components": components, "atoms": np.arange(num_atoms)}
    sample = replace(explanation[0], **options)
    sample.scores = {f"method {number}": rng.normal(size=(num_atoms, 27)) for number in range(5)}
    sample.bonds = [f"C{i}-C{i + 1}" for i in range(num_atoms - 1)]
    sample.bond_atoms = np.stack([np.arange(num_atoms - 1), np.arange(1, num_atoms)], axis=1)
    sample.bond_scores = {"method 4": rng.normal(size=(num_atoms - 1, 27))}
    assert len(replace(explanation, samples=[sample] * 20).to_html().encode()) < 2e6


def test_the_page_describes_the_explanation(tmp_path):
    explanation = make_explanation("dna")
    text = explanation.to_html(tmp_path / "report.html", title="A & B")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    footer = "Readouts and attention are those of label message passing"
    for phrase in ("<h1>A &amp; B</h1>", "The label graph.", "Faithfulness: the area", footer):
        assert phrase in text
    metrics = {"roc_auc_macro": 0.75, "f1_micro": 0.5, "f1_macro": 0.25}
    explanation.facts = {"versions": {"tg_mlc": "1", "numpy": "2", "torch": "3"}, "test": metrics}
    explanation.faithfulness[explanation.method] = Faithfulness(0.25, 0.5, 7)
    text = explanation.to_html()
    assert "Scores of attention tell how much" in text
    assert "trained with tg_mlc 1, torch 3." in text
    assert "The label graph is not part of this file." in text
    assert "Faithfulness, mean of 7 curves: the area" in text
    for fact in ("<dd>0.250 (n = 7)</dd>", "<dt>F1, macro, test</dt><dd>0.25</dd>"):
        assert fact in text
    text = replace(explanation, faithfulness={}).to_html()
    assert "How faithful the methods are was not measured" in text
    with pytest.raises(ValueError, match=r"at least one sample \(got none\)"):
        replace(explanation, samples=[]).to_html()


def test_a_label_graph_may_have_no_edges():
    explanation = make_explanation("row")
    explanation.facts["label_graph"] = [[], []]
    assert Page(explanation.to_html()).data["graph"] == []


def test_the_page_lists_the_strongest_dependencies_of_labels():
    explanation = make_explanation("row", labels=[f"label {number}" for number in range(20)])
    assert "Who tells whom" not in explanation.to_html()
    edges = [[0, target, (-1) ** target * 0.04 * target] for target in range(1, 20)]
    explanation.facts["dependencies"] = edges
    text = explanation.to_html()
    assert Page(text).data["dependencies"][:2] == [[0, 19, -0.76], [0, 18, 0.72]]
    rows = re.findall(r'row">label 0</th><td>label (\d+)</td><td>(.*?)</td>', text)
    assert rows[:2] == [("19", "-0.76"), ("18", "+0.72")]
    assert len(rows) == 10
    explanation.facts["dependencies"] = []
    assert "No two labels surely depend on each other" in explanation.to_html()
