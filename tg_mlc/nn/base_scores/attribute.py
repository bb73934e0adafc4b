"""BaseScores: scores of other classifiers, which labels take in and pass on."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.data import Data


class BaseScores(nn.Module):
    r"""Scores of other classifiers, which samples bring along (see :class:`~tg_mlc.stacking.StackingFeatures`).

    A classifier is too sure of the samples that it was fitted to, as it has seen their labels. Give these the scores
    of classifiers that were fitted without them, *e.g.* those of :meth:`~tg_mlc.baselines.LinearBaseline.cross_fit`.

    Args:
        num_scores (int, optional): The number of classifiers :math:`C`. (default: :obj:`1`)
        key (str, optional): The attribute of a batch that holds its scores. (default: :obj:`"base_scores"`)
        score_skip (bool, optional): If set to :obj:`True`, a model also adds the scores to its final logits, each
            through one function that all labels share (see :class:`~tg_mlc.nn.base_scores.SharedLogits`), so that rare
            labels learn from frequent ones what a score means. (default: :obj:`False`)

    Shapes:
        - **input:** a batch with scores of shape :math:`(B, L, C)`, or :math:`(B, L)` where :math:`C` is 1
        - **output:** these scores

    Raises:
        ValueError: On use, if the batch has no scores.
    """

    def __init__(self, num_scores: int = 1, key: str = "base_scores", score_skip: bool = False) -> None:
        super().__init__()
        self.num_scores = num_scores
        self.key = key
        self.score_skip = score_skip

    def forward(self, data: Data) -> Tensor:
        """Returns the scores of a batch.

        Raises:
            ValueError: If the batch has none.
        """
        scores: Tensor | None = data.get(self.key)
        if scores is None:
            raise ValueError(
                f"Expected samples with the attribute '{self.key}', scores of classifiers (got {data}); let the "
                f"preprocessor that the model was trained with make them"
            )
        return scores
