"""LANET's rivals, and its ablations with attention among events, for dated label sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.index import ptr2index
from torch_geometric.nn import global_mean_pool
from typing_extensions import Unpack

from tg_mlc._options import check_count, check_number, check_share
from tg_mlc.nn import BlockOptions, FeatureMessagePassing
from tg_mlc.nn._batch import to_dense
from tg_mlc.sequences import LANET
from tg_mlc.sequences.windows import (
    TimeView,
    WindowOptions,
    WindowViews,
    entity_embedding,
    events_of,
    occurrences,
)
from tg_mlc.training import Objective

__all__ = [
    "C2AE",
    "C2AEObjective",
    "LSTMBaseline",
    "TimeAttention",
    "TransformerBase",
    "TwoAttentions",
]


class EventOptions(TypedDict, total=False):
    """Options of :class:`EventModel`, which its subclasses pass on."""

    window_size: int
    gaps: Sequence[int] | None
    entity: bool


class EventModel(nn.Module):
    r"""Base class of LANET's rivals in the `"Label Attention Network for Sequential Multi-Label
    Classification" <https://arxiv.org/abs/2303.00280>`_ paper. Their inputs are the labels' amounts
    in each event, the event's time, and its entity.

    .. math::
        \mathbf{x}_t = \mathbf{W} \mathbf{a}_t + \mathbf{D}_{\Delta_t} + \mathbf{P}_t + \mathbf{E}

    The terms are the weighted amounts, and embeddings of the days since the previous event, of the
    position and of the entity. The paper specifies neither their sum nor the scale of amounts. Here
    amounts are scaled as in :class:`~tg_mlc.sequences.NextSetDataset`, and 1 if missing.

    Args:
        num_labels (int): Number of labels :math:`L`.
        num_entities (int): Number of training entities. Other entities have a zero embedding.
        channels (int, optional): Size :math:`C` of the input of an event. (default: :obj:`128`)
        window_size (int, optional): Number of events of a window. (default: :obj:`3`)
        gaps (list of int, optional): The days between events in training, as in
            :class:`~tg_mlc.sequences.windows.WindowViews`. (default: :obj:`None`, all up to 365)
        entity (bool, optional): If set to :obj:`False`, the entity is not an input.
            (default: :obj:`True`)
    """

    def __init__(
        self,
        num_labels: int,
        num_entities: int,
        channels: int = 128,
        *,
        window_size: int = 3,
        gaps: Sequence[int] | None = None,
        entity: bool = True,
    ) -> None:
        super().__init__()
        sizes = {"num_labels": num_labels, "num_entities": num_entities, "channels": channels}
        for name, value in {**sizes, "window_size": window_size}.items():
            check_count(name, value)
        self.window_size = window_size
        # The matrix W of the equation, as rows by label, so that W a is a weighted sum of rows.
        self.label = nn.Embedding(num_labels, channels)
        self.time = TimeView(channels, window_size, gaps)
        self.entity = entity_embedding(num_entities, channels) if entity else None

    def encode(self, data: Data) -> tuple[Tensor, Tensor]:
        """Returns inputs ``[S, C]`` of all events, and pointers to the events of each sample."""
        window = occurrences(data, self.window_size)
        event, ptr = events_of(window, data.num_graphs, self.window_size)
        amount = window.amount.where(window.bin > 0, 1.0)
        weighted = self.label(window.label) * amount.unsqueeze(-1)
        x = weighted.new_zeros(int(ptr[-1]), weighted.size(1)).index_add(0, event, weighted)
        occurrence = torch.empty(x.size(0), dtype=torch.long, device=event.device)
        # Any occurrence of an event gives its time, because all its labels have the same time.
        occurrence[event] = torch.arange(event.numel(), device=event.device)
        x = x + self.time(window.days[occurrence], window.step[occurrence])
        if self.entity is not None:
            x = x + self.entity(data.entity[window.sample[occurrence]])
        return x, ptr


class EventTransformer(nn.Module):
    r"""Attention among the event states :math:`(S, d)` of a window, then dropout and a linear map
    of the mean state to logits :math:`(B, L)`. A window without events has a mean of zero.
    """

    def __init__(
        self, channels: int, num_labels: int, num_layers: int, **block: Unpack[BlockOptions]
    ) -> None:
        super().__init__()
        block = {"dropout": 0.2, "bias": True, **block}
        self.layers = FeatureMessagePassing(channels, num_layers, **block)
        self.readout = nn.Sequential(nn.Dropout(0.3), nn.Linear(channels, num_labels))

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        u = self.layers(x, ptr=ptr)
        pooled = global_mean_pool(u, ptr2index(ptr, output_size=x.size(0)), size=ptr.numel() - 1)
        return cast(Tensor, self.readout(pooled))


class TransformerBase(EventModel):
    r"""The "TransformerBase" rival in the `"Label Attention Network for Sequential Multi-Label
    Classification" <https://arxiv.org/abs/2303.00280>`_ paper: attention among events, then a
    linear map of the mean state to logits.

    Args:
        num_labels, num_entities, channels: As in :class:`EventModel`.
        num_layers (int, optional): Number of blocks. (default: :obj:`2`)
        events (dict, optional): Options of :class:`EventModel`, as :obj:`{"window_size": 3}`.
            (default: :obj:`None`)
        **block (optional): Options of the blocks, as in :class:`LANET`.

    Shapes:
        - **input:** a batch of :math:`B` windows
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        num_labels: int,
        num_entities: int,
        channels: int = 128,
        *,
        num_layers: int = 2,
        events: EventOptions | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__(num_labels, num_entities, channels, **(events or {}))
        self.transformer = EventTransformer(channels, num_labels, num_layers, **block)

    def forward(self, data: Data) -> Tensor:
        return cast(Tensor, self.transformer(*self.encode(data)))


