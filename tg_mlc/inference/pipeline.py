"""The Pipeline class: the stages of a model, and the passes of inputs and queries through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Self

from tg_mlc._names import find
from tg_mlc._options import check_choice
from tg_mlc._warnings import check_abandoned, collected_notes, collected_warnings
from tg_mlc.data import MultiLabelDataset, given_labels
from tg_mlc.data.given import has_given, split_given
from tg_mlc.inference.decisions import Calibration, Coherence, Decision
from tg_mlc.inference.features import Classifiers, Features, rows_of
from tg_mlc.inference.flow import Flow, Prediction, Query, Reading
from tg_mlc.inference.folder import check_finite
from tg_mlc.inference.network import versions
from tg_mlc.inference.networks import Networks
from tg_mlc.inference.stage import Stage
from tg_mlc.inputs import InputKind
from tg_mlc.inputs.kind import num_rows

StageT = TypeVar("StageT", bound=Stage)

#: Rows per chunk: classifiers need many times the memory of their inputs and scores.
ROWS = 4096
INFINITE = (
    "Expected inputs that the model can compute with (got NaN or infinity for them); "
    "are some missing or too large?"
)


class Pipeline:
    """An ordered list of stages. Inputs and a query pass through all of them.

    Args:
        stages (Sequence[Stage]): The stages, in the order in which they run.
        label_names (Sequence[str]): The names of the labels, in the order of columns.
        facts (dict, optional): Facts about the model: versions, validation metrics, hashes of data
            and split. (default: :obj:`None`)
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        label_names: Sequence[str],
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.stages = list(stages)
        self.label_names = list(label_names)
        self.facts: dict[str, Any] = dict(facts or {})

    def stage(self, kind: type[StageT]) -> StageT | None:
        """Returns the first stage of a class; :obj:`None` if the model has no such stage."""
        for stage in self.stages:
            if isinstance(stage, kind):
                return stage
        return None

    def _needed(self, kind: type[StageT]) -> StageT:
        stage = self.stage(kind)
        if stage is None:
            got = [type(stage).__name__ for stage in self.stages]
            raise ValueError(f"Expected a model with a stage {kind.__name__} (got {got})")
        return stage

    @property
    def decision(self) -> Decision:
        """The last stage, which decides which labels apply."""
        return self._needed(Decision)

    @property
    def features(self) -> Features:
        """The first stage, which reads raw inputs."""
        return self._needed(Features)

    @property
    def network_stage(self) -> Networks:
        """The stage of the networks. Raises ValueError if the model has no networks."""
        return self._needed(Networks)

    @property
    def preparing(self) -> list[Features | Classifiers]:
        """The stages that turn raw inputs into the samples that networks take."""
        return [stage for stage in self.stages if isinstance(stage, (Features, Classifiers))]

    def of_samples(self) -> Self:
        """Returns the same model for samples that have already passed :attr:`preparing`."""
        others = [stage for stage in self.stages if stage not in self.preparing]
        # The decision stage is copied, so that new thresholds of one model do not change the other.
        others = [copy(stage) if isinstance(stage, Decision) else stage for stage in others]
        return type(self)([Features(), *others], self.label_names, self.facts)

    @property
    def kind(self) -> InputKind | None:
        """The kind of input; :obj:`None` if the model only takes samples."""
        return self.features.kind

    @property
    def networks(self) -> list[nn.Module]:
        """The networks of all folds; an empty list if the model has no networks."""
        stage = self.stage(Networks)
        return [] if stage is None else stage.networks

    @property
    def takes_given(self) -> bool:
        """Whether given labels change the predictions of other labels."""
        return any(stage.takes_given for stage in self.stages)

    @property
    def hierarchy(self) -> Data | None:
        """The hierarchy of the labels; :obj:`None` if the model has no hierarchy."""
        return self._needed(Coherence).hierarchy

    @property
    def is_calibrated(self) -> bool:
        """Whether probabilities are calibrated for each label."""
        return self.stage(Calibration) is not None

    def read(self, raw: Any, on_error: str = "blank") -> Reading:
        """Reads raw inputs. Unreadable rows get a reason in the result, or raise an error."""
        check_choice("on_error", on_error, ("blank", "raise"))
        is_list = isinstance(raw, (list, tuple))
        size = num_rows(raw) if is_list or hasattr(raw, "shape") else None
        if size == 0:
            return Reading(None, [], 0, {}, [])
        with collected_warnings() as messages, collected_notes() as unusual:
            if (kind := self.features.kind) is not None:
                raw = kind.inputs_of(raw, self.facts.get("inputs", {}).get("columns", ()))
            before, unusual_before = list(messages), unusual.copy()
            try:
                samples = self.features.read(raw)
                size = samples.shape[0] if hasattr(samples, "shape") else len(samples)
                return Reading(samples, None, size, {}, messages, unusual)
            except (ValueError, TypeError):
                is_list = isinstance(raw, (list, tuple))
                if on_error == "raise" or not (is_list or hasattr(raw, "iloc")):
                    raise
                # Finding the reasons takes as long as reading, so it happens only after an error.
                reasons = self.features.unreadable(raw)
                if not reasons:
                    raise
            # The readable rows are read again, and repeat their warnings.
            messages[:] = before
            unusual.clear()
            unusual.update(unusual_before)
            rows = [row for row in range(len(raw)) if row not in reasons]
            samples = self.features.read(rows_of(raw, rows)) if rows else None
            return Reading(samples, rows, len(raw), reasons, messages, unusual)

    def answer(
        self, raw: Any, query: Query | None = None, *, on_error: str = "blank"
    ) -> Prediction:
        """Returns probabilities and decisions, with warnings and reasons why inputs are unreadable.

        Args:
            raw, on_error (Any): As in :meth:`~tg_mlc.inference.Model.predict`; :obj:`raw` may also
                be the result of :meth:`read`.
            query (Query, optional): The query. (default: :obj:`None`, a query without options)
        """
        reading = raw if isinstance(raw, Reading) else self.read(raw, on_error)
        with collected_warnings() as messages:
            flow = self.run(reading, query)
        return self._prediction(reading, flow, messages, on_error)

    def answer_given(self, reading: Reading, query: Query) -> Prediction:
        """Returns the prediction for a query in which all labels of all inputs are given."""
        flow = self.start(reading, replace(query, given=None))
        given = given_labels(self.label_names, query.given, reading.size)
        flow.query, flow.given = query, given if reading.rows is None else given[reading.rows]
        self._needed(Coherence).begin(flow)
        self.decision.begin(flow)
        flow.probabilities = flow.given.double()
        if flow.size:
            self.decision.apply(flow)
        return self._prediction(reading, flow, [])

    def _prediction(
        self, reading: Reading, flow: Flow, messages: Sequence[str], on_error: str = "blank"
    ) -> Prediction:
        """Returns the prediction of all inputs from the flow of the readable inputs."""
        shape = reading.size, len(self.label_names)
        probabilities, decisions = np.full(shape, np.nan), np.zeros(shape, bool)
        given, told = None, None
        reasons = dict(reading.reasons)
        rows = np.arange(flow.size) if reading.rows is None else np.array(reading.rows, int)
        if flow.size:
            values = flow.probabilities.numpy()
            finite = np.isfinite(values).all(axis=1)
            reasons |= dict.fromkeys(rows[~finite].tolist(), INFINITE)
            if on_error == "raise" and not finite.all():
                raise ValueError(f"{INFINITE} in row {rows[~finite][0]}")
            probabilities[rows[finite]] = values[finite]
            if flow.decisions is not None:
                decisions[rows[finite]] = flow.decisions.numpy()[finite] == 1
        if flow.given is not None:
            given = np.full(shape, np.nan)
            given[rows] = flow.given.numpy()
        if flow.told is not None:
            told = np.zeros((reading.size, 2))
            told[rows] = flow.told.numpy()
        assert flow.thresholds is not None
        arrays = probabilities, decisions, flow.thresholds
        reasons = dict(sorted(reasons.items()))
        messages = tuple(dict.fromkeys([*reading.warnings, *messages]))
        options = given, self.is_calibrated, flow.query.top
        prediction = Prediction(self.label_names, *arrays, reasons, messages, *options, told)
        if told is None:
            return prediction
        return replace(prediction, warnings=(*messages, *prediction.warnings_of_given()))

    def start(self, raw: Any, query: Query | None = None) -> Flow:
        """Returns the flow of raw inputs or of a :class:`Reading`, before any stage computes."""
        reading = raw if isinstance(raw, Reading) else self.read(raw, on_error="raise")
        query, rows, samples = query or Query(), reading.rows, reading.samples
        flow = Flow(query, self.label_names, samples, reading.size if rows is None else len(rows))
        if query.given is not None:
            given = given_labels(self.label_names, query.given, reading.size)
            num_labels, got = len(self.label_names), list(given.shape)
            if got != [reading.size, num_labels]:
                row = f"a row for each of {reading.size} samples"
                column = f"a column for each of {num_labels} labels"
                raise ValueError(f"Expected 'given' with {row} and {column} (got shape {got})")
            self._check_given(given, query)
            flow.given = given if rows is None else given[rows]
        if has_given(samples):
            flow.samples, sample_given = split_given(samples)
            if flow.given is None:
                self._check_given(sample_given, query)
                flow.given = sample_given
        for stage in self.stages:
            stage.begin(flow)
        return flow

    def _check_given(self, given: Tensor, query: Query) -> None:
        # The decision stage raises the error for given labels with a coverage.
        if query.coverage is not None:
            return
        num_labels = given.size(1)
        if given.numel() and not given.isnan().any():
            got = f"(got all {num_labels} labels given)"
            raise ValueError(f"Expected labels that are left to predict {got}")
        if not self.takes_given and not given.isnan().all():
            untrained = "no stage learned how given labels change other labels"
            reason = "it has one label" if num_labels == 1 else untrained
            hint = "leave them out, or take a model of tg_mlc.auto or LaMP(given_labels=True)"
            expected = f"no given labels for this model, because {reason}"
            raise ValueError(f"Expected {expected} (got some); {hint}")

    def run(self, raw: Any, query: Query | None = None) -> Flow:
        """Passes inputs and a query, as in :meth:`answer`, through all stages."""
        flow = self.start(raw, query)
        if flow.size == 0:
            flow._probabilities = torch.empty(0, len(self.label_names), dtype=torch.double)
            return flow
        parts = [flow]
        if flow.size > ROWS and isinstance(flow.samples, MultiLabelDataset):
            parts = [flow.rows(start, start + ROWS) for start in range(0, flow.size, ROWS)]
        for part in parts:
            for stage in self.stages:
                check_abandoned()
                stage.apply(part)
        return flow if len(parts) == 1 else Flow.joined(parts)

    def prepare(self, raw: Any, query: Query | None = None) -> Flow:
        """Computes all that does not depend on given labels, before calls of :meth:`logits`."""
        flow = self.start(raw, query)
        first, stop = self._given_stages
        for stage in self.stages[:first]:
            stage.apply(flow)
        if first < stop:
            self.stages[first].prepare(flow)
        return flow

    def logits(self, prepared: Flow, given: Tensor | None = None) -> Tensor:
        """Returns the uncalibrated logits :math:`(N, L)` of a prepared flow with given labels."""
        flow = replace(prepared, given=given)
        for stage in self.stages[slice(*self._given_stages)]:
            check_abandoned()
            stage.apply(flow)
        if flow.logits is None:
            return torch.logit(flow.probabilities.double(), eps=1e-7)
        return flow.logits.double()

    def walk(self, raw: Any, given: Tensor | None = None) -> Iterator[tuple[Stage, Flow, Flow]]:
        """Yields each stage up to the logits, with the flow before and after the stage."""
        reading = raw if isinstance(raw, Reading) else self.read(raw, on_error="raise")
        after = replace(self.start(reading, Query(batch_size=max(reading.size, 1))), given=given)
        for stage in self.stages[: self._given_stages[1]]:
            before, after = after, replace(after)
            stage.apply(after)
            yield stage, before, after

    @property
    def _given_stages(self) -> tuple[int, int]:
        """The range of stages (start, stop) that use given labels, up to the logits."""
        last = (Calibration, Coherence, Decision)
        stop = next(index for index, stage in enumerate(self.stages) if isinstance(stage, last))
        starts = (index for index, stage in enumerate(self.stages[:stop]) if stage.takes_given)
        return next(starts, stop), stop

    def to(self, device: torch.device | str) -> Self:
        """Moves the model to a device."""
        for stage in self.stages:
            stage.to(device)
        return self

    def content(self) -> dict[str, Any]:
        """Returns the content of a folder. Raises if it does not restore the same model."""
        stages = [
            {"stage": type(stage).__name__, "state": stage.state_dict()} for stage in self.stages
        ]
        facts = {"versions": versions(), **self.facts}
        content = {"label_names": self.label_names, "facts": facts, "stages": stages}
        networks = self.stage(Networks)
        own_network = None if networks is None else networks.own
        model = self.from_content(content, None if own_network is None else type(own_network))
        for stage, restored in zip(self.stages, model.stages, strict=True):
            stage.check_remade(restored)
        return content

    @classmethod
    def from_content(
        cls, content: Mapping[str, Any], network: type[nn.Module] | None = None
    ) -> Self:
        """Restores a model from :meth:`content`, with the class of your own network, if any."""
        names, facts = content["label_names"], content["facts"]
        are_names = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not are_names or len({*names}) != len(names) or not names:
            got = f"(got {str(names)[:80]})"
            raise ValueError(f"'label_names' has to list the names of labels, each once {got}")
        if not isinstance(facts, dict):
            raise ValueError(f"'facts' has to be an object (got {str(facts)[:80]})")
        check_finite(content["stages"])
        stages = []
        for entry in content["stages"]:
            kind: type[Stage] = find("stage", entry["stage"])
            stages.append(kind.from_state(entry["state"], names, network))
        return cls(stages, names, facts)

    def __str__(self) -> str:
        lines = [f"Model of {len(self.label_names)} labels"]
        width = max(len(type(stage).__name__) for stage in self.stages)
        lines += [f"  {type(stage).__name__:<{width}}  {stage}".rstrip() for stage in self.stages]
        return "\n".join(lines)

    def __repr__(self) -> str:
        stages = ", ".join(type(stage).__name__ for stage in self.stages)
        return f"{type(self).__name__}([{stages}], {len(self.label_names)} labels)"
