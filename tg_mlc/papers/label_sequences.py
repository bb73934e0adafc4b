"""Label sets as sequences of symbols: a model that predicts one label at a time, and its training.

Symbols are the labels :math:`0, ..., L - 1` and a stop, which also begins every sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from tg_mlc._options import check_choice, check_count, check_flag, check_number
from tg_mlc.data import MultiLabelDataset
from tg_mlc.inputs.kinds import pop_input_encoder
from tg_mlc.losses import sequence_loss
from tg_mlc.models import builder
from tg_mlc.nn.encoders import MessageEncoder
from tg_mlc.nn.encoders.components import Components, RecurrentEncoder
from tg_mlc.nn.given import given_in
from tg_mlc.papers.decoders import (
    AttentionDecoder,
    Hypotheses,
    RecurrentDecoder,
    StepDecoder,
    beam_search,
)
from tg_mlc.training import Objective

#: An order of labels, as :func:`label_ranks` takes it.
LabelOrder = Literal["frequency", "reverse", "given", "random"]


class LabelSequenceModel(nn.Module):
    r"""A model of label sets as sequences that end with a stop symbol, trained by
    :class:`~tg_mlc.papers.LabelSequenceObjective`.

    .. math::
        p(\mathcal{Y} \mid \mathbf{x}) = \prod_{i=1}^{|\mathcal{Y}| + 1}
        p(y_i \mid y_1, \ldots, y_{i-1}, \mathbf{x})

    No label repeats, so the probabilities of all sequences without repetitions sum to one.

    Args:
        encoder (torch.nn.Module): Turns a batch into components.
        decoder (torch.nn.Module): Computes the logits of the next symbols, *e.g.*
            :class:`~tg_mlc.papers.decoders.RecurrentDecoder`.
        ranks (torch.Tensor): The rank of every label in training sequences
            (see :func:`label_ranks`).
        max_length (int, optional): The maximum number of labels of a sample in a search, no limit
            if :obj:`None`. (default: :obj:`None`)

    Shapes:
        - **input:** a batch of :math:`B` samples with labels :obj:`y`, :math:`(B, L)`: 0, 1, or NaN
          if unknown
        - **output:** log-probabilities :math:`(B, n, L + 1)` of symbols, and the sequences
          :math:`(B, n)`
    """

    ranks: Tensor
    max_length: Tensor

    def __init__(
        self, encoder: nn.Module, decoder: nn.Module, ranks: Tensor, max_length: int | None = None
    ) -> None:
        super().__init__()
        num_labels = cast(int, decoder.num_labels)
        if list(ranks.shape) != [num_labels]:
            raise ValueError(f"Expected 'ranks' of shape [{num_labels}] (got {list(ranks.shape)})")
        max_length = ranks.numel() if max_length is None else max_length
        check_count("max_length", max_length)
        self.encoder = encoder
        self.decoder = decoder
        self.register_buffer("ranks", ranks)
        self.register_buffer("max_length", torch.tensor(max_length))

    @classmethod
    def of_training_samples(
        cls, train: MultiLabelDataset, encoder: nn.Module, decoder: nn.Module, order: LabelOrder
    ) -> LabelSequenceModel:
        """Makes a model whose ranks and maximum number of labels come from training samples."""
        max_length = max(int(train.y.nansum(dim=1).max()), 1)
        return cls(encoder, decoder, label_ranks(train.y, order), max_length)

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        """Runs the forward pass with teacher forcing. Unknown labels have probability zero."""
        symbols = label_sequences(data.y, self.ranks)
        logits = self.decoder(*self._encode(data), shifted(symbols, self.ranks.numel()))
        return next_log_probs(logits, symbols, data.y.isnan()), symbols

    def search(self, data: Data, *, beam_size: int = 5, length_penalty: float = 0.0) -> Hypotheses:
        """Searches for the likeliest sequences of labels that are not given.

        Two sequences may hold the same set in different orders. See
        :func:`~tg_mlc.papers.decoders.beam_search`.
        """
        decoder, given = cast("StepDecoder[object]", self.decoder), given_in(self, data)
        options: Any = {"beam_size": beam_size, "length_penalty": length_penalty}
        options["excluded"] = None if given is None else ~given.isnan()
        return beam_search(decoder, *self._encode(data), max_length=int(self.max_length), **options)

    def _encode(self, data: Data) -> tuple[Tensor, Tensor]:
        components: Components = self.encoder(data)
        return components.x, components.ptr


@dataclass(frozen=True)
class LabelSequenceObjective(Objective):
    r"""Trains sequences of labels by :func:`~tg_mlc.losses.sequence_loss` with teacher forcing.

    Scores come from a beam search (see :meth:`tg_mlc.papers.decoders.Hypotheses.scores`), and are
    above 0.5 for the labels of the best sequence. Unknown labels are not targets, and
    have probability zero. The validation loss has no smoothing.

    Args:
        label_smoothing (float, optional): Smoothing of the training targets; the released code of
            LaMP's recurrent rival takes 0.1. (default: :obj:`0.0`)
        beam_size (int, optional): Number of hypotheses; the papers take 5. (default: :obj:`5`)
        length_penalty (float, optional): Preference for long sequences
            (see :func:`~tg_mlc.papers.decoders.beam_search`). (default: :obj:`0.0`)
        max_given (float, optional): The largest fraction of labels that are given in training
            (see :class:`~tg_mlc.training.Objective`). (default: :obj:`0.0`)
    """

    label_smoothing: float = 0.0
    beam_size: int = 5
    length_penalty: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("label_smoothing", self.label_smoothing, below=1.0)
        check_count("beam_size", self.beam_size)
        check_number("length_penalty", self.length_penalty)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns the cross-entropy of the label sequences of a batch."""
        return sequence_loss(*model(batch), label_smoothing=self.label_smoothing)

    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns scores of labels from a beam search."""
        search: Callable[..., Hypotheses] = cast(Any, model).search
        return search(batch, beam_size=self.beam_size, length_penalty=self.length_penalty).scores()

    def validate(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns the scores, and the loss without smoothing."""
        return self.scores(model, batch), sequence_loss(*model(batch))

    def num_terms(self, batch: Batch) -> Tensor:
        """Returns the number of symbols: present labels, and a stop per sample."""
        num_labels: Tensor = (batch.y == 1).sum()
        return num_labels + len(batch.y)

    def is_mean(self) -> bool:
        """Returns :obj:`True`, as the loss is a mean over symbols."""
        return True

    def check_model(self, model: nn.Module) -> None:
        if not callable(getattr(model, "search", None)):
            expected = "a model with 'search', as LabelSequenceModel has"
            raise ValueError(f"Expected {expected} (got {type(model).__name__})")


