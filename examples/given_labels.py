"""Known labels help to predict the others: python examples/given_labels.py

Drugs and effects are made up: a drug acts on the stomach, the skin or both, and no input shows
which.
"""

from __future__ import annotations

import numpy as np

import tg_mlc
from tg_mlc.data import from_arrays, random_split
from tg_mlc.metrics import evaluate

NAMES = ["nausea", "vomiting", "stomach ache", "rash", "itching"]


def main(seconds: float = 20) -> None:
    """Trains on some drugs, and predicts effects of other drugs, given more and more effects."""
    rng = np.random.default_rng(0)
    x, acts = rng.normal(size=(600, 6)), rng.random((600, 2)) < 0.4
    logits = x[:, :5] - 1.5 + 2.5 * acts[:, [0, 0, 0, 1, 1]] + rng.normal(size=(600, 5))
    drugs = from_arrays(x, logits > 0, label_names=NAMES, kind="vector")
    split = random_split(len(drugs), (0.7, 0.0, 0.3), seed=0)
    model = tg_mlc.auto(drugs[split.train], seconds=seconds)

    new = x[split.test[:1].numpy()]
    for given in ({}, {"nausea": 1}, {"nausea": 1, "vomiting": 1}):
        frame = model.predict(new, given=given or None)
        print(given, frame["probability"].iloc[0].round(2).to_dict())

    test, y = x[split.test.numpy()], drugs.y[split.test].numpy()
    for fraction in (0.0, 0.2, 0.4, 0.6):
        is_given = rng.random(y.shape) < fraction
        scores = model.probabilities(test, given=np.where(is_given, y, np.nan))
        score = evaluate(np.where(is_given, np.nan, y), scores)["average_precision_macro"]
        print(
            f"{fraction:.0%} of the labels given: macro average precision of the others {score:.3f}"
        )


if __name__ == "__main__":
    main()