class LSTMModel(EventModel):
    """Base class of models that read a window by an LSTM, with :class:`EventModel`'s arguments."""

    def __init__(
        self,
        num_labels: int,
        num_entities: int,
        channels: int = 128,
        **events: Unpack[EventOptions],
    ) -> None:
        super().__init__(num_labels, num_entities, channels, **events)
        self.lstm = nn.LSTM(channels, channels)

    def last_state(self, data: Data) -> Tensor:
        """Returns the states ``[B, C]`` after the last events, zero for windows without events."""
        x, ptr = self.encode(data)
        lengths, (padded, _) = ptr.diff(), to_dense(x, ptr)
        states, _ = self.lstm(padded.transpose(0, 1))
        last = states[(lengths - 1).clamp(min=0), torch.arange(lengths.numel(), device=x.device)]
        return cast(Tensor, last * (lengths > 0).unsqueeze(-1))


class LSTMBaseline(LSTMModel):
    r"""The "RNN (LSTM)" rival in the `"Label Attention Network for Sequential Multi-Label
    Classification" <https://arxiv.org/abs/2303.00280>`_ paper: an LSTM over events, and a
    linear map of its last state to logits.

    Args:
        num_labels, num_entities, channels, events: As in :class:`TransformerBase`.
        dropout (float, optional): Dropout on the last state. (default: :obj:`0.3`)
    """

    def __init__(
        self,
        num_labels: int,
        num_entities: int,
        channels: int = 128,
        *,
        dropout: float = 0.3,
        events: EventOptions | None = None,
    ) -> None:
        super().__init__(num_labels, num_entities, channels, **(events or {}))
        check_share("dropout", dropout)
        self.readout = nn.Sequential(nn.Dropout(dropout), nn.Linear(channels, num_labels))

    def forward(self, data: Data) -> Tensor:
        return cast(Tensor, self.readout(self.last_state(data)))


