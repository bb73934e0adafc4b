"""Label graphs from the attention of a trained model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.utils import coalesce

from tg_mlc.graphs._select import check_selection, select_with_loops, source_in_words
from tg_mlc.graphs.label_graph import LabelGraph
from tg_mlc.ops import Pattern, Shared


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
    r"""The label graph that a model has learned: label :math:`i` attends to label :math:`j` with the weight that it
    pays to it on average, over samples, heads and steps,

    .. math::
        w_{ji} = \frac{1}{N \, T \, K} \sum_{n=1}^{N} \sum_{t=1}^{T} \sum_{k=1}^{K} \alpha_{ij}^{(n, t, k)}

    The graph holds at most the edges along which the model sends messages; to learn which of all pairs matter, train
    the model on a :func:`~tg_mlc.graphs.fully_connected` graph.

    .. code-block:: python

        graph = learned(model, data_module.val_dataloader(), top_k=10)
        print(compare(graph, prior))

    Args:
        model (torch.nn.Module): A trained model whose :obj:`forward(batch, return_attention_weights=True)` returns
            something with :obj:`attention`: a :class:`~tg_mlc.nn.label.StepAttention` for each step, as
            :class:`~tg_mlc.models.LaMP` does. It is put in evaluation mode, and back as it was.
        loader (iterable): Batches of samples. They are moved to the model's device.
        top_k (int, optional): How many sources a label keeps, itself not counted: those of the largest weight, and
            of equal weights those that come first. (default: :obj:`None`, all)
        threshold (float, optional): The least weight of an edge. (default: :obj:`None`, any)
        step (int, optional): The only step to look at, from :obj:`0`, or from the last with :obj:`-1`.
            (default: :obj:`None`, all)
        self_loops (bool, optional): If set to :obj:`False`, a label attends to itself only if it has no other
            source. A loop weighs what the label pays to itself. (default: :obj:`True`)
        label_names (list of str, optional): One name per label. (default: :obj:`None`, those of the model's label
            graph)

    Raises:
        TypeError: If the model returns no attention.
        ValueError: If there is no sample or no attention among labels, or an option is out of range.
    """
    check_selection(threshold, top_k)
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    edge_index, total = torch.empty(2, 0, dtype=torch.long), torch.empty(0, dtype=torch.double)
    num_samples = num_labels = 0
    with _in_evaluation(model):
        for batch in loader:
            output = model(batch.to(device) if hasattr(batch, "to") else batch, return_attention_weights=True)
            if not hasattr(output, "attention") or not hasattr(output, "logits"):
                expected = "'model' to return its 'logits' and its 'attention' with return_attention_weights=True"
                raise TypeError(f"Expected {expected} (got {type(output).__name__}); see tg_mlc.models.LaMP")
            steps = _steps(output.attention, step)
            num_labels = output.logits.size(1)
            num_samples += output.logits.size(0)
            for pattern, weights in steps:
                edges, weight = _sum_over_samples(pattern, weights.mean(dim=-1, keepdim=True), num_labels)
                edges, weight = edges.cpu(), (weight / len(steps)).double().cpu()
                if torch.equal(edges, edge_index):
                    total += weight
                else:
                    both = torch.cat([edge_index, edges], dim=1), torch.cat([total, weight])
                    edge_index, total = coalesce(*both, num_labels, reduce="sum", sort_by_row=False)
    if not num_samples:
        raise ValueError("Expected 'loader' to hold at least one sample (got none)")
    strength = total / num_samples
    source, target = edge_index.numpy()
    chosen = select_with_loops(source, target, strength.numpy(), threshold, top_k, num_labels, self_loops)
    keep = torch.from_numpy(chosen)
    if label_names is None:
        graphs = (getattr(module, "label_graph", None) for module in model.modules())
        label_names = next((graph.label_names for graph in graphs if isinstance(graph, LabelGraph)), None)
    origin = f"attention of {type(model).__name__} on {num_samples} samples"
    return LabelGraph(
        edge_index[:, keep],
        num_nodes=num_labels,
        edge_weight=strength[keep].float(),
        label_names=label_names,
        kind="learned",
        source=source_in_words(origin, step=step, threshold=threshold, top_k=top_k),
    )


def _steps(attention: Sequence[Any], step: int | None) -> list[tuple[Pattern, Tensor]]:
    among_labels = [each.label_to_label for each in attention]
    if step is not None and not -len(among_labels) <= step < len(among_labels):
        raise ValueError(f"Expected 'step' to be one of the {len(among_labels)} steps, or None (got {step})")
    chosen = among_labels if step is None else [among_labels[step]]
    found = [each for each in chosen if each is not None]
    if not found:
        raise ValueError("Expected 'model' to have attention among labels (got none); was it built without?")
    return found


def _sum_over_samples(pattern: Pattern, weights: Tensor, num_labels: int) -> tuple[Tensor, Tensor]:
    if isinstance(pattern, Shared):
        return pattern.graph.edge_index, weights.sum(dim=(0, -1))
    edge_index, weights = pattern.to_edge_list(weights)
    return edge_index % num_labels, weights.squeeze(-1)


@contextmanager
def _in_evaluation(model: nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
