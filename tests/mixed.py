"""Small tables with columns of several kinds, which tests of several rooms share."""

from __future__ import annotations

import numpy as np
import pandas as pd

WORDS = ["red", "green", "blue", "pear", "plum", "dog", "cow"]
SMILES = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CC(=O)N", "C1CCCCC1", "ClCCl", "OCCO"]
LABELS = ["sweet", "old", "amine"]
#: The columns of each kind that need no RDKit.
PLAIN = {"text": "note", "features": ["age", "city", "seen"]}
COLUMNS = {**PLAIN, "smiles": "drug"}


def make_frame(size: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Returns a frame with numbers, categories, dates, texts and molecules, and labels of both a
    text and a number, of a number, and of a molecule. Some parts are missing, and a text is empty.
    """
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "note": [" ".join(rng.choice(WORDS, 4)) for _ in range(size)],
            "age": rng.normal(50, 10, size).round(1),
            "city": rng.choice(["Rome", "Oslo", "Bonn"], size),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, size), "D"),
            "drug": rng.choice(SMILES, size),
        }
    )
    is_old = frame.age > 50
    labels = [frame.note.str.contains("red") & is_old, is_old, frame.drug.str.contains("N")]
    frame.loc[3, "note"], frame.loc[4, "note"], frame.loc[5, "drug"] = None, "...", None
    return frame, np.stack(labels, axis=1).astype(np.float32)
