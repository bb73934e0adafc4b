"""The stages after the logits: GivenLabels, Calibration, Coherence and Decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch_geometric.data import Data
from typing_extensions import Self

from tg_mlc._names import few, find
from tg_mlc._warnings import warn
from tg_mlc.graphs.hierarchy import coherent as make_coherent
from tg_mlc.graphs.hierarchy import coherent_decider, derive, pairs_of, propagate, roots_of
from tg_mlc.inference.checkpoint import restore_tuners
from tg_mlc.inference.flow import Coherent, Flow
from tg_mlc.inference.network import packed, unpacked
from tg_mlc.inference.stage import NetworkClass, Stage, State, TensorStage, Values
from tg_mlc.inputs.preprocessor import as_tensors
from tg_mlc.metrics import LabelSets, ThresholdTuner
from tg_mlc.metrics.calibration import Calibration as LabelCalibration
from tg_mlc.metrics.coverage import ConformalThresholds, Coverage
from tg_mlc.metrics.thresholds import Decider

HIERARCHY = "hierarchy"  #: The kind of label graphs that came with the training data.
GIVEN_WITH_COVERAGE = (
    "Expected no 'given' labels with a coverage, which would not hold for them (got some); "
    "leave one of both out"
)


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
        absent = (flow.given == 0).any(dim=0).nonzero()[:, 0].tolist()
        if absent:
            names = few([flow.label_names[label] for label in absent])
            warn(
                f"Expected 'given' labels that apply, because of given_masks='present' (got "
                f"{names} as absent); leave them unknown, or fit with given_masks='both'",
                stacklevel=4,
            )

    def apply(self, flow: Flow) -> None:
        if flow.logits is None:
            raise RuntimeError("Expected logits to start from (got none before this stage)")
        flow.logits = flow.logits.double()
        if flow.given is not None:
            logits = self.engine.decision_function(flow.logits.numpy(), flow.given.numpy())
            base_logits, flow.logits = flow.logits, torch.from_numpy(logits)
            flow.told = information(base_logits, flow.logits, flow.given)

    def module(self) -> TensorStage:
        return _GivenModule(self.engine.module())

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = as_tensors(self.engine.state_dict())
        return state

    @classmethod
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        return cls(find("given labels", "GivenLabelStacking").from_state(state))

    def __str__(self) -> str:
        return ", ".join(self.engine.parts) or "base logits alone"


def information(base_logits: Tensor, logits: Tensor, given: Tensor) -> Tensor:
    r"""Returns the information :math:`\sum_i \mathrm{KL}(q_i \| p_i)` of given labels on the
    others, and the entropy :math:`\sum_i \mathrm{H}(p_i)` of the others without them
    :math:`(N, 2)`. If the probabilities :math:`q` are right, the information is what given labels
    are expected to save of the cross-entropy.

    Args:
        base_logits, logits (Tensor): Logits of :math:`p` and :math:`q` :math:`(N, L)`.
        given (Tensor): Given labels :math:`(N, L)`, NaN for unknown. Rows without any are zero.
    """
    p, q = base_logits.sigmoid(), logits.sigmoid()
    # The logarithm of 1 - p is -softplus of its logit.
    base_log, log = softplus(base_logits), softplus(logits)
    entropy = base_log - p * base_logits
    divergence = q * (logits - base_logits) + base_log - log
    is_open = given.isnan()
    is_open &= ~is_open.all(dim=1, keepdim=True)
    values = torch.stack([divergence, entropy], dim=-1)
    # Infinite logits leave nothing to tell.
    return torch.where(is_open.unsqueeze(-1), values, 0.0).nan_to_num(0.0, 0.0, 0.0).sum(dim=1)


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
    """Calibrates the probabilities of each label.

    Args:
        free (tg_mlc.metrics.calibration.Calibration): Calibration for samples without given labels.
        masked (tg_mlc.metrics.calibration.Calibration, optional): Calibration for samples with
            given labels, fitted with random masks. (default: :obj:`None`, :obj:`free`)
    """

    def __init__(self, free: LabelCalibration, masked: LabelCalibration | None = None) -> None:
        self.free, self.masked = free, masked

    def apply(self, flow: Flow) -> None:
        flow.probabilities = self.probabilities(flow.probabilities, flow.given)

    def probabilities(self, scores: Tensor, given: Tensor | None = None) -> Tensor:
        """Returns calibrated probabilities :math:`(N, L)`; 0 and 1 are unchanged."""
        masked = None if self.masked is None else self.masked.probabilities
        return _calibrate_rows(scores, given, self.free.probabilities, masked)

    @property
    def methods(self) -> dict[str, int]:
        """The number of labels that each function calibrates."""
        return dict(Counter(self.free.methods))

    def module(self) -> TensorStage:
        return _CalibrationModule(self)

    def state_dict(self) -> dict[str, Any]:
        modules = {"free": self.free, "masked": self.masked}
        return {
            name: None if module is None else {"methods": module.methods, **module.state_dict()}
            for name, module in modules.items()
        }

    @classmethod
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        functions = [_restore_calibration(state["free"])]
        if state["masked"] is not None:
            functions.append(_restore_calibration(state["masked"]))
        if any(len(function.methods) != len(label_names) for function in functions):
            raise ValueError(
                f"the calibration has to be of {len(label_names)} labels (got another)"
            )
        return cls(*functions)

    def __str__(self) -> str:
        return ", ".join(f"{number} by {name}" for name, number in self.methods.items())


def _restore_calibration(state: Mapping[str, Any]) -> LabelCalibration:
    entries = dict(state)
    calibration = LabelCalibration(entries.pop("methods"), len(entries["knots"]))
    calibration.load_state_dict(entries)
    return calibration


Function = Callable[[Tensor], Tensor]


def _calibrate_rows(
    values: Tensor, given: Tensor | None, free: Function, masked: Function | None
) -> Tensor:
    """Applies ``masked``, if present, to rows with given labels, and ``free`` to all other rows."""
    calibrated = free(values)
    if given is None or masked is None:
        return calibrated
    has_given = (~given.isnan()).any(dim=1, keepdim=True)
    return torch.where(has_given, masked(values), calibrated)


class _CalibrationModule(TensorStage):
    """The calibration in single precision, as in exported programs."""

    def __init__(self, stage: Calibration) -> None:
        super().__init__()
        self.free = deepcopy(stage.free).float()
        self.masked = None if stage.masked is None else deepcopy(stage.masked).float()

    def forward(self, values: Values) -> Values:
        given = values.get("given")
        if "probability" not in values:
            logits = _calibrate_rows(values["logits"], given, self.free, self.masked)
            return {**values, "logits": logits}
        masked = None if self.masked is None else self.masked.probabilities
        probability = _calibrate_rows(values["probability"], given, self.free.probabilities, masked)
        return {**values, "probability": probability.float()}


class Coherence(Stage):
    """Respects a hierarchy of labels: no label is more probable than its ancestors.

    The stage acts twice. Before any stage computes, given labels determine their ancestors and
    descendants. When the stage runs, it makes probabilities coherent.

    Args:
        label_names (Sequence[str]): The labels of the model.
        hierarchy (LabelGraph, optional): The hierarchy of the model. Predictions respect it by
            default if it came with the training data. (default: :obj:`None`)
    """

    def __init__(self, label_names: Sequence[str], hierarchy: Data | None = None) -> None:
        self.label_names, self.hierarchy = list(label_names), hierarchy

    @property
    def is_default_hierarchy(self) -> bool:
        """Whether predictions are coherent unless a query says otherwise."""
        return self.hierarchy is not None and self.hierarchy.get("kind") == HIERARCHY

    def pairs(self, coherent: Coherent = None) -> Tensor | None:
        """Returns the pairs (label, descendant) that predictions respect; None if none are."""
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
        """Returns targets :math:`(N, L)` in which all ancestors of present labels are present, if
        predictions respect a hierarchy by default; else the same targets.

        Args:
            y (numpy.ndarray): Targets: 0, 1, or NaN for unknown.
        """
        pairs = self.pairs()
        return y if pairs is None else make_coherent(torch.from_numpy(y), pairs).numpy()

    def derive(self, y: np.ndarray, is_derived: np.ndarray) -> np.ndarray:
        """Returns targets :math:`(N, L)` in which some labels follow from those below them, if
        predictions respect a hierarchy by default; else the same targets.
        """
        if (pairs := self.pairs()) is None:
            return y
        return derive(torch.from_numpy(y), pairs, torch.from_numpy(is_derived)).numpy()

    def roots(self, always: np.ndarray, coherent: Coherent = None) -> list[str] | None:
        """Returns the roots of the hierarchy, given which labels apply to all samples :math:`(L)`;
        None without a hierarchy.
        """
        pairs = self.pairs(None if coherent is False else coherent)
        is_always = torch.from_numpy(always)
        return None if pairs is None else roots_of(is_always, pairs, self.label_names)

    def begin(self, flow: Flow) -> None:
        pairs, default = self.pairs(flow.query.coherent), self.pairs()
        flow.pairs, flow.is_default_hierarchy = pairs, pairs is default
        if pairs is not None and default is not None:
            flow.is_default_hierarchy = torch.equal(pairs, default)
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
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        entry = state["hierarchy"]
        return cls(label_names, None if entry is None else unpacked(entry))

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
    """Returns the probabilities in the tensors between stages; given labels have 0 or 1."""
    if "probability" in values:
        return values["probability"]
    probability = values["logits"].sigmoid()
    given = values.get("given")
    return probability if given is None else torch.where(given.isnan(), probability, given)


class Decision(Stage):
    """Decides which labels apply.

    Args:
        tuners (dict, optional): Thresholds or label sets by the metric that they maximise.
            (default: :obj:`None`, a threshold of 0.5)
        conformal (ConformalThresholds, optional): Computes the thresholds for a coverage.
            (default: :obj:`None`)
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
        """The metrics that decisions can maximise."""
        return list(self.tuners) or ["f1_micro"]

    def begin(self, flow: Flow) -> None:
        decider = self.decider(flow)
        thresholds = np.array(np.nan) if isinstance(decider, LabelSets) else decider.fitted()
        flow.thresholds = np.broadcast_to(thresholds, len(flow.label_names))

    def decider(self, flow: Flow) -> Decider:
        """Returns the thresholds or label sets that decide for the query of a flow; a threshold of
        0.5 if the model has no tuners.
        """
        decides, pairs = flow.query.decides, flow.pairs
        if isinstance(decides, Coverage):
            return self._conformal_decider(flow, decides)
        if self.tuners and decides not in self.tuners:
            known = list(self.tuners)
            raise ValueError(f"Expected 'metric' to be one of {known} (got {decides!r})")
        if self.tuners:
            decider = self.tuners[decides]
        else:
            decider = ThresholdTuner()
            decider.thresholds = np.array([0.5])
        return decider if pairs is None else coherent_decider(decider, pairs)

    def _conformal_decider(self, flow: Flow, coverage: Coverage) -> Decider:
        if self.conformal is None:
            raise ValueError(
                f"Expected a model with scores of samples that were used for no fit, for "
                f"{coverage} (got one without); pass such samples to 'conformalize', or let 'auto' "
                f"keep some: auto(..., coverage_share=0.2)"
            )
        if flow.given is not None and not flow.given.isnan().all():
            raise ValueError(GIVEN_WITH_COVERAGE)
        if not flow.is_default_hierarchy:
            got = f"(got {flow.query.coherent!r:.60})"
            raise ValueError(f"Expected 'coherent' as in calibration for a coverage, None {got}")
        tuner = self.conformal.tuner(coverage, flow.label_names)
        # Ancestors get the lowest threshold of their descendants, so that sets only grow.
        if flow.pairs is not None and tuner.per_label:
            thresholds = torch.from_numpy(tuner.fitted())[None]
            tuner.thresholds = -make_coherent(-thresholds, flow.pairs)[0].numpy()
        return tuner

    def apply(self, flow: Flow) -> None:
        decider, probabilities = self.decider(flow), flow.probabilities
        finite = probabilities.isfinite().all(dim=1)
        if finite.all():
            decisions = decider.predict(probabilities)
        else:  # No label applies to inputs without finite probabilities.
            decisions = torch.zeros(probabilities.shape, dtype=torch.long)
            if finite.any():
                decisions[finite] = decider.predict(probabilities[finite])
        decisions = flow.with_given(decisions)
        # Label sets have no thresholds that could keep decisions coherent.
        flow.decisions = decisions if flow.pairs is None else make_coherent(decisions, flow.pairs)

    def state_dict(self) -> dict[str, Any]:
        conformal = None if self.conformal is None else self.conformal.state_dict()
        tuners = {metric: tuner.state_dict() for metric, tuner in self.tuners.items()}
        state: dict[str, Any] = as_tensors({"tuners": tuners, "conformal": conformal})
        return state

    @classmethod
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        entry = state["conformal"]
        conformal = None if entry is None else ConformalThresholds.from_state(entry)
        stage = cls(restore_tuners(state["tuners"]), conformal)
        stage.check_labels(len(label_names))
        return stage

    def check_labels(self, num_labels: int) -> None:
        """Raises ValueError if thresholds or label sets have a different number of labels."""
        if self.conformal is not None and self.conformal.num_labels != num_labels:
            raise ValueError(
                f"the conformal scores have to be of {num_labels} labels "
                f"(got {self.conformal.num_labels})"
            )
        for metric, tuner in self.tuners.items():
            if isinstance(tuner, LabelSets):
                expected, got = f"the label sets of '{metric}' have to be of", repr(tuner)
                is_right = tuner.sets.shape[1] == num_labels
            else:
                thresholds = tuner.fitted()
                expected = f"the thresholds of '{metric}' have to be one number or"
                got = f"{thresholds.tolist()!s:.80}"
                is_right = thresholds.shape in ((), (1,), (num_labels,))
                is_right = is_right and not np.isnan(thresholds).any()
            if not is_right:
                raise ValueError(f"{expected} {num_labels} labels (got {got})")

    def __str__(self) -> str:
        names = ("thresholds", "label sets")
        kinds = {names[isinstance(tuner, LabelSets)] for tuner in self.tuners.values()}
        deciders = " and ".join(sorted(kinds))
        text = f"{deciders} for {', '.join(self.tuners)}" if deciders else "0.5"
        return text if self.conformal is None else f"{text}, any coverage"
