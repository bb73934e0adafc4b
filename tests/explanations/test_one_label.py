import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Batch
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


def explainer(network, algorithm, **options):
    options |= {"explanation_type": "model", "node_mask_type": "attributes"}
    config = {"mode": "regression", "task_level": "graph", "return_type": "raw"}
    return Explainer(network, algorithm, model_config=config, **options)


def test_pyg_explains_one_label_with_masks_of_nodes_and_edges():
    torch.manual_seed(0)
    data = batch(3)
    data.x = data.x.float()
    pyg = explainer(OneLabel(Net(), "b"), GNNExplainer(epochs=3), edge_mask_type="object")
    explanation = pyg(data.x, data.edge_index, edge_attr=data.edge_attr, batch=data.batch)
    assert explanation.node_mask.shape == data.x.shape
    assert explanation.edge_mask.shape == (data.num_edges,)


@pytest.mark.parametrize("keys", [(), ("edge_attr", "batch")])
def test_integrated_gradients_are_those_of_pyg(keys):
    pytest.importorskip("captum")
    torch.manual_seed(0)
    network, [sample] = Attending().eval(), molecules(2, seed=3)[1:]
    sample.x = sample.x.float() / 10
    [result] = tg_mlc.explain(network, [sample], ["c"], "integrated gradients")
    pyg = explainer(OneLabel(network, "c"), CaptumExplainer("IntegratedGradients"))
    inputs = {key: Batch.from_data_list([sample])[key] for key in keys}
    expected = pyg(sample.x, sample.edge_index, **inputs).node_mask.sum(dim=1).detach().numpy()
    scores = result.scores["integrated gradients"][:, 0]
    np.testing.assert_allclose(expected, scores, atol=0.02)
    assert np.ptp(scores) > 0.1


def test_an_unknown_label_names_the_nearest():
    with pytest.raises(ValueError, match=r"'bb'.*did you mean 'b'"):
        OneLabel(Net(), "bb")
