"""Random histories of events."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tg_mlc.data import from_events
from tg_mlc.sequences import EventPreprocessor, time_split

COLUMNS = {"entity": "who", "time": "day", "label": "item", "amount": "cost"}


def table(num_entities=6, num_labels=5, num_rows=200, seed=0):
    """Returns unsorted rows, some of which are repeated."""
    random = np.random.default_rng(seed)
    sizes = {"who": num_entities, "day": 40, "item": num_labels}
    columns = {name: random.integers(size, size=num_rows) for name, size in sizes.items()}
    rows = pd.DataFrame({**columns, "cost": random.normal(size=num_rows).round(2)})
    return rows.astype({"item": str})


def histories(**options):
    return from_events(table(**options), **COLUMNS)


def split_histories():
    """Returns random histories as a data set, and their split by time."""
    events = histories()
    split = time_split(events)
    return EventPreprocessor().fit_transform(events, split), split
