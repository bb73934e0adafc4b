from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.explain import CaptumExplainer, Explainer, GNNExplainer

import tg_mlc
from tests.explanations.networks import NAMES, Net
from tests.models.samples import batch, molecules
from tg_mlc.explanations import OneLabel
from tg_mlc.graphs import fully_connected
from tg_mlc.nn import LabelHead, LabelMessagePassing


class Attending(nn.Module):
    """Labels that attend to the features of nodes."""

    def __init__(self):
        super().__init__()
        self.labels = LabelMessagePassing((9, 8), fully_connected(NAMES), heads=2)
        self.readout = LabelHead(self.labels)

    def forward(self, data):
        return self.readout(self.labels(data.x, data.batch, batch_size=data.num_graphs))


def explainer(network, algorithm):
    return Explainer(
        network,
        algorithm,
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object" if isinstance(algorithm, GNNExplainer) else None,
        model_config={"mode": "regression", "task_level": "graph", "return_type": "raw"},
    )


def test_pyg_explains_one_label_with_masks_of_nodes_and_edges():
    torch.manual_seed(0)
    data = batch(3)
    data.x = data.x.float()
    made = explainer(OneLabel(Net(), "b"), GNNExplainer(epochs=3))
    found = made(data.x, data.edge_index, edge_attr=data.edge_attr, batch=data.batch)
    assert found.node_mask.shape == data.x.shape
    assert found.edge_mask.shape == (data.num_edges,)


@pytest.mark.parametrize("label", ["c", 2])
def test_pyg_ranks_as_we_do(label):
    pytest.importorskip("captum")
    torch.manual_seed(0)
    network, [sample] = Attending().eval(), molecules(2, seed=3)[1:]
    sample.x = sample.x.float() / 10
    [ours] = tg_mlc.explain(network, [sample], ["c"], "integrated gradients")
    made = explainer(OneLabel(network, label), CaptumExplainer("IntegratedGradients"))
    found = made(sample.x, sample.edge_index).node_mask.sum(dim=1).detach().numpy()
    # The masks of captum are absolute values of each feature.
    theirs = np.abs(ours.scores["integrated gradients"][:, 0])
    assert len(found) == len(theirs)
    assert np.corrcoef(found, theirs)[0, 1] > 0.5


def test_an_unknown_label_names_the_nearest():
    with pytest.raises(ValueError, match=r"'bb'.*did you mean 'b'"):
        OneLabel(Net(), "bb")
