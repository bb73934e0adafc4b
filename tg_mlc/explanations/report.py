"""The report of an explanation: one HTML file, which loads nothing and links to nothing."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
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

MAX_NUMBERS = 450_000  #: The most numbers in a file; each takes about three bytes.
MAX_EFFECTS = 27  #: The most other labels shown with their effect on a label.
MAX_EDGES = 4000  #: The most edges of a label graph or of attention that are drawn.
STEPS = 99  #: Steps of a score, from 0 to the largest score of a sample, label and method.
#: Methods whose scores tell how much a component counts, but not for what.
UNSIGNED = tuple(name for name, method in METHODS.items() if not method.is_signed)
#: Names for people of a molecule's vectors, by their attribute of samples.
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
        name = shorten(sample.name, 120)
        samples.append({"name": name, "drawing": drawing, "thumbnail": thumbnail})
    facts = explanation.facts
    noun = facts.get("components", "components")
    numbers = _data(explanation, noun)
    data = json.dumps(numbers, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    per_label: Mapping[str, Any] = facts.get("per_label", {})
    has_metrics = bool(per_label) or not np.isnan(explanation.threshold).all()
    bins, has_graph = facts.get("reliability"), "label_graph" in facts
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text: str = environment.from_string(page).render(
        title=title or "Why these labels",
        style=Markup(style),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        data=Markup(data),
        samples=samples,
        labels=explanation.labels,
        noun=noun,
        facts=_headline(explanation),
        has_effects=bool(explanation[0].label_effects.size),
        has_parts=bool(explanation[0].parts),
        graph_note=f"The label graph{'' if has_graph else ' is not part of this file'}.",
        weights=[(name, f"{value:.2f}") for name, value in facts.get("weights", {}).items()],
        metrics=_metrics(explanation, per_label) if has_metrics else None,
        metrics_note=facts.get("per_label_of", ""),
        reliability=Markup(Reliability([], [], bins).to_svg()) if bins else "",
        faithfulness_note=_faithfulness_note(explanation, noun),
        notes=_notes(explanation, noun),
    )
    return text


register("method", report)


def _headline(explanation: Explanation) -> list[tuple[str, str]]:
    """The most important facts of a model, with their names."""
    facts, best = explanation.facts, explanation.faithfulness.get(explanation.method)
    parts = ", ".join(facts.get("weights", {})) or facts.get("model", "")
    entries = [("Model", parts), ("Explained by", explanation.method)]
    if best is not None:
        number = f" (n = {best.number})" if best.number else ""
        entries.append(("Faithfulness", f"{best.gain:.3f}{number}"))
    titles = {"roc_auc_macro": "ROC-AUC, macro", "f1_micro": "F1, micro", "f1_macro": "F1, macro"}
    if "test" in facts:
        values = {title: facts["test"][key] for key, title in titles.items()}
        entries += [(f"{title}, test", f"{value:.2f}") for title, value in values.items()]
    for key, title in (("data", "Data"), ("split", "Split")):
        if isinstance(facts.get(key), str):
            entries.append((title, facts[key][:12]))
    return [(name, value) for name, value in entries if value]


def _metrics(explanation: Explanation, per_label: Mapping[str, Any]) -> dict[str, Any]:
    columns = {"threshold": explanation.threshold}
    columns |= {name: np.asarray(values) for name, values in per_label.items()}
    rows = []
    for index, label in enumerate(explanation.labels):
        values = (column[index] for column in columns.values())
        rows.append([label, *("" if np.isnan(value) else f"{value:.3g}" for value in values)])
    return {"header": ["label", *columns], "rows": rows}


def _faithfulness_note(explanation: Explanation, noun: str) -> str:
    if explanation.method not in explanation.faithfulness:
        return "How faithful the methods are was not measured for this model."
    number = explanation.faithfulness[explanation.method].number
    mean = f", mean of {number} curves" if number else ""
    return (
        f"Faithfulness{mean}: the area between two curves of a label's probability, one while "
        f"{noun} are added, one while they are removed, those of the highest scores first; more is "
        f"better. The dotted line marks a random order."
    )


def _notes(explanation: Explanation, noun: str) -> list[str]:
    notes = [
        "A score says how much the model relies on a part of the input, not that the part causes "
        f"the label. Scores of {', '.join(UNSIGNED)} tell how much, all others also whether {noun} "
        "raise or lower the logit.",
        "Effects of labels are exact: the model is run again without the messages of a label, or "
        "with the label given as absent or as present. Attention stands beside them to compare; it "
        "proves nothing by itself.",
    ]
    if explanation[0].parts:
        notes.append(
            "The final probability combines several parts. Readouts and attention are those of "
            "label message passing, which is one of them."
        )
    versions = explanation.facts.get("versions", {})
    names = [name for name in ("tg_mlc", "torch", "rdkit") if name in versions]
    if names:
        packages = ", ".join(f"{name} {versions[name]}" for name in names)
        last = "This file loads nothing and sends nothing."
        notes.append(f"The model was trained with {packages}. {last}")
    return notes


def _data(explanation: Explanation, noun: str) -> dict[str, Any]:
    """All numbers, of as many labels of each sample as fit."""
    methods, names = explanation.methods, explanation.label_names
    # Numbers of one label: scores, and effects, which are five numbers of twice the length.
    num_others = 10 * min(len(names), MAX_EFFECTS) + 2 * len(explanation.state_names) + 10
    num_per_label = sum(
        sum(len(sample.scored(method)[0]) for method in methods) + num_others
        for sample in explanation
    )
    max_labels = max(1, MAX_NUMBERS // num_per_label)
    columns = np.array([names.index(name) for name in explanation.labels])
    areas, first = explanation.faithfulness, explanation[0]
    graph, attention = np.zeros((2, len(names), len(names)))
    if (edge_index := explanation.facts.get("label_graph")) is not None:
        graph[tuple(np.asarray(edge_index, dtype=int))] = 1.0
    if first.label_attention.size:
        attention[:, columns] = np.mean([_mean_attention(each) for each in explanation], axis=0)
    described = []
    for method in methods:
        has_bonds = any(method in sample.bond_scores for sample in explanation)
        entry = {
            "name": method,
            "title": method,
            "signed": not method.startswith(UNSIGNED),
            "faithfulness": _plain(areas[method].gain) if method in areas else None,
            "chosen": method == explanation.method,
            "noun": f"{noun} and bonds" if has_bonds else noun,
        }
        described.append(entry)
    return {
        "labels": names,
        "noun": noun,
        "states": explanation.state_names,
        "methods": described,
        "random": _plain(areas["random"].gain) if "random" in areas else None,
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
    """The heaviest edges between two labels, as source, target and weight."""
    cells = np.where(np.eye(len(cells), dtype=bool), 0.0, np.nan_to_num(cells))
    number = min(np.count_nonzero(cells), MAX_EDGES)
    edges = []
    for index in np.argsort(-cells, axis=None, kind="stable")[:number].tolist():
        source, target = divmod(index, len(cells))
        edges.append([source, target, _plain(cells[source, target], 3)])
    return edges


def _sample(
    sample: SampleExplanation, threshold: np.ndarray, columns: np.ndarray, max_labels: int
) -> dict[str, Any]:
    order = np.argsort(-np.nan_to_num(sample.probability), kind="stable")
    rest = order[max_labels:]
    shown = np.concatenate([order[:max_labels], rest[sample.truth[rest] == 1]])
    scores = {}
    for method in sample.scores:
        values = sample.scored(method)[1][:, shown].T  # [labels, components and bonds]
        largest = np.nan_to_num(np.abs(values)).max(axis=1, initial=0.0)
        steps = STEPS * values / np.where(largest > 0, largest, 1.0)[:, None]
        scores[method] = {"values": _plain(steps, 0), "scales": list(map(_significant, largest))}
    effects = []
    if sample.label_effects.size or sample.clamped.size:
        effects = [_effects(sample, column, int(columns[column])) for column in shown]
    return {
        "name": sample.name,
        "labels": columns[shown].tolist(),
        "probability": _plain(sample.probability[shown]),
        "threshold": _plain(threshold[shown]),
        "decision": sample.decision[shown].astype(bool).tolist(),
        "truth": _plain(sample.truth[shown], 0),
        "given": [] if sample.given is None else _plain(sample.given[shown], 0),
        "states": _plain(sample.states[:, shown]) if sample.states.size else [],
        "components": [*(TITLES.get(name, name) for name in sample.components), *sample.bonds],
        "scores": scores,
        "effects": effects,
        "parts": {name: _plain(values[shown]) for name, values in sample.parts.items()},
    }


def _effects(sample: SampleExplanation, column: int, label: int) -> list[list[Any]]:
    """The other labels that move a label most: index, effect, attention, and the change of the
    logit if the other label is known to be absent, to be present.
    """
    effect = attention = absent = present = np.full(
        max(len(sample.label_effects), len(sample.clamped)), np.nan
    )
    if sample.label_effects.size:
        effect = np.nan_to_num(sample.label_effects[:, column])
    if sample.label_attention.size:
        attention = _mean_attention(sample)[:, column]
    if sample.clamped.size:
        absent, present = sample.clamped[:, :, column].T
    size = np.nan_to_num(np.abs([effect, absent, present]))
    largest = size.max(axis=1, keepdims=True)
    total = (size / np.where(largest > 0, largest, 1.0)).sum(axis=0)
    order = [int(j) for j in np.argsort(-total, kind="stable") if j != label][:MAX_EFFECTS]
    measures = (effect, attention, absent, present)
    return [[j, *(_significant(values[j]) for values in measures)] for j in order]


def _significant(value: float) -> float | None:
    return float(f"{value:.3g}") if np.isfinite(value) else None


def _mean_attention(sample: SampleExplanation) -> np.ndarray:
    return np.asarray(sample.label_attention.mean(axis=(0, 1)))


def _plain(values: Any, digits: int = 4) -> Any:
    """Rounded numbers as plain lists, with None for NaN."""
    if isinstance(values, np.ndarray) and values.ndim:
        return [_plain(value, digits) for value in values]
    value = float(values)
    if not np.isfinite(value):
        return None
    return round(value, digits) if digits and value != round(value) else round(value)


def _draw(sample: SampleExplanation) -> tuple[Any, Any]:
    """A sample as HTML, with an element for each component to shade, and a small picture of it."""
    raw, components = sample.raw, sample.components
    if sample.smiles is not None:
        atoms = range(len(components)) if sample.atoms is None else sample.atoms.tolist()
        bonds = [] if sample.bond_atoms is None else sample.bond_atoms.tolist()
        whole, small = _draw_molecule(sample.smiles, atoms, bonds)
        alt = f"Structure of {shorten(sample.name, 120)}; the table of scores names its atoms"
        attributes = f'role="img" aria-label="{Markup.escape(alt)}"'
        svg = Markup(f'<svg class="molecule" {attributes} {whole}</svg>')
        beside = [index for index, atom in enumerate(atoms) if atom < 0]
        thumbnail = Markup(f'<svg class="molecule" aria-hidden="true" {small}</svg>')
        return svg + _chips(sample, beside), thumbnail
    if isinstance(raw, str):
        if "".join(components).upper() == raw.upper() != "":  # The letters of DNA.
            return _block("words dna", map(_span, range(len(components)), components)), ""
        return _draw_text(sample), ""
    if isinstance(raw, (list, tuple)) and len(raw) == len(components):
        raw = dict(zip(components, raw, strict=True))
    if not isinstance(raw, Mapping):
        return _chips(sample, list(range(len(components)))), ""
    row = Markup("<tr><th scope='row'>{}</th><td>{}</td></tr>")
    rows = [
        row.format(_span(index, name), _cell(raw, name)) for index, name in enumerate(components)
    ]
    return _block("words cells", [Markup("<table>"), *rows, Markup("</table>")]), ""


def _cell(raw: Mapping[str, Any], name: str) -> str:
    """The cell of a column, or of the category ``column=value``."""
    columns = (column for column in (name, *raw) if column in raw)
    column = next((column for column in columns if f"{name}=".startswith(f"{column}=")), None)
    return "" if column is None else shorten(raw[column], 60)


def _span(index: int, text: str) -> Any:
    return Markup('<span data-component="{}">{}</span>').format(index, text)


def _block(classes: str, parts: Any, between: str = "") -> Any:
    attributes = 'tabindex="0" role="group" aria-label="The sample"'
    opening = Markup(f'<div class="{{}}" {attributes}>').format(classes)
    return opening + Markup(between).join(parts) + Markup("</div>")


def _chips(sample: SampleExplanation, indices: list[int]) -> Any:
    names = [TITLES.get(sample.components[index], sample.components[index]) for index in indices]
    return _block("words chips", map(_span, indices, names), " ") if indices else Markup("")


def _draw_text(sample: SampleExplanation) -> Any:
    """The text as it was written, with its components; those that are no words of it follow."""
    names = [name.lower() for name in sample.components]
    has_order = len({*names}) < len(names)  # Repeated words stand in the order of the text.
    parts, shaded, start = [], set[int](), 0
    for word in re.split(r"(\w+)", sample.raw):
        later = range(start, len(names))
        index = next((k for k in later if names[k] == word.lower()), None)
        if index is None:
            parts.append(Markup.escape(word))
            continue
        if has_order:
            start = index + 1
        shaded.add(index)
        parts.append(_span(index, word))
    rest = [index for index in range(len(names)) if index not in shaded]
    return _block("words", parts) + _chips(sample, rest)


def _draw_molecule(smiles: str, atoms: Sequence[int], bonds: list[list[int]]) -> tuple[str, str]:
    """The drawing of a molecule with a shade for each component below its atom or bond, and the
    drawing without shades.
    """
    chem, draw = (
        require(f"rdkit.Chem{part}", extra="molecules") for part in ("", ".Draw.rdMolDraw2D")
    )
    drawer = draw.MolDraw2DSVG(-1, -1)
    options = drawer.drawOptions()
    options.useBWAtomPalette()
    options.clearBackground, options.fixedBondLength, options.padding = False, 30.0, 0.06
    draw.PrepareAndDrawMolecule(drawer, chem.MolFromSmiles(smiles))
    drawer.FinishDrawing()
    # The page sets colours, which depend on the theme; letters are the filled paths.
    strokes = letters = ""
    for path, rest in re.findall(r"<path[^>]*?\bd='([^']*)'([^>]*)", drawer.GetDrawingText()):
        if "fill:none" in rest:
            strokes += path
        else:
            letters += path
    strokes, letters = (re.sub(r"\s*([A-Z])\s*", r"\1", path) for path in (strokes, letters))
    lines = f'<path d="{strokes}"/><path class="letter" d="{letters}"/>'
    shades = stripes = ""
    for index, atom in enumerate(atoms):
        if atom >= 0:
            at = drawer.GetDrawCoords(atom)
            ends = f'cx="{at.x:.1f}" cy="{at.y:.1f}" r="13.5"'
            shades += f'<circle class="shade" data-component="{index}" {ends}/>'
    for index, pair in enumerate(bonds, len(atoms)):
        a, b = map(drawer.GetDrawCoords, pair)
        line = f"M{a.x:.1f} {a.y:.1f}L{b.x:.1f} {b.y:.1f}"
        stripes += f'<path class="shade" data-component="{index}" d="{line}"/>'
    # Small molecules are not drawn larger than others.
    width, height = drawer.Width(), drawer.Height()
    box = f'viewBox="0 0 {width} {height}" style="max-width:{1.5 * width:.0f}px">'
    return f'{box}<g filter="url(#soft)">{shades}</g>{stripes}{lines}', box + lines
