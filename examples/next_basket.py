"""The next basket of each customer: python examples/next_basket.py [baskets.csv who day item]

Without arguments the baskets are made up. For the tables of the LANET paper, on Complete Journey and other data:
python -m benchmarks.accuracy.lanet_tables
"""

from __future__ import annotations

import random
import sys

import pandas as pd
import torch

from tg_mlc.data import from_events
from tg_mlc.graphs import fully_connected
from tg_mlc.metrics import evaluate
from tg_mlc.sequences import (
    LANET,
    EventPreprocessor,
    GlobalFrequency,
    PersonalFrequency,
    personal_memory,
    time_split,
)
from tg_mlc.sequences.lanet import MEMORY
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit


def main(
    path: str | None = None,
    who: str = "who",
    day: str = "day",
    item: str = "item",
    epochs: int = 10,
) -> None:
    """Compares counting with LANET and its memory, on the last baskets of each customer."""
    table = pd.read_csv(path) if path else baskets()
    events = from_events(table, entity=who, time=day, label=item).with_at_least(7)
    split = time_split(events)
    preprocessor = EventPreprocessor(window_size=3)
    dataset = preprocessor.fit_transform(events, split)
    y = dataset.y[split.test.numpy()].toarray()
    for baseline in (GlobalFrequency(), PersonalFrequency(decay=0.95)):
        scores = baseline.fit(dataset, split.train).predict_proba(dataset, split.test)
        print(f"{type(baseline).__name__:18} {evaluate(y, scores)['average_precision_macro']:.3f}")

    torch.manual_seed(0)
    memory = personal_memory(dataset, split.train, **MEMORY["memory"])
    graph = fully_connected(dataset.label_names)
    network = LANET(
        graph, dataset.num_entities, memory=memory, window=dataset.window, **MEMORY["model"]
    )
    module = MultiLabelModule(
        network, dataset.label_names, preprocessor=preprocessor, **MEMORY["module"]
    )
    data = MultiLabelDataModule(dataset, split, **MEMORY["data"])
    model = fit(
        module, data, "runs/baskets", logger=False, **{**MEMORY["fit"], "max_epochs": epochs}
    )
    scores = model.training.scores(data.test_dataloader()).numpy()
    print(f"{'LANET':18} {evaluate(y, scores)['average_precision_macro']:.3f}")


def baskets() -> pd.DataFrame:
    """Sixty customers with three favourites each, who buy coffee every third week."""
    draw, items, rows = (
        random.Random(0),
        ["apples", "cheese", "eggs", "fish", "jam", "rice", "tea"],
        [],
    )
    for customer in range(60):
        liked = dict.fromkeys(draw.sample(items, 3), 0.4) | {"bread": 0.5, "milk": 0.5}
        for week in range(40):
            basket = [item for item, often in liked.items() if draw.random() < often]
            basket += ["coffee"] * ((week + customer) % 3 == 0)
            rows += [(customer, 7 * week, item) for item in basket]
    return pd.DataFrame(rows, columns=["who", "day", "item"])


if __name__ == "__main__":
    main(*sys.argv[1:])
