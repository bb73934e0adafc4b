"""Explains one drug, for the chemical interpretation in docs/explanations.md.

    tg-mlc train --csv train.csv --out model
    python -m benchmarks.accuracy.explained_drug --model model --replace

The model is that of ``tg-mlc train`` on 90 % of SIDER's drugs, without the explained drug.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tg_mlc
from benchmarks.command_line import run
from benchmarks.files import write_results

NAME = "explained_drug"
SMILES, LABEL = "CC1=CC(=NO1)NS(=O)(=O)C2=CC=C(C=C2)N", "Hepatobiliary disorders"


def main(model: Path, replace: bool = False) -> None:
    """Explains the drug, and writes benchmarks/runs/.

    Args:
        model: The model's folder.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    explanation = tg_mlc.explain(tg_mlc.load(model), [SMILES], [LABEL])
    [sample] = explanation
    names, occlusion = explanation.label_names, sample.scores["occlusion"][:, 0].tolist()
    by_atom = dict(zip(sample.components, occlusion, strict=True))
    content = {
        "smiles": SMILES,
        "label": LABEL,
        "probability": float(sample.probability[0]),
        "threshold": float(explanation.threshold[0]),
        "logit": float(sum(part[0] for part in sample.parts.values())),
        "parts": {name: float(part[0]) for name, part in sample.parts.items()},
        "states": dict(zip(explanation.state_names, sample.states[:, 0].tolist(), strict=True)),
        "occlusion": {name: value for name, value in by_atom.items() if not np.isnan(value)},
        "faithfulness": {name: areas.gain for name, areas in explanation.faithfulness.items()},
        "largest effect of a label": float(np.abs(np.nan_to_num(sample.label_effects)).max()),
    }
    for index, key in enumerate(("given as absent", "given as present")):
        effects = dict(zip(names, sample.clamped[:, index, 0].tolist(), strict=True))
        del effects[LABEL]  # The label itself is unknown.
        content[key] = effects
    print(f"Wrote {write_results(NAME, content, replace=replace)}")


if __name__ == "__main__":
    sys.exit(run(main))
