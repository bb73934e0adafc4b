"""Base scores: scores of other classifiers as inputs of label states and logits."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

#: Limits that let the fit of :meth:`SharedLogits.start_from_scores` take seconds.
MAX_PAIRS = 2**18
MAX_ITERATIONS = 60
#: Number of sigmoid steps per score.
NUM_STEPS = 8


class BaseScores(nn.Module):
    r"""Scores of other classifiers in samples (see :class:`~tg_mlc.stacking.StackingFeatures`).

    Classifiers are overconfident on their training samples. Train with held-out scores, *e.g.* from
    :meth:`~tg_mlc.baselines.Baseline.held_out_scores`.

    Args:
        num_scores (int, optional): The number of classifiers :math:`C`. (default: :obj:`1`)
        key (str, optional): The attribute with the scores. (default: :obj:`"base_scores"`)
        score_skip (bool, optional): If set to :obj:`True`, models add
            :class:`~tg_mlc.nn.base_scores.SharedLogits` of these scores to logits.
            (default: :obj:`False`)

    Shapes:
        - **input:** a batch with scores :math:`(B, L, C)` or :math:`(B, L)`
        - **output:** the scores

    Raises:
        ValueError: In :meth:`forward`, if the batch has no scores.
    """

    def __init__(
        self, num_scores: int = 1, key: str = "base_scores", score_skip: bool = False
    ) -> None:
        super().__init__()
        self.num_scores = num_scores
        self.key = key
        self.score_skip = score_skip

    def forward(self, data: Data) -> Tensor:
        """Returns the scores of a batch."""
        scores: Tensor | None = data.get(self.key)
        if scores is None:
            expected = f"samples with the attribute '{self.key}', scores of classifiers"
            cure = "let the preprocessor that the model was trained with make them"
            raise ValueError(f"Expected {expected} (got {data.keys()}); {cure}")
        return scores


class ScoreEncoder(nn.Module):
    r"""Encodes the scores of each label as a state.

    .. math::
        \mathbf{e}_i = \sum_c \mathbf{W}_c \, \sigma(\mathbf{a}_c s_{ic} + \mathbf{c}_c)

    The steps :math:`\sigma(a_k s + c_k)` start in the range of scores of a linear classifier.

    Args:
        channels (int): Size :math:`d` of a state.
        num_scores (int, optional): The number of scores :math:`C` per label. (default: :obj:`1`)
        bias (bool, optional): If set to :obj:`True`, adds a bias. (default: :obj:`False`)

    Shapes:
        - **input:** scores :math:`(B, L, C)`, or :math:`(B, L)`
        - **output:** states :math:`(B, L, d)`

    Raises:
        ValueError: If the number of scores per label differs.
    """

    def __init__(self, channels: int, num_scores: int = 1, *, bias: bool = False) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.empty(num_scores, NUM_STEPS))
        self.shift = nn.Parameter(torch.empty(num_scores, NUM_STEPS))
        self.lin = nn.Linear(num_scores * NUM_STEPS, channels, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.lin.reset_parameters()
        points = torch.linspace(-1.5, 1.5, NUM_STEPS)
        with torch.no_grad():
            self.scale.fill_(4.0)
            self.shift.copy_(-4.0 * points.expand_as(self.shift))

    def forward(self, scores: Tensor) -> Tensor:
        """Encodes scores as states of labels."""
        scores = self._by_classifier(scores).unsqueeze(-1)
        steps = torch.addcmul(self.shift, scores, self.scale).sigmoid()
        states: Tensor = self.lin(steps.flatten(2))
        return states

    def _by_classifier(self, scores: Tensor) -> Tensor:
        scores = scores.unsqueeze(-1) if scores.dim() == 2 else scores
        if scores.size(-1) != self.scale.size(0):
            expected = f"scores of {self.scale.size(0)} classifiers for every label"
            cure = "compute scores with the classifiers that the model was trained with"
            raise ValueError(f"Expected {expected} (got {scores.size(-1)}); {cure}")
        return scores


class SharedLogits(ScoreEncoder):
    r"""Maps scores to logits by one function for all labels, which helps rare labels.

    .. math::
        z_i = b + \sum_c \mathbf{w}_c^{\top} \sigma(\mathbf{a}_c s_{ic} + \mathbf{c}_c)

    The initial function increases, is 0 at 0, and weights all classifiers equally.
    :meth:`start_from_scores` fits the function to training samples.

    Args:
        num_scores: As in :class:`ScoreEncoder`.

    Shapes:
        - **input:** scores, as in :class:`ScoreEncoder`
        - **output:** logits :math:`(B, L)`
    """

    def __init__(self, num_scores: int = 1) -> None:
        super().__init__(1, num_scores, bias=True)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        super().reset_parameters()
        nn.init.constant_(self.lin.weight, 1 / self.scale.size(0))
        nn.init.constant_(self.lin.bias, -NUM_STEPS / 2)

    def start_from_scores(self, scores: Tensor, y: Tensor, offset: Tensor | float = 0.0) -> None:
        r"""Fits the function to training samples, by maximum likelihood.

        Args:
            scores (torch.Tensor): Held-out scores :math:`(N, L, C)` or :math:`(N, L)`.
            y (torch.Tensor): Labels :math:`(N, L)`: 0, 1, or NaN for unknown.
            offset (torch.Tensor or float, optional): A fixed term of the logits, *e.g.* a bias
                :math:`(L)`. (default: :obj:`0.0`)

        Raises:
            ValueError: If shapes differ, scores are not finite, or no label is known.
        """
        scores = self._by_classifier(scores)
        if scores.shape[:2] != y.shape:
            expected = f"'scores' of the same samples and labels as 'y' {list(y.shape)}"
            raise ValueError(f"Expected {expected} (got {list(scores.shape)})")
        if not scores.isfinite().all():
            cure = "leave out samples without scores"
            raise ValueError(f"Expected finite 'scores' (got NaN or infinity); {cure}")
        known_pairs = (~y.isnan()).nonzero()
        if not known_pairs.numel():
            message = "Expected 'y' with known labels (got NaN only); leave the function as it is"
            raise ValueError(message)
        if known_pairs.size(0) > MAX_PAIRS:
            generator = torch.Generator().manual_seed(0)
            drawn = torch.randperm(known_pairs.size(0), generator=generator)[:MAX_PAIRS]
            known_pairs = known_pairs[drawn.to(known_pairs.device)]
        # Each pair of a sample and a known label becomes a sample with a single label.
        sample, label = known_pairs.unbind(dim=1)
        x = scores[sample, label].unsqueeze(1).to(self.scale)
        target = y[sample, label].to(self.scale)
        offsets = torch.as_tensor(offset).detach().to(self.scale).expand(y.size(1))[label]
        options: Any = {"max_iter": MAX_ITERATIONS, "line_search_fn": "strong_wolfe"}
        optimizer = torch.optim.LBFGS(self.parameters(), **options)

        def loss() -> Tensor:
            optimizer.zero_grad()
            value = F.binary_cross_entropy_with_logits(self(x).squeeze(-1) + offsets, target)
            value.backward()  # type: ignore[no-untyped-call]
            return value

        with torch.enable_grad():
            optimizer.step(loss)  # type: ignore[no-untyped-call]
        optimizer.zero_grad()

    def forward(self, scores: Tensor) -> Tensor:
        """Turns scores into logits."""
        return super().forward(scores).squeeze(-1)
