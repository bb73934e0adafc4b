"""Label sequence model: an encoder, and a decoder that gives one label after another."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc._options import check_count
from tg_mlc.nn.encoders import Components
from tg_mlc.nn.given import given_in
from tg_mlc.papers.decoders import Hypotheses, StepDecoder, beam_search, label_sequences, next_log_probs, shifted


class LabelSequenceModel(nn.Module):
    r"""A model of label sets as sequences that end with a stop symbol, trained by
    :class:`~tg_mlc.papers.SequenceObjective`.

    .. math::
        p(\mathcal{Y} \mid \mathbf{x}) = \prod_{i=1}^{|\mathcal{Y}| + 1} p(y_i \mid y_1, \ldots, y_{i-1}, \mathbf{x})

    No label comes twice, so that these probabilities of all sequences without repetitions sum to one.

    Args:
        encoder (torch.nn.Module): Turns a batch into components, *e.g.* :class:`~tg_mlc.nn.encoders.RecurrentEncoder`.
        decoder (torch.nn.Module): Gives the logits of the next symbols, *e.g.*
            :class:`~tg_mlc.papers.decoders.RecurrentDecoder`.
        ranks (torch.Tensor): The place of every label in the order of training sequences (see
            :func:`~tg_mlc.papers.decoders.label_ranks`).
        max_length (int, optional): The most labels that a search gives to a sample, all if :obj:`None`.
            (default: :obj:`None`)

    Shapes:
        - **input:** a batch of :math:`B` samples with labels :obj:`y`, :math:`(B, L)`: 0, 1, or NaN for unknown
        - **output:** log-probabilities :math:`(B, n, L + 1)` of the symbols at each place, and the sequences
          :math:`(B, n)`

    Raises:
        ValueError: If :obj:`ranks` is of another length than the decoder has labels, or :obj:`max_length` is less than
            1.
    """

    ranks: Tensor
    max_length: Tensor

    def __init__(self, encoder: nn.Module, decoder: nn.Module, ranks: Tensor, max_length: int | None = None) -> None:
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

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        r"""Runs the forward pass of the module with teacher forcing.

        Unknown labels are in no sequence and compete with no symbol.

        Args:
            data (Data): A batch of samples with labels.
        """
        symbols = label_sequences(data.y, self.ranks)
        logits = self.decoder(*self._encode(data), shifted(symbols, self.ranks.numel()))
        return next_log_probs(logits, symbols, data.y.isnan()), symbols

    def search(self, data: Data, *, beam_size: int = 5, length_penalty: float = 0.0) -> Hypotheses:
        r"""Searches for the likeliest sequences of labels that are not yet known (see
        :func:`~tg_mlc.papers.decoders.beam_search`); two of them may hold the same set in different orders.

        Args:
            data (Data): A batch of samples.
            beam_size (int, optional): Number of hypotheses. (default: :obj:`5`)
            length_penalty (float, optional): Preference for long sequences. (default: :obj:`0.0`)
        """
        decoder = cast("StepDecoder[object]", self.decoder)
        given = given_in(self, data)
        return beam_search(
            decoder,
            *self._encode(data),
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length=int(self.max_length),
            excluded=None if given is None else ~given.isnan(),
        )

    def _encode(self, data: Data) -> tuple[Tensor, Tensor]:
        components: Components = self.encoder(data)
        return components.x, components.ptr
