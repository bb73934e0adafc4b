"""Recommended preprocessing of words and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tg_mlc.inputs import Chain, Scale, TableInputs, TfIdf
from tg_mlc.stacking.classifier_scores import ClassifierScores

if TYPE_CHECKING:
    import os


def table_preprocessor(
    kind: str | None, classifiers: Sequence[str] = ("svm", "ridge"), folder: str | os.PathLike[str] | None = None
) -> Chain:
    """Weights words or standardises vectors, and adds the scores of classifiers.

    Args:
        kind (str): What an input is, the :obj:`kind` of a data set.
        classifiers (Sequence[str], optional): As of :class:`ClassifierScores`; none if empty.
            (default: :obj:`("svm", "ridge")`)
        folder (str or PathLike, optional): Where to keep the classifiers. (default: :obj:`None`, nowhere)
    """
    scale = Scale("standard") if kind == "vector" else TfIdf()
    return Chain(TableInputs(), scale, *([ClassifierScores(classifiers, folder)] if classifiers else []))
