"""Recommended preprocessing of words and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tg_mlc.inputs import Chain
from tg_mlc.inputs.kinds import kind_named
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
    steps = kind_named(kind).steps(scaled=True)
    return Chain(*steps, *([ClassifierScores(classifiers, folder)] if classifiers else []))
