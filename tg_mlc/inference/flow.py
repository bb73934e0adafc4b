"""Query and Flow: a question to a model, and the values that pass through its stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc._options import check_count
from tg_mlc.metrics.coverage import Coverage, Per

#: A hierarchy, whether to respect that of the model, or :obj:`None` for the model's default.
Coherent: TypeAlias = "bool | Data | None"


@dataclass(frozen=True)
class Query:
    """A question to a model, beside the inputs; it is checked once and handed down whole.

    Args:
        given (Any, optional): Labels that are known, in any form that
            :func:`~tg_mlc.data.given_labels` takes.
            (default: :obj:`None`, the attribute :obj:`given` of samples)
        metric (str, optional): The metric that decisions are best for. (default: :obj:`"f1_micro"`)
        coverage (float, optional): The fraction of what applies that label sets have to hold, in
            place of :obj:`metric`. (default: :obj:`None`)
        coverage_per (str, optional): :obj:`"label"` or :obj:`"sample"`. (default: :obj:`"label"`)
        coherent (bool or LabelGraph, optional): Whether predictions respect a hierarchy.
            (default: :obj:`None`, if one came with the training data)
        batch_size (int, optional): The number of samples that networks take at a time.
            (default: :obj:`256`)

    Raises:
        ValueError: If the coverage is not between 0 and 1, or the batch size is not positive.
    """

    given: Any = None
    metric: str = "f1_micro"
    coverage: float | None = None
    coverage_per: Per = "label"
    coherent: Coherent = None
    batch_size: int = 256

    def __post_init__(self) -> None:
        check_count("batch_size", self.batch_size)
        if self.coverage is not None:
            Coverage(self.coverage, self.coverage_per).check()

    @property
    def decides(self) -> str | Coverage:
        """The metric, or the coverage, that decisions are made for."""
        return self.metric if self.coverage is None else Coverage(self.coverage, self.coverage_per)


@dataclass
class Flow:
    """The values that pass through the stages of a model, each of which reads and changes them."""

    query: Query
    label_names: list[str]
    samples: Any  #: the samples in the form of the next stage
    size: int  #: the number of samples
    given: Tensor | None = None  #: known labels :math:`(N, L)`: 0, 1, or NaN for unknown
    pairs: Tensor | None = None  #: the pairs of a label and one below it that predictions respect
    is_default_hierarchy: bool = True  #: whether the model respects these pairs by default
    batches: Any = None  #: the samples in batches, if they are used many times
    logits: Tensor | None = None  #: :math:`(N, L)`, those of given labels without their values
    decider: Any = None  #: the thresholds or label sets that decide
    decisions: Tensor | None = None  #: 0 or 1 :math:`(N, L)`
    thresholds: np.ndarray | None = None  #: :math:`(L)`, NaN where label sets decide
    _probabilities: Tensor | None = field(default=None, repr=False)

    @property
    def probabilities(self) -> Tensor:
        """Probabilities :math:`(N, L)`; given labels have 0 or 1."""
        if self._probabilities is None:
            if self.logits is None:
                raise RuntimeError(
                    "Expected a stage with logits or probabilities (got none before this one)"
                )
            values = self.logits.sigmoid()
            if self.logits.dtype == torch.double:  # SciPy's are those of fitting.
                values = torch.from_numpy(expit(self.logits.numpy()))
            self._probabilities = self.with_given(values)
        return self._probabilities

    @probabilities.setter
    def probabilities(self, value: Tensor) -> None:
        self._probabilities = value

    def with_given(self, values: Tensor) -> Tensor:
        """Returns values :math:`(N, L)` with 0 or 1 where labels are given."""
        if self.given is None:
            return values
        return torch.where(self.given.isnan(), values, self.given.to(values))

    def rows(self, start: int, stop: int) -> Flow:
        """Returns the flow of some samples, before any stage has computed something."""
        given, size = self.given, min(stop, self.size) - start
        given = None if given is None else given[start:stop]
        return replace(self, samples=self.samples[start:stop], size=size, given=given)

    @classmethod
    def joined(cls, parts: Sequence[Flow]) -> Flow:
        """Joins the flows of parts of the samples, after the last stage."""
        whole = replace(parts[0], samples=None, size=sum(part.size for part in parts))
        for name in ("given", "logits", "decisions", "_probabilities"):
            values = [getattr(part, name) for part in parts]
            setattr(whole, name, None if any(v is None for v in values) else torch.cat(values))
        return whole
