"""Predictor: a saved model, in a folder or on the Hugging Face hub, from raw inputs to named probabilities."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from tg_mlc._frames import in_order
from tg_mlc._names import shorten
from tg_mlc._optional import require
from tg_mlc._options import check_choice, check_count
from tg_mlc.data import MultiLabelDataset, given_labels
from tg_mlc.inputs.kind import num_rows
from tg_mlc.metrics import Evaluation, LabelSets, evaluate, tune_thresholds
from tg_mlc.metrics._inputs import read_matrix
from tg_mlc.metrics.calibration import Calibration
from tg_mlc.metrics.coverage import Coverage, Per
from tg_mlc.metrics.thresholds import Decider
from tg_mlc.inference.folder import CONTENT, WEIGHTS, read_folder
from tg_mlc.inference.inference import InferenceModel, ModuleInference, batches_of


class Predictor:
    r"""A model that takes raw inputs (SMILES, texts, lists of words, rows, DNA) and returns named probabilities.

    .. code-block:: python

        predictor = tg_mlc.load("model")
        frame = predictor.predict(["CCO", "c1ccccc1"])
        frame["probability"]["nausea"], frame["decision"]["nausea"]

    A network that you have trained in a loop of your own becomes one, too:

    .. code-block:: python

        predictor = Predictor(net, label_names=names)
        predictor.tune(validation_samples)
        print(predictor.evaluate(test_samples))
        predictor.save("model")

    Args:
        scorer (InferenceModel, MultiLabelModule or torch.nn.Module): The source of the scores, such as an
            :class:`~tg_mlc.stacking.AutoModel`; or a network of logits.
        facts (dict, optional): Facts about the model: versions, validation metrics, hashes of data and split.
            (default: :obj:`None`)
        label_names (Sequence[str], optional): The labels of a network. (default: :obj:`None`)

    Raises:
        ValueError: If a network comes without :obj:`label_names`, or anything else with them.
    """

    def __init__(
        self,
        scorer: InferenceModel | Any,
        facts: Mapping[str, Any] | None = None,
        *,
        label_names: Sequence[str] | None = None,
    ) -> None:
        is_network = isinstance(scorer, nn.Module) and not hasattr(scorer, "objective")
        if is_network != (label_names is not None):
            raise ValueError(
                f"Expected 'label_names' beside a network, and only there (got {label_names!r:.60} beside a "
                f"{type(scorer).__name__})"
            )
        if isinstance(scorer, nn.Module) and label_names is not None:
            scorer = ModuleInference.of_network(scorer, label_names)
        self.scorer = scorer if isinstance(scorer, InferenceModel) else ModuleInference(scorer)
        self.facts: dict[str, Any] = dict(facts or {})

    @property
    def label_names(self) -> list[str]:
        """The labels, in the order of columns."""
        return self.scorer.label_names

    def thresholds(self, metric: str | Coverage = "f1_micro", coherent: bool | Data | None = None) -> np.ndarray:
        """The probability from which each label is predicted, :math:`(L)`: 0.5 where validation samples gave none, NaN
        where :class:`~tg_mlc.metrics.LabelSets` decide, because they have no threshold.

        Args:
            metric (str or Coverage, optional): The metric that they were chosen for, or what they are to cover.
                (default: :obj:`"f1_micro"`)
            coherent (bool or LabelGraph, optional): As in :meth:`predict`. (default: :obj:`None`)

        Raises:
            ValueError: If there are thresholds, but none for this metric.
        """
        decider = self.scorer.decider(metric, coherent)
        found = np.array([np.nan]) if isinstance(decider, LabelSets) else decider.fitted()
        return np.broadcast_to(found, len(self.label_names))

    def decide(
        self,
        scores: np.ndarray,
        metric: str | Coverage = "f1_micro",
        given: Any = None,
        coherent: bool | Data | None = None,
    ) -> np.ndarray:
        """Returns which labels apply :math:`(N, L)`, given probabilities; none where these are NaN.

        Args:
            scores (numpy.ndarray): The result of :meth:`scores` or :meth:`readable_scores`.
            metric (str or Coverage, optional): The metric that thresholds or label sets were chosen for, or what they
                are to cover. (default: :obj:`"f1_micro"`)
            given (Any, optional): Labels that were known, which keep their values. (default: :obj:`None`)
            coherent (bool or LabelGraph, optional): As in :meth:`predict`. (default: :obj:`None`)

        Raises:
            ValueError: If there are thresholds, but none for this metric.
        """
        decided, readable = np.zeros(scores.shape, bool), ~np.isnan(scores).any(axis=1)
        known = None if given is None else given_labels(self.label_names, given, len(scores))[readable]
        if readable.any():
            chosen = self.scorer.decide(torch.from_numpy(scores[readable]), metric, known, coherent)
            decided[readable] = chosen.numpy() == 1
        else:
            self.scorer.decider(metric, coherent)
        return decided

    def scores(
        self, raw: Any, given: Any = None, batch_size: int = 256, coherent: bool | Data | None = None
    ) -> np.ndarray:
        """Returns probabilities :math:`(N, L)`; arguments are as in :meth:`predict`."""
        check_count("batch_size", batch_size)
        scores = self._scores(raw, given, batch_size, coherent)
        if wrong := _infinite(scores):
            raise ValueError(f"{next(iter(wrong.values()))} in row {next(iter(wrong))}")
        return scores

    def readable_scores(
        self, raw: Any, given: Any = None, batch_size: int = 256, coherent: bool | Data | None = None
    ) -> tuple[np.ndarray, dict[int, str]]:
        """Returns probabilities :math:`(N, L)`, NaN for inputs that cannot be read or computed with, and the reasons of
        these by rows.

        Args:
            raw, given, batch_size, coherent: As in :meth:`predict`.
        """
        check_count("batch_size", batch_size)
        is_listed = isinstance(raw, (list, tuple)) or hasattr(raw, "iloc")
        try:
            scores = self._scores(raw, given, batch_size, coherent)
            refused = _infinite(scores)
            scores[[*refused]] = np.nan
            return scores, refused
        except ValueError:  # which inputs are at fault is only asked now, because looking takes as long as reading
            refused = self.unreadable(raw) if is_listed else {}
            if not refused:
                raise
        kept = [row for row in range(len(raw)) if row not in refused]
        scores = np.full((len(raw), len(self.label_names)), np.nan)
        if kept:
            good = raw.iloc[kept] if hasattr(raw, "iloc") else [raw[row] for row in kept]
            known = None if given is None else given_labels(self.label_names, given, len(raw))[kept]
            is_open = known is None or bool(known.isnan().any())
            scores[kept] = self._scores(good, known, batch_size, coherent) if is_open else known
        refused = {**_infinite(scores), **refused}
        scores[[*refused]] = np.nan
        return scores, dict(sorted(refused.items()))

    def unreadable(self, raw: Any) -> dict[int, str]:
        """Returns why inputs cannot be read, by rows."""
        preprocessor = getattr(self.scorer, "preprocessor", None)
        return {} if preprocessor is None else preprocessor.unreadable(raw)

    def _scores(self, raw: Any, given: Any, batch_size: int, coherent: bool | Data | None) -> np.ndarray:
        if (isinstance(raw, (list, tuple)) or hasattr(raw, "shape")) and num_rows(raw) == 0:
            return np.empty((0, len(self.label_names)))
        return self.scorer.predictions(raw, given, batch_size, coherent)[0].numpy()

    def predict(
        self,
        raw: Any,
        *,
        given: Any = None,
        metric: str = "f1_micro",
        batch_size: int = 256,
        on_error: Literal["blank", "raise"] = "blank",
        coherent: bool | Data | None = None,
        coverage: float | None = None,
        coverage_per: Per = "label",
    ) -> Any:
        """Returns a data frame with three columns for each label: its ``"probability"`` (calibrated if
        ``frame.attrs["calibrated"]``), the ``"decision"`` (whether it applies), and the ``"threshold"`` that the
        probability reaches then, which is missing where label sets decide. The outer level of columns is what, the
        inner which label; ``to_dict("records")`` has a dictionary of labels for each of the three, which can be written
        as JSON.

        Args:
            raw (Any): A list, column, matrix or data frame with one raw input per row, or samples.
            given (Any, optional): Labels that are known already, in any form that :func:`~tg_mlc.data.given_labels`
                takes, by models that were trained for it. (default: :obj:`None`)
            metric (str, optional): The metric that decisions are best for. (default: :obj:`"f1_micro"`)
            batch_size (int, optional): The number of samples at a time. (default: :obj:`256`)
            on_error (str, optional): :obj:`"blank"` warns of inputs that cannot be read, whose probabilities and
                decisions are then missing, and keeps the reasons by rows in ``frame.attrs["unreadable"]``;
                :obj:`"raise"` refuses them. (default: :obj:`"blank"`)
            coherent (bool or LabelGraph, optional): If set to :obj:`True`, predictions respect the hierarchy that the
                model knows: no label has a larger probability than one above it, none is predicted without those above
                it, and labels that are given say what holds of those above and below them. A label graph with parents
                (:func:`~tg_mlc.graphs.tree`) is the hierarchy of a model that knows none. (default: :obj:`None`, where
                a hierarchy came with the training data)
            coverage (float, optional): The share of what applies that label sets have to hold, in expectation over new
                samples; it decides in place of :obj:`metric` (see :meth:`conformalize`). (default: :obj:`None`)
            coverage_per (str, optional): :obj:`"label"` covers each label, of the samples to which it applies;
                :obj:`"sample"` the labels of a sample together. (default: :obj:`"label"`)

        Raises:
            ValueError: If an input is none that the model takes, or no samples allow to promise the coverage.
            ImportError: If pandas is not installed (extra ``train``).
        """
        check_choice("on_error", on_error, ("blank", "raise"))
        pandas = require("pandas", extra="train")
        decides: str | Coverage = metric if coverage is None else Coverage(coverage, coverage_per)
        threshold = self.thresholds(decides, coherent)
        if coverage is not None and isinstance(raw, MultiLabelDataset) and len(raw) and "given" in raw[0]:
            given = raw.rows("given")
        if coverage is not None:
            self.scorer.check_promise(given, coherent)
        refused: dict[int, str] = {}
        if on_error == "raise":
            probability = self.scores(raw, given, batch_size, coherent)
        else:
            probability, refused = self.readable_scores(raw, given, batch_size, coherent)
        if refused:
            first = "; ".join(f"row {row}: {reason}" for row, reason in islice(refused.items(), 3))
            told = "1 input" if len(refused) == 1 else f"{len(refused)} inputs"
            warnings.warn(f"{told} cannot be read, the first of them {first}", stacklevel=2)
        index = raw.index if hasattr(raw, "iloc") else None
        decision = pandas.DataFrame(self.decide(probability, decides, given, coherent), index, self.label_names)
        if refused:
            decision = decision.astype("boolean").mask(np.isnan(probability))
        frames = {
            "probability": pandas.DataFrame(probability, index, self.label_names),
            "decision": decision,
            "threshold": pandas.DataFrame(np.broadcast_to(threshold, probability.shape), index, self.label_names),
        }
        predictions = _predictions_class()(pandas.concat(frames, axis=1))
        predictions.attrs |= {"unreadable": refused, "calibrated": self.scorer.calibration is not None}
        return predictions

    def stream(
        self, raw: Any, *, given: Mapping[str, Any] | None = None, rows: int = 4096, **options: Any
    ) -> Iterator[Any]:
        """Yields the data frames of :meth:`predict` for any number of inputs, some rows at a time.

        Args:
            raw (iterable): The inputs one by one, *e.g.* the lines of a file, or a matrix, column or data frame.
            given (dict, optional): Labels that are known of all inputs. (default: :obj:`None`)
            rows (int, optional): The number of rows of a data frame. (default: :obj:`4096`)
            **options (optional): Further arguments of :meth:`predict`.

        Raises:
            ValueError: If the inputs are one string, or one of them is none that the model takes.
        """
        check_count("rows", rows)
        if isinstance(raw, (str, bytes)):
            raise ValueError(f"Expected inputs one by one (got the string {raw[:40]!r}); pass one input as [input]")
        if hasattr(raw, "shape"):  # rows of a matrix, or of what knows its columns
            table = getattr(raw, "iloc", raw)
            chunks: Iterator[Any] = (table[first : first + rows] for first in range(0, raw.shape[0], rows))
        else:
            inputs = iter(raw)
            chunks = iter(lambda: list(islice(inputs, rows)), [])
        first = 0
        for chunk in chunks:
            frame = self.predict(chunk, given=given, **options)
            yield frame if hasattr(chunk, "iloc") else frame.set_index(frame.index + first)
            first += len(frame)

    def tune(self, raw: Any, y: Any = None, *, batch_size: int = 256) -> Predictor:
        """Chooses thresholds for every metric by validation samples, as :func:`tg_mlc.fit` does.

        Args:
            raw, y, batch_size: As in :meth:`evaluate`.
        """
        self.scorer.tuners = tune_thresholds(self._y(raw, y), self.scores(raw, batch_size=batch_size))
        return self

    def calibrate(self, raw: Any, y: Any = None, *, batch_size: int = 256) -> Predictor:
        """Calibrates probabilities of each label by validation samples, those that chose thresholds or others: by
        temperature scaling, Platt's function or isotonic regression, where held-out folds of the samples prefer one.
        Thresholds change with them, so that decisions stay; label sets decide by the new probabilities.

        Args:
            raw, y, batch_size: As in :meth:`evaluate`.

        Raises:
            ValueError: If the model is calibrated already.
        """
        if self.scorer.calibration is not None:
            raise ValueError("Expected a model that is not calibrated (got one that is); load or fit it again")
        scores, known = self.scorer.scores_and_given(raw, None, batch_size)
        y = self._y(raw, y) if known is None else np.where(known.isnan(), self._y(raw, y), np.nan)
        self.scorer.calibration, self.scorer.conformal = Calibration.fit(y, scores), None  # which is of other scores
        tuners: dict[str, Decider] = {metric: copy(tuner) for metric, tuner in self.scorer.tuners.items()}
        for tuner in tuners.values():  # decides of calibrated probabilities as it did of those before
            if not isinstance(tuner, LabelSets):
                thresholds = torch.from_numpy(np.broadcast_to(tuner.fitted(), len(self.label_names)).copy())
                tuner.thresholds, tuner.per_label = self.scorer.calibrated(thresholds).numpy(), True
        self.scorer.tuners = tuners
        return self

    def conformalize(self, raw: Any, y: Any = None, *, batch_size: int = 256) -> Predictor:
        """Keeps the scores of samples that no part of the model was fitted to, so that ``predict(..., coverage=0.9)``
        can promise what label sets hold, for new samples that are exchangeable with these: drawn from the same source,
        at random. Samples that chose an epoch, thresholds or weights will not do, because the promise would not hold.

        Args:
            raw, y, batch_size: As in :meth:`evaluate`.

        Raises:
            ValueError: If labels of the samples are given, or none applies.
        """
        self.scorer.conformalize(raw, self._y(raw, y), batch_size)
        return self

    def evaluate(
        self, raw: Any, y: Any = None, *, given: Any = None, batch_size: int = 256, coherent: bool | Data | None = None
    ) -> Evaluation:
        """Returns all metrics, at the thresholds of the model, of the labels that it has to predict.

        Labels that are given, by :obj:`given` or by the samples' attribute of this name, count as unknown targets:
        their scores are what was given.

        Args:
            raw, given, batch_size, coherent: As in :meth:`predict`.
            y (Tensor, numpy.ndarray or DataFrame, optional): Targets :math:`(N, L)`: 0, 1, or NaN for unknown; the
                columns of a data frame are matched by name. (default: :obj:`None`, those of the samples)

        Raises:
            ValueError: If a data frame has other columns than the model has labels, or all labels are given.
        """
        check_count("batch_size", batch_size)
        scores, found = self.scorer.predictions(raw, given, batch_size, coherent)
        y = self._y(raw, y)
        if found is not None and found.shape == y.shape:  # of other shapes, the metrics say so
            y = np.where(found.isnan(), y, np.nan)
        tuners = {metric: self.scorer.decider(metric, coherent) for metric in self.scorer.tuners}
        return evaluate(y, scores, tuners or self.thresholds(), self.label_names)

    def _y(self, raw: Any, y: Any) -> np.ndarray:
        """Targets :math:`(N, L)`, those of the samples if there are no others."""
        if y is None:
            found = [(batch.get("y"), batch.num_graphs) for batch in batches_of(raw)]
            if any(of_batch is None for of_batch, _ in found):
                raise ValueError("Expected samples with their labels as 'y' (got some without); add these, or pass 'y'")
            return read_matrix(torch.cat([of_batch.view(number, -1) for of_batch, number in found]), "y")
        return read_matrix(in_order(y, self.label_names, "y", old="the model's labels"), "y")

    def to(self, device: torch.device | str) -> Predictor:
        """Moves the model to a device."""
        self.scorer.to(device)
        return self

    def save(self, path: str | os.PathLike[str], arguments: Mapping[str, Any] | None = None) -> Path:
        """Writes a folder that :func:`tg_mlc.load` reads, once the model was made again as a test.

        Args:
            path (str or PathLike): The folder; a model that is there already is replaced as a whole.
            arguments (dict, optional): Arguments of the constructor of a network of one's own, where neither
                :func:`~tg_mlc.models.builder` nor attributes of the same names tell them. (default: :obj:`None`)

        Raises:
            ValueError: If it cannot be made again; the message names the argument that is not known.
        """
        return self.scorer.save(path, self.facts, **({} if arguments is None else {"arguments": arguments}))

    def __repr__(self) -> str:
        calibrated = ", calibrated" * (self.scorer.calibration is not None)
        return f"{type(self).__name__}({type(self.scorer).__name__}, {len(self.label_names)} labels{calibrated})"


def _infinite(scores: np.ndarray) -> dict[int, str]:
    """The reasons, by rows, of scores that are no numbers."""
    reason = (
        "Expected inputs that the model can compute with (got NaN or infinity for them); are some missing or too large?"
    )
    return dict.fromkeys(np.flatnonzero(~np.isfinite(scores).all(axis=1)).tolist(), reason)


def load(
    path: str | os.PathLike[str], network: type[nn.Module] | None = None, *, device: torch.device | str = "cpu"
) -> Predictor:
    """Loads a model that :func:`tg_mlc.training.fit`, :meth:`tg_mlc.stacking.AutoModel.save` or
    :meth:`~tg_mlc.inference.Predictor.save` wrote to a folder.

    Nothing in the folder is run: it holds tensors and plain data, and all of it has to be as it was written.

    Args:
        path (str or PathLike): The folder.
        network (type, optional): The class of a network of your own, which is made again with the arguments that the
            folder holds. (default: :obj:`None`)
        device (torch.device or str, optional): Where to compute. (default: :obj:`"cpu"`)

    Raises:
        FileNotFoundError: If there is no saved model.
        ValueError: If it is damaged, this version of the package cannot build it, PyTorch has no such device here, or
            :obj:`network` is not the class of the network that was saved.
    """
    content = read_folder(path)
    _check_network(content, network)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter without CUDA
        reason = str(error).splitlines()[0]
        raise ValueError(f"Expected 'device' to be one that PyTorch has here (got {str(device)!r}: {reason})") from None
    try:
        scorer = InferenceModel.from_content(content, *([] if network is None else [network]))
        return Predictor(scorer, content["facts"]).to(device)
    except Exception as error:  # of any class, as any value may be one that another version wrote
        raise ValueError(
            f"Expected '{path}' to hold a model that this version of tg_mlc can build (got {type(error).__name__}: "
            f"{error}); '{Path(path) / CONTENT}' says which versions saved it"
        ) from error


def _check_network(content: Mapping[str, Any], network: Any) -> None:
    """Refuses a folder without the class of its network, and a class for a folder that needs none."""
    state = content.get(content.get("kind", ""), {})
    described = state.get("network") if isinstance(state, Mapping) else None
    if described is None:
        if network is not None:
            raise ValueError(f"Expected no 'network' for a model that this package builds (got {network!r})")
        return
    name = shorten(f"{described.get('module')}.{described.get('class')}")
    is_class = isinstance(network, type) and issubclass(network, nn.Module)
    # Not by its module, which is __main__ in the script that trained it.
    ends = [
        str(each).rpartition("<locals>.")[2] for each in (described.get("class"), getattr(network, "__qualname__", ""))
    ]
    if not is_class or ends[0] != ends[1]:
        raise ValueError(
            f"Expected 'network' to be the class {name}, because the folder holds a network of your own and no class "
            f"is unpickled (got {network!r}); import it and pass it: load(path, {name.rpartition('.')[2]})"
        )


@cache
def _predictions_class() -> Any:
    """The class of predictions, made on use because pandas may be missing."""
    pandas = require("pandas", extra="train")

    class Predictions(require("pandas", extra="train").DataFrame):  # type: ignore[misc]
        """A data frame whose records have strings as keys, as JSON needs."""

        @property
        def _constructor(self) -> Any:
            return Predictions

        def __reduce__(self) -> Any:
            return pandas.DataFrame, (pandas.DataFrame(self),)

        def to_dict(self, orient: str = "dict", **options: Any) -> Any:
            if orient != "records" or self.columns.nlevels == 1:
                return super().to_dict(orient, **options)
            parts = {what: self[what].astype(object) for what in dict.fromkeys(self.columns.get_level_values(0))}
            records = [part.where(part.notna(), None).to_dict("records") for part in parts.values()]
            return [dict(zip(parts, row, strict=True)) for row in zip(*records, strict=True)]

    return Predictions


def push_to_hub(path: str | os.PathLike[str], repo_id: str, *, private: bool = True, **options: Any) -> str:
    """Uploads the folder of a saved model, and returns its address.

    Args:
        path (str or PathLike): The folder.
        repo_id (str): The name on the hub, *e.g.* :obj:`"me/side-effects"`.
        private (bool, optional): Whether only you see it, if it is new. (default: :obj:`True`)
        **options (optional): Further arguments of :meth:`huggingface_hub.HfApi.upload_folder`.

    Raises:
        ValueError: If the folder holds no model, or a damaged one.
        ImportError: If huggingface_hub is not installed (extra ``hub``).
    """
    if "network" not in (content := read_folder(path)).get(content["kind"], {}):
        load(path)
    hub = require("huggingface_hub", extra="hub")
    hub.create_repo(repo_id, private=private, exist_ok=True)
    files = [CONTENT, WEIGHTS]
    return str(
        hub.upload_folder(
            repo_id=repo_id, folder_path=os.fspath(path), allow_patterns=files, delete_patterns=files, **options
        )
    )


def from_pretrained(
    name: str | os.PathLike[str], device: str = "cpu", network: type[nn.Module] | None = None, **options: Any
) -> Predictor:
    """Loads a model from a folder, or from the hub.

    Args:
        name (str or PathLike): A folder, or a name on the hub.
        network (type, optional): As of :func:`load`. (default: :obj:`None`)
        device (str, optional): Where to compute. (default: :obj:`"cpu"`)
        **options (optional): Further arguments of :func:`huggingface_hub.snapshot_download`, *e.g.* :obj:`revision`.

    Raises:
        ValueError: If the model is damaged, or this version of the package cannot build it.
        ImportError: If it is no folder and huggingface_hub is not installed (extra ``hub``).
    """
    if Path(name).is_dir():
        return load(name, network, device=device)
    hub = require("huggingface_hub", extra="hub")
    return load(
        hub.snapshot_download(os.fspath(name), allow_patterns=[CONTENT, WEIGHTS], **options), network, device=device
    )
