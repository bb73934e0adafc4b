"""The next basket of each customer: python examples/next_basket.py [baskets.csv who day item]"""

from __future__ import annotations

import random
import sys

import pandas as pd
import torch

from tg_mlc import sequences
from tg_mlc.data import from_events
from tg_mlc.graphs import fully_connected
from tg_mlc.metrics import evaluate
from tg_mlc.sequences.lanet import MEMORY
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit


def main(path: str = "", *columns: str, epochs: int = 10) -> None:
    """Compares counting with LANET and its memory, on the last baskets of each customer."""
    table = pd.read_csv(path) if path else baskets()
    who, day, item = columns or ("who", "day", "item")
    events = from_events(table, entity=who, time=day, label=item).with_at_least(7)
    split, preprocessor = sequences.time_split(events), sequences.EventPreprocessor(window_size=3)
    dataset = preprocessor.fit_transform(events, split)
    y = dataset.y[split.test.numpy()].toarray()
    for baseline in (sequences.GlobalFrequency(), sequences.PersonalFrequency(decay=0.95)):
        scores = baseline.fit(dataset, split.train).predict_proba(dataset, split.test)
        print(f"{type(baseline).__name__:18} {evaluate(y, scores)['average_precision_macro']:.3f}")

    torch.manual_seed(0)
    names, options = dataset.label_names, {**MEMORY["model"], "window": dataset.window}
    options["memory"] = sequences.personal_memory(dataset, split.train, **MEMORY["memory"])
    network = sequences.LANET(fully_connected(names), dataset.num_entities, **options)
    module = MultiLabelModule(network, names, preprocessor=preprocessor, **MEMORY["module"])
    data = MultiLabelDataModule(dataset, split, **MEMORY["data"])
    options = {**MEMORY["fit"], "max_epochs": epochs}
    trained = fit(module, data, "runs/baskets", logger=False, **options).training
    scores = trained.scores(data.test_dataloader()).numpy()
    print(f"{'LANET':18} {evaluate(y, scores)['average_precision_macro']:.3f}")


def baskets() -> pd.DataFrame:
    """Sixty customers with three favourites each, who buy coffee every third week."""
    rng, rows = random.Random(0), []
    for customer in range(60):
        favourites = rng.sample(["apples", "cheese", "eggs", "fish", "jam", "rice", "tea"], 3)
        habits = {**dict.fromkeys(favourites, 0.4), "bread": 0.5, "milk": 0.5}
        for week in range(40):
            basket = [item for item, chance in habits.items() if rng.random() < chance]
            basket += ["coffee"] * ((week + customer) % 3 == 0)
            rows += [(customer, 7 * week, item) for item in basket]
    return pd.DataFrame(rows, columns=["who", "day", "item"])


if __name__ == "__main__":
    main(*sys.argv[1:])
