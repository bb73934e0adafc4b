"""Canonical-correlated autoencoder of labels with an LSTM as the encoder of inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from tg_mlc._options import check_number
from tg_mlc.papers.next_set.rivals import EventOptions, LSTMModel
from tg_mlc.training import Objective


class C2AEOutput(NamedTuple):
    """Both codes of a batch, and the logits that are decoded from the labels' code."""

    from_window: Tensor  #: ``[B, C]``
    from_labels: Tensor  #: ``[B, C]``
    logits: Tensor  #: ``[B, L]``


class C2AE(LSTMModel):
    r"""The "CLASS2C2AE" rival in the `"Label Attention Network for Sequential Multi-Label
    Classification" <https://arxiv.org/abs/2303.00280>`_ paper: the autoencoder from the `"Learning
    Deep Latent Space for Multi-Label Classification" <https://arxiv.org/abs/1707.00418>`_ paper,
    with an LSTM as the encoder of windows.

    .. math::
        \mathbf{y} = F_d(F_x(\mathbf{x})) \quad \textrm{in prediction}, \qquad
        F_d(F_e(\mathbf{y})) \quad \textrm{in training}

    It is trained with :class:`~tg_mlc.papers.C2AEObjective`. The encoder and the decoder of labels
    have one hidden layer.

    Args:
        num_labels, num_entities, events: As in :class:`TransformerBase`.
        channels (int, optional): Size :math:`C` of a code and of hidden layers.
            (default: :obj:`128`)
    """

    def __init__(
        self,
        num_labels: int,
        num_entities: int,
        channels: int = 128,
        *,
        events: EventOptions | None = None,
    ) -> None:
        super().__init__(num_labels, num_entities, channels, **(events or {}))
        self.window_code = nn.Linear(channels, channels)
        self.label_encoder = _two_layers(num_labels, channels, channels)
        self.decoder = _two_layers(channels, channels, num_labels)

    def forward(self, data: Data) -> Tensor:
        logits: Tensor = self.decoder(self.window_code(self.last_state(data)))
        return logits

    def autoencode(self, data: Data) -> C2AEOutput:
        """Returns the tensors of the objective. An unknown label enters as one half."""
        from_window = self.window_code(self.last_state(data))
        from_labels = self.label_encoder(data.y.nan_to_num(0.5))
        return C2AEOutput(from_window, from_labels, self.decoder(from_labels))


def _two_layers(in_channels: int, hidden_channels: int, out_channels: int) -> nn.Sequential:
    first, last = nn.Linear(in_channels, hidden_channels), nn.Linear(hidden_channels, out_channels)
    return nn.Sequential(first, nn.LeakyReLU(), last)


@dataclass(frozen=True)
class C2AEObjective(Objective):
    r"""The objective of :class:`~tg_mlc.papers.next_set.C2AE`, from the `"Learning Deep Latent
    Space for Multi-Label Classification" <https://arxiv.org/abs/1707.00418>`_ paper.

    .. math::
        \mathcal{L} = \frac{1}{B} \Vert \mathbf{X} - \mathbf{E} \Vert^2 + \lambda \big( \Vert
        \mathbf{X}^{\top} \mathbf{X} / B - \mathbf{I} \Vert^2 + \Vert \mathbf{E}^{\top} \mathbf{E} /
        B - \mathbf{I} \Vert^2 \big) + \frac{\alpha}{B} \sum_b \frac{1}{|\mathcal{P}_b|
        |\mathcal{N}_b|} \sum_{p \in \mathcal{P}_b, n \in \mathcal{N}_b} e^{y_{bn} - y_{bp}}

    with the codes :math:`\mathbf{X}` of windows and :math:`\mathbf{E}` of label sets, and pairs of
    a present and an absent label. Unknown labels are in no pair, nor are samples without both
    kinds. All terms are divided by the number of samples or of entries of a matrix, so that the
    weights do not depend on sizes.

    Args:
        alpha (float, optional): The weight :math:`\alpha`, which the paper validates.
            (default: :obj:`1.0`)
        penalty (float, optional): The weight :math:`\lambda` of the paper. (default: :obj:`0.5`)
    """

    alpha: float = 1.0
    penalty: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha)
        check_number("penalty", self.penalty)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        x, e, logits = cast(C2AE, model).autoencode(batch)
        penalty = self.penalty * (_not_white(x) + _not_white(e))
        correlated: Tensor = (x - e).square().mean() + penalty
        return correlated + self.alpha * pairwise_loss(logits, batch.y)

    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        scores: Tensor = model(batch).float().sigmoid()
        return scores

    def check_model(self, model: nn.Module) -> None:
        if not isinstance(model, C2AE):
            raise ValueError(f"Expected 'model' to be a C2AE (got {type(model).__name__})")


def _not_white(code: Tensor) -> Tensor:
    """The distance of a code's second moments from those of independent unit variables."""
    moments = code.T @ code / code.size(0)
    return (moments - torch.eye(code.size(1), device=code.device)).square().mean()


def pairwise_loss(logits: Tensor, y: Tensor) -> Tensor:
    r"""The mean of :math:`e^{y_n - y_p}` over the pairs of a sample, then over samples with pairs.

    It is the product of the means over absent and over present labels.
    """
    present, absent = y == 1, y == 0
    both = present.any(dim=1) & absent.any(dim=1)
    if not both.any():
        return logits.sum() * 0.0
    logits, present, absent = logits[both], present[both], absent[both]
    return (_log_mean_exp(-logits, present) + _log_mean_exp(logits, absent)).exp().mean()


def _log_mean_exp(x: Tensor, among: Tensor) -> Tensor:
    return x.masked_fill(~among, -torch.inf).logsumexp(dim=1) - among.sum(dim=1).log()
