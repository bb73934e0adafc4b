"""Saves small models of this version among those that every later version has to read.

    python tools/keep_folders.py

Run it once for a release, and commit what it writes to tests/saving/folders/.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import tg_mlc
from tg_mlc.data import from_arrays, with_hierarchy
from tg_mlc.stacking import AutoModel, auto, automatic
from tg_mlc.stacking.classifiers import ClassifierSearch, many_labels

FOLDERS = Path(__file__).parents[1] / "tests" / "saving" / "folders"
LABELS, COVERAGE = ["animal", "bird", "plant"], 0.8


def main() -> None:
    """Keeps a model with calibration, label sets and given labels, and one of a hierarchy."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5)).round(3)
    y = (x[:, :3] + rng.normal(0, 0.5, (60, 3)) > 0).astype(float)
    y[:, 1] *= y[:, 0]
    y[rng.random(y.shape) < 0.05] = np.nan
    samples = from_arrays(x, y, LABELS, kind="vector")
    model = auto(samples, seconds=2, coverage_share=0.3, calibrate=True)
    del model.models[1:]  # of several folds, each of which takes 0.4 MB
    keep("auto", model, x[:3])
    with mock.patch.object(automatic, "many_labels", lambda graph: small(many_labels(graph))):
        keep("hierarchy", auto(with_hierarchy(samples, [("bird", "animal")]), seconds=0), x[:3])


def small(searches: dict[str, ClassifierSearch]) -> dict[str, ClassifierSearch]:
    """The classifiers of hierarchies with a narrow network: one of the usual width takes 2 MB."""
    return {**searches, "network": replace(searches["network"], settings=((16, 0.5),))}


def keep(name: str, model: AutoModel, x: np.ndarray) -> None:
    """Saves a model, and what it predicts."""
    folder = FOLDERS / f"{name}-{tg_mlc.__version__}"
    model.save(folder / "model")
    loaded = tg_mlc.load(folder / "model")
    given = {LABELS[1]: 1}
    found = loaded.predict(x)
    expected: dict[str, Any] = {
        "raw": x.tolist(),
        "label_names": loaded.label_names,
        "probability": found["probability"].to_numpy().tolist(),
        "decision": found["decision"].to_numpy().tolist(),
        "thresholds": {"f1_micro": np.asarray(loaded.thresholds("f1_micro")).tolist()},
        "given": given,
        "probability_given": loaded.predict(x, given=given)["probability"].to_numpy().tolist(),
    }
    if model.conformal is not None:
        sets = loaded.predict(x, coverage=COVERAGE)["decision"].to_numpy().tolist()
        expected |= {"coverage": COVERAGE, "sets": sets}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
