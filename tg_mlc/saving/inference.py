"""Inference models: they turn raw inputs into scores of labels, without any training framework, and save themselves."""

from __future__ import annotations

import copy
import os
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Subset
from torch_geometric.data import Batch, Data, Dataset
from torch_geometric.data.data import BaseData
from torch_geometric.loader import DataLoader
from typing_extensions import Self

from tg_mlc._names import find, register
from tg_mlc.data import MultiLabelDataset, given_labels
from tg_mlc.data.bags import with_attribute
from tg_mlc.graphs.hierarchy import coherent as make_coherent
from tg_mlc.graphs.hierarchy import coherent_decider, pairs_of, propagate
from tg_mlc.inputs import Preprocessor
from tg_mlc.inputs.preprocessor import as_tensors
from tg_mlc.metrics import LabelSets, ThresholdTuner
from tg_mlc.metrics.calibration import Calibration
from tg_mlc.metrics.coverage import ConformalThresholds, Coverage
from tg_mlc.metrics.thresholds import Decider
from tg_mlc.models.builders import blueprint_of
from tg_mlc.nn.given import given_in
from tg_mlc.saving.checkpoint import make_entry, restore_preprocessor, restore_tuners
from tg_mlc.saving.folder import read_folder, write_folder
from tg_mlc.saving.model import describe_settings, label_graph_users, model_state, restore_model, versions

HIERARCHY = "hierarchy"  #: the kind of label graphs that came with data


