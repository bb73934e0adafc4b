"""Tests the counts by which drift of inputs and of probabilities shows."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.serving.conftest import post, post_csv
from tg_mlc.inference import Prediction
from tg_mlc.serving.drift import MAX_NAMES, OTHERS, Drift

RED = {"age": 30, "height": 65.5, "colour": "red"}


ORDER = ("model", "label", "column", "reason", "le")


def samples(text):
    """Returns the samples of all metrics, by name and the values of their labels."""
    families = text_string_to_metric_families(text)
    all_samples = [sample for family in families for sample in family.samples]
    return {(s.name, *(s.labels[k] for k in ORDER if k in s.labels)): s.value for s in all_samples}


def predictions(probabilities, given=None):
    names = [f"label {number}" for number in range(probabilities.shape[1])]
    decisions, thresholds = probabilities > 0.5, np.full(len(names), 0.5)
    return [Prediction(names, probabilities, decisions, thresholds, {}, given=given)]


def metrics_of(drift):
    registry = CollectorRegistry()
    registry.register(drift)
    return generate_latest(registry).decode()


def test_probabilities_are_counted_in_bins(ask, models):
    rows = [{**RED, "age": age} for age in range(20, 60)]
    *_, page = ask(post("table", inputs=rows), after=["/metrics"])
    numbers = samples(page.text)
    expected = models["table"].probabilities(rows)
    for name, values in zip(models["table"].label_names, expected.T, strict=True):
        for bound in (0.1, 0.5, 0.9):
            count = numbers["tg_mlc_probability_bucket", "table", name, str(bound)]
            assert count == (values <= bound).sum()
        assert numbers["tg_mlc_probability_count", "table", name] == 40
        total = numbers["tg_mlc_probability_sum", "table", name]
        np.testing.assert_allclose(total, values.sum(), rtol=1e-5)


def test_given_labels_are_not_counted(ask):
    *_, page = ask(post("table", inputs=[RED, RED], given=[{"sad": 1}, None]), after=["/metrics"])
    numbers = samples(page.text)
    assert numbers["tg_mlc_probability_count", "table", "sad"] == 1
    assert numbers["tg_mlc_probability_count", "table", "calm"] == 2


def test_blanks_and_new_categories_are_counted_by_column(ask):
    """An unreadable row changes no count, although the other rows are read twice."""
    rows = [{**RED, "colour": "pink"}, {**RED, "colour": None}, {**RED, "age": "fast"}, RED]
    csv = post_csv("columns", "day;member;note;price;size;weight;well;zip\n;yes;;;1;1 mg;a;01067\n")
    texts = post("texts", inputs=["xyz", "a red apple", {"text": None}])
    *_, page = ask(post("table", inputs=rows), csv, texts, after=["/metrics"])
    counts = {k[1:]: n for k, n in samples(page.text).items() if "unusual_inputs_total" in k[0]}
    assert counts == {
        ("table", "colour", "new category"): 1,
        ("table", "colour", "blank"): 1,
        ("columns", "day", "blank"): 1,
        ("columns", "note", "blank"): 1,
        ("columns", "price", "blank"): 1,
        ("texts", "", "blank"): 1,
        ("texts", "", "no known word"): 2,
    }


def test_many_labels_and_columns_are_counted_together():
    """A model of thousands of labels has a page of a few hundred kilobytes."""
    names, probabilities = [f"label {number}" for number in range(4000)], np.full((3, 4000), 0.25)
    drift = Drift({"model": names})
    unusual = Counter({("blank", f"column {number}"): 1 for number in range(300)})
    start = time.perf_counter()
    drift.count("model", predictions(probabilities), unusual)
    assert time.perf_counter() - start < 0.05
    page = metrics_of(drift)
    assert len(page) < 200_000
    numbers = samples(page)
    assert numbers["tg_mlc_probability_count", "model", OTHERS] == 3 * (4000 - MAX_NAMES)
    assert numbers["tg_mlc_probability_bucket", "model", "label 7", "0.3"] == 3
    assert numbers["tg_mlc_probability_bucket", "model", "label 7", "0.2"] == 0
    assert numbers["tg_mlc_unusual_inputs_total", "model", OTHERS, "blank"] == 300 - MAX_NAMES


def test_inputs_without_probabilities_are_not_counted():
    probabilities = np.array([[np.nan, np.nan], [0.0, 1.0]])
    drift = Drift({"model": ["label 0", "label 1"]})
    drift.count("model", predictions(probabilities), Counter())
    numbers = samples(metrics_of(drift))
    assert numbers["tg_mlc_probability_count", "model", "label 0"] == 1
    assert numbers["tg_mlc_probability_bucket", "model", "label 0", "0.1"] == 1
    assert numbers["tg_mlc_probability_bucket", "model", "label 1", "0.9"] == 0
