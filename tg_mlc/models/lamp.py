"""Label message passing network: encoder, feature and label message passing, readout."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Unpack

from tg_mlc.nn import (
    BlockOptions,
    FeatureMessagePassing,
    GivenLabels,
    LabelHead,
    LabelMessagePassing,
)
from tg_mlc.nn.attention import check_options
from tg_mlc.nn.base_scores import ScoreEncoder, SharedLogits
from tg_mlc.nn.encoders.components import Components
from tg_mlc.nn.feature import FeatureAttention
from tg_mlc.nn.given import given_in
from tg_mlc.nn.label import StepAttention
from tg_mlc.nn.shortlist import Shortlist


class Encoder(Protocol):
    """Encoder of a batch into components (see :mod:`tg_mlc.nn.encoders`)."""

    channels: int
    edge_dim: int | None

    def __call__(self, data: Data) -> Components:
        """Encodes a batch."""


class LaMPOutput(NamedTuple):
    """Output of :class:`LaMP` with intermediate readouts or attention weights."""

    logits: Tensor  #: ``[B, L]``
    intermediate: list[Tensor]  #: readouts of the states 1.1, 1.2, ..., each ``[B, L]``
    attention: list[StepAttention]  #: attention of each step, if requested
    #: attention of each feature block, if requested
    feature_attention: Sequence[FeatureAttention] = ()


class LaMP(nn.Module):
    r"""The label message passing network from the `"Neural Message Passing for Multi-Label
    Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    .. math::
        \mathbf{z} = \textrm{FMP}(\textrm{encoder}(\mathbf{x})), \qquad
        \mathbf{u} = \textrm{LMP}(\mathbf{W}^y, \mathbf{z}), \qquad
        y_i = \mathbf{W}^o_i \mathbf{u}_i^{\top} + b_i

    Set :attr:`linear_path` to a module that maps a batch to additional logits, *e.g.*
    :class:`~tg_mlc.nn.encoders.LinearPath`. Set :attr:`readout` to another
    :class:`~tg_mlc.nn.LabelHead`, *e.g.* a head without bias.

    Args:
        encoder (torch.nn.Module): Maps a batch to components of :obj:`channels` channels, *e.g.*
            :class:`~tg_mlc.nn.encoders.MoleculeEncoder`.
        label_graph (LabelGraph): The label graph.
        num_steps (int, optional): Number of label message passing steps :math:`T`.
            (default: :obj:`2`)
        num_feature_layers (int, optional): Number of feature message passing blocks.
            (default: :obj:`2`)
        tied (bool, optional): If set to :obj:`True`, the readout's weight is the label embedding,
            as in the paper (see :class:`~tg_mlc.nn.LabelHead`). (default: :obj:`False`)
        base_scores (torch.nn.Module, optional): Maps a batch to scores :math:`(B, L)` or
            :math:`(B, L, C)` of other classifiers, *e.g.*
            :class:`~tg_mlc.nn.base_scores.BaseScores`. Encoded scores are added to label states
            before labels attend to each other; :obj:`score_skip` also adds scores to logits.
            (default: :obj:`None`)
        given_labels (bool, optional): If set to :obj:`True`, the model reads known labels from the
            attribute :obj:`given` of a batch (see :class:`~tg_mlc.nn.GivenLabels`). They change
            other labels along the label graph. Train the model with :obj:`max_given` of an
            :class:`~tg_mlc.training.Objective`. (default: :obj:`False`)
        label_messages, label_kwargs (optional): As in :class:`~tg_mlc.nn.LabelMessagePassing`.
        feature_kwargs (dict, optional): Options of the feature message passing blocks that differ
            from :obj:`block`. (default: :obj:`None`)
        **block (optional): Options of all blocks (see :class:`~tg_mlc.nn.AttentionConv`), with
            :obj:`dropout` 0.1; the paper uses 0.2 on Reuters, Bibtex and SIDER.

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`

    Raises:
        ValueError: If :obj:`encoder` is not an encoder, or :obj:`num_feature_layers` is negative.
    """

    linear_path: nn.Module | None

    def __init__(
        self,
        encoder: nn.Module,
        label_graph: Data,
        *,
        num_steps: int = 2,
        num_feature_layers: int = 2,
        tied: bool = False,
        base_scores: nn.Module | None = None,
        given_labels: bool = False,
        label_messages: bool = True,
        label_kwargs: BlockOptions | None = None,
        feature_kwargs: BlockOptions | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        has_sizes = hasattr(encoder, "channels") and hasattr(encoder, "edge_dim")
        if not isinstance(encoder, nn.Module) or not has_sizes:
            expected = "Expected 'encoder' to be a module with attributes 'channels' and 'edge_dim'"
            hint = "take one of tg_mlc.nn.encoders"
            raise ValueError(f"{expected} (got {type(encoder).__name__}); {hint}")
        channels, edge_dim = cast(Encoder, encoder).channels, cast(Encoder, encoder).edge_dim
        block = {"dropout": 0.1, **block}
        feature_block: BlockOptions = {**block, **(feature_kwargs or {})}
        check_options(feature_block)
        self.encoder = encoder
        self.features: FeatureMessagePassing | None = None
        if num_feature_layers != 0:
            options: Any = {"edge_dim": edge_dim, **feature_block}
            self.features = FeatureMessagePassing(channels, num_feature_layers, **options)
        messages: Any = {"label_messages": label_messages, "label_kwargs": label_kwargs, **block}
        self.labels = LabelMessagePassing(channels, label_graph, num_steps, **messages)
        self.readout = LabelHead(self.labels, tied=tied, bias=True)
        self.register_module("linear_path", None)
        self.base_scores = base_scores
        num_scores: int = getattr(base_scores, "num_scores", 1)
        has_scores, has_skip = base_scores is not None, getattr(base_scores, "score_skip", False)
        self.score_encoder = ScoreEncoder(channels, num_scores) if has_scores else nn.Identity()
        self.score_skip = SharedLogits(num_scores) if has_skip else None
        self.given_labels = GivenLabels(channels) if given_labels else None
        if given_labels and not self.labels.has_neighbours:
            reason = "because no label attends to another (expected a label graph with edges)"
            hint = "give one, or use LaMP(GivenComponents(encoder, num_labels), ...)"
            message = f"A known label changes no other prediction, {reason}; {hint}"
            warnings.warn(message, stacklevel=2)

    def forward(
        self,
        data: Data,
        *,
        shortlist: Shortlist | None = None,
        return_intermediate: bool = False,
        return_attention_weights: bool = False,
    ) -> Tensor | LaMPOutput:
        r"""Runs the forward pass of the module.

        Args:
            data (Data): One sample or a batch of samples, as :obj:`encoder` takes them.
            shortlist (Shortlist, optional): The labels of each sample to compute logits :math:`(M)`
                for; allowed without :attr:`linear_path`. (default: :obj:`None`, all labels)
            return_intermediate (bool, optional): Whether to return a :class:`LaMPOutput`, with the
                readout of every intermediate state. (default: :obj:`False`)
            return_attention_weights (bool, optional): Whether to return a :class:`LaMPOutput`, with
                the attention of every step and feature block. (default: :obj:`False`)
        """
        x, ptr, to_label, feature_attention = self._encode(data, return_attention_weights)
        returns_steps = return_intermediate or return_attention_weights
        scores: Tensor | None = None if self.base_scores is None else self.base_scores(data)
        given, label = given_in(self, data), None
        if shortlist is not None:
            if self.linear_path is not None or returns_steps:
                expected = "a linear path, and without intermediate states or attention"
                raise ValueError(f"Expected 'shortlist' without {expected} (got one of these)")
            # The shortlists of all samples are concatenated as labels of a single sample.
            label = shortlist.label
            scores = None if scores is None else shortlist.pick(scores).unsqueeze(0)
            given = None if given is None else shortlist.pick(given).unsqueeze(0)
        messages: Tensor | None = None if scores is None else self.score_encoder(scores)
        if given is not None and self.given_labels is not None:
            given_messages: Tensor = self.given_labels(given)
            messages = given_messages if messages is None else messages + given_messages
        if shortlist is not None:
            messages = None if messages is None else messages.squeeze(0)
        inputs: Any = {"ptr": ptr, "edge_index": to_label, "base_scores": messages}
        options = {"return_attention_weights": return_attention_weights, "shortlist": shortlist}
        states: Any = self.labels(x, **inputs, return_intermediate=returns_steps, **options)
        logits: Tensor = self.readout(states.states if returns_steps else states, label)
        if self.linear_path is not None:
            logits = logits + self.linear_path(data)
        if self.score_skip is not None:
            skipped: Tensor = self.score_skip(scores)
            logits = logits + (skipped if shortlist is None else skipped.squeeze(0))
        if not returns_steps:
            return logits
        intermediate = self._read(states.intermediate)
        return LaMPOutput(logits, intermediate, states.attention, feature_attention)

    def _read(self, intermediate: list[Tensor]) -> list[Tensor]:
        return [self.readout(u) for u in intermediate]

    def _encode(
        self, data: Data, return_attention_weights: bool
    ) -> tuple[Tensor, Tensor, Tensor | None, Sequence[FeatureAttention]]:
        x, ptr, edge_index, edge_attr, to_label = cast(Components, self.encoder(data))
        attention: Sequence[FeatureAttention] = ()
        if self.features is not None:
            edges = {"ptr": ptr, "edge_index": edge_index, "edge_attr": edge_attr}
            states = self.features(x, **edges, return_attention_weights=return_attention_weights)
            x, attention = states if return_attention_weights else (states, ())
        if to_label is not None:
            to_label = torch.stack([torch.arange(x.size(0), device=x.device), to_label])
        return x, ptr, to_label, attention
