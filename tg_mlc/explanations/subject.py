"""Models as explanations see them: samples that can lose components, logits, and the networks inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.data.data import BaseData

from tg_mlc._names import shorten
from tg_mlc._optional import require
from tg_mlc.data import ArrayDataset, MultiLabelDataset, Split, given_labels, tokenize
from tg_mlc.data.bags import with_attribute
from tg_mlc.data.samples import Samples
from tg_mlc.explanations.network import NetworkProbe
from tg_mlc.graphs import LabelGraph
from tg_mlc.graphs.hierarchy import coherent, propagate
from tg_mlc.inference import Predictor
from tg_mlc.inference.inference import batches_of, in_type_of
from tg_mlc.inputs import Chain, InputKind, Preprocessor, QuantileScaler, Scale, Words, kind_of
from tg_mlc.inputs.molecules import VECTORS, Molecules
from tg_mlc.inputs.smiles import parse_smiles
from tg_mlc.inputs.vectors import Vectors
from tg_mlc.nn import LabelMessagePassing
from tg_mlc.nn.encoders import JointEncoder, VectorEncoder
from tg_mlc.nn.given import given_in, takes_given_labels
from tg_mlc.ops.patterns import adjacency_of, to_list
from tg_mlc.stacking import AutoModel
from tg_mlc.stacking.given import GivenLabelStacking

BATCH_SIZE = 128  #: samples at a time


class Subject:
    """A model, the samples that it is asked about, and how to ask about parts of them.

    Args:
        model (Predictor, InferenceModel, MultiLabelModule or torch.nn.Module): The model.
        raw (Any): Raw inputs, or samples.
        label_names (Sequence[str], optional): The labels of a network. (default: :obj:`None`, those of its label graph,
            or of the samples)
        given (Any, optional): Known labels, as :func:`~tg_mlc.data.given_labels` takes them.
            (default: :obj:`None`)
        at (str, optional): As in :class:`NetworkProbe`. (default: :obj:`None`)
    """

    noun = "graph"  #: an input that is of none of the kinds that the command line has options for

    def __init__(
        self, model: Any, raw: Any, label_names: Sequence[str] | None = None, given: Any = None, at: str | None = None
    ) -> None:
        if isinstance(raw, BaseData) and not isinstance(raw, MultiLabelDataset):
            raw = raw.to_data_list() if isinstance(raw, Batch) else [raw]
        if isinstance(model, nn.Module) and not hasattr(model, "objective"):
            names = label_names or getattr(raw, "label_names", None) or names_in(model)
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
        read = self._read(raw)
        self._raw = None if read is raw or preprocessor is None else raw
        #: Learned from given labels beside the networks; without it, networks take given labels, or nothing does.
        self.messages: GivenLabelStacking | None = scorer.given
        self.network_takes_given = self.automatic is None and self.messages is None
        if "given" in self.samples[0]:
            given = torch.cat([sample.given for sample in self.samples]) if given is None else given
            self.samples[:] = map(copy, self.samples)
            for sample in self.samples:
                del sample.given
        self.given: Tensor | None = None
        if given is not None and self.network_takes_given:
            self.given = given_labels(self.label_names, given, len(self.samples))
        elif given is not None:
            self.given = scorer.known_labels(self.samples, given)
            scorer.warn_of_absent(self.given)
        self._pairs = scorer.coherence(None)
        if self.given is not None and self._pairs is not None:
            self.given = propagate(self.given, self._pairs, self.label_names, "given")
        self.probes = [NetworkProbe(network, at, isinstance(self.kind, Vectors)) for network in networks]
        takes = takes_given_labels(networks[0]) if self.network_takes_given else self.messages is not None
        self.takes_given = takes  #: whether labels can be given
        #: The part of logits that scores of component states explain; :obj:`None` if it is all.
        self.part: str | None = "LaMP"
        if self.automatic is None:
            starts = range(0, len(self.samples), BATCH_SIZE)
            batches = (self.batch(self.samples[start : start + BATCH_SIZE]) for start in starts)
            self.part = "messages" if any(map(self.probes[0].is_part, batches)) else None
            if self.given is not None and self.messages is not None:
                self.part = self.part or "the network"

    def _read(self, raw: Any) -> Any:
        read: Any = raw if self.kind is None else self.kind.transform(raw)
        if not isinstance(read, MultiLabelDataset):
            if not all(isinstance(data, BaseData) for data in read):
                raise ValueError(
                    f"Expected samples as the network takes them, because it has no preprocessor (got {read!r:.60}); "
                    f"pass a list of Data or a data set"
                )
            copies = [copy(data) for data in read]
            for data in copies:
                y, size = data.get("y"), len(self.label_names)
                data.y = torch.full((1, size), torch.nan) if y is None or y.numel() != size else y.float().view(1, -1)
            read = ArrayDataset(Samples.collate(copies, [], None))
        if self.kind is None and (read.kind is not None or "smiles" in read[0]):
            rows = torch.arange(len(read))
            self.kind = kind_of(read)().fit(read, Split(rows, rows[:0], rows[:0], "all samples"))
        self._like: MultiLabelDataset = read
        self.samples: list[Data] = list(read)
        return read

    def finish(self, samples: Sequence[Data], given: Tensor | None = None) -> MultiLabelDataset:
        """Samples as networks take them."""
        collated = Samples.collate(samples, self.label_names, None)
        like = self._like
        collated = collated._replace(kind=like.kind, feature_names=like.feature_names, num_features=like.num_inputs)
        made: MultiLabelDataset = ArrayDataset(collated)
        made.tokenizer = self._like.tokenizer
        for step in self.steps:
            made = step.transform(made)
        return with_attribute(made, "given", given) if given is not None and self.network_takes_given else made

    def batch(self, samples: Sequence[Data], given: Tensor | None = None) -> Batch:
        """One batch of samples, as networks take it."""
        return self._batch_of(self.finish(samples, given))

    def _batch_of(self, finished: MultiLabelDataset) -> Batch:
        model = self.probes[0].network
        [batch] = batches_of(finished, len(finished))
        device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
        return in_type_of(model, batch.to(device))

    def logits(self, samples: Sequence[Data], given: Tensor | None = None) -> Tensor:
        """The logits :math:`(N, L)` of the whole model."""
        parts = [slice(start, start + BATCH_SIZE) for start in range(0, len(samples), BATCH_SIZE)]
        known = [None if given is None else given[part] for part in parts]
        return torch.cat([self._ask(samples[part])(each) for part, each in zip(parts, known, strict=True)])

    def probabilities(self) -> np.ndarray:
        """The probabilities :math:`(N, L)` of all samples, as the model predicts them: calibrated, given labels as they
        are, and coherent where a hierarchy came with the data.
        """
        scores = self.logits(self.samples, self.given).double().sigmoid()
        if self.given is not None:
            scores = torch.where(self.given.isnan(), scores, self.given.to(scores))
        scores = cast(Any, self.predictor.scorer).calibrated(scores)
        return (scores if self._pairs is None else coherent(scores, self._pairs)).numpy()

    def clamped(self, samples: Sequence[Data], given: Tensor | None, places: Sequence[int]) -> np.ndarray:
        """By how much asked logits rise if each label is given as absent and as present, :math:`(N, J, 2, L)`; of no
        label :math:`j` if the model takes no given labels.
        """
        num_labels = len(self.label_names) if self.takes_given else 0
        found = torch.full((len(samples), num_labels, 2, len(places)), torch.nan, dtype=torch.double)
        if num_labels > 1:
            ask = self._ask(samples)
            start = torch.full((len(samples), num_labels), torch.nan) if given is None else given
            before = ask(start)
            for label, value in product(range(num_labels), (0, 1)):
                clamped = start.clone()
                clamped[:, label] = value
                found[:, label, value] = (ask(clamped) - before)[:, places]
            found[:, places, :, range(len(places))] = torch.nan
        return found.numpy()

    def _ask(self, samples: Sequence[Data]) -> Callable[[Tensor | None], Tensor]:
        """Logits :math:`(N, L)` of samples that are prepared once, by what is known of their labels."""
        if self.automatic is not None:
            return partial(self._stacked, self.automatic._combined(self.finish(samples), BATCH_SIZE))
        # Networks that count samples by their components miss those at the end that have none.
        batch, network = self.batch([*samples, self.samples[0]]), self.probes[0].network
        objective = cast(Any, self.predictor.scorer).objective

        @torch.no_grad()
        def by_network(given: Tensor | None) -> Tensor:
            asked = copy(batch)
            if given is not None:
                asked.given = torch.cat([given, given[-1:]]).to(asked.y)
                given_in(network, asked)
            if type(objective).__name__ == "BinaryObjective":
                return cast(Tensor, network(asked)).double().cpu()[:-1]
            return torch.logit(objective.scores(network, asked).double().cpu(), eps=1e-7)[:-1]

        return by_network if self.network_takes_given else partial(self._stacked, by_network(None).numpy())

    def _stacked(self, logits: np.ndarray, given: Tensor | None) -> Tensor:
        if given is None or self.messages is None or given.isnan().all():
            return torch.from_numpy(logits)
        return torch.from_numpy(self.messages.decision_function(logits, given.numpy()))

    @torch.no_grad()
    def _of_network(self, probe: NetworkProbe, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """The logits of a network, and the part of them that bypasses labels, as far as it can be told."""
        apart, logits = probe.beside_labels(batch), probe.logits(batch)
        apart = torch.zeros_like(logits) if apart is None else apart
        return logits.double().cpu().numpy(), apart.double().cpu().numpy()

    @torch.no_grad()
    def parts(self, samples: Sequence[Data], given: Tensor | None = None) -> dict[str, np.ndarray]:
        """The terms of each classifier of an :class:`~tg_mlc.stacking.AutoModel`, or of label messages and what
        bypasses them, which sum to the logits :math:`(N, L)`; none if there is one part, or it cannot be told.
        """
        if self.automatic is None:
            probe, batch = self.probes[0], self.batch(samples, given)
            found = {}
            if self.part is not None and probe.beside_labels(batch) is not None:
                logits, apart = self._of_network(probe, batch)
                found = {self.part: logits - apart, probe.beside: apart}
            if given is not None and self.messages is not None:
                without = self.logits(samples)
                found = found or {"without given labels": without.numpy()}
                found["given labels"] = (self.logits(samples, given) - without).numpy()
            return found
        finished, combination = self.finish(samples), self.automatic.combination
        assert combination.weight is not None
        titles = [each.title for each in self.automatic.stacking.classifiers.values()]
        values = [*finished.rows("base_scores").double().unbind(dim=-1)]
        weighted = [np.asarray(value) * combination.weight[:, place] for place, value in enumerate(values)]
        found = dict(zip(titles, weighted, strict=True))
        if self.probes:
            batch = self._batch_of(finished)
            logits, apart = np.mean([self._of_network(probe, batch) for probe in self.probes], axis=0) * self.weight
            found["LaMP"] = logits - apart
            if np.abs(apart).max() > 0:
                found[f"{self.probes[0].beside} of LaMP"] = apart
        found["bias"] = np.broadcast_to(np.asarray(combination.bias), weighted[0].shape)
        if given is not None:
            found["given labels"] = (self.logits(samples, given) - self.logits(samples)).numpy()
        return found

    def truth(self, y: Any = None) -> np.ndarray:
        """True labels :math:`(N, L)`, NaN where unknown: the given ones, or those of samples."""
        found = torch.cat([sample.y.view(1, -1) for sample in self.samples]) if y is None else torch.as_tensor(y)
        if found.shape != (len(self.samples), len(self.label_names)):
            expected = [len(self.samples), len(self.label_names)]
            raise ValueError(f"Expected 'y' of shape {expected} (got {list(found.shape)})")
        return found.double().numpy()

    def raw(self, row: int) -> Any:
        """The raw input of a sample as plain data, its SMILES if it came as a molecule, else :obj:`None`."""
        if self._raw is None:
            return self.samples[row].get("smiles")
        each = self._raw.iloc[row].to_dict() if hasattr(self._raw, "iloc") else self._raw[row]
        return as_plain(each)

    def name(self, row: int) -> str:
        """A short text that tells which sample it is."""
        raw = self.raw(row)
        return shorten(raw) if isinstance(raw, str) else f"sample {row}"

    @property
    def max_masked(self) -> int:
        """By how many masked samples faithfulness is measured, fewer where descriptors of each are computed anew."""
        return 500 if any(key in self.samples[0] for key in VECTORS) else 3000

    @property
    def facts(self) -> dict[str, Any]:
        """The facts about the model."""
        kind, parts = (self.noun, InputKind.parts) if self.kind is None else (self.kind.option, self.kind.parts)
        found: dict[str, Any] = {"model": type(self.predictor.scorer).__name__, "kind": kind, "components": parts}
        found |= self.predictor.facts
        if self.automatic is not None:
            found["data"] = self.automatic.report["data"]
        if self.probes and self.probes[0].labels is not None:
            found["label_graph"] = to_list(adjacency_of(self.probes[0].labels.label_graph)).tolist()
        return found

    @property
    def weight(self) -> np.ndarray:
        """The weight :math:`(L)` of the networks in the logits."""
        if self.automatic is None:
            return np.ones(len(self.label_names))
        return np.asarray(self.automatic.combination.weight)[:, -1]

    def names(self, row: int) -> list[str]:
        """Names for the components of a sample; those of a text are its words, whether the model knows them or not."""
        found, raw = self.components(self.samples[row]), self.raw(row)
        if isinstance(self.kind, Words) and isinstance(raw, (str, list)):
            words = tokenize(raw, self.kind.tokenizer) if isinstance(raw, str) else list(map(str, raw))
            return words if len(words) == len(found) else found
        return found

    def components(self, sample: Data) -> list[str]:
        """Names for the parts of a sample that can be masked."""
        if self.kind is not None:
            return self.kind.components(sample)
        return [f"node {node}" for node in range(sample.num_nodes or 0)]

    def symmetry(self, sample: Data) -> np.ndarray:
        """Numbers :math:`(C)` that components share if a molecule stays the same where they change places."""
        if not isinstance(self.kind, Molecules):
            return np.arange(len(self.components(sample)))
        chem = require("rdkit.Chem", extra="molecules")
        return np.array(chem.CanonicalRankAtoms(parse_smiles(sample.smiles), breakTies=False))

    def groups(self, sample: Data) -> np.ndarray:
        """The atoms :math:`(G, C)` of each ring and functional group of a molecule; no groups for others."""
        found: list[tuple[int, ...]] = []
        if isinstance(self.kind, Molecules):
            mol, catalogue = parse_smiles(sample.smiles), require("rdkit.Chem.FunctionalGroups", extra="molecules")
            found += mol.GetRingInfo().AtomRings()
            for group in catalogue.BuildFuncGroupHierarchy():
                found += mol.GetSubstructMatches(group.pattern)
        size = len(self.components(sample))
        groups = [np.isin(np.arange(size), group) for group in found if len(group) > 1]
        return np.array(groups, dtype=bool).reshape(-1, size)

    def masked(self, sample: Data, kept: np.ndarray) -> Data:
        """A sample without some of its components; a column has its mean instead, or 0 where the model knows none."""
        found = sample.subgraph(torch.from_numpy(kept)) if self.kind is None else self.kind.masked(sample, kept)
        found.y = sample.y
        if isinstance(self.kind, Vectors) and self.automatic is None:
            scalers = [step.scaler for step in self.steps if isinstance(step, Scale)]
            if not any(isinstance(scaler, QuantileScaler) for scaler in scalers):  # which takes missing entries
                mean = next((cast(Tensor, scaler.mean) for scaler in scalers), torch.zeros_like(sample.x))
                found.x = torch.where(torch.from_numpy(kept), sample.x, mean)
        return found

    def rows_of(self, sample: Data, network: nn.Module, num_rows: int) -> tuple[np.ndarray, list[str]]:
        """The share :math:`(C, N)` of components in the rows of a network's states, and names of those beside them."""
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
        encoder = getattr(network, "encoder", None)
        joined: Any = encoder.encoders if isinstance(encoder, JointEncoder) else []
        beside = [(each.key, each.num_components) for each in joined if isinstance(each, VectorEncoder)]
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


def names_in(model: nn.Module) -> list[str]:
    """The labels of a network's label graph."""
    labels = next((module for module in model.modules() if isinstance(module, LabelMessagePassing)), None)
    if labels is None:
        raise ValueError(f"Expected 'label_names' for a {type(model).__name__} without a label graph (got none)")
    graph = labels.label_graph
    names = graph.label_names if isinstance(graph, LabelGraph) else None
    return names or [f"label {number}" for number in range(labels.num_labels)]


def as_plain(value: Any) -> Any:
    """A raw input of numbers and strings, in lists and dictionaries."""
    if isinstance(value, (dict, list, tuple)):
        items = {str(key): as_plain(each) for key, each in value.items()} if isinstance(value, dict) else None
        return [as_plain(each) for each in value] if items is None else items
    if hasattr(value, "toarray") or hasattr(value, "tolist"):  # sparse rows have no lists
        return (value.toarray() if hasattr(value, "toarray") else value).tolist()
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
