"""Model: an ordered list of stages, from raw inputs to named probabilities and decisions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Subset
from torch_geometric.data import Data, Dataset
from torch_geometric.data.data import BaseData
from typing_extensions import Self

from tg_mlc._frames import in_order
from tg_mlc._names import check_same_names, find
from tg_mlc._options import check_choice, check_count
from tg_mlc._warnings import collected_warnings
from tg_mlc.data import MultiLabelDataset, given_labels
from tg_mlc.data.dataset import joined
from tg_mlc.data.given import MAX_GIVEN, draw_given, has_given, split_given
from tg_mlc.graphs.hierarchy import propagate
from tg_mlc.inference.batches import batches_of, makes_batches
from tg_mlc.inference.decisions import GIVEN_WITH_COVERAGE, Calibration, Coherence, Decision
from tg_mlc.inference.decisions import GivenLabels as GivenLabelsStage
from tg_mlc.inference.features import Classifiers, Features, rows_of, stages_of
from tg_mlc.inference.flow import Coherent, Flow, Query
from tg_mlc.inference.folder import check_finite, write_folder
from tg_mlc.inference.network import describe_settings, label_graph_users, names_in, versions
from tg_mlc.inference.networks import Networks
from tg_mlc.inference.prediction import Prediction
from tg_mlc.inference.stage import Stage
from tg_mlc.inputs import InputKind, Preprocessor
from tg_mlc.inputs.kind import num_rows
from tg_mlc.metrics import Evaluation, LabelSets, evaluate, tune_thresholds
from tg_mlc.metrics._inputs import read_matrix
from tg_mlc.metrics.calibration import Calibration as LabelCalibration
from tg_mlc.metrics.coverage import ConformalThresholds, Per
from tg_mlc.metrics.thresholds import Decider
from tg_mlc.nn.given import takes_given_labels

StageT = TypeVar("StageT", bound=Stage)

#: Rows at a time, because classifiers need many times the memory of their inputs and scores.
ROWS = 4096
_INFINITE = (
    "Expected inputs that the model can compute with (got NaN or infinity for them); "
    "are some missing or too large?"
)


class Reading(NamedTuple):
    """Raw inputs that were read, each by itself."""

    samples: Any  #: the inputs that can be read; :obj:`None` if there is none
    rows: list[int] | None  #: the rows of these; :obj:`None` if they are all
    size: int  #: the number of inputs
    reasons: dict[int, str]  #: why inputs cannot be read, by row
    warnings: list[str]

    @classmethod
    def empty(cls, size: int = 0) -> Self:
        """Returns a reading without samples."""
        return cls(None, None, size, {}, [])

    @classmethod
    def joined(cls, readings: Sequence[Self]) -> Self:
        """Joins readings of several lists of inputs, without their warnings.

        Args:
            readings (Sequence[Reading]): Readings of the same model.

        Raises:
            ValueError: If the samples differ in their attributes.
        """
        if len(readings) == 1:
            return readings[0]
        rows, reasons, first = list[int](), dict[int, str](), 0
        for reading in readings:
            readable = range(reading.size) if reading.rows is None else reading.rows
            rows += [first + row for row in readable]
            reasons |= {first + row: reason for row, reason in reading.reasons.items()}
            first += reading.size
        parts = [reading.samples for reading in readings if reading.samples is not None]
        samples: Any = None
        if all(isinstance(part, MultiLabelDataset) for part in parts):
            samples = joined(parts) if parts else None
        else:
            samples = [sample for part in parts for sample in part]
        return cls(samples, rows, first, reasons, [])


class Model:
    r"""A model of labels, which :func:`tg_mlc.auto`, :func:`tg_mlc.fit` and :func:`tg_mlc.load`
    return.

    .. code-block:: python

        model = tg_mlc.load("model")
        print(model)
        frame = model.predict(["CCO", "c1ccccc1"])
        frame["probability"]["nausea"], frame["decision"]["nausea"]

    A network that was trained in a loop of your own becomes one, too:

    .. code-block:: python

        model = Model.of(net, label_names=names)
        model.tune(validation_samples)
        print(model.evaluate(test_samples))
        model.save("model")

    Args:
        stages (Sequence[Stage]): The steps, in their order.
        label_names (Sequence[str]): The labels, in the order of columns.
        facts (dict, optional): Facts about the model: versions, validation metrics, hashes of data
            and split. (default: :obj:`None`)

    Attributes:
        training (Any): Results of the training, such as held-out scores; :obj:`None` in a loaded
            model.
    """

    training: Any = None

    def __init__(
        self,
        stages: Sequence[Stage],
        label_names: Sequence[str],
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.stages = list(stages)
        self.label_names = list(label_names)
        self.facts: dict[str, Any] = dict(facts or {})

    @classmethod
    def of(
        cls,
        network: nn.Module,
        label_names: Sequence[str] | None = None,
        *,
        objective: Any = None,
        preprocessor: Preprocessor | None = None,
        tuners: Mapping[str, Decider] | None = None,
        given: Any = None,
        settings: dict[str, dict[str, str]] | None = None,
    ) -> Self:
        """Makes a model of one network.

        Args:
            network (torch.nn.Module): Returns logits :math:`(B, L)` of a batch; or a
                :class:`~tg_mlc.training.MultiLabelModule`, which holds the other arguments.
            label_names (Sequence[str], optional): The labels.
                (default: :obj:`None`, those of the label graph)
            objective (Objective, optional): Makes scores of outputs that are no logits.
            preprocessor (Preprocessor, optional): Makes samples of raw inputs.
            tuners (dict, optional): Thresholds or label sets by metric.
            given (GivenLabelStacking, optional): Changes logits where labels are given, in place of
                the network itself.
            settings (dict, optional): As of :class:`~tg_mlc.inference.networks.Networks`.

        Raises:
            ValueError: If the labels have no names.
        """
        if hasattr(network, "objective"):
            if label_names is not None:
                got = f"got {label_names!r:.60} beside a {type(network).__name__}"
                raise ValueError(f"Expected 'label_names' beside a network, and only there ({got})")
            module: Any = network
            return cls.of(
                module.model,
                module.label_names,
                objective=module.objective,
                preprocessor=module.preprocessor,
                tuners=module.tuners,
                settings=module.settings,
            )
        names = list(map(str, names_in(network) if label_names is None else label_names))
        graphs = [layer.label_graph for layer in label_graph_users(network)]
        for graph in graphs:
            check_same_names(graph.get("label_names"), names, "the label graph")
        hierarchy = next((graph for graph in graphs if "parent_index" in graph), None)
        networks = Networks(
            [network],
            names,
            objective,
            reads_given=given is None and takes_given_labels(network),
            settings=[describe_settings(network) if settings is None else settings],
        )
        given_stages = [] if given is None else [GivenLabelsStage(given)]
        last = [Coherence(names, hierarchy), Decision(tuners)]
        return cls([*stages_of(preprocessor), networks, *given_stages, *last], names)

    def stage(self, kind: type[StageT]) -> StageT | None:
        """Returns the stage of a class; :obj:`None` if the model has none."""
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
        """The last stage, which decides."""
        return self._needed(Decision)

    @property
    def features(self) -> Features:
        """The first stage, which reads."""
        return self._needed(Features)

    @property
    def network_stage(self) -> Networks:
        """The stage of networks, of a model that has some."""
        return self._needed(Networks)

    @property
    def preparing(self) -> list[Features | Classifiers]:
        """The stages that make samples of raw inputs, which networks take."""
        return [stage for stage in self.stages if isinstance(stage, (Features, Classifiers))]

    def of_samples(self) -> Self:
        """Returns the same model for samples that have passed :attr:`preparing` already."""
        rest = [stage for stage in self.stages if stage not in self.preparing]
        # New thresholds of one model must not become those of the other.
        rest = [copy(stage) if isinstance(stage, Decision) else stage for stage in rest]
        return type(self)([Features(), *rest], self.label_names, self.facts)

    @property
    def kind(self) -> InputKind | None:
        """The kind of input; :obj:`None` if the model takes samples alone."""
        return self.features.kind

    @property
    def networks(self) -> list[nn.Module]:
        """The networks, those of all folds."""
        stage = self.stage(Networks)
        return [] if stage is None else stage.networks

    @property
    def takes_given(self) -> bool:
        """Whether labels can be given."""
        return any(stage.takes_given for stage in self.stages)

    @property
    def hierarchy(self) -> Data | None:
        """The hierarchy of the labels, if the model knows one."""
        return self._needed(Coherence).hierarchy

    @property
    def is_calibrated(self) -> bool:
        """Whether probabilities are calibrated for each label."""
        return self.stage(Calibration) is not None

    @property
    def report(self) -> dict[str, Any]:
        """The choices of :func:`tg_mlc.auto`, the scores behind them, and the time of each part."""
        report: dict[str, Any] = self.facts.get("report", {})
        return report

    def read(self, raw: Any, on_error: str = "blank") -> Reading:
        """Reads raw inputs, each by itself; unreadable ones are skipped, with their reasons.

        Args:
            raw, on_error (Any): As of :meth:`predict`.
        """
        check_choice("on_error", on_error, ("blank", "raise"))
        is_list = isinstance(raw, (list, tuple))
        size = num_rows(raw) if is_list or hasattr(raw, "shape") else None
        if size == 0:
            return Reading(None, [], 0, {}, [])
        with collected_warnings() as messages:
            if (kind := self.features.kind) is not None:
                columns = self.facts.get("inputs", {}).get("columns", ())
                raw = kind.inputs_of(raw, columns)
            first = list(messages)
            try:
                samples = self.features.read(raw)
                size = samples.shape[0] if hasattr(samples, "shape") else len(samples)
                return Reading(samples, None, size, {}, messages)
            except (ValueError, TypeError):
                is_list = isinstance(raw, (list, tuple))
                if on_error == "raise" or not (is_list or hasattr(raw, "iloc")):
                    raise
                # To look for reasons takes as long as to read, so it is done only now.
                reasons = self.features.unreadable(raw)
                if not reasons:
                    raise
            messages[:] = first  # Other warnings are those of readable inputs alone.
            rows = [row for row in range(len(raw)) if row not in reasons]
            samples = self.features.read(rows_of(raw, rows)) if rows else None
            return Reading(samples, rows, len(raw), reasons, messages)

    def answer(
        self, raw: Any, query: Query | None = None, *, on_error: str = "blank"
    ) -> Prediction:
        """Returns probabilities and decisions, with warnings and the reasons of unreadable inputs.

        Args:
            raw (Any): Raw inputs or samples as of :meth:`predict`, or the result of :meth:`read`.
            query (Query, optional): The question. (default: :obj:`None`, without options)
            on_error (str, optional): As of :meth:`predict`. (default: :obj:`"blank"`)
        """
        reading = raw if isinstance(raw, Reading) else self.read(raw, on_error)
        with collected_warnings() as messages:
            flow = self.run(reading, query)
        return self._prediction(reading, flow, messages, on_error)

    def answer_given(self, reading: Reading, query: Query) -> Prediction:
        """Returns the given labels of inputs of which all labels are given, with decisions as of
        :meth:`answer`.

        Args:
            reading (Reading): The result of :meth:`read`.
            query (Query): The question, in which all labels of all inputs are given.
        """
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
        """The prediction of all inputs, by the flow of those that can be read."""
        shape = reading.size, len(self.label_names)
        probabilities, decisions, given = np.full(shape, np.nan), np.zeros(shape, bool), None
        reasons = dict(reading.reasons)
        rows = np.arange(flow.size) if reading.rows is None else np.array(reading.rows, int)
        if flow.size:
            values = flow.probabilities.numpy()
            finite = np.isfinite(values).all(axis=1)
            reasons |= dict.fromkeys(rows[~finite].tolist(), _INFINITE)
            if on_error == "raise" and not finite.all():
                raise ValueError(f"{_INFINITE} in row {rows[~finite][0]}")
            probabilities[rows[finite]] = values[finite]
            if flow.decisions is not None:
                decisions[rows[finite]] = flow.decisions.numpy()[finite] == 1
        if flow.given is not None:
            given = np.full(shape, np.nan)
            given[rows] = flow.given.numpy()
        assert flow.thresholds is not None
        return Prediction(
            self.label_names,
            probabilities,
            decisions,
            flow.thresholds,
            dict(sorted(reasons.items())),
            tuple(dict.fromkeys([*reading.warnings, *messages])),
            given,
            self.is_calibrated,
        )

    def start(self, reading: Reading, query: Query) -> Flow:
        """Returns the flow of samples that were read, as the first stage that computes takes it."""
        rows, samples = reading.rows, reading.samples
        flow = Flow(query, self.label_names, samples, reading.size if rows is None else len(rows))
        if query.given is not None:
            given = given_labels(self.label_names, query.given, reading.size)
            expected = [reading.size, len(self.label_names)]
            if list(given.shape) != expected:
                each = "with a row for each of {} samples and a column for each of {} labels"
                got = f"(got shape {list(given.shape)})"
                raise ValueError(f"Expected 'given' {each.format(*expected)} {got}")
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
        # The stage that decides refuses given labels with a coverage.
        if query.coverage is not None:
            return
        num_labels = given.size(1)
        if given.numel() and not given.isnan().any():
            got = f"(got all {num_labels} labels given)"
            raise ValueError(f"Expected labels that are left to predict {got}")
        if not self.takes_given and not given.isnan().all():
            few = "no part of it learned what given labels say of others"
            reason = "it has one label" if num_labels == 1 else few
            raise ValueError(
                f"Expected no given labels for this model, because {reason} (got some); leave them "
                f"out, or train a model that takes them, as LaMP(given_labels=True) and "
                f"tg_mlc.auto do"
            )

    def run(self, raw: Any, query: Query | None = None) -> Flow:
        """Passes inputs through all stages.

        Args:
            raw, query (Any): As of :meth:`answer`.
        """
        reading = raw if isinstance(raw, Reading) else self.read(raw, on_error="raise")
        flow = self.start(reading, query or Query())
        if flow.size == 0:
            flow._probabilities = torch.empty(0, len(self.label_names), dtype=torch.double)
            return flow
        parts = [flow]
        if flow.size > ROWS and isinstance(flow.samples, MultiLabelDataset):
            parts = [flow.rows(start, start + ROWS) for start in range(0, flow.size, ROWS)]
        for part in parts:
            for stage in self.stages:
                stage.apply(part)
        return flow if len(parts) == 1 else Flow.joined(parts)

    def prepare(self, raw: Any, query: Query | None = None) -> Flow:
        """Runs the stages that do not depend on given labels, before several calls of
        :meth:`logits`.

        Args:
            raw, query (Any): As of :meth:`answer`.
        """
        reading = raw if isinstance(raw, Reading) else self.read(raw, on_error="raise")
        flow = self.start(reading, query or Query())
        first, stop = self._given_stages
        for stage in self.stages[:first]:
            stage.apply(flow)
        if first < stop:
            self.stages[first].prepare(flow)
        return flow

    def logits(self, prepared: Flow, given: Tensor | None = None) -> Tensor:
        """Returns the logits :math:`(N, L)` of a prepared flow, before calibration.

        Args:
            prepared (Flow): The result of :meth:`prepare`.
            given (Tensor, optional): Known labels :math:`(N, L)`. (default: :obj:`None`, none)
        """
        flow = replace(prepared, given=given)
        for stage in self.stages[slice(*self._given_stages)]:
            stage.apply(flow)
        if flow.logits is None:
            return torch.logit(flow.probabilities.double(), eps=1e-7)
        return flow.logits.double()

    def walk(self, raw: Any, given: Tensor | None = None) -> Iterator[tuple[Stage, Flow, Flow]]:
        """Yields each stage up to the logits, with the flow before and after the stage.

        Args:
            raw (Any): As of :meth:`answer`.
            given (Tensor, optional): Known labels :math:`(N, L)`. (default: :obj:`None`, none)
        """
        reading = raw if isinstance(raw, Reading) else self.read(raw, on_error="raise")
        after = replace(self.start(reading, Query(batch_size=max(reading.size, 1))), given=given)
        for stage in self.stages[: self._given_stages[1]]:
            before, after = after, replace(after)
            stage.apply(after)
            yield stage, before, after

    @property
    def _given_stages(self) -> tuple[int, int]:
        """The indices of the first stage that given labels change, and of the one after the stage
        that computes logits.
        """
        last = (Calibration, Coherence, Decision)
        stop = next(index for index, stage in enumerate(self.stages) if isinstance(stage, last))
        takes = (index for index, stage in enumerate(self.stages[:stop]) if stage.takes_given)
        return next(takes, stop), stop

    def predict(
        self,
        raw: Any,
        *,
        given: Any = None,
        metric: str = "f1_micro",
        coverage: float | None = None,
        coverage_per: Per = "label",
        coherent: Coherent = None,
        batch_size: int = 256,
        on_error: Literal["blank", "raise"] = "blank",
    ) -> Any:
        """Returns a data frame with three columns for each label: its ``"probability"`` (calibrated
        if ``frame.attrs["calibrated"]``), the ``"decision"`` (whether it applies), and the
        ``"threshold"`` that the probability reaches then, which is missing where label sets decide.
        The labels are the inner level of the columns; ``to_dict("records")`` has a dictionary of
        labels for each of the three, which can be written as JSON.

        Args:
            raw (Any): A list, column, matrix or data frame with one raw input per row, or samples.
                A list may hold rows as dictionaries by names of columns.
            given (Any, optional): Known labels, in any form of :func:`~tg_mlc.data.given_labels`,
                for models that were trained for it. (default: :obj:`None`)
            metric (str, optional): The metric that decisions are best for.
                (default: :obj:`"f1_micro"`)
            coverage (float, optional): The fraction of what applies that label sets have to hold,
                in expectation over new samples; it decides in place of :obj:`metric` (see
                :meth:`conformalize`). (default: :obj:`None`)
            coverage_per (str, optional): :obj:`"label"` covers each label, of the samples to which
                it applies; :obj:`"sample"` the labels of a sample together.
                (default: :obj:`"label"`)
            coherent (bool or LabelGraph, optional): If set to :obj:`True`, predictions respect the
                hierarchy of the model: no label has a larger probability than one above it, none is
                predicted without those above it, and given labels say what holds of those above and
                below them. A label graph (:func:`~tg_mlc.graphs.tree`) is the hierarchy of a model
                without one. (default: :obj:`None`, where a hierarchy came with the training data)
            batch_size (int, optional): The number of samples at a time. (default: :obj:`256`)
            on_error (str, optional): :obj:`"blank"` warns of unreadable inputs, leaves their
                probabilities and decisions missing, and keeps the reasons by row in
                ``frame.attrs["unreadable"]``; :obj:`"raise"` raises. (default: :obj:`"blank"`)

        Raises:
            ValueError: If the model cannot take an input, or cannot promise the coverage.
            ImportError: If pandas is not installed (extra ``train``).
        """
        query = Query(given, metric, coverage, coverage_per, coherent, batch_size)
        prediction = self.answer(raw, query, on_error=on_error)
        for message in prediction.warnings:
            warnings.warn(message, stacklevel=2)
        if reasons := prediction.reasons:
            first = "; ".join(f"row {row}: {reason}" for row, reason in islice(reasons.items(), 3))
            number = "1 input" if len(reasons) == 1 else f"{len(reasons)} inputs"
            warnings.warn(f"{number} cannot be read, the first of them {first}", stacklevel=2)
        return prediction.frame(raw.index if hasattr(raw, "iloc") else None)

    def decide(self, probabilities: np.ndarray, query: Query | None = None) -> np.ndarray:
        """Returns which labels apply :math:`(N, L)`, by probabilities that the model has computed.

        Args:
            probabilities (numpy.ndarray): Probabilities :math:`(N, L)` without NaN.
            query (Query, optional): The question that they answer.
                (default: :obj:`None`, without options)
        """
        flow = self.start(Reading.empty(len(probabilities)), query or Query())
        flow.probabilities = torch.from_numpy(probabilities)
        self.decision.apply(flow)
        assert flow.decisions is not None
        return np.asarray(flow.decisions.numpy() == 1)

    def probabilities(self, raw: Any, **query: Any) -> np.ndarray:
        """Returns probabilities :math:`(N, L)`.

        Args:
            raw (Any): As of :meth:`predict`.
            **query (optional): The arguments :obj:`given`, :obj:`coherent` and :obj:`batch_size` of
                :meth:`predict`.

        Raises:
            ValueError: If the model cannot take an input.
        """
        prediction = self.answer(raw, Query(**query), on_error="raise")
        for message in prediction.warnings:
            warnings.warn(message, stacklevel=2)
        return prediction.probabilities

    def thresholds(self, metric: str = "f1_micro", **query: Any) -> np.ndarray:
        """Returns the probability from which each label is predicted, :math:`(L)`: 0.5 where there
        were no validation samples, NaN where :class:`~tg_mlc.metrics.LabelSets` decide.

        Args:
            metric (str, optional): The metric that they were chosen for.
                (default: :obj:`"f1_micro"`)
            **query (optional): The arguments :obj:`coverage`, :obj:`coverage_per` and
                :obj:`coherent` of :meth:`predict`.

        Raises:
            ValueError: If there are thresholds, but none for this metric.
        """
        flow = self.start(Reading.empty(), Query(metric=metric, **query))
        assert flow.thresholds is not None
        return flow.thresholds

    def stream(
        self, raw: Any, *, given: Mapping[str, Any] | None = None, rows: int = 4096, **options: Any
    ) -> Iterator[Any]:
        """Yields the data frames of :meth:`predict` for any number of inputs, some rows at a time.

        Args:
            raw (iterable): The inputs one by one, *e.g.* the lines of a file, or a matrix, column
                or data frame.
            given (dict, optional): Labels that are known of all inputs. (default: :obj:`None`)
            rows (int, optional): The number of rows of a data frame. (default: :obj:`4096`)
            **options (optional): Further arguments of :meth:`predict`.

        Raises:
            ValueError: If the inputs are one string, or the model cannot take one of them.
        """
        check_count("rows", rows)
        if isinstance(raw, (str, bytes)):
            got = f"(got the string {raw[:40]!r}); pass one input as [input]"
            raise ValueError(f"Expected inputs one by one {got}")
        if hasattr(raw, "shape"):  # A matrix, or a table that knows its columns.
            table, starts = getattr(raw, "iloc", raw), range(0, raw.shape[0], rows)
            chunks: Iterator[Any] = (table[first : first + rows] for first in starts)
        else:
            inputs = iter(raw)
            chunks = iter(lambda: list(islice(inputs, rows)), [])
        first = 0
        for chunk in chunks:
            frame = self.predict(chunk, given=given, **options)
            yield frame if hasattr(chunk, "iloc") else frame.set_index(frame.index + first)
            first += len(frame)

    def evaluate(self, raw: Any, y: Any = None, **query: Any) -> Evaluation:
        """Returns all metrics, at the thresholds of the model, of the labels that are not given.

        Labels that are given, by :obj:`given` or by the attribute of samples, count as unknown
        targets, because their scores are the given values.

        Args:
            raw (Any): As in :meth:`predict`.
            y (Tensor, numpy.ndarray or DataFrame, optional): Targets :math:`(N, L)`: 0, 1, or NaN
                for unknown; the columns of a data frame are matched by name.
                (default: :obj:`None`, those of the samples)
            **query (optional): The arguments :obj:`given`, :obj:`coherent` and :obj:`batch_size` of
                :meth:`predict`.

        Raises:
            ValueError: If a data frame or samples have other labels than the model, or all labels
                are given.
        """
        flow, y = self.run(raw, Query(**query)), self._targets(raw, y)
        return self.evaluation(y, flow.probabilities, flow.given, flow.query.coherent)

    def evaluation(
        self, y: Any, scores: Any, given: Any = None, coherent: Coherent = None
    ) -> Evaluation:
        """Returns all metrics of probabilities, at the thresholds of the model.

        Args:
            y (numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
            scores (numpy.ndarray or Tensor): Probabilities :math:`(N, L)`.
            given (numpy.ndarray or Tensor, optional): Labels that were given, which are not to be
                predicted. (default: :obj:`None`)
            coherent (bool or LabelGraph, optional): As of :meth:`predict`. (default: :obj:`None`)
        """
        if given is not None and np.shape(given) == np.shape(y):  # Metrics refuse other shapes.
            y = np.where(np.isnan(np.asarray(given)), y, np.nan)
        deciders: dict[str, Any] = {}
        for metric in self.decision.tuners:
            flow = self.start(Reading.empty(), Query(metric=metric, coherent=coherent))
            deciders[metric] = self.decision.decider(flow)
        return evaluate(y, scores, deciders or self.thresholds(), self.label_names)

    def _targets(self, raw: Any, y: Any) -> np.ndarray:
        """Targets :math:`(N, L)`, those of the samples if there are no others."""
        if y is not None:
            return read_matrix(in_order(y, self.label_names, "y", old="the model's labels"), "y")
        if isinstance(raw, MultiLabelDataset):
            names = raw.label_names or self.label_names
            if others := sorted({*names} ^ {*self.label_names}):
                got = f"(got others, or too few: {others[:5]})"
                raise ValueError(f"Expected samples with the labels of the model {got}")
            return read_matrix(raw.y[:, [names.index(name) for name in self.label_names]], "y")
        is_list = isinstance(raw, (list, tuple)) and all(isinstance(one, BaseData) for one in raw)
        if not (is_list or makes_batches(raw) or isinstance(raw, (Dataset, Subset))):
            got = f"(got none beside a {type(raw).__name__}); pass them: y=..."
            raise ValueError(f"Expected 'y', because only samples hold their labels {got}")
        targets = []
        for batch in batches_of(raw):
            if batch.get("y") is None:
                hint = "(got some without); add these, or pass 'y'"
                raise ValueError(f"Expected samples with their labels as 'y' {hint}")
            targets.append(batch.y.view(batch.num_graphs, -1))
        return read_matrix(torch.cat(targets), "y")

    def tune(self, raw: Any, y: Any = None, *, batch_size: int = 256) -> Self:
        """Chooses thresholds for every metric by validation samples, as :func:`tg_mlc.fit` does.

        Args:
            raw, y, batch_size: As in :meth:`evaluate`.
        """
        scores = self.probabilities(raw, batch_size=batch_size)
        self.decision.tuners = dict(tune_thresholds(self._targets(raw, y), scores))
        return self

    def calibrate(self, raw: Any, y: Any = None, *, batch_size: int = 256, seed: int = 0) -> Self:
        """Calibrates probabilities of each label by validation samples, those that chose thresholds
        or others: by temperature scaling, Platt's function or isotonic regression, where held-out
        folds of the samples prefer one. Samples with given labels have functions of their own,
        fitted under random masks of these targets. Thresholds change with them, so that decisions
        without given labels stay; label sets decide by the new probabilities.

        Args:
            raw, y, batch_size: As in :meth:`evaluate`.
            seed (int, optional): Seed of the masks and of the folds. (default: :obj:`0`)

        Raises:
            ValueError: If the model is calibrated already.
        """
        if self.is_calibrated:
            hint = "(got one that is); load or fit it again"
            raise ValueError(f"Expected a model that is not calibrated {hint}")
        y, query = self._targets(raw, y), Query(coherent=False, batch_size=batch_size)
        if makes_batches(raw):  # Their batches may hold given labels.
            flow = self.run(raw, query)
            targets = y if flow.given is None else np.where(flow.given.isnan(), y, np.nan)
            free, masked = LabelCalibration.fit(targets, flow.probabilities, seed), None
        else:
            flow = self.prepare(raw, query)
            free = LabelCalibration.fit(y, torch.sigmoid(self.logits(flow)), seed)
            masked = self._masked_calibration(flow, y, seed)
        calibration, decision = Calibration(free, masked), self.decision
        self.stages.insert(self._given_stages[1], calibration)
        decision.conformal = None  # Its scores were uncalibrated.
        tuners = decision.tuners.items()
        decision.tuners = {key: self._calibrated(tuner, calibration) for key, tuner in tuners}
        return self

    def _masked_calibration(
        self, prepared: Flow, y: np.ndarray, seed: int
    ) -> LabelCalibration | None:
        """The calibration under random masks of targets, spread as given labels are."""
        if not self.takes_given or len(self.label_names) == 1:
            return None
        stage, targets = self.stage(GivenLabelsStage), torch.from_numpy(y).float()
        present_only = stage is not None and stage.engine.masks == "present"
        generator = torch.Generator().manual_seed(seed)
        given, left = draw_given(targets, MAX_GIVEN, generator, present_only=present_only)
        if (pairs := self._needed(Coherence).pairs()) is not None:
            given = propagate(given, pairs, check=False)
            left = targets.masked_fill(~given.isnan(), torch.nan)
        return LabelCalibration.fit(left.numpy(), torch.sigmoid(self.logits(prepared, given)), seed)

    def _calibrated(self, decider: Decider, calibration: Calibration) -> Decider:
        """A decider that decides by calibrated probabilities as it did by those before."""
        if isinstance(decider, LabelSets):
            return decider
        tuner = copy(decider)
        thresholds = np.broadcast_to(decider.fitted(), len(self.label_names)).copy()
        tuner.thresholds = calibration.probabilities(torch.from_numpy(thresholds)).numpy()
        tuner.per_label = True
        return tuner

    def conformalize(self, raw: Any, y: Any = None, *, batch_size: int = 256) -> Self:
        """Keeps the scores of samples that no part of the model was fitted to, so that
        ``predict(..., coverage=0.9)`` can promise what label sets hold, for new samples that are
        exchangeable with these: drawn from the same source, at random. The promise would not hold
        by samples that chose an epoch, thresholds or weights.

        Args:
            raw, y, batch_size: As in :meth:`evaluate`.

        Raises:
            ValueError: If labels of the samples are given, or none applies.
        """
        flow = self.run(raw, Query(batch_size=batch_size))
        if flow.given is not None and not flow.given.isnan().all():
            raise ValueError(GIVEN_WITH_COVERAGE)
        self.decision.conformal = ConformalThresholds(self._targets(raw, y), flow.probabilities)
        return self

    def explain(
        self, raw: Any, labels: Sequence[str] | None = None, method: str = "auto", **options: Any
    ) -> Any:
        """Explains why the model gave labels to samples; see :func:`tg_mlc.explain`.

        Args:
            raw, labels, method (Any): As of :func:`tg_mlc.explain`.
            **options (optional): Further arguments of it.
        """
        return find("method", "explain")(self, raw, labels, method, **options)

    def export(
        self,
        out: str | os.PathLike[str],
        format: str = "torch-export",  # noqa: A002
        **options: Any,
    ) -> Path:
        """Writes the model as a program that runs without this package; see :func:`tg_mlc.export`.

        Args:
            out, format (str): As of :func:`tg_mlc.export`.
            **options (optional): Further arguments of it.
        """
        folder: Path = find("method", "export")(self, out, format, **options)
        return folder

    def to(self, device: torch.device | str) -> Self:
        """Moves the model to a device."""
        for stage in self.stages:
            stage.to(device)
        return self

    def content(self) -> dict[str, Any]:
        """Returns all that a folder holds of the model, once a model was made of it as a test."""
        stages = [
            {"stage": type(stage).__name__, "state": stage.state_dict()} for stage in self.stages
        ]
        check_finite(stages)
        facts = {"versions": versions(), **self.facts}
        content = {"label_names": self.label_names, "facts": facts, "stages": stages}
        networks = self.stage(Networks)
        own = None if networks is None else networks.own
        remade = Model.from_content(content, None if own is None else type(own))
        for stage, again in zip(self.stages, remade.stages, strict=True):
            stage.check_remade(again)
        return content

    @classmethod
    def from_content(
        cls, content: Mapping[str, Any], network: type[nn.Module] | None = None
    ) -> Self:
        """Makes a model of the content of a folder, whose parts have to agree.

        Args:
            content (dict): The result of :meth:`content`.
            network (type, optional): The class of a network of your own. (default: :obj:`None`)
        """
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

    def save(
        self,
        path: str | os.PathLike[str],
        arguments: Mapping[str, Any] | None = None,
        *,
        beside: Mapping[str, Any] | None = None,
    ) -> Path:
        """Writes a folder that :func:`tg_mlc.load` reads, once the model was made again as a test.

        Args:
            path (str or PathLike): The folder; an earlier model in it is replaced as a whole.
            arguments (dict, optional): Arguments of the constructor of a network of your own, where
                neither :func:`~tg_mlc.models.builder` nor attributes of the same names tell them.
                (default: :obj:`None`)
            beside (dict, optional): Further content of the folder, as tensors and plain data.
                (default: :obj:`None`)

        Raises:
            ValueError: If it cannot be made again; the message names the missing argument.
        """
        if arguments is not None:
            self.network_stage.arguments = arguments
        return write_folder(path, {**self.content(), **(beside or {})})

    def __str__(self) -> str:
        lines = [f"Model of {len(self.label_names)} labels"]
        width = max(len(type(stage).__name__) for stage in self.stages)
        lines += [f"  {type(stage).__name__:<{width}}  {stage}".rstrip() for stage in self.stages]
        return "\n".join(lines)

    def __repr__(self) -> str:
        stages = ", ".join(type(stage).__name__ for stage in self.stages)
        return f"{type(self).__name__}([{stages}], {len(self.label_names)} labels)"