@builder
def mped_autoregressive(
    train: MultiLabelDataset,
    label_graph: Data | None = None,
    node_messages: bool = True,
    *,
    channels: int = 64,
    encoder_steps: int = 3,
    decoder_steps: int = 3,
    heads: int = 4,
    mlp_channels: int | None = None,
    dropout: float = 0.2,
    label_order: LabelOrder = "frequency",
    **kwargs: Any,
) -> LabelSequenceModel:
    r"""Builds the autoregressive form of :func:`~tg_mlc.papers.mped`: each label attends to the
    components and to earlier labels (see :class:`~tg_mlc.papers.decoders.AttentionDecoder`).

    Args:
        train (MultiLabelDataset): The training samples, which determine the order of labels and
            their maximum number in a sample.
        label_graph (LabelGraph, optional): Ignored, as labels attend to earlier labels.
            (default: :obj:`None`)
        node_messages (bool, optional): As in :func:`~tg_mlc.models.table_lamp`.
            (default: :obj:`True`)
        channels, encoder_steps, decoder_steps (optional): As in :func:`~tg_mlc.papers.mped`.
        heads, dropout (optional): Options of all blocks, as in
            :class:`~tg_mlc.papers.decoders.AttentionDecoder`. (default: :obj:`4`, :obj:`0.2`)
        mlp_channels (int, optional): Hidden size of MLPs, :math:`2 d` if :obj:`None`.
            (default: :obj:`None`)
        label_order (str, optional): Order of labels in training
            (see :func:`~tg_mlc.papers.label_sequences.label_ranks`). (default: :obj:`"frequency"`)
        **kwargs (optional): Additional arguments of :func:`~tg_mlc.inputs.input_encoder`.

    Raises:
        TypeError: If an option is unknown.
        ValueError: If :obj:`label_order` is unknown, or no encoder takes samples of this kind.
    """
    check_flag("node_messages", node_messages)
    inputs = pop_input_encoder(train, channels, kwargs)
    block: Any = {"heads": heads, "dropout": dropout}
    block["mlp_channels"] = 2 * channels if mlp_channels is None else mlp_channels
    if node_messages:
        inputs = MessageEncoder(inputs, encoder_steps, **block)
    decoder = AttentionDecoder(channels, train.y.size(1), decoder_steps, **block, **kwargs)
    return LabelSequenceModel.of_training_samples(train, inputs, decoder, label_order)


@builder
def graph2graph_autoregressive(
    train: MultiLabelDataset,
    label_graph: Data | None = None,
    node_messages: bool = True,
    *,
    channels: int = 64,
    **kwargs: Any,
) -> LabelSequenceModel:
    r"""Builds the autoregressive form of :func:`~tg_mlc.papers.graph2graph`:
    :func:`~tg_mlc.papers.mped_autoregressive` with MLPs of hidden size :math:`d`.

    Args:
        train, label_graph, node_messages, channels, kwargs: As in
            :func:`~tg_mlc.papers.mped_autoregressive`.
    """
    options = {"mlp_channels": channels, **kwargs}
    return mped_autoregressive(train, label_graph, node_messages, channels=channels, **options)


