"""Label graphs from the attention of a trained model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.utils import coalesce

from tg_mlc.graphs.builders import check_selection, select, source_in_words
from tg_mlc.graphs.label_graph import LabelGraph
from tg_mlc.ops import Shared


@torch.no_grad()
def learned(
    model: nn.Module,
    loader: Iterable[Any],
    top_k: int | None = None,
    threshold: float | None = None,
    step: int | None = None,
    self_loops: bool = True,
    label_names: Sequence[str] | None = None,
) -> LabelGraph:
    r"""The label graph that a model has learned. The weight of the edge from label :math:`j` to
    label :math:`i` is the mean attention of :math:`i` to :math:`j` over samples, heads and steps,

    .. math::
        w_{ji} = \frac{1}{N \, T \, K}
        \sum_{n=1}^{N} \sum_{t=1}^{T} \sum_{k=1}^{K} \alpha_{ij}^{(n, t, k)}

    Only pairs along which the model sends messages can be edges. To choose among all pairs, train
    on a :func:`~tg_mlc.graphs.fully_connected` graph.

    Args:
        model (torch.nn.Module): A trained model whose
            :obj:`forward(batch, return_attention_weights=True)` returns something with
            :obj:`attention`: a :class:`~tg_mlc.nn.label.StepAttention` for each step, as
            :class:`~tg_mlc.models.LaMP` does. It runs in evaluation mode.
        loader (iterable): Batches of samples, which are moved to the model's device.
        top_k, threshold (optional): Maximum number of other sources per label, and minimum
            weight. (default: :obj:`None`, no limit)
        step (int, optional): Index of the only step to read; :obj:`-1` is the last.
            (default: :obj:`None`, all)
        self_loops (bool, optional): If set to :obj:`False`, a label attends to itself only if it
            has no other source. (default: :obj:`True`)
        label_names (list of str, optional): One name per label.
            (default: :obj:`None`, the names of the model's label graph)

    Raises:
        TypeError: If the model returns no attention.
        ValueError: If there is no sample or attention among labels, or an option is out of range.
    """
    check_selection(threshold, top_k)
    edge_index, total = torch.empty(2, 0, dtype=torch.long), torch.empty(0, dtype=torch.double)
    num_samples = num_labels = 0
    for logits, steps in _label_attention(model, loader, step):
        num_samples, num_labels = num_samples + logits.size(0), logits.size(1)
        for pattern, weights in steps:
            if isinstance(pattern, Shared):
                edges, weight = pattern.graph.edge_index, weights.mean(dim=-1).sum(dim=0)
            else:
                edges, weight = pattern.to_edge_list(weights.mean(dim=-1, keepdim=True))
                edges, weight = edges % num_labels, weight.squeeze(-1)
            edges, weight = edges.cpu(), (weight / len(steps)).double().cpu()
            if torch.equal(edges, edge_index):
                total += weight
            else:
                joined = torch.cat([edge_index, edges], dim=1), torch.cat([total, weight])
                edge_index, total = coalesce(*joined, num_labels, reduce="sum", sort_by_row=False)
    if not num_samples:
        raise ValueError("Expected 'loader' to hold at least one sample (got none)")
    strength = total / num_samples
    source, target = edge_index.numpy()
    is_edge = select(source, target, strength.numpy(), num_labels, threshold, top_k, self_loops)
    keep = torch.from_numpy(is_edge)
    if label_names is None:
        graphs = (getattr(module, "label_graph", None) for module in model.modules())
        names = (graph.label_names for graph in graphs if isinstance(graph, LabelGraph))
        label_names = next(names, None)
    origin = f"attention of {type(model).__name__} on {num_samples} samples"
    return LabelGraph(
        edge_index[:, keep],
        num_nodes=num_labels,
        edge_weight=strength[keep].float(),
        label_names=label_names,
        kind="learned",
        source=source_in_words(origin, step=step, threshold=threshold, top_k=top_k),
    )


def _label_attention(
    model: nn.Module, loader: Iterable[Any], step: int | None
) -> Iterator[tuple[Tensor, list[Any]]]:
    """Yields the logits of every batch, and the attention among labels of the chosen steps."""
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    training_modules = [module for module in model.modules() if module.training]
    model.eval()
    try:
        for batch in loader:
            batch = batch.to(device) if hasattr(batch, "to") else batch  # noqa: PLW2901
            output = model(batch, return_attention_weights=True)
            if not hasattr(output, "attention") or not hasattr(output, "logits"):
                expected = "'model' to return 'logits' and 'attention' with attention weights"
                got = f"(got {type(output).__name__}); see tg_mlc.models.LaMP"
                raise TypeError(f"Expected {expected} {got}")
            steps = [step_attention.label_to_label for step_attention in output.attention]
            if step is not None and not -len(steps) <= step < len(steps):
                got = f"(got {step}); or None for all"
                raise ValueError(f"Expected 'step' to be one of the {len(steps)} steps {got}")
            chosen = steps if step is None else [steps[step]]
            chosen = [attention for attention in chosen if attention is not None]
            if not chosen:
                hint = "build it with messages among labels"
                raise ValueError(f"Expected 'model' to have label attention (got none); {hint}")
            yield output.logits, chosen
    finally:
        for module in training_modules:
            module.training = True
