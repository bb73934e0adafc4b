"""The Model class: predictions of raw inputs, evaluation, thresholds and calibration."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import nn
from torch.utils.data import Subset
from torch_geometric.data import Dataset
from torch_geometric.data.data import BaseData
from typing_extensions import Self

from tg_mlc._frames import in_order
from tg_mlc._names import check_same_names, find
from tg_mlc._options import check_count
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.given import MAX_GIVEN, draw_given
from tg_mlc.graphs.hierarchy import pairs_of, propagate
from tg_mlc.inference.batches import batches_of, makes_batches
from tg_mlc.inference.decisions import GIVEN_WITH_COVERAGE, Calibration, Coherence, Decision
from tg_mlc.inference.decisions import GivenLabels as GivenLabelsStage
from tg_mlc.inference.features import stages_of
from tg_mlc.inference.flow import Coherent, Flow, Query, Reading
from tg_mlc.inference.folder import write_folder
from tg_mlc.inference.network import describe_settings, label_graph_users, names_in
from tg_mlc.inference.networks import Networks
from tg_mlc.inference.pipeline import Pipeline
from tg_mlc.inputs import Preprocessor
from tg_mlc.inputs.kind import num_rows
from tg_mlc.inputs.preprocessor import as_tensors
from tg_mlc.metrics import Evaluation, LabelCounts, LabelSets, evaluate, tune_thresholds
from tg_mlc.metrics._inputs import read_matrix
from tg_mlc.metrics.calibration import Calibration as LabelCalibration
from tg_mlc.metrics.coverage import ConformalThresholds, Per
from tg_mlc.metrics.thresholds import Decider
from tg_mlc.nn.given import takes_given_labels


class Model(Pipeline):
    r"""A model of labels, which :func:`tg_mlc.auto`, :func:`tg_mlc.fit` and :func:`tg_mlc.load`
    return.

    .. code-block:: python

        model = tg_mlc.load("model")
        print(model)
        frame = model.predict(["CCO", "c1ccccc1"])
        frame["probability"]["nausea"], frame["decision"]["nausea"]

    A network that you trained in your own loop becomes a model by :meth:`of`:

    .. code-block:: python

        model = Model.of(net, label_names=names)
        model.tune(validation_samples)
        print(model.evaluate(test_samples))
        model.save("model")

    Args:
        stages, label_names, facts: As in :class:`~tg_mlc.inference.Pipeline`.

    Attributes:
        training (Any): Results of the training, such as held-out scores; :obj:`None` in a loaded
            model.
        sha256 (str, optional): The hash of the folder of a loaded model; :obj:`None` in others.
    """

    training: Any = None
    sha256: str | None = None

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
        """Makes a model from one network.

        Args:
            network (torch.nn.Module): A module that returns logits :math:`(B, L)` of a batch; or a
                :class:`~tg_mlc.training.MultiLabelModule`, which holds the other arguments.
            label_names (Sequence[str], optional): The labels.
                (default: :obj:`None`, the labels of the label graph)
            objective (Objective, optional): Turns outputs that are not logits into scores.
            preprocessor (Preprocessor, optional): Turns raw inputs into samples.
            tuners (dict, optional): Thresholds or label sets by metric.
            given (GivenLabelStacking, optional): Changes logits where labels are given, if the
                network does not read given labels itself.
            settings (dict, optional): As in :class:`~tg_mlc.inference.networks.Networks`.

        Raises:
            ValueError: If the labels have no names.
        """
        if hasattr(network, "objective"):
            if label_names is not None:
                got = f"got {label_names!r:.60} beside a {type(network).__name__}"
                raise ValueError(f"Expected 'label_names' beside a network, and only there ({got})")
            fields = ("label_names", "objective", "preprocessor", "tuners", "settings")
            options: dict[str, Any] = {name: getattr(network, name) for name in fields}
            return cls.of(cast(nn.Module, network.model), **options)
        names = [*map(str, names_in(network) if label_names is None else label_names)]
        graphs = [layer.label_graph for layer in label_graph_users(network)]
        for graph in graphs:
            check_same_names(graph.get("label_names"), names, "the label graph")
        hierarchy = next((graph for graph in graphs if "parent_index" in graph), None)
        reads_given = given is None and takes_given_labels(network)
        recorded = [describe_settings(network) if settings is None else settings]
        networks = Networks([network], names, objective, reads_given=reads_given, settings=recorded)
        given_stages = [] if given is None else [GivenLabelsStage(given)]
        final_stages = [Coherence(names, hierarchy), Decision(tuners)]
        return cls([*stages_of(preprocessor), networks, *given_stages, *final_stages], names)

    @property
    def report(self) -> dict[str, Any]:
        """The choices of :func:`tg_mlc.auto`, the scores behind each choice, and the times."""
        report: dict[str, Any] = self.facts.get("report", {})
        return report

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
        top: int | None = None,
    ) -> Any:
        """Returns a data frame with three columns per label: the ``"probability"`` (calibrated
        if ``frame.attrs["calibrated"]``), the ``"decision"`` whether the label applies, and the
        ``"threshold"`` of the probability, which is missing where label sets decide. The labels
        are the inner level of the columns. Each record of ``to_dict("records")`` maps the three
        names to dictionaries by label, and can be written as JSON.

        Args:
            raw (Any): A list, column, matrix or data frame with one raw input per row, or samples.
                The rows in a list may be dictionaries by column name.
            given (Any, optional): Known labels, in any format of
                :func:`~tg_mlc.data.given_labels`, for models that use them. (default: :obj:`None`)
            metric (str, optional): The metric that decisions maximise.
                (default: :obj:`"f1_micro"`)
            coverage (float, optional): The fraction of true labels that label sets have to hold, in
                expectation over new samples; replaces :obj:`metric` (see :meth:`conformalize`).
                (default: :obj:`None`)
            coverage_per (str, optional): :obj:`"label"` promises the coverage for each label,
                :obj:`"sample"` for the labels of a sample together. (default: :obj:`"label"`)
            coherent (bool or LabelGraph, optional): If set to :obj:`True`, predictions respect the
                hierarchy of the model: no label has a larger probability than its ancestors or is
                predicted without them, and given labels determine their ancestors and descendants.
                A label graph (:func:`~tg_mlc.graphs.tree`) replaces the hierarchy of the model.
                (default: :obj:`None`, :obj:`True` if a hierarchy came with the training data)
            batch_size (int, optional): The number of samples per batch. (default: :obj:`256`)
            on_error (str, optional): :obj:`"blank"` warns about unreadable inputs, leaves their
                probabilities and decisions missing, and keeps the reasons by row in
                ``frame.attrs["unreadable"]``; :obj:`"raise"` raises. (default: :obj:`"blank"`)
            top (int, optional): The number of most probable labels per row. The data frame is then
                long: a line per row and label, in descending order of probability, with the columns
                ``"rank"``, ``"label"``, ``"probability"``, ``"decision"`` and ``"threshold"``; the
                index repeats the row. (default: :obj:`None`, three columns for every label)

        Raises:
            ValueError: If the model cannot take an input, or cannot promise the coverage.
            ImportError: If pandas is not installed (extra ``train``).
        """
        query = Query(given, metric, coverage, coverage_per, coherent, batch_size, top)
        prediction = self.answer(raw, query, on_error=on_error)
        for message in prediction.warnings:
            warnings.warn(message, stacklevel=2)
        if reasons := prediction.reasons:
            first = "; ".join(f"row {row}: {reason}" for row, reason in islice(reasons.items(), 3))
            number = "1 input" if len(reasons) == 1 else f"{len(reasons)} inputs"
            warnings.warn(f"{number} cannot be read, the first of them {first}", stacklevel=2)
        return prediction.frame(raw.index if hasattr(raw, "iloc") else None)

    def decide(self, probabilities: np.ndarray, query: Query | None = None) -> np.ndarray:
        """Returns decisions :math:`(N, L)` for probabilities :math:`(N, L)` without NaN."""
        flow = self.start(Reading.empty(len(probabilities)), query)
        flow.probabilities = torch.from_numpy(probabilities)
        self.decision.apply(flow)
        assert flow.decisions is not None
        return np.asarray(flow.decisions.numpy() == 1)

    def probabilities(self, raw: Any, **query: Any) -> np.ndarray:
        """Returns probabilities :math:`(N, L)`.

        Args:
            raw (Any): As in :meth:`predict`.
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
            metric (str, optional): The metric of the thresholds. (default: :obj:`"f1_micro"`)
            **query (optional): The arguments :obj:`coverage`, :obj:`coverage_per` and
                :obj:`coherent` of :meth:`predict`.

        Raises:
            ValueError: If the model has thresholds for other metrics only.
        """
        flow = self.start(Reading.empty(), Query(metric=metric, **query))
        assert flow.thresholds is not None
        return flow.thresholds

    def stream(
        self, raw: Any, *, given: Mapping[str, Any] | None = None, rows: int = 4096, **options: Any
    ) -> Iterator[Any]:
        """Yields data frames, as :meth:`predict` does, for any number of inputs, in chunks of rows.

        Args:
            raw (iterable): The inputs one by one, *e.g.* the lines of a file, or a matrix, column
                or data frame.
            given (dict, optional): Labels that are the same for all inputs. (default: :obj:`None`)
            rows (int, optional): The number of rows per data frame. (default: :obj:`4096`)
            **options (optional): Further arguments of :meth:`predict`.

        Raises:
            ValueError: If the inputs are one string, or the model cannot take one of them.
        """
        check_count("rows", rows)
        if isinstance(raw, (str, bytes)):
            got = f"(got the string {raw[:40]!r}); pass one input as [input]"
            raise ValueError(f"Expected inputs one by one {got}")
        if hasattr(raw, "shape"):  # The input is a matrix or a data frame.
            table, starts = getattr(raw, "iloc", raw), range(0, raw.shape[0], rows)
            chunks: Iterator[Any] = (table[first : first + rows] for first in starts)
        else:
            inputs = iter(raw)
            chunks = iter(lambda: list(islice(inputs, rows)), [])
        first = 0
        for chunk in chunks:
            frame = self.predict(chunk, given=given, **options)
            yield frame if hasattr(chunk, "iloc") else frame.set_index(frame.index + first)
            first += num_rows(chunk) or 0

    def evaluate(self, raw: Any, y: Any = None, **query: Any) -> Evaluation:
        """Returns all metrics over labels that are not given, with the model's own thresholds, and
        results of each label (:meth:`~tg_mlc.metrics.Evaluation.frame`). With a hierarchy, averages
        skip its roots, and Fmax, Smin and AUPRC are added.

        Labels given by :obj:`given`, or by the samples themselves, count as unknown targets,
        because their scores are the given values.

        Args:
            raw (Any): As in :meth:`predict`.
            y (Tensor, numpy.ndarray or DataFrame, optional): Targets :math:`(N, L)`: 0, 1, or NaN
                for unknown; the columns of a data frame are matched by name.
                (default: :obj:`None`, the targets of the samples)
            **query (optional): The arguments :obj:`given`, :obj:`coherent` and :obj:`batch_size` of
                :meth:`predict`.

        Raises:
            ValueError: If a data frame or samples have other labels than the model, or all labels
                are given.
        """
        flow, y = self.run(raw, Query(**query)), self.targets(raw, y)
        return self.evaluation(y, flow.probabilities, flow.given, flow.query.coherent)

    def evaluation(
        self, y: Any, scores: Any, given: Any = None, coherent: Coherent = None
    ) -> Evaluation:
        """Returns the metrics of :meth:`evaluate` for targets and probabilities :math:`(N, L)`."""
        y = read_matrix(y, "y")
        if given is not None and np.shape(given) == np.shape(y):  # Metrics raise for other shapes.
            y = np.where(np.isnan(np.asarray(given)), y, np.nan)
        deciders: dict[str, Any] = {}
        for metric in self.decision.tuners:
            flow = self.start(Reading.empty(), Query(metric=metric, coherent=coherent))
            deciders[metric] = self.decision.decider(flow)
        counts, always = self.facts.get("counts"), ~(y == 0).any(axis=0)
        if counts is not None:
            counts = LabelCounts.from_state(counts, len(self.label_names))
            # Then roots are the same for all samples that the model is evaluated on.
            always = counts.positive == counts.num_samples
        roots = self._needed(Coherence).roots(always, coherent)
        thresholds, names = deciders or self.thresholds(), self.label_names
        return evaluate(y, scores, thresholds, names, counts=counts, roots=roots)

    def count_labels(self, y: Any) -> Self:
        """Stores how often labels apply in training samples, for metrics that weight labels.

        Args:
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        """
        hierarchy = self.hierarchy
        pairs = None if hierarchy is None else pairs_of(hierarchy, self.label_names)
        self.facts["counts"] = as_tensors(LabelCounts.of(y, pairs).state_dict())
        return self

    def targets(self, raw: Any, y: Any) -> np.ndarray:
        """Returns targets :math:`(N, L)` from :obj:`y`, or from samples if :obj:`y` is None."""
        if y is not None:
            return read_matrix(in_order(y, self.label_names, "y", old="the model's labels"), "y")
        if isinstance(raw, MultiLabelDataset):
            names = raw.label_names or self.label_names
            if others := sorted({*names} ^ {*self.label_names}):
                got = f"(got others, or too few: {others[:5]})"
                raise ValueError(f"Expected samples with the labels of the model {got}")
            return read_matrix(raw.y[:, [names.index(name) for name in self.label_names]], "y")
        is_list = isinstance(raw, (list, tuple)) and all(isinstance(row, BaseData) for row in raw)
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
        """Chooses thresholds for every metric on validation samples, as :func:`tg_mlc.fit` does.

        Args:
            raw, y, batch_size: As in :meth:`evaluate`.
        """
        scores = self.probabilities(raw, batch_size=batch_size)
        self.decision.tuners = dict(tune_thresholds(self.targets(raw, y), scores))
        return self

    def calibrate(self, raw: Any, y: Any = None, *, batch_size: int = 256, seed: int = 0) -> Self:
        """Calibrates the probabilities of each label on validation samples, which may have chosen
        the thresholds. Held-out folds choose temperature scaling, Platt's function, isotonic
        regression or no change. Samples with given labels have their own functions, fitted with
        randomly masked targets. Thresholds are mapped, too, so that decisions without given labels
        do not change. Label sets decide by the new probabilities.

        Args:
            raw, y, batch_size: As in :meth:`evaluate`.
            seed (int, optional): Seed of the masks and of the folds. (default: :obj:`0`)

        Raises:
            ValueError: If the model is already calibrated.
        """
        if self.is_calibrated:
            got = "(got one that is); load or fit it again"
            raise ValueError(f"Expected a model that is not calibrated {got}")
        y, query = self.targets(raw, y), Query(coherent=False, batch_size=batch_size)
        if makes_batches(raw):  # Batches of such data sets may hold given labels.
            flow = self.run(raw, query)
            targets = y if flow.given is None else np.where(flow.given.isnan(), y, np.nan)
            free, masked = LabelCalibration.fit(targets, flow.probabilities, seed), None
        else:
            flow = self.prepare(raw, query)
            free = LabelCalibration.fit(y, torch.sigmoid(self.logits(flow)), seed)
            masked = self._masked_calibration(flow, y, seed)
        calibration, decision = Calibration(free, masked), self.decision
        self.stages.insert(self._given_stages[1], calibration)
        decision.conformal = None  # The conformal scores were uncalibrated.
        tuners = decision.tuners.items()
        decision.tuners = {key: self._calibrated(tuner, calibration) for key, tuner in tuners}
        return self

    def _masked_calibration(
        self, prepared: Flow, y: np.ndarray, seed: int
    ) -> LabelCalibration | None:
        """Returns the calibration for given labels, fitted with randomly masked targets."""
        if not self.takes_given or len(self.label_names) == 1:
            return None
        stage, targets = self.stage(GivenLabelsStage), torch.from_numpy(y).float()
        present_only = stage is not None and stage.engine.masks == "present"
        generator = torch.Generator().manual_seed(seed)
        given, free = draw_given(targets, MAX_GIVEN, generator, present_only=present_only)
        if (pairs := self._needed(Coherence).pairs()) is not None:
            given = propagate(given, pairs, check=False)
            free = targets.masked_fill(~given.isnan(), torch.nan)
        return LabelCalibration.fit(free.numpy(), torch.sigmoid(self.logits(prepared, given)), seed)

    def _calibrated(self, decider: Decider, calibration: Calibration) -> Decider:
        """Returns a decider for calibrated probabilities; thresholds give the same decisions."""
        if isinstance(decider, LabelSets):
            return decider
        tuner = copy(decider)
        thresholds = np.broadcast_to(decider.fitted(), len(self.label_names)).copy()
        tuner.thresholds = calibration.probabilities(torch.from_numpy(thresholds)).numpy()
        tuner.per_label = True
        return tuner

    def conformalize(self, raw: Any, y: Any = None, *, batch_size: int = 256) -> Self:
        """Stores the scores of samples to which no part of the model was fitted, so that
        ``predict(..., coverage=0.9)`` can promise a coverage of label sets. The promise holds for
        new samples drawn at random from the same source. It would not hold with samples that chose
        an epoch, thresholds or weights.

        Args:
            raw, y, batch_size: As in :meth:`evaluate`.

        Raises:
            ValueError: If labels of the samples are given, or no label applies to any sample.
        """
        flow = self.run(raw, Query(batch_size=batch_size))
        if flow.given is not None and not flow.given.isnan().all():
            raise ValueError(GIVEN_WITH_COVERAGE)
        self.decision.conformal = ConformalThresholds(self.targets(raw, y), flow.probabilities)
        return self

    def suggest(self, raw: Any, **options: Any) -> Any:
        """Suggests which labels to look up next, by :func:`tg_mlc.joint.suggest`."""
        return find("method", "suggest")(self, raw, **options)

    def audit(self, raw: Any, y: Any = None, seed: int = 0) -> Any:
        """Finds recorded labels that are likely wrong, among samples to which the model was not
        fitted. For training samples, use :func:`tg_mlc.joint.audit`.

        Args:
            raw, y: As in :meth:`evaluate`.
            seed (int, optional): Seed of permutations. (default: :obj:`0`)
        """
        return find("method", "audit")(self, raw, y, seed)

    def dependencies(self, **options: Any) -> Any:
        """Returns the labels that surely depend on each other beyond the inputs, as a weighted
        label graph, by :func:`tg_mlc.joint.dependencies`.
        """
        return find("method", "dependencies")(self, **options)

    def explain(
        self, raw: Any, labels: Sequence[str] | None = None, method: str = "auto", **options: Any
    ) -> Any:
        """Explains predictions of the model by :func:`tg_mlc.explain`."""
        return find("method", "explain")(self, raw, labels, method, **options)

    def export(
        self,
        out: str | os.PathLike[str],
        format: str = "torch-export",  # noqa: A002
        **options: Any,
    ) -> Path:
        """Writes a program that runs without this package, by :func:`tg_mlc.export`."""
        folder: Path = find("method", "export")(self, out, format, **options)
        return folder

    def save(
        self,
        path: str | os.PathLike[str],
        arguments: Mapping[str, Any] | None = None,
        *,
        beside: Mapping[str, Any] | None = None,
    ) -> Path:
        """Writes a folder for :func:`tg_mlc.load`, after a test that the model can be restored.

        Args:
            path (str or PathLike): The folder; an earlier model in it is replaced as a whole.
            arguments (dict, optional): Arguments of the constructor of your own network, unless
                :func:`~tg_mlc.models.builder` records them or attributes have the same names.
                (default: :obj:`None`)
            beside (dict, optional): Further tensors and plain data. (default: :obj:`None`)

        Raises:
            ValueError: If the model cannot be restored; the message names the missing argument.
        """
        if arguments is not None:
            self.network_stage.arguments = arguments
        return write_folder(path, {**self.content(), **(beside or {})})
