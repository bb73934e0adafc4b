"""Label message passing networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.resolver import aggregation_resolver

from tg_mlc.nn import FeatureMessagePassing, LabelMessagePassing, LabelReadout, StepAttention
from tg_mlc.nn.attention import Norm
from tg_mlc.nn.encoders import Components
from tg_mlc.nn.evidence import ScoreEncoder, SharedLogits
from tg_mlc.nn.feature import FeatureAttention


class InputEncoder(Protocol):
    """Turns a batch into components of :attr:`channels` channels; see :mod:`tg_mlc.nn.encoders`."""

    channels: int
    edge_dim: int | None

    def __call__(self, data: Data) -> Components: ...


class LaMPOutput(NamedTuple):
    """What :class:`LaMP` returns on request."""

    logits: Tensor  #: ``[B, L]``
    intermediate: list[Tensor]  #: the readouts of the states 1.1, 1.2, ... before the final one, each ``[B, L]``
    attention: list[StepAttention]  #: one entry for each step, if asked for
    feature_attention: Sequence[FeatureAttention] = ()  #: one entry for each feature block, if asked for


class LaMP(nn.Module):
    r"""The label message passing network from the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper.

    .. math::
        \mathbf{z} = \textrm{FMP}(\textrm{inputs}(\mathbf{x})), \qquad
        \mathbf{u} = \textrm{LMP}(\mathbf{W}^y, \mathbf{z}), \qquad
        y_i = \mathbf{W}^o_i \mathbf{u}_i^{\top}

    Args:
        inputs (torch.nn.Module): Turns a batch into components, *e.g.* :class:`~tg_mlc.nn.encoders.MoleculeEncoder`.
            Its :obj:`channels` are the size :math:`d` of all states.
        label_graph (LabelGraph): The label graph.
        encoder (str, optional): :obj:`"fmp"` for feature message passing among the components, :obj:`"emb"` for none.
            (default: :obj:`"fmp"`)
        num_steps (int, optional): Number of label message passing steps :math:`T`. (default: :obj:`2`)
        num_feature_layers (int, optional): Number of feature message passing blocks. (default: :obj:`2`)
        heads (int, optional): Number of attention heads, a divisor of :math:`d` unless :obj:`head_channels` is given.
            (default: :obj:`4`)
        label_heads (int, optional): Number of attention heads among labels, :obj:`heads` if :obj:`None`.
            (default: :obj:`None`)
        dropout (float, optional): Dropout on the outputs of attention and MLP; the paper takes 0.2 on Reuters, Bibtex
            and SIDER and 0.1 elsewhere. (default: :obj:`0.1`)
        attention_dropout (float, optional): Dropout on attention weights, as :obj:`dropout` if :obj:`None`.
            (default: :obj:`None`)
        tied (bool, optional): If set to :obj:`True`, the readout's weight is the label embedding, as the paper writes
            it; :class:`~tg_mlc.nn.LabelReadout` says why it is not by default. (default: :obj:`False`)
        readout_bias (bool, optional): If set to :obj:`True`, the readout has a bias. (default: :obj:`False`)
        detach_intermediate (bool, optional): If set to :obj:`True`, intermediate readouts send no gradient to the
            readout's weight and leave out its bias, as the authors' released code has it. (default: :obj:`False`)
        skip_feature_attention (bool, optional): If set to :obj:`True`, feature message passing leaves out its
            attention, as the authors' released code does. (default: :obj:`False`)
        skip_label_attention (bool, optional): If set to :obj:`True`, the attention among labels is left out and only
            its MLP kept. (default: :obj:`False`)
        pool (str or Aggregation, optional): Aggregates the components of a sample into one, *e.g.* :obj:`"mean"`,
            before labels attend to it. (default: :obj:`None`)
        linear_path (torch.nn.Module, optional): Maps a batch to logits that are added to the final ones, *e.g.*
            :class:`~tg_mlc.nn.encoders.LinearPath`. (default: :obj:`None`)
        evidence (torch.nn.Module, optional): Maps a batch to scores :math:`(B, L)` of another classifier, *e.g.*
            :class:`~tg_mlc.nn.evidence.Evidence`, or to :math:`(B, L, C)` of several, whose number is its
            attribute :obj:`num_scores`. Labels know their own scores once they have attended to
            components, before they attend to each other. (default: :obj:`None`)
        evidence_skip (bool, optional): If set to :obj:`True`, these scores are also added to the final logits, each
            through one function that all labels share: what a score means is then learned for rare labels from
            frequent ones. (default: :obj:`False`)
        mlp_channels (int, optional): Hidden size of the MLPs, :math:`d` if :obj:`None`. (default: :obj:`None`)
        norm (str, optional): :obj:`"post"` or :obj:`"pre"`. (default: :obj:`"post"`)
        scale (float, optional): The factor on the attention scores, :math:`1 / \sqrt{d / K}` if :obj:`None`.
            (default: :obj:`None`)
        head_channels (int, optional): Size :math:`C` of a head's queries and keys, :math:`d / K` if :obj:`None`; with
            it, :obj:`heads` need not divide :math:`d`. (default: :obj:`None`)
        value_channels (int, optional): Size of a head's values, :math:`C` if :obj:`None`. (default: :obj:`None`)
        checkpointing (bool, optional): If set to :obj:`True`, training keeps only the states between blocks and finds
            the rest once more on the way back, for less memory and one more forward pass. (default: :obj:`False`)
        backend (str, optional): The backend of the attention operator. (default: :obj:`"auto"`)

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`

    Raises:
        ValueError: If :obj:`inputs` is no encoder, :obj:`encoder` is unknown, or :obj:`heads` does not divide
            :math:`d`.
    """

    def __init__(
        self,
        inputs: nn.Module,
        label_graph: Data,
        encoder: Literal["fmp", "emb"] = "fmp",
        *,
        num_steps: int = 2,
        num_feature_layers: int = 2,
        heads: int = 4,
        label_heads: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        tied: bool = False,
        readout_bias: bool = False,
        detach_intermediate: bool = False,
        skip_feature_attention: bool = False,
        skip_label_attention: bool = False,
        pool: str | nn.Module | None = None,
        linear_path: nn.Module | None = None,
        evidence: nn.Module | None = None,
        evidence_skip: bool = False,
        mlp_channels: int | None = None,
        norm: Norm = "post",
        scale: float | None = None,
        head_channels: int | None = None,
        value_channels: int | None = None,
        checkpointing: bool = False,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        if encoder not in ("fmp", "emb"):
            raise ValueError(f"Expected 'encoder' to be 'fmp' or 'emb' (got '{encoder}')")
        if not isinstance(inputs, nn.Module) or not hasattr(inputs, "channels") or not hasattr(inputs, "edge_dim"):
            raise ValueError(
                f"Expected 'inputs' to be a module with the attributes 'channels' and 'edge_dim', such as those of "
                f"tg_mlc.nn.encoders (got {type(inputs).__name__})"
            )
        channels, edge_dim = cast(InputEncoder, inputs).channels, cast(InputEncoder, inputs).edge_dim
        block: dict[str, Any] = {
            "heads": heads,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "mlp_channels": mlp_channels,
            "norm": norm,
            "scale": scale,
            "head_channels": head_channels,
            "value_channels": value_channels,
            "checkpointing": checkpointing,
            "backend": backend,
        }
        self.inputs = inputs
        self.features = (
            FeatureMessagePassing(
                channels, num_feature_layers, edge_dim=edge_dim, skip_attention=skip_feature_attention, **block
            )
            if encoder == "fmp"
            else None
        )
        self.pool = None if pool is None else aggregation_resolver(pool)
        self.labels = LabelMessagePassing(
            channels,
            label_graph,
            num_steps,
            label_heads=label_heads,
            skip_label_attention=skip_label_attention,
            **block,
        )
        self.readout = LabelReadout(self.labels, tied=tied, bias=readout_bias)
        self.linear_path = linear_path
        self.evidence = evidence
        num_scores: int = getattr(evidence, "num_scores", 1)
        self.hear = nn.Identity() if evidence is None else ScoreEncoder(channels, num_scores)
        self.skip = SharedLogits(num_scores) if evidence is not None and evidence_skip else None
        self.detach_intermediate = detach_intermediate

    def forward(
        self, data: Data, *, return_intermediate: bool = False, return_attention_weights: bool = False
    ) -> Tensor | LaMPOutput:
        r"""Runs the forward pass of the module.

        Args:
            data (Data): One sample or a batch of samples, as :obj:`inputs` takes them.
            return_intermediate (bool, optional): If set to :obj:`True`, returns :class:`LaMPOutput` with the readout
                of every intermediate state. (default: :obj:`False`)
            return_attention_weights (bool, optional): If set to :obj:`True`, returns :class:`LaMPOutput` with the
                attention of every step and every feature message passing block. (default: :obj:`False`)
        """
        x, ptr, to_label, feature_attention = self._encode(data, return_attention_weights)
        wanted = return_intermediate or return_attention_weights
        scores: Tensor | None = None if self.evidence is None else self.evidence(data)
        states: Any = self.labels(
            x,
            ptr=ptr,
            edge_index=to_label,
            evidence=None if scores is None else self.hear(scores),
            return_intermediate=wanted,
            return_attention_weights=return_attention_weights,
        )
        logits: Tensor = self.readout(states.states if wanted else states)
        if self.linear_path is not None:
            logits = logits + self.linear_path(data)
        if self.skip is not None:
            logits = logits + self.skip(scores)
        if not wanted:
            return logits
        detach = self.detach_intermediate
        intermediate = [self.readout(u, detach_weight=detach, use_bias=not detach) for u in states.intermediate]
        return LaMPOutput(logits, intermediate, states.attention, feature_attention)

    def _encode(
        self, data: Data, return_attention_weights: bool
    ) -> tuple[Tensor, Tensor, Tensor | None, Sequence[FeatureAttention]]:
        x, ptr, edge_index, edge_attr, to_label = cast(Components, self.inputs(data))
        attention: Sequence[FeatureAttention] = ()
        if self.features is not None:
            edges = {"ptr": ptr, "edge_index": edge_index, "edge_attr": edge_attr}
            if return_attention_weights:
                x, attention = self.features(x, **edges, return_attention_weights=True)
            else:
                x = self.features(x, **edges)
        if self.pool is not None:
            x, ptr, to_label = self.pool(x, ptr=ptr), torch.arange(ptr.numel(), device=ptr.device), None
        if to_label is not None:
            to_label = torch.stack([torch.arange(x.size(0), device=x.device), to_label])
        return x, ptr, to_label, attention
