"""The report of an explanation: one HTML file, which loads nothing and links to nothing."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np

from tg_mlc._names import register, shorten
from tg_mlc._optional import require
from tg_mlc.explanations.explanation import Explanation, SampleExplanation
from tg_mlc.explanations.methods import METHODS
from tg_mlc.metrics.calibration import Reliability

jinja2: Any = require("jinja2", extra="explain")
Markup: Any = require("markupsafe", extra="explain").Markup

MAX_NUMBERS = 450_000  #: in a file, which take about three bytes each
MOST_EFFECTS = 27  #: of other labels on one
MOST_EDGES = 4000  #: of a label graph or of attention that are drawn
STEPS = 99  #: of a score, from none to the largest one of a sample, label and method
#: Methods whose scores tell how much a component counts, but not for what.
UNSIGNED = tuple(name for name, method in METHODS.items() if not method.is_signed)
#: Attributes of samples that hold vectors of a molecule as a whole, for people.
TITLES = {
    "morgan": "Morgan fingerprint",
    "atom_pair": "atom pairs",
    "torsion": "torsions",
    "maccs": "MACCS keys",
    "descriptors": "descriptors",
}


def report(explanation: Explanation, title: str | None = None) -> str:
    """Returns the page; see :meth:`.Explanation.to_html`."""
    if not explanation.samples:
        raise ValueError("Expected an explanation of at least one sample (got none)")
    folder = files("tg_mlc.explanations")
    style, script, page = (
        folder.joinpath(f"report.{suffix}").read_text(encoding="utf-8")
        for suffix in ("css", "js", "html")
    )
    samples = []
    for sample in explanation:
        drawing, thumbnail = _draw(sample)
        samples.append(
            {"name": shorten(sample.name, 120), "drawing": drawing, "thumbnail": thumbnail}
        )
    facts = explanation.facts
    noun = facts.get("components", "components")
    data = json.dumps(
        _data(explanation, noun), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    per_label: Mapping[str, Any] = facts.get("per_label", {})
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text: str = environment.from_string(page).render(
        title=title or "Why these labels",
        style=Markup(style),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        data=Markup(data.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")),
        samples=samples,
        labels=explanation.labels,
        noun=noun,
        facts=_headline(explanation),
        has_effects=bool(explanation[0].label_effects.size),
        has_parts=bool(explanation[0].parts),
        graph_note="The label graph."
        if "label_graph" in facts
        else "The label graph is not part of this file.",
        weights=[(name, f"{value:.2f}") for name, value in facts.get("weights", {}).items()],
        metrics=_metrics(explanation, per_label)
        if per_label or not np.isnan(explanation.threshold).all()
        else None,
        metrics_note=facts.get("per_label_of", ""),
        reliability=Markup(Reliability([], [], bins).to_svg())
        if (bins := facts.get("reliability"))
        else "",
        faithfulness_note=_faithfulness_note(explanation, noun),
        notes=_notes(explanation, noun),
    )
    return text


register("method", report)


def _headline(explanation: Explanation) -> list[tuple[str, str]]:
    """The most important facts of a model, with their names."""
    facts, best = explanation.facts, explanation.faithfulness.get(explanation.method)
    parts = ", ".join(facts.get("weights", {})) or facts.get("model", "")
    found = [("Model", parts), ("Explained by", explanation.method)]
    if best is not None:
        found.append(
            ("Faithfulness", f"{best.gain:.3f}" + f" (n = {best.number})" * bool(best.number))
        )
    titles = {"roc_auc_macro": "ROC-AUC, macro", "f1_micro": "F1, micro", "f1_macro": "F1, macro"}
    found += [
        (f"{title}, test", f"{facts['test'][key]:.2f}")
        for key, title in titles.items()
        if "test" in facts
    ]
    hashes = {"data": "Data", "split": "Split"}
    found += [
        (title, facts[key][:12]) for key, title in hashes.items() if isinstance(facts.get(key), str)
    ]
    return [(name, value) for name, value in found if value]


def _metrics(explanation: Explanation, per_label: Mapping[str, Any]) -> dict[str, Any]:
    columns = {
        "threshold": explanation.threshold,
        **{name: np.asarray(each) for name, each in per_label.items()},
    }
    rows = [
        [label, *("" if np.isnan(values[i]) else f"{values[i]:.3g}" for values in columns.values())]
        for i, label in enumerate(explanation.labels)
    ]
    return {"header": ["label", *columns], "rows": rows}


def _faithfulness_note(explanation: Explanation, noun: str) -> str:
    if explanation.method not in explanation.faithfulness:
        return "How faithful the methods are was not measured for this model."
    number = explanation.faithfulness[explanation.method].number
    of = f", mean of {number} curves" * bool(number)
    return (
        f"Faithfulness{of}: the area between two curves of a label's probability, one while {noun} are added, one "
        f"while they are removed, those of the highest scores first; more is better. The dotted line marks "
        f"a random order."
    )


def _notes(explanation: Explanation, noun: str) -> list[str]:
    notes = [
        f"A score says how much the model relies on a part of the input, not that the part causes the label. Scores of "
        f"{', '.join(UNSIGNED)} tell how much, all others also whether {noun} raise or lower the logit.",
        "Effects of labels are exact: the model is run again without the messages of a label, or with the label given "
        "as absent or as present. Attention stands beside them to compare; it proves nothing by itself.",
    ]
    if explanation[0].parts:
        notes.append(
            "The final probability combines several parts. Readouts and attention are those of label message passing, "
            "which is one of them."
        )
    versions = explanation.facts.get("versions", {})
    made = ", ".join(
        f"{name} {versions[name]}" for name in ("tg_mlc", "torch", "rdkit") if name in versions
    )
    return notes + [
        f"The model was trained with {made}. This file loads nothing and sends nothing."
    ] * bool(made)


def _data(explanation: Explanation, noun: str) -> dict[str, Any]:
    """All numbers, of as many labels of each sample as fit."""
    methods, names = explanation.methods, explanation.label_names
    # For one label: scores, and effects, which are five numbers of twice the length.
    beside = 10 * min(len(names), MOST_EFFECTS) + 2 * len(explanation.state_names) + 10
    entries = sum(
        sum(len(sample.scored(method)[0]) for method in methods) + beside for sample in explanation
    )
    most = max(1, MAX_NUMBERS // entries)
    all_labels = {name: place for place, name in enumerate(names)}
    asked = np.array([all_labels[name] for name in explanation.labels])
    areas = explanation.faithfulness
    graph, attention = np.zeros((2, len(names), len(names)))
    if (edge_index := explanation.facts.get("label_graph")) is not None:
        graph[tuple(np.asarray(edge_index, dtype=int))] = 1.0
    if explanation[0].label_attention.size:
        attention[:, asked] = np.mean([_mean_attention(sample) for sample in explanation], axis=0)
    return {
        "labels": names,
        "noun": noun,
        "states": explanation.state_names,
        "methods": [
            {
                "name": method,
                "title": method,
                "signed": not method.startswith(UNSIGNED),
                "faithfulness": _plain(areas[method].gain) if method in areas else None,
                "chosen": method == explanation.method,
                "noun": f"{noun} and bonds"
                if any(method in sample.bond_scores for sample in explanation)
                else noun,
            }
            for method in methods
        ],
        "random": _plain(areas["random"].gain) if "random" in areas else None,
        "asked": len(asked),
        "messages": bool(explanation[0].label_effects.size),
        "effects": bool(explanation[0].label_effects.size or explanation[0].clamped.size),
        "clamped": bool(explanation[0].clamped.size),
        "graph": _edges_of(graph),
        "attention": _edges_of(attention),
        "samples": [_sample(sample, explanation, asked, most) for sample in explanation],
    }


def _edges_of(cells: np.ndarray) -> list[list[Any]]:
    """The heaviest edges between two labels, as source, target and weight."""
    cells = np.where(np.eye(len(cells), dtype=bool), 0.0, np.nan_to_num(cells))
    order = np.argsort(-cells, axis=None, kind="stable")[: min(np.count_nonzero(cells), MOST_EDGES)]
    return [
        [int(at // len(cells)), int(at % len(cells)), _plain(cells.flat[at], 3)] for at in order
    ]


def _sample(
    sample: SampleExplanation, explanation: Explanation, asked: np.ndarray, most: int
) -> dict[str, Any]:
    order = np.argsort(-np.nan_to_num(sample.probability), kind="stable")
    kept = order[:most]
    kept = np.concatenate(
        [kept, [place for place in order[most:] if sample.truth[place] == 1]]
    ).astype(int)
    scores = {}
    for method in sample.scores:
        # [labels, components, and bonds if it scores them]
        values = sample.scored(method)[1][:, kept].T
        largest = np.nan_to_num(np.abs(values)).max(axis=1, initial=0.0)
        steps = STEPS * values / np.where(largest > 0, largest, 1.0)[:, None]
        scores[method] = {"values": _plain(steps, 0), "scales": list(map(_significant, largest))}
    return {
        "name": sample.name,
        "labels": asked[kept].tolist(),
        "probability": _plain(sample.probability[kept]),
        "threshold": _plain(explanation.threshold[kept]),
        "decision": [bool(sample.decision[place]) for place in kept],
        "truth": _plain(sample.truth[kept], 0),
        "given": [] if sample.given is None else _plain(sample.given[kept], 0),
        "states": _plain(sample.states[:, kept]) if sample.states.size else [],
        "components": [*(TITLES.get(each, each) for each in sample.components), *sample.bonds],
        "scores": scores,
        "effects": [_effects(sample, place, int(asked[place])) for place in kept]
        if sample.label_effects.size or sample.clamped.size
        else [],
        "parts": {name: _plain(values[kept]) for name, values in sample.parts.items()},
    }


def _effects(sample: SampleExplanation, place: int, label: int) -> list[list[Any]]:
    """The other labels that move one most: label, effect, attention, change if known to be absent, to be present."""
    unknown = np.full(max(len(sample.label_effects), len(sample.clamped)), np.nan)
    effect = np.nan_to_num(sample.label_effects[:, place]) if sample.label_effects.size else unknown
    attention = _mean_attention(sample)[:, place] if sample.label_attention.size else unknown
    absent, present = sample.clamped[:, :, place].T if sample.clamped.size else (unknown, unknown)
    size = np.nan_to_num(np.abs([effect, absent, present]))
    largest = size.max(axis=1, keepdims=True)
    share = (size / np.where(largest > 0, largest, 1.0)).sum(axis=0)
    order = [int(j) for j in np.argsort(-share, kind="stable") if j != label][:MOST_EFFECTS]
    return [
        [j, *(_significant(values[j]) for values in (effect, attention, absent, present))]
        for j in order
    ]


def _significant(value: float) -> float | None:
    return float(f"{value:.3g}") if np.isfinite(value) else None


def _mean_attention(sample: SampleExplanation) -> np.ndarray:
    return np.asarray(sample.label_attention.mean(axis=(0, 1)))


def _plain(values: Any, digits: int = 4) -> Any:
    """Rounded numbers as plain lists, with None for NaN."""
    if isinstance(values, np.ndarray) and values.ndim:
        return [_plain(each, digits) for each in values]
    value = float(values)
    if not np.isfinite(value):
        return None
    return round(value, digits) if digits and value != round(value) else round(value)


def _draw(sample: SampleExplanation) -> tuple[Any, Any]:
    """A sample as HTML, with an element for each component that the page shades, and a small picture of it."""
    if sample.smiles is not None:
        atoms = (
            list(range(len(sample.components)))
            if sample.atoms is None
            else [int(each) for each in sample.atoms]
        )
        bonds = [] if sample.bond_atoms is None else sample.bond_atoms.tolist()
        whole, small = _draw_molecule(sample.smiles, atoms, bonds)
        alt = f"Structure of {shorten(sample.name, 120)}; the table of scores names its atoms"
        svg = Markup(
            f'<svg class="molecule" role="img" aria-label="{Markup.escape(alt)}" {whole}</svg>'
        )
        beside = [place for place, atom in enumerate(atoms) if atom < 0]
        return svg + _chips(sample, beside), Markup(
            f'<svg class="molecule" aria-hidden="true" {small}</svg>'
        )
    raw, components = sample.raw, sample.components
    if isinstance(raw, str):
        if "".join(components).upper() == raw.upper() != "":  # letters of DNA
            return _block(
                "words dna", (_span(place, letter) for place, letter in enumerate(components))
            ), ""
        return _draw_text(sample), ""
    if isinstance(raw, (list, tuple)) and len(raw) == len(components):
        raw = dict(zip(components, raw, strict=True))
    if not isinstance(raw, Mapping):
        return _chips(sample, list(range(len(components)))), ""
    row = Markup("<tr><th scope='row'>{}</th><td>{}</td></tr>")
    cells = {name: _cell(raw, name) for name in components}
    rows = [
        row.format(_span(place, name), cell) for place, (name, cell) in enumerate(cells.items())
    ]
    return _block("words cells", [Markup("<table>"), *rows, Markup("</table>")]), ""


def _cell(raw: Mapping[str, Any], name: str) -> str:
    """The cell of a column, or of the category ``column=value``."""
    column = next(
        (each for each in (name, *raw) if each in raw and f"{name}=".startswith(f"{each}=")), None
    )
    return "" if column is None else shorten(raw[column], 60)


def _span(place: int, text: str) -> Any:
    return Markup('<span data-component="{}">{}</span>').format(place, text)


def _block(kind: str, parts: Any, between: str = "") -> Any:
    opening = Markup('<div class="{}" tabindex="0" role="group" aria-label="The sample">').format(
        kind
    )
    return opening + Markup(between).join(parts) + Markup("</div>")


def _chips(sample: SampleExplanation, places: list[int]) -> Any:
    chips = (_span(place, TITLES.get(name := sample.components[place], name)) for place in places)
    return _block("words chips", chips, " ") if places else Markup("")


def _draw_text(sample: SampleExplanation) -> Any:
    """The text as it was written, with its components, or these alone if they are no words of it."""
    words = re.split(r"(\w+)", sample.raw)
    in_order = [word.lower() for word in sample.components]
    left = list(enumerate(in_order))
    parts, found, start = [], set[int](), 0
    for word in words:
        # The next component that is this word, or, of a bag, whose order says nothing, the only one.
        at = next((k for k in range(start, len(left)) if left[k][1] == word.lower()), None)
        if at is None and len(set(in_order)) == len(in_order) and word.lower() in in_order:
            place = in_order.index(word.lower())
        elif at is None:
            parts.append(Markup.escape(word))
            continue
        else:
            place = left[at][0]
            start = at + 1 if len(set(in_order)) < len(in_order) else 0
        found.add(place)
        parts.append(_span(place, word))
    rest = [place for place in range(len(in_order)) if place not in found]
    return _block("words", parts) + _chips(sample, rest)


def _draw_molecule(smiles: str, atoms: list[int], bonds: list[list[int]]) -> tuple[str, str]:
    """The drawing of a molecule with a shade for each component below its atom or bond, and without shades."""
    chem, draw = (
        require(f"rdkit.Chem{part}", extra="molecules") for part in ("", ".Draw.rdMolDraw2D")
    )
    molecule = chem.MolFromSmiles(smiles)
    drawer = draw.MolDraw2DSVG(-1, -1)
    options = drawer.drawOptions()
    options.useBWAtomPalette()
    options.clearBackground, options.fixedBondLength, options.padding = False, 30.0, 0.06
    draw.PrepareAndDrawMolecule(drawer, molecule)
    drawer.FinishDrawing()
    text = drawer.GetDrawingText()
    # Colours, which depend on the theme, are those of the page; letters are the paths that are filled.
    paths = re.findall(r"<path[^>]*?\bd='([^']*)'([^>]*)", text)
    strokes, letters = (
        re.sub(
            r"\s*([A-Z])\s*",
            r"\1",
            "".join(d for d, rest in paths if ("fill:none" in rest) == is_stroke),
        )
        for is_stroke in (True, False)
    )
    lines = f'<path d="{strokes}"/><path class="letter" d="{letters}"/>'
    places = [(drawer.GetDrawCoords(atom), place) for place, atom in enumerate(atoms) if atom >= 0]
    shades = "".join(
        f'<circle class="shade" data-component="{place}" cx="{at.x:.1f}" cy="{at.y:.1f}" r="13.5"/>'
        for at, place in places
    )
    ends = [[drawer.GetDrawCoords(atom) for atom in pair] for pair in bonds]
    stripes = "".join(
        f'<path class="shade" data-component="{place}" d="M{a.x:.1f} {a.y:.1f}L{b.x:.1f} {b.y:.1f}"/>'
        for place, (a, b) in enumerate(ends, len(atoms))
    )
    # Small molecules are not drawn larger than others.
    box = f'viewBox="0 0 {drawer.Width()} {drawer.Height()}" style="max-width:{1.5 * drawer.Width():.0f}px">'
    return f'{box}<g filter="url(#soft)">{shades}</g>{stripes}{lines}', box + lines
