"""Canonical-correlated autoencoder of labels, with an LSTM as the encoder of inputs."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.papers.next_set.rivals import EventOptions, LSTMModel


class C2AEOutput(NamedTuple):
    """Both codes of a batch, and the logits that are decoded from that of the labels."""

    from_window: Tensor  #: ``[B, C]``
    from_labels: Tensor  #: ``[B, C]``
    logits: Tensor  #: ``[B, L]``


class C2AE(LSTMModel):
    r"""The "CLASS2C2AE" rival in the `"Label Attention Network for Sequential Multi-Label Classification"
    <https://arxiv.org/abs/2303.00280>`_ paper: the autoencoder from the `"Learning Deep Latent Space for Multi-Label
    Classification" <https://arxiv.org/abs/1707.00418>`_ paper, with an LSTM as the encoder of windows.

    .. math::
        \mathbf{y} = F_d(F_x(\mathbf{x})) \quad \textrm{in prediction}, \qquad
        F_d(F_e(\mathbf{y})) \quad \textrm{in training}

    It is trained with :class:`~tg_mlc.papers.C2AEObjective`. The encoder and the decoder of labels have one hidden
    layer.

    Args:
        num_labels (int): Number of labels :math:`L`.
        num_entities (int): Number of training entities; the embedding of all others is zero.
        channels (int, optional): Size :math:`C` of a code and of hidden layers. (default: :obj:`128`)
        events (dict, optional): Options of :class:`EventModel`, *e.g.* :obj:`{"window_size": 3}`.
            (default: :obj:`None`)

    Shapes:
        - **input:** a batch of :math:`B` windows
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self, num_labels: int, num_entities: int, channels: int = 128, *, events: EventOptions | None = None
    ) -> None:
        super().__init__(num_labels, num_entities, channels, **(events or {}))
        self.window_code = nn.Linear(channels, channels)
        self.label_encoder = _two_layers(num_labels, channels, channels)
        self.decoder = _two_layers(channels, channels, num_labels)

    def forward(self, data: Data) -> Tensor:
        """Returns the logits."""
        logits: Tensor = self.decoder(self._code(data))
        return logits

    def autoencode(self, data: Data) -> C2AEOutput:
        """Returns what the objective compares; an unknown label enters as one half."""
        from_labels = self.label_encoder(data.y.nan_to_num(0.5))
        return C2AEOutput(self._code(data), from_labels, self.decoder(from_labels))

    def _code(self, data: Data) -> Tensor:
        code: Tensor = self.window_code(self.last_state(data))
        return code


def _two_layers(in_channels: int, hidden_channels: int, out_channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(in_channels, hidden_channels), nn.LeakyReLU(), nn.Linear(hidden_channels, out_channels)
    )