@builder
def seq2seq(
    train: MultiLabelDataset,
    label_graph: Data | None = None,
    node_messages: bool = True,
    *,
    channels: int = 64,
    num_layers: int = 3,
    dropout: float = 0.2,
    label_order: LabelOrder = "frequency",
    **kwargs: Any,
) -> LabelSequenceModel:
    r"""Builds the recurrent classifier chain of the `"Maximizing Subset Accuracy with Recurrent
    Neural Networks in Multi-label Classification"
    <https://papers.nips.cc/paper/2017/hash/2eb5657d37f474e4c4cf01e4882b8962-Abstract.html>`_ paper:
    a bidirectional GRU over the components, and a GRU with attention over the labels
    (see :class:`~tg_mlc.papers.decoders.RecurrentDecoder`).

    Args:
        train, label_graph, label_order, kwargs: As in :func:`~tg_mlc.papers.mped_autoregressive`.
        node_messages (bool, optional): If set to :obj:`False`, there is no GRU over the components,
            which replaces messages among them. (default: :obj:`True`)
        channels (int, optional): Size :math:`d` of all states, an even number; Graph2Graph takes
            512. (default: :obj:`64`)
        num_layers (int, optional): Number of layers of encoder and decoder, 1 to 3.
            (default: :obj:`3`)
        dropout (float, optional): Dropout between layers and before the readout.
            (default: :obj:`0.2`)

    Raises:
        TypeError: If an option is unknown.
        ValueError: If :obj:`label_order` is unknown, :obj:`num_layers` is not among 1 to 3, or no
            encoder takes samples of this kind.
    """
    check_flag("node_messages", node_messages)
    if num_layers not in (1, 2, 3):
        raise ValueError(f"Expected 'num_layers' among 1, 2 and 3 (got {num_layers!r})")
    inputs = pop_input_encoder(train, channels, kwargs)
    if node_messages:
        inputs = RecurrentEncoder(inputs, num_layers, dropout=dropout)
    decoder = RecurrentDecoder(channels, train.y.size(1), num_layers, dropout=dropout, **kwargs)
    return LabelSequenceModel.of_training_samples(train, inputs, decoder, label_order)


def label_ranks(y: Tensor, order: LabelOrder) -> Tensor:
    r"""Returns the ranks :math:`(L)` of labels in an order, from training samples :math:`(N, L)`.

    :obj:`"frequency"` ranks frequent labels first, and :obj:`"reverse"` rare labels; :obj:`"given"`
    is the data set's order, and :obj:`"random"` is drawn once by PyTorch's generator.
    """
    check_choice("label_order", order, get_args(LabelOrder))
    if order == "random":
        return torch.randperm(y.size(1))
    if order == "given":
        return torch.arange(y.size(1))
    labels = y.nansum(dim=0).argsort(descending=order == "frequency", stable=True)
    return labels.argsort()


def label_sequences(y: Tensor, ranks: Tensor) -> Tensor:
    r"""Returns symbols :math:`(B, n)`: the present labels of every sample, sorted by rank.

    Each sequence is padded with at least one stop symbol.
    """
    stop = y.size(1)
    is_present = y == 1
    length = int(is_present.sum(dim=1).max()) + 1
    ordered = F.pad(torch.where(is_present, ranks, stop), (0, 1), value=stop).sort(dim=1).values
    return F.pad(ranks.argsort(), (0, 1), value=stop)[ordered[:, :length]]


def shifted(symbols: Tensor, stop: int) -> Tensor:
    """Shifts symbols right by one for the decoder's input. The first becomes a stop."""
    return F.pad(symbols[:, :-1], (1, 0), value=stop)


def next_log_probs(logits: Tensor, symbols: Tensor, unknown: Tensor | None = None) -> Tensor:
    r"""Returns log-probabilities :math:`(B, n, L + 1)` of symbols at each position :math:`(B, n)`.

    Earlier labels, and labels in the mask :obj:`unknown`, have probability zero.
    """
    stop = logits.size(-1) - 1
    previous = shifted(symbols, stop).unsqueeze(-1)
    excluded = torch.zeros_like(logits, dtype=torch.bool).scatter_(2, previous, True)
    excluded = excluded.cumsum(dim=1) > 0
    if unknown is not None:
        excluded[..., :stop] |= unknown.unsqueeze(1)
    excluded[..., stop] = False
    return logits.float().masked_fill(excluded, -torch.inf).log_softmax(dim=-1)
