"""torch.export with an open number of samples, hooks, and to_hetero."""

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export
from torch.fx.experimental import _config as fx
from torch_geometric.nn import to_hetero

from tests.nn.samples import path_graph, ragged
from tests.requirements import needs_export
from tg_mlc import LabelHead, LabelMessagePassing
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected


class Net(nn.Module):
    def __init__(self, label_graph: LabelGraph) -> None:
        super().__init__()
        self.labels = LabelMessagePassing(8, label_graph, num_steps=2, heads=2)
        self.head = LabelHead(self.labels)

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        return self.head(self.labels(x, ptr=ptr))


def pointers(sizes):
    return ragged(sizes, 8)[0], torch.tensor([0, *sizes]).cumsum(0)


@needs_export
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(fully_connected(5), id="all", marks=pytest.mark.slow),
        pytest.param(edgeless(5), id="none", marks=pytest.mark.slow),
        pytest.param(path_graph(5), id="path"),
    ],
)
@pytest.mark.parametrize("smallest", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_export_leaves_the_number_of_samples_open(graph, smallest):
    """Any number from 2 on is allowed, or from 1 on if PyTorch does not specialise sizes of 1."""
    model = Net(graph).eval()
    shapes = ({0: Dim("atoms")}, {0: Dim("batch", min=smallest + 1)})
    with fx.patch(backed_size_oblivious=smallest == 1):
        exported = export(model, pointers([3, 4, 2]), dynamic_shapes=shapes)
    program = exported.module()
    operators = {getattr(node.target, "namespace", "aten") for node in exported.graph.nodes}
    assert operators == {"aten"}  # A reader of the program may lack tg_mlc.
    for sizes in ([5], [3, 1], [2, 7, 1, 4], [3] * 9)[2 - smallest if smallest == 1 else 1 :]:
        actual, expected = program(*pointers(sizes)), model(*pointers(sizes))
        torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


# A hook of a module whose input is a tuple warns.
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize(
    "name", ["labels", "labels.feature_to_label.0", "labels.label_to_label.1.lin_query", "head"]
)
def test_hooks_see_every_module(name):
    model, calls = Net(fully_connected(5)), []
    module = model.get_submodule(name)
    module.register_forward_pre_hook(lambda *_: calls.append("before"))
    module.register_forward_hook(lambda *_: calls.append("after"))
    module.register_full_backward_hook(lambda *_: calls.append("back"))
    x, ptr = pointers([3, 4])
    model(x.requires_grad_(), ptr).sum().backward()
    assert calls == ["before", "after", "back"]


def test_to_hetero_makes_labels_for_each_type_of_nodes():
    """Layers of a type see that type only; a layer behind the network sees all types."""
    types = (["atom", "word"], [("atom", "in", "word"), ("word", "of", "atom")])
    model = to_hetero(Net(fully_connected(5)), types)
    x, ptr = pointers([3, 4])
    out = model({"atom": x, "word": 2 * x}, {"atom": ptr, "word": ptr})
    assert {name: tuple(x.shape) for name, x in out.items()} == {"atom": (2, 5), "word": (2, 5)}
    assert len([part for part in model.modules() if isinstance(part, LabelMessagePassing)]) == 2
