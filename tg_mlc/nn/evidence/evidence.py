"""Evidence: scores of other classifiers, which labels know and pass on."""

from __future__ import annotations

import warnings
from typing import cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data


class Evidence(nn.Module):
    r"""Scores of another classifier, which was fitted beforehand and is not trained any further.

    A classifier has seen the labels of the samples it was fitted on, and is too sure of them. For these, give the batch
    scores of classifiers that were fitted without them (*e.g.* those of
    :meth:`~tg_mlc.baselines.LinearBaseline.cross_fit`) as the attribute :obj:`key`; where a batch has that attribute it
    is returned as it is.

    Args:
        key (str, optional): The attribute of a batch that holds its scores, if they are known.
            (default: :obj:`"evidence"`)

    Shapes:
        - **input:** a batch
        - **output:** scores :math:`(B, L)`, or :math:`(B, L, C)` of :math:`C` classifiers
    """

    num_scores = 1  #: The number of classifiers :math:`C`.

    def __init__(self, key: str = "evidence") -> None:
        super().__init__()
        self.key = key

    def forward(self, data: Data) -> Tensor:
        known: Tensor | None = data.get(self.key)
        if known is None and self.training and not torch.compiler.is_compiling():
            warnings.warn(
                f"Samples to train with have no attribute '{self.key}', the scores of classifiers that were fitted "
                f"without them: those of the model's own classifiers are too sure of them",
                stacklevel=2,
            )
        return self.scores(data) if known is None else known

    def scores(self, data: Data) -> Tensor:
        """What the classifier says of a batch.

        Args:
            data (Data): The batch.

        Shapes:
            - **output:** :math:`(B, L)`, or :math:`(B, L, C)` of several classifiers

        Raises:
            NotImplementedError: If a subclass does not say.
        """
        raise NotImplementedError


class GivenEvidence(Evidence):
    r"""Scores that samples bring along, of classifiers that are not part of the model.

    Args:
        num_scores (int): The number of classifiers :math:`C`.
        key (str, optional): As in :class:`Evidence`. (default: :obj:`"evidence"`)

    Shapes:
        - **input:** a batch with scores of shape :math:`(B, L, C)`
        - **output:** these scores

    Raises:
        ValueError: If the batch has no scores.
    """

    def __init__(self, num_scores: int, key: str = "evidence") -> None:
        super().__init__(key)
        self.num_scores = num_scores

    def scores(self, data: Data) -> Tensor:
        raise ValueError(f"Expected samples with the attribute '{self.key}', scores of classifiers (got {data})")


class StackedEvidence(Evidence):
    r"""Scores of several classifiers, side by side.

    Args:
        *parts (Evidence): The classifiers, of one score each.
        key (str, optional): As in :class:`Evidence`. (default: :obj:`"evidence"`)

    Shapes:
        - **input:** a batch
        - **output:** scores :math:`(B, L, C)`

    Raises:
        ValueError: If there is no classifier.
    """

    def __init__(self, *parts: Evidence, key: str = "evidence") -> None:
        super().__init__(key)
        if not parts:
            raise ValueError("Expected at least one of 'parts' (got none)")
        self.parts = nn.ModuleList(parts)
        self.num_scores = len(parts)

    def scores(self, data: Data) -> Tensor:
        return torch.stack([cast(Evidence, part).scores(data) for part in self.parts], dim=-1)
