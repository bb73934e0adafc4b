"""The class Question: a model and samples. It hides components, and sets given labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch_geometric.data import Batch, Data
from torch_geometric.data.data import BaseData

from tg_mlc._names import shorten
from tg_mlc.data import ArrayDataset, MultiLabelDataset
from tg_mlc.data.samples import Samples
from tg_mlc.explanations.network import NetworkProbe
from tg_mlc.inference import Model, Query
from tg_mlc.inference.batches import makes_batches, whole
from tg_mlc.inference.decisions import GivenLabels
from tg_mlc.inference.features import row_of
from tg_mlc.inference.flow import Flow
from tg_mlc.inference.networks import Combination
from tg_mlc.inputs.components import Components
from tg_mlc.inputs.kinds import components_of
from tg_mlc.ops.patterns import adjacency_of, to_list

BATCH_SIZE = 128  #: The number of samples that the model predicts at a time.


class Question:
    """A model and the samples to explain, with their given labels.

    Args:
        model (Model, MultiLabelModule or torch.nn.Module): The model.
        raw (Any): Raw inputs, or samples.
        label_names (Sequence[str], optional): The names of a network's labels.
            (default: :obj:`None`, the names in the samples, or in its label graph)
        given (Any, optional): Given labels, as :func:`~tg_mlc.data.given_labels` takes them.
            (default: :obj:`None`, the attribute :obj:`given` of samples)
        at (str, optional): As in :class:`NetworkProbe`. (default: :obj:`None`)
        metric (str, optional): The metric that thresholds maximise. (default: :obj:`"f1_micro"`)
        y (Any, optional): True labels :math:`(N, L)`. (default: :obj:`None`, :obj:`y` of samples)
        names (Sequence[str], optional): Names of samples. (default: :obj:`None`, their inputs)

    Attributes:
        kind (Components): Names and hides the components of samples.
        answer (Flow): Probabilities and decisions of the samples.
        given (Tensor, optional): Given labels :math:`(N, L)`, and labels that follow from them.
        truth (numpy.ndarray): True labels :math:`(N, L)`, NaN where unknown.
        part (str, optional): The name of the part of the logits that scores of component states
            explain; :obj:`None` if they explain the whole logits.

    Raises:
        ValueError: If a sample cannot be read or has no components, or an argument is invalid.
    """

    def __init__(
        self,
        model: Any,
        raw: Any,
        label_names: Sequence[str] | None = None,
        given: Any = None,
        at: str | None = None,
        metric: str = "f1_micro",
        y: Any = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if isinstance(raw, BaseData):
            raw = raw.to_data_list() if isinstance(raw, Batch) else [raw]
        self.model = _as_model(model, raw, label_names)
        self.metric, self._names = metric, names
        self.label_names = list(self.model.label_names)
        self._raw = None if _are_samples(raw) else raw
        self.dataset = self._read(raw)
        if makes_batches(self.dataset):
            kind: Any = whole(self.dataset).components_for(self.model.networks[0])
        else:
            kind = self.model.kind or components_of(self.dataset)
        self.kind: Components = kind
        steps = [step for stage in self.model.preparing for step in stage.steps]
        self.steps = [step for step in steps if step is not kind]
        self.samples = [copy(self.dataset[row]) for row in range(len(self.dataset))]
        for row, sample in enumerate(self.samples):
            if "given" in sample:
                del sample.given
            if not self.kind.components(sample):
                got = f"(got none in sample {row}); leave it out"
                raise ValueError(f"Expected samples with components to explain {got}")
        if names is not None and len(names) != len(self.samples):
            number = len(self.samples)
            raise ValueError(f"Expected 'names' for each of {number} samples (got {len(names)})")
        are_columns = self.kind.are_columns
        self.probes = [NetworkProbe(network, at, are_columns) for network in self.model.networks]
        if any(probe.neighbours is not None for probe in self.probes):
            self._check_seeds()
        self.answer = self.model.run(self.dataset, Query(given=given, metric=metric))
        self.given = self.answer.given
        self.part = self._part()
        self.truth = self._truth(y)

    def _read(self, raw: Any) -> Any:
        """Returns samples as a data set; raw inputs are read by the first step of the model."""
        samples = raw
        if self.model.kind is not None or not _are_samples(raw):
            samples = self.model.read(raw, on_error="raise").samples
        if samples is None or len(samples) == 0:
            raise ValueError("Expected at least one sample to explain (got none)")
        if isinstance(samples, MultiLabelDataset) or makes_batches(samples):
            return samples
        copies = [copy(samples[row]) for row in range(len(samples))]
        for data in copies:
            y, size = data.get("y"), len(self.label_names)
            is_known = y is not None and y.numel() == size
            data.y = y.float().view(1, -1) if is_known else torch.full((1, size), torch.nan)
        return ArrayDataset(Samples.collate(copies, self.label_names, None))

    def _check_seeds(self) -> None:
        """Raises ValueError if hiding nodes may hide the seed that a network on nodes reads."""
        for row, sample in enumerate(self.samples):
            if "seed_index" not in sample:
                raise ValueError(
                    "Expected samples of a network with NeighbourComponents to have 'seed_index' "
                    f"(got none in sample {row}); make each sample the graph around its seed, and "
                    "pass 'batch.seed_index' as 'seeds'"
                )

    def _truth(self, y: Any) -> np.ndarray:
        if y is None:
            y = torch.cat([sample.y.view(1, -1) for sample in self.samples])
        truth = torch.as_tensor(y).double().numpy()
        expected = [len(self.samples), len(self.label_names)]
        if list(truth.shape) != expected:
            raise ValueError(f"Expected 'y' of shape {expected} (got {list(truth.shape)})")
        return truth

    def _part(self) -> str | None:
        combination = self.model.stage(Combination)
        if combination is not None:
            return combination.names[-1]
        starts = range(0, len(self.samples), BATCH_SIZE)
        flows = (self.prepare(self.samples[start : start + BATCH_SIZE]) for start in starts)
        if any(self.probes[0].explains_only_part(self.batch_of(flow)) for flow in flows):
            return "messages"
        reads_given = self.model.network_stage.reads_given
        return None if self.given is None or reads_given else "the network"

    def hide(self, sample: Data, kept: np.ndarray) -> Data:
        """Returns a sample without the components that are False in the mask :math:`(C)`."""
        return self.kind.hide(sample, kept, self.steps)

    def prepare(self, samples: Sequence[Data]) -> Flow:
        """Passes samples through the stages that do not depend on given labels."""
        dataset = self.kind.collate(samples, self.dataset)
        return self.model.prepare(dataset, Query(batch_size=len(samples)))

    def batch_of(self, flow: Flow, given: Tensor | None = None) -> Batch:
        """Returns the samples of a flow as one batch for networks."""
        [batch] = self.model.network_stage.batches(replace(flow, given=given))
        return batch

    def logits(self, samples: Sequence[Data], given: Tensor | None = None) -> np.ndarray:
        """Returns the logits :math:`(N, L)` of the whole model, before calibration."""
        logits = [np.empty((0, len(self.label_names)))]
        for start in range(0, len(samples), BATCH_SIZE):
            rows = slice(start, start + BATCH_SIZE)
            given_rows = None if given is None else given[rows]
            logits.append(self._logits(self._prepare_padded(samples[rows]), given_rows).numpy())
        return np.concatenate(logits)

    def _prepare_padded(self, samples: Sequence[Data]) -> Flow:
        # The extra last sample has components, since networks may infer the batch size from them.
        return self.prepare([*samples, self.samples[0]])

    def _logits(self, padded: Flow, given: Tensor | None) -> Tensor:
        logits = self.model.logits(
            padded, None if given is None else torch.cat([given, given[-1:]])
        )
        if len(logits) != padded.size:
            got = f"(got {len(logits)} rows); count samples by 'num_graphs' of a batch"
            raise ValueError(
                f"Expected logits for each of {padded.size} samples, some of them without "
                f"components {got}"
            )
        return logits[:-1].cpu()

    def clamped(
        self, samples: Sequence[Data], given: Tensor | None, labels: Sequence[int]
    ) -> np.ndarray:
        """Returns how far the logits of ``labels`` rise if label :math:`j` is given as absent or as
        present, :math:`(N, J, 2, L)`; :math:`J` is 0 if the model takes no given labels.
        """
        num_labels = len(self.label_names) if self.model.takes_given else 0
        shape = (len(samples), num_labels, 2, len(labels))
        rises = torch.full(shape, torch.nan, dtype=torch.double)
        if num_labels > 1:
            padded = self._prepare_padded(samples)
            if given is None:
                given = torch.full((len(samples), num_labels), torch.nan)
            before = self._logits(padded, given)
            for label, value in product(range(num_labels), (0, 1)):
                changed = given.clone()
                changed[:, label] = value
                rises[:, label, value] = (self._logits(padded, changed) - before)[:, labels]
            rises[:, labels, :, range(len(labels))] = torch.nan
        return rises.numpy()

    @torch.no_grad()
    def parts(self, samples: Sequence[Data], given: Tensor | None = None) -> dict[str, np.ndarray]:
        """Returns the terms :math:`(N, L)` that parts of the model add to the logits: the terms of
        a stage, label messages and the term that bypasses them, and changes by later stages.
        Returns no terms if the model has one part, or if its parts cannot be separated.
        """
        dataset = self.kind.collate(samples, self.dataset)
        part_terms: dict[str, Tensor] = {}
        bypass: Tensor | None = None
        for stage, before, after in self.model.walk(dataset, given):
            if after.logits is None:
                continue
            terms = stage.terms(before)
            if terms is not None:
                part_terms = self._split(terms, bypass)
            elif before.logits is None:
                bypass = self._bypass(after)
                if self.part is not None and bypass is not None:
                    part_terms[self.part] = after.logits.double().cpu() - bypass
                    part_terms[self.probes[0].bypass_name] = bypass
            elif given is not None or not stage.takes_given:
                words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(stage).__name__)
                title = words.lower()
                part_terms = part_terms or {f"without {title}": before.logits}
                part_terms[title] = after.logits - before.logits
        return {name: term.double().numpy() for name, term in part_terms.items()}

    def _bypass(self, flow: Flow) -> Tensor | None:
        """Returns the term of the logits that bypasses labels; None if it depends on components."""
        if not self.probes:
            return None
        batch = self.batch_of(flow, flow.given)
        terms = [probe.bypass(batch) for probe in self.probes]
        tensors = [term.double().cpu() for term in terms if term is not None]
        return torch.stack(tensors).mean(dim=0) if len(tensors) == len(terms) else None

    def _split(self, terms: dict[str, Tensor], bypass: Tensor | None) -> dict[str, Tensor]:
        """Splits the term of the networks into label messages and the term that bypasses them."""
        part_terms: dict[str, Tensor] = {}
        for name, term in terms.items():
            part_terms[name] = term
            if name == self.part and bypass is not None:
                weighted = bypass * torch.from_numpy(self.weight)
                if weighted.abs().max() > 0:
                    part_terms[name] = term - weighted
                    part_terms[f"{self.probes[0].bypass_name} of {name}"] = weighted
        return part_terms

    @property
    def weight(self) -> np.ndarray:
        """The weight :math:`(L)` of the networks in the logits."""
        combination = self.model.stage(Combination)
        if combination is None:
            return np.ones(len(self.label_names))
        return combination.weight[:, -1]

    def raw(self, row: int) -> Any:
        """Returns the raw input of a sample as plain data. If raw inputs are unknown, returns the
        SMILES of a molecule, or :obj:`None` for other samples.
        """
        if self._raw is None:
            return self.kind.smiles(self.samples[row])
        return as_plain(row_of(self._raw, row))

    def prediction(self, row: int, columns: list[int]) -> dict[str, Any]:
        """Returns the name, the raw input, and the predicted, true and given labels of a sample."""
        raw, flow = self.raw(row), self.answer
        name = shorten(raw) if isinstance(raw, str) else f"sample {row}"
        assert flow.decisions is not None
        return {
            "name": name if self._names is None else str(self._names[row]),
            "raw": raw,
            "probability": flow.probabilities[row, columns].double().numpy(),
            "decision": flow.decisions[row, columns].numpy() == 1,
            "truth": self.truth[row, columns],
            "given": None if self.given is None else self.given[row, columns].numpy(),
        }

    def names(self, row: int) -> list[str]:
        """Returns the names of the components of a sample."""
        return self.kind.component_names(self.samples[row], self.raw(row))

    @property
    def max_hidden(self) -> int:
        """The maximum number of samples with hidden components to measure faithfulness on."""
        return self.kind.max_hidden(self.samples[0])

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the model."""
        model = self.model
        facts = {"kind": self.kind.option, "components": self.kind.parts, **model.facts}
        facts["metric"] = self.metric
        facts["model"] = str(model.stage(Combination) or model.network_stage)
        report = facts.pop("report", {})
        if report.get("data") is not None:
            facts["data"] = report["data"]
        if self.probes and self.probes[0].labels is not None:
            graph = self.probes[0].labels.label_graph
            facts["label_graph"] = to_list(adjacency_of(graph)).tolist()
        if model.stage(GivenLabels) is not None:
            graph = model.dependencies()
            edges = zip(*graph.edge_index.tolist(), graph.edge_weight.tolist(), strict=True)
            facts["dependencies"] = [[*edge] for edge in edges if edge[0] < edge[1]]
        return facts


def _as_model(model: Any, raw: Any, label_names: Sequence[str] | None) -> Model:
    if isinstance(model, Model):
        return model
    if hasattr(model, "objective"):
        return Model.of(model)
    return Model.of(model, label_names or getattr(raw, "label_names", None) or None)


def _are_samples(raw: Any) -> bool:
    """Tells whether inputs are samples already."""
    if isinstance(raw, (list, tuple)):
        return bool(raw) and all(isinstance(data, BaseData) for data in raw)
    return isinstance(raw, Dataset)


def as_plain(value: Any) -> Any:
    """Returns a raw input as numbers and strings in lists and dictionaries."""
    if isinstance(value, dict):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    if hasattr(value, "toarray"):  # Sparse matrices have no 'tolist'.
        value = value.toarray()
    if hasattr(value, "tolist"):
        return value.tolist()
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
