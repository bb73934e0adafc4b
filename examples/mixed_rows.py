"""A text and columns of numbers in one row: python examples/mixed_rows.py

Visits to a clinic are made up: each label depends on a word of the note and on a number beside it,
so neither the notes nor the numbers tell it alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import tg_mlc
from tg_mlc.data import from_arrays
from tg_mlc.metrics import evaluate

WORDS = ["cough", "fever", "rash", "pain", "nausea", "fall", "sleepy", "thirsty", "well", "tired"]


def visits(size: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns visits and their labels. One note in ten is missing."""
    rng = np.random.default_rng(seed)
    words = rng.permuted(np.tile(WORDS, (size, 1)), axis=1)[:, :4]
    age, temperature = rng.uniform(1, 90, size), rng.normal(37.5, 1, size)
    has = {word: (words == word).any(axis=1) for word in WORDS}
    labels = {
        "croup": has["cough"] & (age < 12),
        "infection": has["fever"] & (temperature > 38),
        "fracture": has["fall"] & (age > 65),
    }
    notes = [" ".join(row) for row in words]
    notes = np.where(rng.random(size) < 0.1, None, notes)
    city = rng.choice(["Rome", "Oslo"], size)
    frame = pd.DataFrame({"note": notes, "age": age, "temperature": temperature, "city": city})
    return frame.round(1), pd.DataFrame(labels).astype(float)


def main(size: int = 1200, seconds: float = 20) -> None:
    """Compares models of both kinds of input with models of one, and explains a prediction."""
    (train, y), (test, y_test) = visits(size, 0), visits(size, 1)
    text, features = {"text": "note"}, {"features": ["age", "temperature", "city"]}
    for kind in (text, features, {**text, **features}):
        has_inputs = train.note.notna() if kind == text else train.age.notna()
        samples = from_arrays(train[has_inputs], y[has_inputs], kind=kind)
        model = tg_mlc.auto(samples, seconds=seconds)
        scores = np.nan_to_num(model.predict(test)["probability"].to_numpy())
        precision = evaluate(y_test.to_numpy(), scores)["average_precision_macro"]
        print(f"{' and '.join(kind):<20} macro average precision {precision:.3f}")

    [sample] = model.explain(test[:1], labels=["croup"], method="occlusion").samples
    shares = {name: f"{share[0]:.0%}" for name, share in sample.shares("occlusion").items()}
    print(f"Croup at the age of {test.age[0]:.0f}, '{test.note[0]}': evidence by part {shares}")


if __name__ == "__main__":
    main()
