"""Picture of one explained drug: effects of its atoms and of known labels on one label."""

from __future__ import annotations

import re
from textwrap import shorten

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from benchmarks.files import Result
from tg_mlc._optional import require

RAISES, LOWERS, INK = "#d9622b", "#3a6ea5", "#1b2a41"
_SHOWN = 6  #: The number of labels in the picture.
_RADIUS = 0.62  #: The radius of the disc of the largest score, in bond lengths.


def draw(result: Result) -> Figure:
    """Draws the molecule beside the effects of labels."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    _molecule(left, result["smiles"], result["occlusion"])
    _labels(right, result)
    probability, threshold = (f"{name} {result[name]:.2f}" for name in ("probability", "threshold"))
    figure.suptitle(f"{result['label']}: {probability}, {threshold}", color=INK, fontsize="large")
    return figure


def _molecule(axes: Axes, smiles: str, scores: dict[str, float]) -> None:
    """Draws bonds as lines, atoms other than carbon as letters, and scores as discs."""
    chem = require("rdkit.Chem", extra="molecules")
    depict = require("rdkit.Chem.rdDepictor", extra="molecules")
    molecule = chem.MolFromSmiles(smiles)
    depict.SetPreferCoordGen(True)
    depict.Compute2DCoords(molecule)
    positions = molecule.GetConformer().GetPositions()[:, :2]
    by_atom = {int(re.sub(r"\D", "", name)): score for name, score in scores.items()}
    largest = max(abs(score) for score in by_atom.values())
    for atom, score in by_atom.items():
        radius, color = _RADIUS * (abs(score) / largest) ** 0.5, RAISES if score > 0 else LOWERS
        style = {"facecolor": color, "edgecolor": "none", "alpha": 0.45, "zorder": 0}
        axes.add_patch(Circle(positions[atom], radius, **style))
    for bond in molecule.GetBonds():
        start, end = positions[bond.GetBeginAtomIdx()], positions[bond.GetEndAtomIdx()]
        normal = np.array([start[1] - end[1], end[0] - start[0]]) / np.linalg.norm(end - start)
        is_double = bond.GetIsAromatic() or bond.GetBondTypeAsDouble() == 2
        for shift in (-0.08, 0.08) if is_double else (0.0,):
            style = "--" if bond.GetIsAromatic() and shift > 0 else "-"
            ends = np.stack([start, end]).T + shift * normal[:, None]
            axes.plot(*ends, style, color=INK, linewidth=1.2)
    for atom in molecule.GetAtoms():
        if atom.GetSymbol() != "C":
            count = atom.GetTotalNumHs()
            hydrogens = ("H" if count else "") + (f"$_{count}$" if count > 1 else "")
            text, position = atom.GetSymbol() + hydrogens, positions[atom.GetIdx()]
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.8}
            axes.text(*position, text, ha="center", va="center", color=INK, bbox=box)
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.set_xlabel("atoms raise the logit (orange) or lower it (blue)", fontsize="small")
    axes.spines[:].set_visible(False)


def _labels(axes: Axes, result: Result) -> None:
    """Draws bars for the known labels that would change the logit most."""
    changes = {
        f"{shorten(name, 34, placeholder=' ...')}{suffix}": change
        for suffix, key in (("", "given as present"), (": absent", "given as absent"))
        for name, change in result[key].items()
    }
    chosen = sorted(changes, key=lambda name: -abs(changes[name]))[:_SHOWN]
    values = [changes[name] for name in chosen]
    colors = [RAISES if value > 0 else LOWERS for value in values]
    axes.barh(chosen, values, color=colors, alpha=0.8)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize="small")
    axes.set_xlabel("change of the logit if this were known", fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
