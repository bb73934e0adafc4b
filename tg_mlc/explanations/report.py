"""The report of an explanation: one HTML file without external resources or links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tg_mlc._names import register, shorten
from tg_mlc._optional import require
from tg_mlc.explanations.drawing import TITLES, draw, draw_sections
from tg_mlc.explanations.explanation import Explanation, SampleExplanation
from tg_mlc.explanations.methods import METHODS
from tg_mlc.explanations.page import in_steps, plain, render, significant
from tg_mlc.metrics.calibration import Reliability

Markup: Any = require("markupsafe", extra="explain").Markup

MAX_NUMBERS = 450_000  #: Maximum count of numbers in a file; each takes about three bytes.
MAX_EFFECTS = 27  #: Maximum number of other labels shown with their effect on a label.
MAX_EDGES = 4000  #: Maximum number of drawn edges of a label graph, of attention or dependencies.
MAX_PAIRS = 10  #: Maximum number of dependencies of labels in a table.
#: Methods whose scores have no sign, so that they do not say if a component raises a logit.
UNSIGNED = tuple(name for name, method in METHODS.items() if not method.is_signed)
PACKAGES = ("tg_mlc", "torch", "rdkit")  #: Packages whose versions are shown.


def report(explanation: Explanation, title: str | None = None) -> str:
    """Returns the HTML page of :meth:`.Explanation.to_html`."""
    if not explanation.samples:
        raise ValueError("Expected an explanation of at least one sample (got none)")
    facts = explanation.facts
    noun = facts.get("components", "components")
    per_label: Mapping[str, Any] = facts.get("per_label", {})
    versions: Mapping[str, str] = facts.get("versions", {})
    has_metrics = bool(per_label) or not np.isnan(explanation.threshold).all()
    bins, dependencies = facts.get("reliability"), facts.get("dependencies")
    return render(
        "report",
        {**_data(explanation, noun), "dependencies": _strongest(dependencies or ())},
        title=title or "Why these labels",
        samples=[{"name": shorten(row.name, 120), **_drawn(row)} for row in explanation],
        labels=explanation.labels,
        noun=noun,
        facts=_headline(explanation),
        has_effects=bool(explanation[0].label_effects.size),
        has_parts=bool(explanation[0].parts),
        has_graph="label_graph" in facts,
        has_dependencies=dependencies is not None,
        pairs=[
            [explanation.label_names[i], explanation.label_names[j], f"{weight:+.2f}"]
            for i, j, weight in _strongest(dependencies or ())[:MAX_PAIRS]
        ],
        weights=[(name, f"{value:.2f}") for name, value in facts.get("weights", {}).items()],
        metrics=_metrics(explanation, per_label) if has_metrics else None,
        metrics_note=facts.get("per_label_of", ""),
        reliability=Markup(Reliability([], [], bins).to_svg()) if bins else "",
        faithfulness=explanation.faithfulness.get(explanation.method),
        unsigned=UNSIGNED,
        packages=[f"{name} {versions[name]}" for name in PACKAGES if name in versions],
    )


register("method", report)


def _drawn(sample: SampleExplanation) -> dict[str, Any]:
    if sample.sections:
        return draw_sections(sample.sections, len(sample.components), sample.bond_atoms)
    molecule = sample.smiles, sample.atoms, sample.bond_atoms
    return draw(sample.raw, sample.components, *molecule)


def _headline(explanation: Explanation) -> list[tuple[str, str]]:
    """Returns the most important facts of a model, with their names."""
    facts, best = explanation.facts, explanation.faithfulness.get(explanation.method)
    model_parts = ", ".join(facts.get("weights", {})) or facts.get("model", "")
    entries = [("Model", model_parts), ("Explained by", explanation.method)]
    if best is not None:
        number = f" (n = {best.number})" if best.number else ""
        entries.append(("Faithfulness", f"{best.gain:.3f}{number}"))
    titles = {"roc_auc_macro": "ROC-AUC, macro", "f1_micro": "F1, micro", "f1_macro": "F1, macro"}
    if test := facts.get("test"):
        entries += [(f"{title}, test", f"{test[key]:.2f}") for key, title in titles.items()]
    for key in ("data", "split"):
        if isinstance(facts.get(key), str):
            entries.append((key.title(), facts[key][:12]))
    return [(name, value) for name, value in entries if value]


def _metrics(explanation: Explanation, per_label: Mapping[str, Any]) -> dict[str, Any]:
    columns = {"threshold": explanation.threshold}
    columns |= {name: np.asarray(values) for name, values in per_label.items()}
    rows = []
    for index, label in enumerate(explanation.labels):
        values = (column[index] for column in columns.values())
        rows.append([label, *("" if np.isnan(value) else f"{value:.3g}" for value in values)])
    return {"header": ["label", *columns], "rows": rows}


def _data(explanation: Explanation, noun: str) -> dict[str, Any]:
    """Returns all data of the page, for as many labels of a sample as MAX_NUMBERS allows."""
    methods, names = explanation.methods, explanation.label_names
    # Numbers per label: effects (five numbers each, of double length), states, and ten others.
    num_others = 10 * min(len(names), MAX_EFFECTS) + 2 * len(explanation.state_names) + 10
    num_scores = sum(len(row.scored(method)[0]) for row in explanation for method in methods)
    max_labels = max(1, MAX_NUMBERS // (num_scores + num_others * len(explanation)))
    columns = np.array([names.index(name) for name in explanation.labels])
    areas, first = explanation.faithfulness, explanation[0]
    graph, attention = np.zeros((2, len(names), len(names)))
    if (edge_index := explanation.facts.get("label_graph")) is not None:
        graph[tuple(np.asarray(edge_index, dtype=int))] = 1.0
    if first.label_attention.size:
        attention[:, columns] = np.mean([_mean_attention(row) for row in explanation], axis=0)
    with_bonds = {method for sample in explanation for method in sample.bond_scores}
    return {
        "labels": names,
        "noun": noun,
        "states": explanation.state_names,
        "methods": [
            {
                "name": method,
                "title": method,
                "signed": not method.startswith(UNSIGNED),
                "faithfulness": plain(areas[method].gain) if method in areas else None,
                "chosen": method == explanation.method,
                "noun": f"{noun} and bonds" if method in with_bonds else noun,
            }
            for method in methods
        ],
        "random": plain(areas["random"].gain) if "random" in areas else None,
        "asked": len(columns),
        "messages": bool(first.label_effects.size),
        "effects": bool(first.label_effects.size or first.clamped.size),
        "clamped": bool(first.clamped.size),
        "graph": _edges_of(graph),
        "attention": _edges_of(attention),
        "samples": [
            _sample(sample, explanation.threshold, columns, max_labels) for sample in explanation
        ],
    }


def _edges_of(cells: np.ndarray) -> list[list[Any]]:
    """Returns the heaviest edges between two labels, as source, target and weight."""
    cells = np.where(np.eye(len(cells), dtype=bool), 0.0, np.nan_to_num(cells))
    number = min(np.count_nonzero(cells), MAX_EDGES)
    edges = []
    for index in np.argsort(-cells, axis=None, kind="stable")[:number].tolist():
        source, target = divmod(index, len(cells))
        edges.append([source, target, plain(cells[source, target], 3)])
    return edges


def _strongest(edges: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Returns the edges with the largest weights of either sign, the largest first."""
    ordered = sorted(edges, key=lambda edge: -abs(edge[2]))
    return [[source, target, plain(weight, 3)] for source, target, weight in ordered[:MAX_EDGES]]


