"""Label message passing as an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, cast

import numpy as np
import torch
from scipy.special import expit
from sklearn.utils.validation import check_consistent_length
from typing_extensions import Self

from tg_mlc._options import check_share
from tg_mlc.data import Split, predefined_split, stratified_split
from tg_mlc.graphs import LabelGraph
from tg_mlc.metrics import ThresholdTuner
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.sklearn.estimator import draw_seed, stack_rows
from tg_mlc.sklearn.inputs import Inputs, RawInputEstimator, make_samples, samples_like
from tg_mlc.sklearn.training import GraphName, TrainedModel, train


@dataclass(eq=False, repr=False)
class LaMPClassifier(RawInputEstimator):
    """Label message passing from the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper, as an estimator of scikit-learn.

    .. code-block:: python

        classifier = LaMPClassifier().fit(["Red apples", "A hammer", "A red toy hammer"], [{"food"}, {"tool"}, {"toy"}])
        print(classifier.predict(["A green apple"]))

    It fits the preprocessing of inputs, the scores of other classifiers as base scores, and
    :class:`~tg_mlc.models.LaMP`
    to all but a share of the samples, which chooses the epoch and the threshold. To keep a fitted estimator, take
    :mod:`joblib` or :mod:`pickle` only between processes of your own: files of these can run any code.

    Args:
        inputs (str, optional): What inputs are: :obj:`"vectors"`, :obj:`"bags"` (of words, with weights),
            :obj:`"texts"` (or lists of words), or :obj:`"smiles"`. (default: :obj:`"auto"`: rows of a dense matrix are
            vectors, those of a sparse one bags; strings are SMILES if all are molecules, else texts)
        label_graph (str or LabelGraph, optional): :obj:`"fully_connected"`, :obj:`"co_occurrence"` (of training
            samples), :obj:`"edgeless"`, or a graph of one's own. (default: :obj:`"fully_connected"`)
        base_scores (Sequence[str], optional): The classifiers whose scores labels take in, as of
            :class:`~tg_mlc.stacking.StackingFeatures`, which takes about two minutes for them at most and chooses
            the scale of vectors; none if :obj:`None`. (default: :obj:`"auto"`, all four, none for less than 20 training
            samples)
        channels (int, optional): Size of all states. (default: :obj:`64`)
        num_steps (int, optional): Number of label message passing steps. (default: :obj:`2`)
        heads (int, optional): Number of attention heads. (default: :obj:`4`)
        dropout (float, optional): Dropout of the blocks. (default: :obj:`0.2`)
        learning_rate (float, optional): The highest learning rate. (default: :obj:`1e-3`)
        weight_decay (float, optional): Decoupled weight decay. (default: :obj:`0.01`)
        loss_name (str, optional): Another loss of :class:`~tg_mlc.training.BinaryObjective`, such as :obj:`"focal"`
            for rare labels. (default: :obj:`"bce"`)
        loss_options (dict, optional): Its options, *e.g.* :obj:`{"pos_weight": 5.0}`. With any, or with another
            loss, the epoch of the best micro ROC-AUC is kept instead of that of the best cross-entropy, if validation
            samples have labels of both classes. (default: :obj:`None`)
        max_epochs (int, optional): Number of epochs at most; training stops after 10 without a better one.
            (default: :obj:`None`, those of about 1000 steps, 4 to 60)
        batch_size (int, optional): Number of samples in a step. (default: :obj:`32`)
        threshold (float, str or ThresholdTuner, optional): The probability from which a label applies: a number; a
            metric of :class:`~tg_mlc.metrics.ThresholdTuner`, for the threshold that is best on validation samples; or
            a tuner with settings of one's own, *e.g.* one threshold per label. Where validation samples lack positives
            it is 0.5, and classes, of which each sample has one, need none. (default: :obj:`"f1_micro"`)
        validation_fraction (float, optional): The share of samples that is kept for validation, unless :meth:`fit` is
            given some. (default: :obj:`0.1`)
        warm_start (bool, optional): If set to :obj:`True`, :meth:`fit` goes on from the weights of the last fit, with
            its labels and words or columns. (default: :obj:`False`)
        random_state (int or RandomState, optional): What decides weights, dropout, and samples for validation.
            (default: :obj:`None`)
        device (str, optional): PyTorch's name of the device. (default: :obj:`"auto"`, a GPU if there is one)
        verbose (bool, optional): If set to :obj:`True`, training shows a progress bar on a terminal.
            (default: :obj:`False`)

    Attributes:
        inputs_ (str): What inputs were taken for.
        trained_ (TrainedModel): The preprocessor and the model.
        n_iter_ (int): The number of epochs.
    """

    inputs: Inputs | Literal["auto"] = "auto"
    _: KW_ONLY
    label_graph: GraphName | LabelGraph = "fully_connected"
    base_scores: Sequence[str] | Literal["auto"] | None = "auto"
    channels: int = 64
    num_steps: int = 2
    heads: int = 4
    dropout: float = 0.2
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    loss_name: str = "bce"
    loss_options: dict[str, Any] | None = None
    max_epochs: int | None = None
    batch_size: int = 32
    threshold: float | str | ThresholdTuner = "f1_micro"
    validation_fraction: float = 0.1
    warm_start: bool = False
    random_state: Any = None
    device: str = "auto"
    verbose: bool = False

    def fit(self, X: Any, y: Any, eval_set: tuple[Any, Any] | None = None) -> Self:
        """Trains the model.

        Args:
            X (Any): A matrix (dense or sparse), a data frame, a list or column of texts, of lists of words, or of
                SMILES.
            y (Any): Labels of every sample: a matrix of 0, 1 and NaN (unknown), dense, sparse or as a data frame, whose
                columns name the labels; sets of names, :obj:`None` where they are unknown; or the class of each sample.
            eval_set (tuple, optional): Inputs and labels of validation samples. (default: :obj:`None`, a share of the
                others)

        Raises:
            ValueError: If inputs, labels or options are not allowed, or a warm start has other labels or columns.
        """
        tuner = self._tuner()
        start: TrainedModel | None = getattr(self, "trained_", None) if self.warm_start else None
        X = self._read_training_inputs(X) if start is None else self._read_inputs(X)
        matrix = self._read_labels(X, y, keep=start is not None)
        seed = draw_seed(self.random_state)
        X, matrix, split = self._divide(X, matrix, eval_set, seed)
        samples = (
            make_samples(self.inputs_, X, matrix, self._form.names, split.train.numpy())
            if start is None
            else samples_like(start.preprocessor, X, matrix)
        )
        self.trained_, logits = train(self, samples, split, start, seed)
        self.n_iter_ = self.trained_.num_epochs
        return self._fit_threshold(tuner, matrix[split.val.numpy()], expit(logits))

    def _logits(self, X: Any) -> FloatArray:
        return self.trained_.logits(self.trained_.preprocessor.transform(X), self.torch_device)

    def _divide(
        self, X: Any, matrix: FloatArray, eval_set: tuple[Any, Any] | None, seed: int
    ) -> tuple[Any, FloatArray, Split]:
        """All samples, and which are for training: but for a share, of at least one, or those that others follow."""
        if eval_set is None:
            share = max(self.validation_fraction, 1 / len(matrix))
            return X, matrix, stratified_split(matrix, (1 - share, share, 0.0), seed)
        X_val, val = self._read_inputs(eval_set[0]), self._form.encode(eval_set[1])
        check_consistent_length(X_val, val)
        num_train, num_samples = len(matrix), len(matrix) + len(val)
        split = predefined_split(range(num_train), range(num_train, num_samples), [], num_samples)
        return stack_rows(X, X_val), np.concatenate([matrix, val]), split

    @property
    def torch_device(self) -> torch.device:
        """The device that computes."""
        found = "cuda" if torch.cuda.is_available() else "cpu"
        return torch.device(found if self.device == "auto" else self.device)

    def _tuner(self) -> ThresholdTuner | None:
        """A tuner that is not fitted, unless the threshold is a number."""
        given = self.threshold
        if not isinstance(given, (str, ThresholdTuner)):
            check_share("threshold", given)
            return None
        return ThresholdTuner(given) if isinstance(given, str) else copy(given)

    def _fit_threshold(self, tuner: ThresholdTuner | None, y: FloatArray, scores: FloatArray) -> Self:
        if tuner is None:
            return self._fix_threshold(cast(float, self.threshold))
        if self._form.kind == "classes" or not (y == 1).any():
            return self._fix_threshold(0.5)
        self.thresholds_ = tuner.fit(y, scores).fitted()
        return self
