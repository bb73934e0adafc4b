"""Base scores: scores of other classifiers, which labels take in and pass on by functions that all labels share."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

#: So many pairs of sample and label for some fifty parameters; with these two a fit takes some seconds.
MAX_PAIRS = 2**18
MAX_ITERATIONS = 60


class BaseScores(nn.Module):
    r"""Scores of other classifiers, which samples bring along (see :class:`~tg_mlc.stacking.StackingFeatures`).

    A classifier is too sure of the samples that it was fitted to. Give these the scores of classifiers that were fitted
    without them, *e.g.* those of :meth:`~tg_mlc.baselines.Baseline.held_out_scores`.

    Args:
        num_scores (int, optional): The number of classifiers :math:`C`. (default: :obj:`1`)
        key (str, optional): The attribute of a batch that holds its scores. (default: :obj:`"base_scores"`)
        score_skip (bool, optional): If set to :obj:`True`, a model also adds the scores to its final logits, through
            a :class:`~tg_mlc.nn.base_scores.SharedLogits`. (default: :obj:`False`)

    Shapes:
        - **input:** a batch with scores of shape :math:`(B, L, C)`, or :math:`(B, L)` where :math:`C` is 1
        - **output:** these scores

    Raises:
        ValueError: On use, if the batch has no scores.
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
            raise ValueError(
                f"Expected samples with the attribute '{self.key}', scores of classifiers (got {data}); let the "
                f"preprocessor that the model was trained with make them"
            )
        return scores


class ScoreEncoder(nn.Module):
    r"""Turns the scores of every label into a state of every label.

    .. math::
        \mathbf{e}_i = \sum_c \mathbf{W}_c \, \sigma(\mathbf{a}_c s_{ic} + \mathbf{c}_c)

    The steps :math:`\sigma(a_k s + c_k)` begin where scores of a linear classifier lie.

    Args:
        channels (int): Size :math:`d` of a state.
        num_scores (int, optional): The number of scores :math:`C` that a label has. (default: :obj:`1`)
        num_steps (int, optional): The number of steps for each. (default: :obj:`8`)
        bias (bool, optional): If set to :obj:`True`, adds a bias to the states. (default: :obj:`False`)

    Shapes:
        - **input:** scores :math:`(B, L, C)`, or :math:`(B, L)` where :math:`C` is 1
        - **output:** states :math:`(B, L, d)`

    Raises:
        ValueError: If the number of scores is another.
    """

    def __init__(
        self, channels: int, num_scores: int = 1, num_steps: int = 8, *, bias: bool = False
    ) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.empty(num_scores, num_steps))
        self.shift = nn.Parameter(torch.empty(num_scores, num_steps))
        self.lin = nn.Linear(num_scores * num_steps, channels, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.lin.reset_parameters()
        places = torch.linspace(-1.5, 1.5, self.scale.size(1))
        with torch.no_grad():
            self.scale.fill_(4.0)
            self.shift.copy_(-4.0 * places.expand_as(self.shift))

    def forward(self, scores: Tensor) -> Tensor:
        """Encodes scores as states of labels."""
        steps = torch.sigmoid(
            torch.addcmul(self.shift, self._by_classifier(scores).unsqueeze(-1), self.scale)
        )
        states: Tensor = self.lin(steps.flatten(2))
        return states

    def _by_classifier(self, scores: Tensor) -> Tensor:
        scores = scores.unsqueeze(-1) if scores.dim() == 2 else scores
        if scores.size(-1) != self.scale.size(0):
            raise ValueError(
                f"Expected scores of {self.scale.size(0)} classifiers for every label (got {scores.size(-1)}); give "
                f"samples the scores of the very classifiers that the model holds"
            )
        return scores


class SharedLogits(ScoreEncoder):
    r"""Turns the scores of every label into a logit by one function for all labels, so that rare labels learn from
    frequent ones what a score means.

    .. math::
        z_i = b + \sum_c \mathbf{w}_c^{\top} \sigma(\mathbf{a}_c s_{ic} + \mathbf{c}_c)

    It begins as a rising function with equal trust in every classifier, which is 0 where all scores are 0. Better,
    :meth:`start_from_scores` begins with the observed meaning of the scores of training samples.

    Args:
        num_scores, num_steps: As in :class:`ScoreEncoder`.

    Shapes:
        - **input:** scores, as in :class:`ScoreEncoder`
        - **output:** logits :math:`(B, L)`
    """

    def __init__(self, num_scores: int = 1, num_steps: int = 8) -> None:
        super().__init__(1, num_scores, num_steps, bias=True)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        super().reset_parameters()
        nn.init.constant_(self.lin.weight, 1 / self.scale.size(0))
        nn.init.constant_(self.lin.bias, -self.scale.size(1) / 2)

    def start_from_scores(
        self, scores: Tensor, y: Tensor, offset: Tensor | float = 0.0, seed: int = 0
    ) -> None:
        r"""Fits the function to training samples, by maximum likelihood.

        Args:
            scores (torch.Tensor): Scores of training samples by classifiers that were fitted without them,
                :math:`(N, L, C)`, or :math:`(N, L)` where :math:`C` is 1.
            y (torch.Tensor): Their labels :math:`(N, L)`: 0, 1, or NaN for unknown.
            offset (torch.Tensor or float, optional): Another term of the logits, *e.g.* the bias :math:`(L)` of a
                readout. (default: :obj:`0.0`)
            seed (int, optional): Seed of the choice of :obj:`MAX_PAIRS` pairs, if there are more. (default: :obj:`0`)

        Raises:
            ValueError: If scores and labels do not belong together, scores are not finite, or no label is known.
        """
        scores = self._by_classifier(scores)
        if scores.shape[:2] != y.shape:
            raise ValueError(
                f"Expected 'scores' of the same samples and labels as 'y' {list(y.shape)} (got {list(scores.shape)})"
            )
        if not scores.isfinite().all():
            raise ValueError(
                "Expected finite 'scores' (got NaN or infinity); leave out samples without scores"
            )
        known = (~y.isnan()).nonzero()
        if not known.numel():
            raise ValueError(
                "Expected 'y' with known labels (got NaN only); leave the function as it is"
            )
        if known.size(0) > MAX_PAIRS:
            generator = torch.Generator().manual_seed(seed)
            known = known[
                torch.randperm(known.size(0), generator=generator)[:MAX_PAIRS].to(known.device)
            ]
        # Each pair of a sample and a known label becomes a sample of one label.
        sample, label = known.unbind(dim=1)
        x, target = (
            scores[sample, label].unsqueeze(1).to(self.scale),
            y[sample, label].to(self.scale),
        )
        offsets = torch.as_tensor(offset).detach().to(self.scale).expand(y.size(1))[label]
        optimizer = torch.optim.LBFGS(
            self.parameters(), max_iter=MAX_ITERATIONS, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            optimizer.zero_grad()
            value = nn.functional.binary_cross_entropy_with_logits(
                self(x).squeeze(-1) + offsets, target
            )
            value.backward()  # type: ignore[no-untyped-call]
            return value

        with torch.enable_grad():
            optimizer.step(loss)  # type: ignore[no-untyped-call]
        optimizer.zero_grad()

    def forward(self, scores: Tensor) -> Tensor:
        """Turns scores into logits."""
        return super().forward(scores).squeeze(-1)
