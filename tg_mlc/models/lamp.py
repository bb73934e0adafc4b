"""Label message passing networks."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol, cast

from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.nn import FeatureMessagePassing, LabelMessagePassing, LabelReadout, LabelStates, StepAttention
from tg_mlc.nn.attention import Norm
from tg_mlc.nn.encoders import Components


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


class LaMP(nn.Module):
    r"""The label message passing network from the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper.

    .. math::
        \mathbf{z} = \textrm{FMP}(\textrm{inputs}(\mathbf{x})), \qquad
        \mathbf{u} = \textrm{LMP}(\mathbf{W}^y, \mathbf{z}), \qquad
        y_i = \mathbf{W}^y_i \mathbf{u}_i^{\top}

    Args:
        inputs (torch.nn.Module): Turns a batch into components, *e.g.* :class:`~tg_mlc.nn.encoders.MoleculeEncoder`.
            Its :obj:`channels` are the size :math:`d` of all states.
        label_graph (LabelGraph): The label graph.
        encoder (str, optional): :obj:`"fmp"` for feature message passing among the components, :obj:`"emb"` for none.
            (default: :obj:`"fmp"`)
        num_steps (int, optional): Number of label message passing steps :math:`T`. (default: :obj:`2`)
        num_feature_layers (int, optional): Number of feature message passing blocks. (default: :obj:`2`)
        heads (int, optional): Number of attention heads, a divisor of :math:`d`. (default: :obj:`4`)
        dropout (float, optional): Dropout on attention weights, and on the outputs of attention and MLP; the paper
            takes 0.2 on Reuters, Bibtex and SIDER and 0.1 elsewhere. (default: :obj:`0.1`)
        tied (bool, optional): If set to :obj:`False`, the readout has a weight of its own. (default: :obj:`True`)
        readout_bias (bool, optional): If set to :obj:`True`, the readout has a bias. (default: :obj:`False`)
        detach_intermediate (bool, optional): If set to :obj:`True`, intermediate readouts send no gradient to the
            readout's weight, as the authors' released code has it. (default: :obj:`False`)
        skip_feature_attention (bool, optional): If set to :obj:`True`, feature message passing leaves out its
            attention, as the authors' released code does. (default: :obj:`False`)
        mlp_channels (int, optional): Hidden size of the MLPs, :math:`d` if :obj:`None`. (default: :obj:`None`)
        norm (str, optional): :obj:`"post"` or :obj:`"pre"`. (default: :obj:`"post"`)
        scale (float, optional): The factor on the attention scores, :math:`1 / \sqrt{d / K}` if :obj:`None`.
            (default: :obj:`None`)
        backend (str, optional): The backend of the attention operator. (default: :obj:`"auto"`)

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`

    Raises:
        ValueError: If :obj:`encoder` is unknown, or :obj:`heads` does not divide :math:`d`.
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
        dropout: float = 0.1,
        tied: bool = True,
        readout_bias: bool = False,
        detach_intermediate: bool = False,
        skip_feature_attention: bool = False,
        mlp_channels: int | None = None,
        norm: Norm = "post",
        scale: float | None = None,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        if encoder not in ("fmp", "emb"):
            raise ValueError(f"Expected 'encoder' to be 'fmp' or 'emb' (got '{encoder}')")
        channels, edge_dim = cast(InputEncoder, inputs).channels, cast(InputEncoder, inputs).edge_dim
        block: dict[str, Any] = {
            "heads": heads,
            "dropout": dropout,
            "mlp_channels": mlp_channels,
            "norm": norm,
            "scale": scale,
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
        self.labels = LabelMessagePassing(channels, label_graph, num_steps, **block)
        self.readout = LabelReadout(self.labels, tied=tied, bias=readout_bias)
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
                attention of every step. (default: :obj:`False`)
        """
        components: Components = self.inputs(data)
        x = components.x
        if self.features is not None:
            x = self.features(x, ptr=components.ptr, edge_index=components.edge_index, edge_attr=components.edge_attr)
        states: LabelStates = self.labels(
            x, ptr=components.ptr, return_intermediate=True, return_attention_weights=return_attention_weights
        )
        logits: Tensor = self.readout(states.states)
        if not (return_intermediate or return_attention_weights):
            return logits
        intermediate = [self.readout(u, detach_weight=self.detach_intermediate) for u in states.intermediate]
        return LaMPOutput(logits, intermediate, states.attention)
