"""Random histories of events."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tg_mlc.data import from_events

COLUMNS = {"entity": "who", "time": "day", "label": "item", "amount": "cost"}


def table(num_entities=6, num_labels=5, num_rows=200, seed=0):
    """Unsorted rows, some of them repeated."""
    random = np.random.default_rng(seed)
    columns = {
        "who": random.integers(num_entities, size=num_rows),
        "day": random.integers(40, size=num_rows),
        "item": random.integers(num_labels, size=num_rows).astype(str),
        "cost": random.normal(size=num_rows).round(2),
    }
    return pd.DataFrame(columns)


def histories(**options):
    return from_events(table(**options), **COLUMNS)
