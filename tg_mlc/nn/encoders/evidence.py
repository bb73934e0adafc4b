"""What another classifier says of the labels."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.nn.encoders.components import ptr_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from tg_mlc.baselines import KernelRidgeBaseline, LinearBaseline

#: So many pairs of sample and label for some fifty parameters; with these two a fit takes some seconds.
MAX_PAIRS = 2**18
MAX_ITERATIONS = 60


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
        """What the classifier says of a batch."""
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


class LinearEvidence(Evidence):
    r"""Scores of a linear model of words or vectors.

    .. math::
        s_i = b_i + \sum_{w} x_w W_{wi}

    Args:
        num_inputs (int): The size of the vocabulary, or of a vector.
        num_labels (int): The number of labels :math:`L`.
        key (str, optional): As in :class:`Evidence`. (default: :obj:`"evidence"`)

    Shapes:
        - **input:** a batch with words :obj:`x` of shape :math:`(N)` and, if they carry any, their values
          :obj:`weight` of shape :math:`(N)`; or vectors :obj:`x` of shape :math:`(B, F)`
        - **output:** scores :math:`(B, L)`
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, num_inputs: int, num_labels: int, *, key: str = "evidence") -> None:
        super().__init__(key)
        # Buffers: neither optimisers nor weight decay may touch them.
        self.register_buffer("weight", torch.zeros(num_inputs, num_labels))
        self.register_buffer("bias", torch.zeros(num_labels))

    @classmethod
    def of(cls, linear: LinearBaseline) -> Self:
        """That of fitted classifiers.

        Raises:
            ValueError: If they are not fitted.
        """
        if linear.weight is None or linear.bias is None:
            raise ValueError("Expected 'linear' to be fitted (got one that is not); call its 'fit' first")
        evidence = cls(*linear.weight.shape)
        evidence.weight.copy_(torch.tensor(linear.weight))
        evidence.bias.copy_(torch.tensor(linear.bias))
        return evidence

    def scores(self, data: Data) -> Tensor:
        if data.x.is_floating_point():
            return torch.addmm(self.bias, data.x, self.weight)
        scores = nn.functional.embedding_bag(
            data.x.flatten(),
            self.weight,
            ptr_of(data)[:-1],
            mode="sum",
            per_sample_weights=data.get("weight"),
        )
        return scores + self.bias


