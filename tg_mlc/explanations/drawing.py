"""Drawings of samples for HTML pages: texts, tables, DNA and molecules, with parts to shade."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tg_mlc._names import shorten
from tg_mlc._optional import require
from tg_mlc.inputs.components import Section

Markup: Any = require("markupsafe", extra="explain").Markup

#: Readable names of a molecule's vectors, by attribute of samples.
TITLES = {
    "morgan": "Morgan fingerprint",
    "atom_pair": "atom pairs",
    "torsion": "torsions",
    "maccs": "MACCS keys",
    "descriptors": "descriptors",
}


def draw(
    raw: Any,
    components: Sequence[str],
    smiles: str | None = None,
    atoms: np.ndarray | None = None,
    bond_atoms: np.ndarray | None = None,
) -> dict[str, Any]:
    """Returns what a page shows of a sample: pieces of text, cells of a row or drawings of a
    molecule, with indices of components to shade; and chips for all other components. The macro
    in ``drawing.html`` turns it into HTML.

    Args:
        raw, components, smiles, atoms, bond_atoms: As in :class:`.SampleExplanation`.
    """
    titles = [TITLES.get(name, name) for name in components]
    if smiles is not None:
        indices = range(len(components)) if atoms is None else atoms.tolist()
        bonds = [] if bond_atoms is None else bond_atoms.tolist()
        picture, thumbnail = map(Markup, _draw_molecule(smiles, indices, bonds))
        chips = [(index, titles[index]) for index, atom in enumerate(indices) if atom < 0]
        return {"picture": picture, "thumbnail": thumbnail, "chips": chips}
    if isinstance(raw, str):
        if "".join(components).upper() == raw.upper() != "":  # The components are letters of DNA.
            return {"kind": "dna", "pieces": list(enumerate(components))}
        pieces = _pieces(raw, [name.lower() for name in components])
        shaded = {index for index, _ in pieces}
        return {"pieces": pieces, "chips": [x for x in enumerate(titles) if x[0] not in shaded]}
    if isinstance(raw, (list, tuple)) and len(raw) == len(components):
        raw = dict(zip(components, raw, strict=True))
    if not isinstance(raw, Mapping):
        return {"chips": list(enumerate(titles))}
    return {"cells": [(index, name, _cell(raw, name)) for index, name in enumerate(components)]}


def draw_sections(
    sections: Sequence[Section], num_components: int, bond_atoms: np.ndarray | None = None
) -> dict[str, Any]:
    """Returns what a page shows of a sample with parts: each part as :func:`draw` does, with the
    indices of its components among those of the sample.

    Args:
        sections (Sequence[Section]): The parts.
        num_components (int): The number of components of the sample.
        bond_atoms (numpy.ndarray, optional): As in :class:`.SampleExplanation`.
    """
    drawings = []
    for section in sections:
        drawing: dict[str, Any]
        if section.smiles is not None:
            atoms = section.atoms(num_components)
            ends = [] if bond_atoms is None else atoms[bond_atoms].tolist()
            picture, thumbnail = map(Markup, _draw_molecule(section.smiles, atoms.tolist(), ends))
            drawing = {"picture": picture, "thumbnail": thumbnail}
        else:
            drawing = _shifted(draw(section.raw, section.names), section.start)
        drawings.append({"name": section.name, **drawing})
    thumbnails = [drawing["thumbnail"] for drawing in drawings if "thumbnail" in drawing]
    return {"sections": drawings, **({"thumbnail": thumbnails[0]} if thumbnails else {})}


def _shifted(drawing: dict[str, Any], offset: int) -> dict[str, Any]:
    """Returns a drawing in which the indices of components start at an offset."""
    shifted = dict(drawing)
    for key in ("pieces", "chips", "cells"):
        if key in drawing:
            entries = [(index, *rest) for index, *rest in drawing[key]]
            shifted[key] = [(i if i is None else i + offset, *rest) for i, *rest in entries]
    return shifted


def _cell(raw: Mapping[str, Any], name: str) -> str:
    """Returns the cell of a component, whose name is a column or ``column=value``."""
    columns = (column for column in (name, *raw) if column in raw)
    column = next((column for column in columns if f"{name}=".startswith(f"{column}=")), None)
    return "" if column is None else shorten(raw[column], 60)


def _pieces(text: str, names: list[str]) -> list[tuple[int | None, str]]:
    """Splits a text into pieces, and pairs each with the index of its component or None."""
    has_order = len({*names}) < len(names)  # Repeated words are in the order of the text.
    pieces, start = [], 0
    for word in re.split(r"(\w+)", text):
        candidates = range(start, len(names))
        index = next((i for i in candidates if names[i] == word.lower()), None)
        pieces.append((index, word))
        if has_order and index is not None:
            start = index + 1
    return pieces


def _draw_molecule(smiles: str, atoms: Sequence[int], bonds: list[list[int]]) -> tuple[str, str]:
    """Returns a drawing of a molecule that has a shade behind the atom or bond of each component,
    and the drawing without shades.
    """
    chem, draw = (
        require(f"rdkit.Chem{name}", extra="molecules") for name in ("", ".Draw.rdMolDraw2D")
    )
    drawer = draw.MolDraw2DSVG(-1, -1)
    options = drawer.drawOptions()
    options.useBWAtomPalette()
    options.clearBackground, options.fixedBondLength, options.padding = False, 30.0, 0.06
    draw.PrepareAndDrawMolecule(drawer, chem.MolFromSmiles(smiles))
    drawer.FinishDrawing()
    # Colours are removed, because the page sets them by theme. Letters are the filled paths.
    outlines = {True: "", False: ""}
    for path, attributes in re.findall(r"<path[^>]*?\bd='([^']*)'([^>]*)", drawer.GetDrawingText()):
        outlines["fill:none" in attributes] += path
    strokes, letters = (re.sub(r"\s*([A-Z])\s*", r"\1", path) for path in outlines.values())
    drawing = f'<path d="{strokes}"/><path class="letter" d="{letters}"/>'
    shades = stripes = ""
    for index, atom in enumerate(atoms):
        if atom >= 0:
            point = drawer.GetDrawCoords(atom)
            circle = f'cx="{point.x:.1f}" cy="{point.y:.1f}" r="13.5"'
            shades += f'<circle class="shade" data-component="{index}" {circle}/>'
    for index, pair in enumerate(bonds, len(atoms)):
        if min(pair) < 0:  # The bond is of another molecule of the sample.
            continue
        begin, end = map(drawer.GetDrawCoords, pair)
        bond_path = f"M{begin.x:.1f} {begin.y:.1f}L{end.x:.1f} {end.y:.1f}"
        stripes += f'<path class="shade" data-component="{index}" d="{bond_path}"/>'
    # A maximum width keeps small molecules at the same scale as large ones.
    width, height = drawer.Width(), drawer.Height()
    box = f'viewBox="0 0 {width} {height}" style="max-width:{1.5 * width:.0f}px">'
    return f'{box}<g filter="url(#soft)">{shades}</g>{stripes}{drawing}', box + drawing
