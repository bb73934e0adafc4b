"""Models as explanations see them: samples that can lose components, logits, and the networks inside."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.data.data import BaseData

from tg_mlc.data import ArrayDataset, MultiLabelDataset, Split, given_labels
from tg_mlc.data.bags import with_attribute
from tg_mlc.data.samples import Samples
from tg_mlc.explanations.network import NetworkProbe
from tg_mlc.graphs import LabelGraph
from tg_mlc.inputs import Chain, InputKind, Preprocessor, kind_of
from tg_mlc.inputs.molecules import VECTORS
from tg_mlc.inputs.vectors import Vectors
from tg_mlc.nn import LabelMessagePassing
from tg_mlc.nn.encoders import JointEncoder, VectorEncoder
from tg_mlc.nn.given import given_in, takes_given_labels
from tg_mlc.saving import Predictor
from tg_mlc.saving.inference import batches_of, in_type_of
from tg_mlc.stacking import AutoModel

BATCH_SIZE = 128  #: samples at a time


class Subject:
    """A model, the samples that it is asked about, and how to ask about parts of them.

    Args:
        model (Predictor, InferenceModel, MultiLabelModule or torch.nn.Module): The model.
        raw (Any): Raw inputs, or samples.
        label_names (Sequence[str], optional): The labels of a network. (default: :obj:`None`, those of its label graph,
            or of the samples)
        given (Any, optional): What is known of labels, as :func:`~tg_mlc.data.given_labels` takes it.
            (default: :obj:`None`)
        at (str, optional): As of :class:`NetworkProbe`. (default: :obj:`None`)
    """

    def __init__(
        self, model: Any, raw: Any, label_names: Sequence[str] | None = None, given: Any = None, at: str | None = None
    ) -> None:
        if isinstance(raw, BaseData) and not isinstance(raw, MultiLabelDataset):
            raw = raw.to_data_list() if isinstance(raw, Batch) else [raw]
        if isinstance(model, nn.Module) and not hasattr(model, "objective"):
            names = label_names or getattr(raw, "label_names", None) or _names_in(model)
            self.predictor = Predictor(model, label_names=names)
        else:
            self.predictor = model if isinstance(model, Predictor) else Predictor(model)
        scorer: Any = self.predictor.scorer
        self.label_names: list[str] = self.predictor.label_names
        self.automatic = scorer if isinstance(scorer, AutoModel) else None
        networks: list[nn.Module] = scorer.models if self.automatic is not None else [scorer.model]
        preprocessor: Preprocessor | None = scorer.preprocessor
        steps = [*preprocessor.steps] if isinstance(preprocessor, Chain) else [preprocessor]
        self.kind: InputKind | None = cast(InputKind, steps.pop(0)) if isinstance(steps[0], InputKind) else None
        self.steps: list[Preprocessor] = [step for step in steps if step is not None]
        read: Any = raw if self.kind is None else self.kind.transform(raw)
        if not isinstance(read, MultiLabelDataset):
            read = ArrayDataset(Samples.collate([_with_target(data, self.label_names) for data in read], [], None))
        if self.kind is None and (read.kind is not None or "smiles" in read[0]):
            rows = torch.arange(len(read))
            self.kind = kind_of(read)().fit(read, Split(rows, rows[:0], rows[:0], "all samples"))
        self._like: MultiLabelDataset = read
        self.samples: list[Data] = list(read)
        self.given = None if given is None else given_labels(self.label_names, given, len(self.samples))
        self.probes = [NetworkProbe(network, at, isinstance(self.kind, Vectors)) for network in networks]
        #: Which labels can be given.
        known = self.automatic.given is not None if self.automatic is not None else takes_given_labels(networks[0])
        self.takes_given = known

    def finish(self, samples: Sequence[Data], given: Tensor | None = None) -> MultiLabelDataset:
        """Samples as networks take them."""
        collated = Samples.collate(samples, self.label_names, None)
        like = self._like
        collated = collated._replace(kind=like.kind, feature_names=like.feature_names, num_features=like.num_inputs)
        made: MultiLabelDataset = ArrayDataset(collated)
        made.tokenizer = self._like.tokenizer
        for step in self.steps:
            made = step.transform(made)
        return made if given is None or self.automatic is not None else with_attribute(made, "given", given)

    def batch(self, samples: Sequence[Data], given: Tensor | None = None) -> Batch:
        """One batch of samples, as networks take it."""
        model = self.probes[0].network
        [batch] = batches_of(self.finish(samples, given), len(samples))
        device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
        return in_type_of(model, batch.to(device))

    @torch.no_grad()
    def logits(self, samples: Sequence[Data], given: Tensor | None = None) -> Tensor:
        """The logits :math:`(N, L)` of the whole model."""
        parts = [slice(start, start + BATCH_SIZE) for start in range(0, len(samples), BATCH_SIZE)]
        return torch.cat([self._logits(samples[part], None if given is None else given[part]) for part in parts])

    def _logits(self, samples: Sequence[Data], given: Tensor | None) -> Tensor:
        if self.automatic is None:
            batch = self.batch(samples, given)
            model, objective = self.probes[0].network, cast(Any, self.predictor.scorer).objective
            given_in(model, batch)
            if type(objective).__name__ == "BinaryObjective":
                return cast(Tensor, model(batch)).double().cpu()
            return torch.logit(objective.scores(model, batch).double().cpu(), eps=1e-7)
        logits = self.automatic._combined(self.finish(samples), BATCH_SIZE)
        if given is not None and self.automatic.given is not None:
            logits = self.automatic.given.decision_function(logits, given.numpy())
        return torch.from_numpy(logits)

    @torch.no_grad()
    def parts(self, samples: Sequence[Data]) -> dict[str, np.ndarray]:
        """What each classifier of an :class:`~tg_mlc.stacking.AutoModel` adds to the logits :math:`(N, L)`, whose sum
        they are; nothing for other models.
        """
        if self.automatic is None:
            return {}
        finished, combination = self.finish(samples), self.automatic.combination
        assert combination.weight is not None
        titles = [each.title for each in self.automatic.stacking.classifiers.values()]
        values = [*finished.rows("base_scores").double().unbind(dim=-1)]
        if self.probes:
            [batch] = batches_of(finished, len(finished))
            values.append(torch.stack([probe.logits(batch) for probe in self.probes]).double().mean(dim=0))
            titles.append("LaMP")
        weighted = [np.asarray(value) * combination.weight[:, place] for place, value in enumerate(values)]
        return {
            **dict(zip(titles, weighted, strict=True)),
            "bias": np.broadcast_to(np.asarray(combination.bias), weighted[0].shape),
        }

    @property
    def weight(self) -> np.ndarray:
        """The weight :math:`(L)` of the networks in the logits."""
        if self.automatic is None:
            return np.ones(len(self.label_names))
        return np.asarray(self.automatic.combination.weight)[:, -1]

    def components(self, sample: Data) -> list[str]:
        """Names for the parts of a sample that can be masked."""
        if self.kind is not None:
            return self.kind.components(sample)
        return [f"node {node}" for node in range(sample.num_nodes or 0)]

    def masked(self, sample: Data, kept: np.ndarray) -> Data:
        """A sample without some of its components."""
        if self.kind is not None:
            return self.kind.masked(sample, kept)
        found = sample.subgraph(torch.from_numpy(kept))
        found.y = sample.y
        return found

    def others(self, network: nn.Module) -> list[tuple[str, int]]:
        """The components of a network beside those of a sample, and by how many rows each enters label messages."""
        encoder = getattr(network, "encoder", None)
        found = [each for each in getattr(encoder, "encoders", []) if isinstance(each, VectorEncoder)]
        is_joint = isinstance(encoder, JointEncoder)
        return [(each.key, each.num_components) for each in found] if is_joint else []

    def rows_of(self, sample: Data, network: nn.Module, num_rows: int) -> tuple[np.ndarray, list[str]]:
        """The share :math:`(C, N)` of a sample's components in the rows of a network's states, and the names of
        components beside those of the sample.
        """
        num_components = len(self.components(sample))
        if num_rows == num_components:
            return np.eye(num_components), []
        if sample.x.dim() == 1 and not sample.x.is_floating_point() and self._like.kind is not None:
            finished: Any = self.finish([sample])[0]
            kept = getattr(getattr(network, "encoder", None), "kept", None)
            words = finished.x if kept is None else finished.x[kept[finished.x].cpu()]
            if len(words) == num_rows:
                same = (sample.x.view(-1, 1) == words.view(1, -1)).double()
                return (same / same.sum(dim=0).clamp_min(1)).numpy(), []
        beside = self.others(network)
        if num_components + sum(number for _, number in beside) != num_rows:
            beside = [("other inputs", num_rows - num_components)]
        if beside[0][1] < 0:
            raise ValueError(
                f"Expected component states for each of {num_components} components (got {num_rows}); the network "
                f"joins components, so explain it by method='occlusion'"
            )
        shares = np.zeros((num_components + len(beside), num_rows))
        shares[:num_components, :num_components] = np.eye(num_components)
        start = num_components
        for place, (_, number) in enumerate(beside):
            shares[num_components + place, start : start + number] = 1.0
            start += number
        return shares, [name for name, _ in beside]


def _names_in(model: nn.Module) -> list[str]:
    """The labels of a network's label graph."""
    labels = next((module for module in model.modules() if isinstance(module, LabelMessagePassing)), None)
    if labels is None:
        raise ValueError(f"Expected 'label_names' for a {type(model).__name__} without a label graph (got none)")
    graph = labels.label_graph
    names = graph.label_names if isinstance(graph, LabelGraph) else None
    return names or [f"label {number}" for number in range(labels.num_labels)]


def _with_target(data: Data, label_names: Sequence[str]) -> Data:
    data = copy(data)
    y = data.get("y")
    unknown = torch.full((1, len(label_names)), torch.nan)
    data.y = unknown if y is None or y.numel() != len(label_names) else y.float().view(1, -1)
    return data


def has_vectors(sample: Data) -> bool:
    """Tells whether a sample has vectors that describe a molecule as a whole."""
    return any(key in sample for key in VECTORS)
