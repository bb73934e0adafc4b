"""How often labels apply in training samples, for metrics that weight labels by their rarity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import Self

from tg_mlc.metrics._inputs import ArrayLike, FloatArray, IntArray, read_array, read_targets


@dataclass(frozen=True)
class LabelCounts:
    """The counts of labels in training samples."""

    num_samples: int  #: the number of samples with a known label
    positive: IntArray  #: the number of samples to which each label applies :math:`(L)`
    #: the information of each label in a hierarchy :math:`(L)`, in bits; None without one
    information: FloatArray | None = None

    @classmethod
    def of(cls, y: ArrayLike, pairs: ArrayLike | None = None) -> Self:
        r"""Counts labels, whose information is that of `"Information-theoretic evaluation of
        predicted ontological annotations" <https://doi.org/10.1093/bioinformatics/btt228>`_:
        :math:`-\log_2 P(v \mid \mathrm{ancestors}(v))`. Each label counts once more than it
        occurs, so that labels without training samples have finite information.

        Args:
            y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
            pairs (Tensor or numpy.ndarray, optional): Pairs of ancestor and descendant
                :math:`(2, C)`. (default: :obj:`None`, no hierarchy)
        """
        positive, observed = read_targets(y, "y")
        num_samples = int(observed.any(axis=1).sum())
        counts = cls(num_samples, positive.sum(axis=0))
        if pairs is None:
            return counts
        ancestors, descendants = read_array(pairs).astype(np.int64)
        information = np.empty(positive.shape[1])
        for label in range(positive.shape[1]):
            above = positive[:, ancestors[descendants == label]].all(axis=1)
            num_above = (above & observed[:, label]).sum()
            num_label = (above & positive[:, label]).sum()
            information[label] = np.log2((num_above + 1) / (num_label + 1))
        return cls(num_samples, counts.positive, information)

    def propensities(self, a: float = 0.55, b: float = 1.5) -> FloatArray:
        r"""Returns the propensities of the `"Extreme Multi-label Loss Functions"
        <https://doi.org/10.1145/2939672.2939756>`_ paper :math:`(L)`, the probabilities that a true
        label is recorded:

        .. math::
            p_l = \frac{1}{1 + C e^{-A \log(N_l + B)}}, \qquad C = (\log N - 1) (B + 1)^A

        Args:
            a, b (float, optional): Constants of the data. (defaults: :obj:`0.55`, :obj:`1.5`)
        """
        c = max(np.log(max(self.num_samples, 1)) - 1, 0) * (b + 1) ** a
        return np.asarray(1 / (1 + c * (self.positive + b) ** -a))

    def state_dict(self) -> dict[str, Any]:
        """Returns the counts as plain data and arrays."""
        return vars(self).copy()

    @classmethod
    def from_state(cls, state: Mapping[str, Any], num_labels: int) -> Self:
        """Restores counts. Raises ValueError if they are of another number of labels."""
        arrays = {
            key: read_array(state[key])
            for key in ("positive", "information")
            if state[key] is not None
        }
        if wrong := [key for key, array in arrays.items() if array.shape != (num_labels,)]:
            got = f"(got {list(arrays[wrong[0]].shape)})"
            raise ValueError(
                f"Expected {wrong[0]!r} of the counts to be of {num_labels} labels {got}"
            )
        positive = arrays["positive"].astype(np.int64)
        return cls(int(state["num_samples"]), positive, arrays.get("information"))
