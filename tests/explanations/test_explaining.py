from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINEConv

import tg_mlc
from tests.models.samples import molecules
from tg_mlc.explanations import METHODS
from tg_mlc.graphs import LabelGraph, fully_connected
from tg_mlc.nn import LabelHead, LabelMessagePassing

NAMES = ["a", "b", "c"]


class Net(nn.Module):
    """A GNN of one's own, whose nodes labels attend to."""

    def __init__(self) -> None:
        super().__init__()
        self.atoms, self.bonds = nn.Linear(9, 8), nn.Linear(3, 8)
        self.conv = GINEConv(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)))
        self.labels = LabelMessagePassing(8, fully_connected(NAMES), heads=2)
        self.readout = LabelHead(self.labels)

    def forward(self, data: Data) -> torch.Tensor:
        x, bonds = self.atoms(data.x / 10), self.bonds(data.edge_attr.float())
        return self.readout(self.labels(self.conv(x, data.edge_index, bonds), data.batch))


@pytest.fixture(scope="module")
def network() -> Net:
    torch.manual_seed(0)
    return Net()


@pytest.fixture(scope="module")
def samples() -> list[Data]:
    return molecules(4, seed=1, largest=8)[1:]


def test_a_batch_equals_its_samples(network, samples):
    together = tg_mlc.explain(network, samples)
    assert set(together.methods) == set(METHODS)
    for row, sample in enumerate(samples):
        [alone] = tg_mlc.explain(network, [sample])
        for method in METHODS:
            np.testing.assert_allclose(together[row].scores[method], alone.scores[method], atol=1e-5)
        np.testing.assert_allclose(together[row].label_effects, alone.label_effects, atol=1e-5)


def test_integrated_gradients_sum_to_the_difference_of_logits(network, samples):
    explanation = tg_mlc.explain(network, samples, ["b"], "integrated gradients")
    zeros = network.labels.register_forward_pre_hook(lambda module, args: (torch.zeros_like(args[0]), *args[1:]))
    without = torch.logit(torch.tensor(tg_mlc.explain(network, samples, ["b"], "occlusion")[0].probability))
    zeros.remove()
    for sample in explanation:
        assert sample.scores["integrated gradients"].shape == (len(sample.components), 1)
        difference = torch.logit(torch.tensor(sample.probability)) - without
        torch.testing.assert_close(
            torch.tensor(sample.scores["integrated gradients"].sum(axis=0)), difference, rtol=0.01, atol=1e-5
        )


def test_effects_of_labels_are_what_cut_edges_change(network, samples):
    [sample] = tg_mlc.explain(network, samples[:1], method="attention")
    graph = network.labels.label_graph
    source, target = graph.edge_index
    batch = Batch.from_data_list(samples[:1])
    with torch.no_grad():
        whole = network.eval()(batch)
        network.labels.label_graph = LabelGraph(graph.edge_index[:, (source != 1) | (target == 1)], label_names=NAMES)
        cut = network(batch)
        network.labels.label_graph = graph
    np.testing.assert_allclose(sample.label_effects[1], (whole - cut)[0], atol=1e-5)
    assert np.abs(sample.label_effects[1, [0, 2]]).min() > 0


def test_it_can_be_saved(network, samples, tmp_path):
    explanation = tg_mlc.explain(network, samples, ["b", "a"], "attention", y=np.eye(3))
    loaded = tg_mlc.explanations.Explanation.load(explanation.save(tmp_path / "why"))
    assert loaded.labels == ["b", "a"]
    assert loaded.to_frame().equals(explanation.to_frame())
    assert loaded[0].truth.tolist() == [0.0, 1.0]
