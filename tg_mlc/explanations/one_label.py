"""One label of a network, for PyG's explainers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Batch

from tg_mlc._names import nearest
from tg_mlc.inference.network import names_in


class OneLabel(nn.Module):
    """The logit of one label of a network, for PyG's
    :class:`~torch_geometric.explain.Explainer`: a regression of one number for each graph.

    .. code-block:: python

        explainer = Explainer(
            OneLabel(network, "nausea"),
            CaptumExplainer("IntegratedGradients"),
            explanation_type="model",
            node_mask_type="attributes",
            edge_mask_type="object",
            model_config={"mode": "regression", "task_level": "graph", "return_type": "raw"},
        )
        explanation = explainer(
            batch.x, batch.edge_index, edge_attr=batch.edge_attr, batch=batch.batch
        )

    Args:
        network (torch.nn.Module): Maps a batch, or the arguments of PyG's explainers, to logits
            :math:`(B, L)`.
        label (str or int): The label, by name or index.
        label_names (Sequence[str], optional): The labels.
            (default: :obj:`None`, those of the label graph)

    Shapes:
        - **input:** node features :math:`(N, F)`, edges :math:`(2, E)`, and attributes of a batch
          by name; with captum, :obj:`edge_attr` and :obj:`batch` alone, in this order
        - **output:** logits :math:`(B, 1)`

    Raises:
        ValueError: If there is no such label.
    """

    def __init__(
        self, network: nn.Module, label: str | int, label_names: Sequence[str] | None = None
    ) -> None:
        super().__init__()
        self.network = network
        names = list(label_names or names_in(network))
        if isinstance(label, str) and label not in names:
            got = f"(got {label!r}){nearest(label, names)}"
            raise ValueError(f"Expected 'label' to be one of the network {got}")
        self.index = names.index(label) if isinstance(label, str) else range(len(names))[label]
        # Its positional arguments are 'self' and the batch.
        self.takes_batch = len(inspect.getfullargspec(network.forward).args) == 2

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        **attributes: Any,
    ) -> Tensor:
        """Returns the logits of the label."""
        # Most explainers pass these by name, captum's by position.
        named = {"edge_attr": edge_attr, "batch": batch}
        attributes |= {name: value for name, value in named.items() if value is not None}
        if not self.takes_batch:
            logits: Tensor = self.network(x, edge_index, **attributes)
            return logits[:, [self.index]]
        sample = attributes.setdefault("batch", edge_index.new_zeros(x.size(0)))
        ptr = nn.functional.pad(sample.bincount().cumsum(0), (1, 0))
        data = Batch(x=x, edge_index=edge_index, **{"ptr": ptr, **attributes})
        data._num_graphs = data.ptr.numel() - 1
        logits = self.network(data)
        return logits[:, [self.index]]
