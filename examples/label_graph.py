"""Does a label graph help? python examples/label_graph.py

The samples are drawn along a known label graph: three quarters of what can be known of a label
comes from its neighbours. For your own file:
tg-mlc compare --csv my.csv --labels ... --graphs edgeless,complete,prior,mine.csv --out comparison
"""

from __future__ import annotations

import torch

from tg_mlc.data import random_split
from tg_mlc.datasets import Planted
from tg_mlc.graphs import co_occurrence, compare, edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import NodeEncoder
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit


def main(num_samples: int = 1000, epochs: int = 8) -> None:
    """Trains the same network along four label graphs on one split."""
    dataset = Planted(num_samples=num_samples, num_labels=12, share=0.75)
    names, true_graph = dataset.label_names, dataset.true_graph
    split = random_split(len(dataset), seed=0)
    counted = co_occurrence(dataset, split=split, weight="correlation", top_k=3)
    print(compare(counted, true_graph))

    data = MultiLabelDataModule(dataset, split)
    graphs = {
        "edgeless": edgeless(names),
        "complete": fully_connected(names),
        "counted": counted,
        "known": true_graph,
    }
    for name, graph in graphs.items():
        torch.manual_seed(0)
        model = LaMP(NodeEncoder(8, 32), graph, num_feature_layers=0, num_steps=2)
        module = MultiLabelModule(model, names, lr=0.003)
        trained = fit(module, data, f"runs/{name}", max_epochs=epochs)
        evaluation = trained.training.evaluate()
        print(f"{name:9} macro average precision {evaluation['average_precision_macro']:.3f}")


if __name__ == "__main__":
    main()