class KernelEvidence(Evidence):
    r"""Scores of kernel ridge regression (see :class:`~tg_mlc.baselines.KernelRidgeBaseline`).

    .. math::
        s_i = 2 \Big( \bar{y}_i + \sum_n \exp(-\gamma \lVert \mathbf{x} - \mathbf{x}_n \rVert^2) \, A_{ni} \Big) - 1

    It keeps the training samples, as such a model consists of them.

    Args:
        num_inputs (int): The size of the vocabulary, or of a vector.
        num_labels (int): The number of labels :math:`L`.
        num_samples (int): The number of training samples.
        num_entries (int): The number of all their entries that are not zero.
        key (str, optional): As in :class:`Evidence`. (default: :obj:`"evidence"`)

    Shapes:
        - **input:** as for :class:`LinearEvidence`
        - **output:** scores :math:`(B, L)`
    """

    gamma: Tensor
    ptr: Tensor
    index: Tensor
    value: Tensor
    squared: Tensor
    dual: Tensor
    mean: Tensor

    def __init__(
        self, num_inputs: int, num_labels: int, num_samples: int, num_entries: int, *, key: str = "evidence"
    ) -> None:
        super().__init__(key)
        self.num_inputs = num_inputs
        self.register_buffer("gamma", torch.ones(()))
        # Rows of a sparse matrix as plain tensors, as files of weights hold no sparse ones.
        self.register_buffer("ptr", torch.zeros(num_samples + 1, dtype=torch.long))
        self.register_buffer("index", torch.zeros(num_entries, dtype=torch.long))
        self.register_buffer("value", torch.zeros(num_entries))
        self.register_buffer("squared", torch.zeros(num_samples))
        self.register_buffer("dual", torch.zeros(num_samples, num_labels))
        self.register_buffer("mean", torch.zeros(num_labels))

    @classmethod
    def of(cls, ridge: KernelRidgeBaseline) -> Self:
        """That of a fitted regression.

        Raises:
            ValueError: If it is not fitted.
        """
        if ridge.dual is None or ridge.mean is None:
            raise ValueError("Expected 'ridge' to be fitted (got one that is not); call its 'fit' first")
        rows = sp.csr_array(ridge.x)
        evidence = cls(rows.shape[1], ridge.dual.shape[1], rows.shape[0], rows.nnz)
        squared = np.asarray(rows.multiply(rows).sum(axis=1))
        values = (ridge.gamma, rows.indptr, rows.indices, rows.data, squared, ridge.dual, ridge.mean)
        for buffer, value in zip(evidence.buffers(), values, strict=True):
            buffer.copy_(torch.tensor(np.asarray(value)))
        return evidence

    def scores(self, data: Data) -> Tensor:
        x = data.x if data.x.is_floating_point() else self._dense(data)
        products = nn.functional.embedding_bag(
            self.index, x.T.contiguous(), self.ptr[:-1], mode="sum", per_sample_weights=self.value
        )
        distance = self.squared + x.square().sum(dim=1, keepdim=True) - 2 * products.T
        kernel = torch.exp(-self.gamma * distance.clamp(min=0))
        return 2 * torch.addmm(self.mean, kernel, self.dual) - 1

    def _dense(self, data: Data) -> Tensor:
        ptr = ptr_of(data)
        sample = torch.repeat_interleave(torch.arange(ptr.numel() - 1, device=ptr.device), ptr.diff())
        weight = data.get("weight")
        values = self.value.new_ones(data.x.numel()) if weight is None else weight
        dense = self.value.new_zeros(ptr.numel() - 1, self.num_inputs)
        return dense.index_put_((sample, data.x.flatten()), values, accumulate=True)


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

    def __init__(self, channels: int, num_scores: int = 1, num_steps: int = 8, *, bias: bool = False) -> None:
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
        steps = torch.sigmoid(torch.addcmul(self.shift, self._by_classifier(scores).unsqueeze(-1), self.scale))
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
    r"""Turns the scores of every label into a logit, by one function for all labels.

    .. math::
        z_i = b + \sum_c \mathbf{w}_c^{\top} \sigma(\mathbf{a}_c s_{ic} + \mathbf{c}_c)

    It begins as a rising function with equal trust in every classifier, which is 0 where all scores are 0. Better,
    :meth:`start_from_scores` begins with what scores of training samples turned out to mean.

    Args:
        num_scores (int, optional): The number of scores :math:`C` that a label has. (default: :obj:`1`)
        num_steps (int, optional): The number of steps for each. (default: :obj:`8`)

    Shapes:
        - **input:** scores :math:`(B, L, C)`, or :math:`(B, L)` where :math:`C` is 1
        - **output:** logits :math:`(B, L)`
    """

    def __init__(self, num_scores: int = 1, num_steps: int = 8) -> None:
        super().__init__(1, num_scores, num_steps, bias=True)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        super().reset_parameters()
        nn.init.constant_(self.lin.weight, 1 / self.scale.size(0))
        nn.init.constant_(self.lin.bias, -self.scale.size(1) / 2)

    def start_from_scores(self, scores: Tensor, y: Tensor, offset: Tensor | float = 0.0, seed: int = 0) -> None:
        r"""Fits the function to training samples, by maximum likelihood.

        Args:
            scores (torch.Tensor): Scores of training samples by classifiers that were fitted without them,
                :math:`(N, L, C)`, or :math:`(N, L)` where :math:`C` is 1.
            y (torch.Tensor): Their labels :math:`(N, L)`: 0, 1, or NaN for unknown.
            offset (torch.Tensor or float, optional): What else adds to the logits, *e.g.* the bias :math:`(L)` of a
                readout. (default: :obj:`0.0`)
            seed (int, optional): Which pairs of sample and label are taken, as so few parameters do not need more than
                :obj:`MAX_PAIRS`. (default: :obj:`0`)

        Raises:
            ValueError: If scores and labels do not belong together, scores are not finite, or no label is known.
        """
        x, target, offsets = self._pairs(self._by_classifier(scores), y, offset, seed)
        optimizer = torch.optim.LBFGS(self.parameters(), max_iter=MAX_ITERATIONS, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            optimizer.zero_grad()
            value = nn.functional.binary_cross_entropy_with_logits(self(x).squeeze(-1) + offsets, target)
            value.backward()  # type: ignore[no-untyped-call]
            return value

        with torch.enable_grad():
            optimizer.step(loss)  # type: ignore[no-untyped-call]
        optimizer.zero_grad()

    def _pairs(self, scores: Tensor, y: Tensor, offset: Tensor | float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """Samples of one known label each: scores, the label, and what else adds to its logit."""
        if scores.shape[:2] != y.shape:
            raise ValueError(
                f"Expected 'scores' of the same samples and labels as 'y' {list(y.shape)} (got {list(scores.shape)})"
            )
        if not scores.isfinite().all():
            raise ValueError("Expected finite 'scores' (got NaN or infinity); leave out samples without scores")
        known = (~y.isnan()).nonzero()
        if not known.numel():
            raise ValueError("Expected 'y' with known labels (got NaN only); leave the function as it is")
        if known.size(0) > MAX_PAIRS:
            generator = torch.Generator().manual_seed(seed)
            known = known[torch.randperm(known.size(0), generator=generator)[:MAX_PAIRS].to(known.device)]
        sample, label = known.unbind(dim=1)
        offsets = torch.as_tensor(offset).detach().to(self.scale).expand(y.size(1))[label]
        return scores[sample, label].unsqueeze(1).to(self.scale), y[sample, label].to(self.scale), offsets

    def forward(self, scores: Tensor) -> Tensor:
        return super().forward(scores).squeeze(-1)
