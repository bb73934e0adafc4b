"""Recommended preprocessing of words and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tg_mlc.data.preprocess.evidence import ClassifierScores
from tg_mlc.data.preprocess.inputs import TableInputs
from tg_mlc.data.preprocess.preprocessor import Chain
from tg_mlc.data.preprocess.scalers import Scale
from tg_mlc.data.preprocess.tf_idf import TfIdf

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