def _sample(
    sample: SampleExplanation, threshold: np.ndarray, columns: np.ndarray, max_labels: int
) -> dict[str, Any]:
    order = np.argsort(-np.nan_to_num(sample.probability), kind="stable")
    remaining = order[max_labels:]
    selected = np.concatenate([order[:max_labels], remaining[sample.truth[remaining] == 1]])
    scores = {}
    for method in sample.scores:
        values = sample.scored(method)[1][:, selected].T  # [labels, components and bonds]
        steps, largest = in_steps(values)
        scores[method] = {"values": steps, "scales": largest}
    effects = []
    if sample.label_effects.size or sample.clamped.size:
        effects = [_effects(sample, column, int(columns[column])) for column in selected]
    return {
        "name": sample.name,
        "labels": columns[selected].tolist(),
        "probability": plain(sample.probability[selected]),
        "threshold": plain(threshold[selected]),
        "decision": sample.decision[selected].astype(bool).tolist(),
        "truth": plain(sample.truth[selected], 0),
        "given": [] if sample.given is None else plain(sample.given[selected], 0),
        "states": plain(sample.states[:, selected]) if sample.states.size else [],
        "components": [*(TITLES.get(name, name) for name in sample.components), *sample.bonds],
        "scores": scores,
        "effects": effects,
        "parts": {name: plain(values[selected]) for name, values in sample.parts.items()},
    }


def _effects(sample: SampleExplanation, column: int, label: int) -> list[list[Any]]:
    """Returns the other labels with the largest effects on a label: index, effect, attention, and
    the change of the logit if the other label is given as absent and as present.
    """
    num_labels = max(len(sample.label_effects), len(sample.clamped))
    effect = attention = absent = present = np.full(num_labels, np.nan)
    if sample.label_effects.size:
        effect = np.nan_to_num(sample.label_effects[:, column])
    if sample.label_attention.size:
        attention = _mean_attention(sample)[:, column]
    if sample.clamped.size:
        absent, present = sample.clamped[:, :, column].T
    magnitude = np.nan_to_num(np.abs([effect, absent, present]))
    largest = magnitude.max(axis=1, keepdims=True)
    total = (magnitude / np.where(largest > 0, largest, 1.0)).sum(axis=0)
    order = [int(j) for j in np.argsort(-total, kind="stable") if j != label][:MAX_EFFECTS]
    measures = (effect, attention, absent, present)
    return [[j, *(significant(values[j]) for values in measures)] for j in order]


def _mean_attention(sample: SampleExplanation) -> np.ndarray:
    return np.asarray(sample.label_attention.mean(axis=(0, 1)))