class TimeAttention(nn.Module):
    r"""The "time-attention" ablation of the `"Label Attention Network for Sequential Multi-Label
    Classification" <https://arxiv.org/abs/2303.00280>`_ paper: the inputs of :class:`LANET` with
    attention among events instead of labels.

    The paper does not specify the state of an event; here it is the sum of the views of all its
    occurrences and of the embedding of the entity.

    Args:
        num_labels (int): Number of labels :math:`L`.
        num_entities, channels, num_layers, window, block: As in :class:`LANET`.
    """

    def __init__(
        self,
        num_labels: int,
        num_entities: int,
        channels: int = 128,
        *,
        num_layers: int = 2,
        window: WindowOptions | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        self.views = WindowViews(num_labels, channels, **(window or {}))
        self.entity = entity_embedding(num_entities, self.views.width)
        self.events = EventTransformer(self.views.width, num_labels, num_layers, **block)

    def forward(self, data: Data) -> Tensor:
        x, ptr = self.views.by_event(data)
        entity = data.entity[ptr2index(ptr, output_size=x.size(0))]
        return cast(Tensor, self.events(x + self.entity(entity), ptr))


class TwoAttentions(nn.Module):
    r"""The "concat-attention" and "gated-attention" ablations of the `"Label Attention Network for
    Sequential Multi-Label Classification" <https://arxiv.org/abs/2303.00280>`_ paper: attention
    among labels and among events.

    .. math::
        \textrm{concat:} \quad \mathbf{y} = \mathbf{W} [\mathbf{y}^{\textrm{label}} \Vert
        \mathbf{y}^{\textrm{time}}] + \mathbf{b}, \qquad \textrm{gated:} \quad \mathbf{y} = g \,
        \mathbf{y}^{\textrm{label}} + (1 - g) \, \mathbf{y}^{\textrm{time}}

    The paper predicts "confidence scores from concatenation of label-attention and time-attention",
    and learns "weights when summing attention views". Here the logits of both are concatenated or
    summed, and the single weight :math:`g` is the sigmoid of a learned number.

    Args:
        label (LANET): Attention among labels.
        time (TimeAttention): Attention among events.
        gated (bool, optional): If set to :obj:`True`, weighted logits are summed.
            (default: :obj:`False`)
    """

    def __init__(self, label: LANET, time: TimeAttention, gated: bool = False) -> None:
        super().__init__()
        self.label = label
        self.time = time
        num_labels = label.views.num_labels
        self.gate = nn.Parameter(torch.zeros(())) if gated else None
        self.readout = nn.Identity() if gated else nn.Linear(2 * num_labels, num_labels)

    def forward(self, data: Data) -> Tensor:
        label, time = self.label(data), self.time(data)
        if self.gate is not None:
            return torch.lerp(time, label, self.gate.sigmoid())
        return cast(Tensor, self.readout(torch.cat([label, time], dim=-1)))


class C2AEOutput(NamedTuple):
    """Codes and logits of a batch for :class:`~tg_mlc.papers.C2AEObjective`."""

    from_window: Tensor  #: ``[B, C]``, codes of windows
    from_labels: Tensor  #: ``[B, C]``, codes of label sets
    logits: Tensor  #: ``[B, L]``, decoded from the codes of label sets


class C2AE(LSTMModel):
    r"""The "CLASS2C2AE" rival in the `"Label Attention Network for Sequential Multi-Label
    Classification" <https://arxiv.org/abs/2303.00280>`_ paper: the autoencoder from the `"Learning
    Deep Latent Space for Multi-Label Classification" <https://arxiv.org/abs/1707.00418>`_ paper,
    with an LSTM in the encoder :math:`F_x` of windows.

    .. math::
        \mathbf{y} = F_d(F_x(\mathbf{x})) \quad \textrm{in prediction}, \qquad
        F_d(F_e(\mathbf{y})) \quad \textrm{in training}

    The label encoder :math:`F_e` and the decoder :math:`F_d` have one hidden layer.
    :class:`~tg_mlc.papers.C2AEObjective` trains the model.

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
        return cast(Tensor, self.decoder(self.window_code(self.last_state(data))))

    def autoencode(self, data: Data) -> C2AEOutput:
        """Returns codes and logits for the objective. The encoder reads unknown labels as 0.5."""
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
        \mathcal{L} = \frac{1}{BC} \Vert \mathbf{X} - \mathbf{E} \Vert^2 + \frac{\lambda}{C^2} \big(
        \Vert \mathbf{X}^{\top} \mathbf{X} / B - \mathbf{I} \Vert^2 + \Vert \mathbf{E}^{\top}
        \mathbf{E} / B - \mathbf{I} \Vert^2 \big) + \frac{\alpha}{B} \sum_b \frac{1}{|\mathcal{P}_b|
        |\mathcal{N}_b|} \sum_{p \in \mathcal{P}_b, n \in \mathcal{N}_b} e^{y_{bn} - y_{bp}}

    with the codes :math:`\mathbf{X}` of windows and :math:`\mathbf{E}` of label sets, of :math:`C`
    channels, and the present and absent labels :math:`\mathcal{P}_b` and :math:`\mathcal{N}_b`.
    Samples without a present or without an absent label are skipped. Unlike in the paper, all terms
    are means, so the weights do not depend on sizes.

    Args:
        alpha (float, optional): The weight :math:`\alpha`; the paper tunes it by validation.
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
        penalty = self.penalty * (_whiteness_error(x) + _whiteness_error(e))
        code_loss: Tensor = (x - e).square().mean() + penalty
        return code_loss + self.alpha * pairwise_loss(logits, batch.y)

    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        return cast(Tensor, model(batch).float().sigmoid())

    def check_model(self, model: nn.Module) -> None:
        if not isinstance(model, C2AE):
            raise ValueError(f"Expected 'model' to be a C2AE (got {type(model).__name__})")


def _whiteness_error(code: Tensor) -> Tensor:
    """Returns the mean squared difference of a code's second moments from the identity."""
    moments = code.T @ code / code.size(0)
    return (moments - torch.eye(code.size(1), device=code.device)).square().mean()


def pairwise_loss(logits: Tensor, y: Tensor) -> Tensor:
    r"""Averages :math:`e^{y_n - y_p}` over the pairs of an absent label :math:`n` and a present
    label :math:`p` of a sample, then over samples with pairs. The mean over pairs is the product of
    the means over absent and over present labels.
    """
    present, absent = y == 1, y == 0
    has_pairs = present.any(dim=1) & absent.any(dim=1)
    if not has_pairs.any():
        return logits.sum() * 0.0
    logits, present, absent = logits[has_pairs], present[has_pairs], absent[has_pairs]
    return (_log_mean_exp(-logits, present) + _log_mean_exp(logits, absent)).exp().mean()


def _log_mean_exp(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_fill(~mask, -torch.inf).logsumexp(dim=1) - mask.sum(dim=1).log()