class InferenceModel(ABC):
    """The source of the scores of a :class:`~tg_mlc.saving.Predictor`; a folder says its :attr:`kind`.

    Attributes:
        label_names (list[str]): The labels.
        tuners (dict[str, ThresholdTuner or LabelSets]): Thresholds or label sets, by the metric that they suit.
        hierarchy (LabelGraph, optional): The hierarchy of the labels, if the model knows one; if it came with the data,
            which its kind says, predictions are coherent unless told otherwise.
        given (GivenLabelStacking, optional): Changes the logits of other labels if some labels are given.
        calibration (Calibration, optional): Turns probabilities into calibrated ones.
        conformal (ConformalThresholds, optional): Finds the thresholds if a coverage is asked for.
    """

    kind: ClassVar[str]
    label_names: list[str]
    tuners: Mapping[str, Decider]
    hierarchy: Data | None = None
    given: Any = None
    calibration: Calibration | None = None
    conformal: ConformalThresholds | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in vars(cls):
            register("inference model", cls, cls.kind)

    def scores(self, raw: Any, given: Any = None, batch_size: int = 256) -> Tensor:
        """Returns scores :math:`(N, L)` in :math:`[0, 1]` of raw inputs, or samples, given what is known of their
        labels, as :func:`~tg_mlc.data.given_labels` takes it; known labels have 0 or 1, as they were given.
        """
        return self.scores_and_given(raw, given, batch_size)[0]

    @abstractmethod
    def scores_and_given(self, raw: Any, given: Any = None, batch_size: int = 256) -> tuple[Tensor, Tensor | None]:
        """Returns scores, and the labels :math:`(N, L)` (0, 1 or NaN) that caller or samples give, if they do."""

    def known_labels(self, samples: Any, given: Any) -> Tensor | None:
        """Returns the labels that are given :math:`(N, L)`, by the caller or by the samples, if any are; a
        :class:`ValueError` if one is unknown, all are given, or the model cannot take any.
        """
        if given is not None:
            known = given_labels(self.label_names, given, len(samples))
        elif len(samples) and "given" in samples[0]:
            known = samples.rows("given")
        else:
            return None
        if known.shape != (len(samples), len(self.label_names)):
            raise ValueError(
                f"Expected 'given' with a row for each of {len(samples)} samples and a column for each of "
                f"{len(self.label_names)} labels (got shape {list(known.shape)})"
            )
        if not known.isnan().any():
            raise ValueError(f"Expected labels that are left to predict (got all {known.size(1)} labels given)")
        if self.given is None and not known.isnan().all():
            few = "had too few held-out samples to learn of them, or was fitted by an earlier version"
            reason = "has one label" if known.size(1) == 1 else few
            raise ValueError(f"Expected no given labels, of which the model learned nothing, because it {reason}")
        return known

    def with_given(self, logits: np.ndarray, known: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Returns scores of logits without given labels, and the labels that are given, if any are."""
        if known is None or self.given is None:
            return torch.from_numpy(expit(logits)), None
        self.warn_of_absent(known)
        scores = expit(self.given.decision_function(logits, known.numpy()))
        return torch.from_numpy(np.where(known.isnan(), scores, known)), known

    def warn_of_absent(self, known: Tensor) -> None:
        """Warns of labels that are given as absent if the model learned of present ones alone."""
        if self.given is None or self.given.masks != "present":
            return
        if absent := (known == 0).any(dim=0).nonzero()[:, 0].tolist():
            hint = "leave them unknown, or fit with given_masks='both'"
            names = [self.label_names[each] for each in absent[:5]]
            warnings.warn(
                f"Expected 'given' labels that apply, because of given_masks='present' (got {names} as absent); {hint}",
                stacklevel=3,
            )

    def coherence(self, coherent: bool | Data | None) -> Tensor | None:
        """Returns the pairs of ancestors and labels below them along which predictions are made coherent, if they are:
        by default, where a hierarchy came with the training data; a label graph is the hierarchy itself.
        """
        if coherent is None:
            coherent = self.hierarchy is not None and self.hierarchy.get("kind") == HIERARCHY
        if coherent is False:
            return None
        graph = self.hierarchy if coherent is True else coherent
        if graph is None:
            hint = "pass the label graph itself, coherent=tg_mlc.graphs.tree(parents, label_names)"
            raise ValueError(f"Expected a model that knows the hierarchy of its labels for coherent=True; {hint}")
        return pairs_of(graph, self.label_names, "coherent")

    def predictions(
        self, raw: Any, given: Any = None, batch_size: int = 256, coherent: bool | Data | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Returns what :meth:`scores_and_given` does, calibrated if the model is, and made coherent as
        :meth:`coherence` takes it: then, a label never scores more than one above it, and given labels say what holds
        of those above and below them.
        """
        pairs = self.coherence(coherent)
        if pairs is not None and given is not None:
            told = given_labels(self.label_names, given, raw.shape[0] if hasattr(raw, "shape") else len(raw))
            given = propagate(told, pairs, self.label_names, "given")
            given = given if given.isnan().any() else told  # which may leave labels that only the hierarchy tells
        scores, known = self.scores_and_given(raw, given, batch_size)
        scores = self.calibrated(scores)
        if pairs is None:
            return scores, known
        if known is not None:  # perhaps by the samples themselves
            known = propagate(known, pairs, self.label_names, "given")
            scores = torch.where(known.isnan(), scores, known.to(scores))
        return make_coherent(scores, pairs), known

    def conformalize(self, raw: Any, y: Any, batch_size: int = 256) -> Self:
        """Keeps the scores of samples that nothing was fitted to, drawn at random from those to come, by which label
        sets get a coverage; no label of them may be given, and some have to apply.
        """
        scores, known = self.predictions(raw, None, batch_size)
        self.check_promise(known)
        self.conformal = ConformalThresholds(y, scores)
        return self

    def check_promise(self, known: Any, coherent: bool | Data | None = None) -> None:
        """Refuses a coverage for scores of another distribution than those of calibration: if labels are given."""
        if known is not None and not (isinstance(known, Tensor) and known.isnan().all()):
            raise ValueError("Expected no 'given' labels with a coverage, which would not hold for them (got some)")
        pairs, usual = self.coherence(coherent), self.coherence(None)
        if not (pairs is usual is None or (pairs is not None and usual is not None and torch.equal(pairs, usual))):
            raise ValueError(f"Expected 'coherent' as in calibration for a coverage, None (got {coherent!r:.60})")

    def calibrated(self, scores: Tensor) -> Tensor:
        """Returns calibrated probabilities for others, if the model is calibrated; given labels keep 0 and 1."""
        return scores if self.calibration is None else self.calibration.probabilities(scores)

    @property
    def calibration_methods(self) -> dict[str, int]:
        """How many labels each function calibrates; none if the model is not calibrated for each label."""
        return {} if self.calibration is None else dict(Counter(self.calibration.methods))

    def decider(self, metric: str | Coverage = "f1_micro", coherent: bool | Data | None = None) -> Decider:
        """Returns what decides for a metric: thresholds, 0.5 where validation samples gave none, or label sets; or for
        a coverage, if there are scores by which it holds.
        """
        if isinstance(metric, Coverage):
            metric.check()
            if self.conformal is None:
                raise ValueError(
                    f"Expected a model with scores of samples that nothing was fitted to, for {metric} (got one "
                    f"without); pass such samples to 'conformalize', or let 'auto' keep some: auto(..., "
                    f"coverage_share=0.2), or tg-mlc train --coverage_share 0.2"
                )
            self.check_promise(None, coherent)
            tuner, pairs = self.conformal.tuner(metric, self.label_names), self.coherence(None)
            if pairs is not None and tuner.per_label:  # lower ones above, because sets may only grow
                tuner.thresholds = -make_coherent(-torch.from_numpy(tuner.fitted())[None], pairs)[0].numpy()
            return tuner
        if self.tuners and metric not in self.tuners:
            raise ValueError(f"Expected 'metric' to be one of {list(self.tuners)} (got {metric!r})")
        half = ThresholdTuner()
        half.thresholds = np.array([0.5])
        found, pairs = self.tuners.get(metric, half), self.coherence(coherent)
        return found if pairs is None else coherent_decider(found, pairs)

    def decide(
        self,
        scores: Tensor,
        metric: str | Coverage = "f1_micro",
        known: Tensor | None = None,
        coherent: bool | Data | None = None,
    ) -> Tensor:
        """Returns decisions 0 and 1 :math:`(N, L)` of scores, those of known labels as they are; arguments are as of
        :meth:`predictions` and :meth:`decider`.
        """
        decisions, pairs = self.decider(metric, coherent).predict(scores), self.coherence(coherent)
        if isinstance(metric, Coverage):
            self.check_promise(known, coherent)
        if known is not None:
            known = known if pairs is None else propagate(known, pairs, self.label_names, "given")
            decisions = torch.where(known.isnan(), decisions, known.long())
        return decisions if pairs is None else make_coherent(decisions, pairs)  # label sets have no thresholds

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Returns all that it takes to make it again, as tensors and plain data."""

    def checked_state(self) -> dict[str, Any]:
        """Returns the state, once a model was made of it as a test."""
        state = self.state_dict()
        self.from_state(state)
        return state

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Makes a model of its state."""

    @abstractmethod
    def to(self, device: torch.device | str) -> Self:
        """Moves it to a device."""

    def save(
        self,
        path: str | os.PathLike[str],
        facts: Mapping[str, Any] | None = None,
        *,
        estimator: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Path:
        """Writes a folder that :func:`tg_mlc.load` reads, once it has been made again as a test; a model that is there
        already is replaced as a whole. Facts are what else to write down, as plain data; options, what the model needs
        besides to be made again.
        """
        beside = {} if estimator is None else {"estimator": estimator}
        check_finite(state := self.checked_state(**options))
        about = {"label_names": self.label_names, "facts": {"versions": versions(), **(facts or {})}}
        if self.calibration is not None:
            about["calibration"] = {"methods": self.calibration.methods, **self.calibration.state_dict()}
        if self.conformal is not None:
            about["conformal"] = as_tensors(self.conformal.state_dict())
        return write_folder(path, {"kind": self.kind, **about, **beside, self.kind: state})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Loads a model of this class from the folder that :meth:`save` wrote."""
        return cls.from_content(read_folder(path))

    @classmethod
    def from_content(cls, content: Mapping[str, Any], *made_of: Any) -> Self:
        """Makes a model of the content of a folder, whose parts have to agree."""
        check_finite(content[content["kind"]])
        found = find("inference model", content["kind"])
        if not issubclass(found, cls):
            raise ValueError(f"Expected the folder of a {cls.__name__} (got one of a {found.__name__})")
        scorer: Self = found.from_state(content[content["kind"]], *made_of)
        if "calibration" in content:
            check_finite(state := dict(content["calibration"]), "calibration")
            scorer.calibration = Calibration(state.pop("methods"), len(state["knots"]))
            scorer.calibration.load_state_dict(state)
        if "conformal" in content:
            scorer.conformal = ConformalThresholds.from_state(content["conformal"])
        check_consistent(scorer, content)
        return scorer


class ModuleInference(InferenceModel):
    """Scores of a trained module, whose preprocessor makes samples of raw inputs.

    Args:
        module (MultiLabelModule): The module, or an object with its attributes :obj:`model`, :obj:`label_names`,
            :obj:`objective`, :obj:`preprocessor`, :obj:`tuners`, :obj:`hparams` and :obj:`settings`.
    """

    kind = "module"
    examples: Batch | None = None  #: by which a network of one's own is compared with the one made again

    def __init__(self, module: Any) -> None:
        self.model: nn.Module = module.model.eval()
        self.label_names: list[str] = module.label_names
        self.objective = module.objective
        self.preprocessor: Preprocessor | None = module.preprocessor
        self.tuners = module.tuners
        self.hparams: dict[str, Any] = dict(module.hparams)
        self.settings: dict[str, dict[str, str]] = module.settings
        graphs = (layer.label_graph for layer in label_graph_users(self.model))
        self.hierarchy = next((graph for graph in graphs if "parent_index" in graph), None)

    @torch.inference_mode()
    def scores_and_given(self, raw: Any, given: Any = None, batch_size: int = 256) -> tuple[Tensor, Tensor | None]:
        samples = self._samples(raw, given)
        device = next(self.model.parameters()).device
        scores: list[Tensor] = []
        found: list[Tensor] = []
        logits: list[Tensor] = []
        for loaded in make_loader(samples, batch_size=batch_size):
            if self.examples is None and blueprint_of(self.model) is None:
                self.examples = loaded
            batch = in_type_of(self.model, loaded.to(device))
            if self.given is not None:  # changes these logits afterwards, from which it was learned
                if "given" in batch:
                    del batch.given
                logits.append(logits_of(self.model, [batch]))
                continue
            scores.append(scores_of(self.objective, self.model, batch).cpu())
            of_batch = given_in(self.model, batch)
            found += [] if of_batch is None else [of_batch]
        if self.given is not None:
            known = self.known_labels(samples, given)
            return self.with_given(torch.cat(logits).double().numpy(), known)
        return torch.cat(scores), torch.cat(found) if found else None

    def _samples(self, raw: Any, given: Any) -> Any:
        """Samples as the network takes them, with the labels that are given if it takes these."""
        samples = raw
        if not makes_batches(raw):
            are_samples = isinstance(raw, (list, tuple)) and bool(raw) and all(isinstance(one, BaseData) for one in raw)
            if self.preprocessor is not None:
                samples = self.preprocessor.transform(raw)
            elif not (are_samples or isinstance(raw, (Dataset, Subset))):
                single = "one, not in a list" if isinstance(raw, BaseData) else type(raw).__name__
                raise ValueError(
                    f"Expected samples as the model was trained on, because it was saved without a preprocessor (got "
                    f"{single}); pass a list of Data or a data set, or 'preprocessor' to MultiLabelModule "
                    f"before training"
                )
        if given is not None and self.given is None:
            if not isinstance(samples, MultiLabelDataset):
                raise ValueError(f"Expected no 'given' for samples that come as batches (got {type(samples).__name__})")
            return with_attribute(samples, "given", given_labels(self.label_names, given, len(samples)))
        return samples

    def state_dict(self, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns all that it takes to build the model again, and to predict with it. Arguments of the constructor of a
        network of one's own are given where neither :func:`~tg_mlc.models.builder` nor its attributes tell them.
        """
        described = model_state(self.model, self.settings, self.label_names, arguments)
        learned = {} if self.given is None else {"given": as_tensors(self.given.state_dict())}
        return {"hyper_parameters": self.hparams, **make_entry(described, self.tuners, self.preprocessor), **learned}

    def checked_state(self, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns the state, once a model of it was compared: of a network of one's own, the outputs as well."""
        state = self.state_dict(arguments)
        again = self.from_state(state, type(self.model) if "network" in state else None)
        if "network" not in state:
            return state
        if self.examples is None:
            raise ValueError(
                f"Expected samples to compare {type(self.model).__name__} with the network that its constructor makes "
                f"again (got none); call 'tune', 'evaluate' or 'predict' with some before 'save'"
            )
        device = next(self.model.parameters()).device
        models, batch = (self.model, again.model.to(device)), self.examples.to(device)
        with torch.inference_mode():
            before, after = (scores_of(self.objective, each.eval(), in_type_of(each, batch.clone())) for each in models)
        if not torch.allclose(before, after, rtol=1e-4, atol=1e-5, equal_nan=True):
            found = list(state["network"]["arguments"]) or "none"
            raise ValueError(
                f"Expected the same outputs of {type(self.model).__name__} and of the one that its constructor makes "
                f"again with the arguments {found} (got others); pass those that differ from their defaults: "
                f"save(path, arguments={{...}})"
            )
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any], network: type[nn.Module] | None = None) -> Self:
        """Builds the model again, a network of one's own by its class."""
        hparams = state["hyper_parameters"]
        objective = dict(hparams["objective"])
        found = cls(
            SimpleNamespace(
                model=restore_model(state, hparams["label_names"], network),
                label_names=hparams["label_names"],
                objective=find("objective", objective.pop("class"))(**objective),
                preprocessor=restore_preprocessor(state),
                tuners=restore_tuners(state["thresholds"]),
                hparams=hparams,
                settings=state["settings"],
            )
        )
        if "given" in state:
            found.given = find("given labels", "GivenLabelStacking").from_state(state["given"])
        return found

    @classmethod
    def of_network(cls, network: nn.Module, label_names: Sequence[str]) -> Self:
        """Scores of a network that returns logits, which was trained elsewhere."""
        names = [str(name) for name in label_names]
        return cls(
            SimpleNamespace(
                model=network,
                label_names=names,
                objective=find("objective", "BinaryObjective")(),
                preprocessor=None,
                tuners={},
                hparams={"label_names": names, "objective": {"class": "BinaryObjective"}},
                settings=describe_settings(network),
            )
        )

    def to(self, device: torch.device | str) -> Self:
        self.model.to(device)
        return self


def scores_of(objective: Any, model: nn.Module, batch: Batch) -> Tensor:
    """The scores :math:`(B, L)` of a batch, in which labels that are given have 0 or 1, as they were given."""
    scores, given = objective.scores(model, batch), given_in(model, batch)
    return scores if given is None else torch.where(given.isnan(), scores, given.to(scores))


def in_type_of(model: nn.Module, batch: Batch) -> Batch:
    """A batch whose numbers are of the type of a model's weights, such as double precision."""
    dtype = next((weight.dtype for weight in model.parameters() if weight.is_floating_point()), torch.float)
    if dtype == torch.float:
        return batch
    return copy.copy(batch).apply(lambda value: value.to(dtype) if value.is_floating_point() else value)


def batches_of(samples: MultiLabelDataset, batch_size: int = 256) -> Any:
    """Samples in batches, in order."""
    # Without a generator of its own a loader draws from the global one.
    return make_loader(samples, batch_size=batch_size, generator=torch.Generator())


def logits_of(model: nn.Module, batches: Iterable[Batch]) -> Tensor:
    """The logits :math:`(N, L)` of samples in batches, by a model on any device."""
    device = next(model.parameters()).device
    with torch.inference_mode():
        return torch.cat([model(batch.to(device)).cpu() for batch in batches])


def makes_batches(samples: Any) -> bool:
    """Tells whether a data set makes whole batches, as a NextSetDataset or a part of one does."""
    while isinstance(samples, Subset):
        samples = samples.dataset
    return hasattr(samples, "__getitems__") and not isinstance(samples, Dataset)


def make_loader(samples: Any, **options: Any) -> Any:
    """Loads PyG's samples one by one, or whole batches from a data set that makes these."""
    if makes_batches(samples):
        return TorchDataLoader(samples, collate_fn=_as_it_is, **options)
    return DataLoader(samples, **options)


def _as_it_is(batch: Batch) -> Batch:  # not a lambda, which workers cannot take
    return batch


def check_finite(state: Any, name: str = "") -> None:
    """Refuses numbers that a model computes with and that are infinite or NaN, by their names: all of its tensors but
    thresholds, which are infinite where a label never applies.
    """
    if isinstance(state, Mapping):
        for key, value in state.items():
            check_finite(value, f"{name}.{key}".strip("."))
    elif isinstance(state, list):
        for place, value in enumerate(state):
            check_finite(value, f"{name}.{place}")
    elif isinstance(state, Tensor) and not name.endswith("thresholds") and not state.isfinite().all():
        found = int((~state.isfinite()).sum())
        raise ValueError(f"the weights '{name}' hold {found} of {state.numel()} numbers that are NaN or infinite")


def check_consistent(scorer: InferenceModel, content: Mapping[str, Any]) -> None:
    """Refuses a folder whose parts disagree, which would fail at the first prediction only, or not at all."""
    names, facts = scorer.label_names, content["facts"]
    are_names = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not are_names or len({*names}) != len(names) or not names or content["label_names"] != names:
        raise ValueError(
            f"'label_names' has to list the names of labels, each once, twice alike (got {str(names)[:80]})"
        )
    if not isinstance(facts, dict):
        raise ValueError(f"'facts' has to be an object (got {str(facts)[:80]})")
    if scorer.conformal is not None and scorer.conformal.num_labels != len(names):
        raise ValueError(f"the scores of label sets have to be of {len(names)} labels (got others)")
    if scorer.calibration is not None and len(scorer.calibration.methods) != len(names):
        raise ValueError(f"the calibration has to be of {len(names)} labels (got another)")
    for metric, tuner in scorer.tuners.items():
        if isinstance(tuner, LabelSets):
            if tuner.sets.shape[1] != len(names):
                raise ValueError(f"the label sets of '{metric}' have to be of {len(names)} labels (got {tuner!r})")
            continue
        thresholds = tuner.fitted()
        if thresholds.shape not in ((), (1,), (len(names),)) or np.isnan(thresholds).any():
            sizes = f"one number or {len(names)}"
            raise ValueError(f"the thresholds of '{metric}' have to be {sizes} (got {str(thresholds.tolist())[:80]})")
