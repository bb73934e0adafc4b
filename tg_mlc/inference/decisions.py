"""GivenLabels, Calibration, Coherence and Decision: logits become probabilities and decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Self

from tg_mlc._names import find
from tg_mlc._warnings import warn
from tg_mlc.graphs.hierarchy import coherent as make_coherent
from tg_mlc.graphs.hierarchy import coherent_decider, pairs_of, propagate
from tg_mlc.inference.checkpoint import restore_tuners
from tg_mlc.inference.flow import Coherent, Flow
from tg_mlc.inference.network import packed, unpacked
from tg_mlc.inference.stage import Stage, TensorStage, Values
from tg_mlc.inputs.preprocessor import as_tensors
from tg_mlc.metrics import LabelSets, ThresholdTuner
from tg_mlc.metrics.calibration import Calibration as LabelCalibration
from tg_mlc.metrics.coverage import ConformalThresholds, Coverage
from tg_mlc.metrics.thresholds import Decider

HIERARCHY = "hierarchy"  #: the kind of label graphs that came with data


class GivenLabels(Stage):
    """Changes the logits of other labels where some labels are given.

    Args:
        engine (GivenLabelStacking): The fitted parts and their weights.
    """

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    @property
    def takes_given(self) -> bool:
        return True

    def begin(self, flow: Flow) -> None:
        if flow.given is None or self.engine.masks != "present":
            return
        if absent := (flow.given == 0).any(dim=0).nonzero()[:, 0].tolist():
            names = [flow.label_names[label] for label in absent[:5]]
            warn(
                f"Expected 'given' labels that apply, because of given_masks='present' (got {names} as absent); leave "
                f"them unknown, or fit with given_masks='both'",
                stacklevel=4,
            )

    def apply(self, flow: Flow) -> None:
        if flow.logits is None:
            raise RuntimeError("Expected logits to start from (got none before this stage)")
        flow.logits = flow.logits.double()
        if flow.given is not None:
            logits = self.engine.decision_function(flow.logits.numpy(), flow.given.numpy())
            flow.logits = torch.from_numpy(logits)

    def module(self) -> TensorStage:
        return _GivenModule(self.engine.module())

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = as_tensors(self.engine.state_dict())
        return state

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], label_names: list[str], network: type[nn.Module] | None
    ) -> Self:
        return cls(find("given labels", "GivenLabelStacking").from_state(state))

    def __str__(self) -> str:
        return ", ".join(self.engine.parts) or "base logits alone"


class _GivenModule(TensorStage):
    def __init__(self, engine: nn.Module) -> None:
        super().__init__()
        self.engine = engine

    def forward(self, values: Values) -> Values:
        given = values.get("given")
        if given is None:
            return values
        return {**values, "logits": self.engine(values["logits"], given)}


class Calibration(Stage):
    """Turns probabilities into calibrated ones.

    Args:
        free (tg_mlc.metrics.calibration.Calibration): Calibration for samples without given labels.
        masked (tg_mlc.metrics.calibration.Calibration, optional): Calibration for samples with given labels,
            fitted under masks like those to come. (default: :obj:`None`, the same)
    """

    def __init__(self, free: LabelCalibration, masked: LabelCalibration | None = None) -> None:
        self.free, self.masked = free, masked

    def apply(self, flow: Flow) -> None:
        flow.probabilities = self.probabilities(flow.probabilities, flow.given)

    def probabilities(self, scores: Tensor, given: Tensor | None = None) -> Tensor:
        """Returns calibrated probabilities :math:`(N, L)`; 0 and 1 are unchanged."""
        free = self.free.probabilities(scores)
        if given is None or self.masked is None:
            return free
        some = (~given.isnan()).any(dim=1, keepdim=True)
        return torch.where(some, self.masked.probabilities(scores), free)

    @property
    def methods(self) -> dict[str, int]:
        """How many labels each function calibrates."""
        return dict(Counter(self.free.methods))

    def module(self) -> TensorStage:
        return _CalibrationModule(self)

    def state_dict(self) -> dict[str, Any]:
        parts = {"free": self.free, "masked": self.masked}
        return {
            name: None if part is None else {"methods": part.methods, **part.state_dict()}
            for name, part in parts.items()
        }

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], label_names: list[str], network: type[nn.Module] | None
    ) -> Self:
        parts = [
            None if state[name] is None else _restored(state[name]) for name in ("free", "masked")
        ]
        if parts[0] is None or any(
            part is not None and len(part.methods) != len(label_names) for part in parts
        ):
            raise ValueError(
                f"the calibration has to be of {len(label_names)} labels (got another)"
            )
        return cls(parts[0], parts[1])

    def __str__(self) -> str:
        return ", ".join(f"{number} by {name}" for name, number in self.methods.items())


def _restored(state: Mapping[str, Any]) -> LabelCalibration:
    entries = dict(state)
    part = LabelCalibration(entries.pop("methods"), len(entries["knots"]))
    part.load_state_dict(entries)
    return part


class _CalibrationModule(TensorStage):
    def __init__(self, stage: Calibration) -> None:
        super().__init__()
        self.free = copy_of(stage.free)
        self.masked = None if stage.masked is None else copy_of(stage.masked)

    def forward(self, values: Values) -> Values:
        given = values.get("given")
        if "probability" in values:
            probability = self.free.probabilities(values["probability"])
            if given is not None and self.masked is not None:
                some = (~given.isnan()).any(dim=1, keepdim=True)
                masked = self.masked.probabilities(values["probability"])
                probability = torch.where(some, masked, probability)
            return {**values, "probability": probability.float()}
        logits = self.free(values["logits"])
        if given is not None and self.masked is not None:
            some = (~given.isnan()).any(dim=1, keepdim=True)
            logits = torch.where(some, self.masked(values["logits"]), logits)
        return {**values, "logits": logits}


def copy_of(part: LabelCalibration) -> LabelCalibration:
    """A calibration in single precision, as programs compute."""
    return deepcopy(part).float()


class Coherence(Stage):
    """Respects a hierarchy of labels: no label is more probable than one above it.

    It acts twice: given labels say what holds of those above and below them before any stage computes, and
    probabilities become coherent after all others.

    Args:
        label_names (Sequence[str]): The labels of the model.
        hierarchy (LabelGraph, optional): The hierarchy that the model knows, which is respected by default if it came
            with the data. (default: :obj:`None`)
    """

    def __init__(self, label_names: Sequence[str], hierarchy: Data | None = None) -> None:
        self.label_names, self.hierarchy = list(label_names), hierarchy

    @property
    def is_default_hierarchy(self) -> bool:
        """Whether predictions are coherent unless a query says otherwise."""
        return self.hierarchy is not None and self.hierarchy.get("kind") == HIERARCHY

    def pairs(self, coherent: Coherent = None) -> Tensor | None:
        """Returns the pairs of a label and one below it that predictions respect, if they do."""
        if coherent is None:
            coherent = self.is_default_hierarchy
        if coherent is False:
            return None
        graph = self.hierarchy if coherent is True else coherent
        if graph is None:
            hint = "pass the label graph itself, coherent=tg_mlc.graphs.tree(parents, label_names)"
            raise ValueError(
                f"Expected a model that knows the hierarchy of its labels for coherent=True; {hint}"
            )
        return pairs_of(graph, self.label_names, "coherent")

    def with_ancestors(self, y: np.ndarray) -> np.ndarray:
        """Returns targets :math:`(N, L)` in which all labels above one that applies apply, too, where predictions
        respect a hierarchy by default.

        Args:
            y (numpy.ndarray): Targets: 0, 1, or NaN for unknown.
        """
        pairs = self.pairs()
        if pairs is None:
            return y
        targets: np.ndarray = make_coherent(torch.from_numpy(y), pairs).numpy()
        return targets

    def begin(self, flow: Flow) -> None:
        flow.pairs, usual = self.pairs(flow.query.coherent), self.pairs()
        both = flow.pairs is not None and usual is not None and torch.equal(flow.pairs, usual)
        flow.is_default_hierarchy = both or flow.pairs is usual is None
        if flow.pairs is not None and flow.given is not None:
            flow.given = propagate(flow.given, flow.pairs, self.label_names, "given")

    def apply(self, flow: Flow) -> None:
        if flow.pairs is not None:
            flow.probabilities = make_coherent(flow.probabilities, flow.pairs)

    def module(self) -> TensorStage:
        return _CoherenceModule(self)

    def state_dict(self) -> dict[str, Any]:
        return {"hierarchy": None if self.hierarchy is None else packed(self.hierarchy)}

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], label_names: list[str], network: type[nn.Module] | None
    ) -> Self:
        return cls(
            label_names, None if state["hierarchy"] is None else unpacked(state["hierarchy"])
        )

    def __str__(self) -> str:
        if self.hierarchy is None:
            return "no hierarchy"
        return f"{self.hierarchy}, {'always' if self.is_default_hierarchy else 'on request'}"


class _CoherenceModule(TensorStage):
    pairs: Tensor | None

    def __init__(self, stage: Coherence) -> None:
        super().__init__()
        self.register_buffer("pairs", stage.pairs())

    def begin(self, values: Values) -> Values:
        if self.pairs is None or "given" not in values:
            return values
        return {**values, "given": propagate(values["given"], self.pairs, check=False)}

    def forward(self, values: Values) -> Values:
        if self.pairs is None:
            return values
        return {**values, "probability": make_coherent(probability_of(values), self.pairs)}


def probability_of(values: Values) -> Tensor:
    """The probabilities of tensors that have passed stages; given labels have 0 or 1."""
    if "probability" in values:
        return values["probability"]
    probability = values["logits"].sigmoid()
    given = values.get("given")
    return probability if given is None else torch.where(given.isnan(), probability, given)


class Decision(Stage):
    """Decides which labels apply.

    Args:
        tuners (dict, optional): Thresholds or label sets by the metric that they suit; 0.5 if there are none.
            (default: :obj:`None`)
        conformal (ConformalThresholds, optional): Finds the thresholds for a coverage. (default: :obj:`None`)
    """

    def __init__(
        self,
        tuners: Mapping[str, Decider] | None = None,
        conformal: ConformalThresholds | None = None,
    ) -> None:
        self.tuners: dict[str, Decider] = dict(tuners or {})
        self.conformal = conformal

    @property
    def metrics(self) -> list[str]:
        """The metrics that decisions may be best for."""
        return list(self.tuners) or ["f1_micro"]

    def begin(self, flow: Flow) -> None:
        decider = flow.decider = self.decider(flow)
        found = np.array([np.nan]) if isinstance(decider, LabelSets) else decider.fitted()
        flow.thresholds = np.broadcast_to(found, len(flow.label_names))

    def decider(self, flow: Flow) -> Decider:
        """Returns what decides for a query: thresholds, 0.5 where validation samples gave none, or label sets."""
        decides, pairs = flow.query.decides, flow.pairs
        if isinstance(decides, Coverage):
            return self._conformal_decider(flow, decides)
        if self.tuners and decides not in self.tuners:
            raise ValueError(
                f"Expected 'metric' to be one of {list(self.tuners)} (got {decides!r})"
            )
        if self.tuners:
            decider = self.tuners[decides]
        else:
            decider = ThresholdTuner()
            decider.thresholds = np.array([0.5])
        return decider if pairs is None else coherent_decider(decider, pairs)

    def _conformal_decider(self, flow: Flow, coverage: Coverage) -> Decider:
        if self.conformal is None:
            raise ValueError(
                f"Expected a model with scores of samples that nothing was fitted to, for {coverage} (got one "
                f"without); pass such samples to 'conformalize', or let 'auto' keep some: auto(..., "
                f"coverage_share=0.2), or tg-mlc train --coverage_share 0.2"
            )
        if flow.given is not None and not flow.given.isnan().all():
            raise ValueError(
                "Expected no 'given' labels with a coverage, which would not hold for them (got some)"
            )
        if not flow.is_default_hierarchy:
            got = f"{flow.query.coherent!r:.60}"
            raise ValueError(
                f"Expected 'coherent' as in calibration for a coverage, None (got {got})"
            )
        tuner = self.conformal.tuner(coverage, flow.label_names)
        # lower ones above, because sets may only grow
        if flow.pairs is not None and tuner.per_label:
            thresholds = torch.from_numpy(tuner.fitted())[None]
            tuner.thresholds = -make_coherent(-thresholds, flow.pairs)[0].numpy()
        return tuner

    def apply(self, flow: Flow) -> None:
        probabilities = flow.probabilities
        finite = probabilities.isfinite().all(dim=1)
        if finite.all():
            decisions = flow.decider.predict(probabilities)
        else:  # Nothing is decided of inputs that the model cannot compute with.
            decisions = torch.zeros(probabilities.shape, dtype=torch.long)
            if finite.any():
                decisions[finite] = flow.decider.predict(probabilities[finite])
        decisions = flow.with_given(decisions)
        # Label sets have no thresholds that could keep decisions coherent.
        flow.decisions = decisions if flow.pairs is None else make_coherent(decisions, flow.pairs)

    def state_dict(self) -> dict[str, Any]:
        conformal = None if self.conformal is None else self.conformal.state_dict()
        tuners = {metric: tuner.state_dict() for metric, tuner in self.tuners.items()}
        state: dict[str, Any] = as_tensors({"tuners": tuners, "conformal": conformal})
        return state

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], label_names: list[str], network: type[nn.Module] | None
    ) -> Self:
        conformal = (
            None
            if state["conformal"] is None
            else ConformalThresholds.from_state(state["conformal"])
        )
        stage = cls(restore_tuners(state["tuners"]), conformal)
        stage.check_labels(len(label_names))
        return stage

    def check_labels(self, num_labels: int) -> None:
        """Refuses thresholds and label sets of another number of labels."""
        if self.conformal is not None and self.conformal.num_labels != num_labels:
            raise ValueError(
                f"the scores of label sets have to be of {num_labels} labels (got others)"
            )
        for metric, tuner in self.tuners.items():
            if isinstance(tuner, LabelSets):
                if tuner.sets.shape[1] != num_labels:
                    raise ValueError(
                        f"the label sets of '{metric}' have to be of {num_labels} labels (got {tuner!r})"
                    )
                continue
            thresholds = tuner.fitted()
            if thresholds.shape not in ((), (1,), (num_labels,)) or np.isnan(thresholds).any():
                got = f"{thresholds.tolist()!s:.80}"
                raise ValueError(
                    f"the thresholds of '{metric}' have to be one number or {num_labels} (got {got})"
                )

    def __str__(self) -> str:
        deciders = {
            "label sets" if isinstance(tuner, LabelSets) else "thresholds"
            for tuner in self.tuners.values()
        }
        promise = ", any coverage" if self.conformal is not None else ""
        return (
            f"{' and '.join(sorted(deciders))} for {', '.join(self.tuners)}" if deciders else "0.5"
        ) + promise
