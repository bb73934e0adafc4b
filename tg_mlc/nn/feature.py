"""Feature message passing: attention among the components of an input."""

from __future__ import annotations

from typing import NamedTuple, cast

from torch import Tensor, nn
from torch_geometric.typing import Adj
from typing_extensions import Unpack

from tg_mlc._options import check_count
from tg_mlc.nn._batch import check_components, to_ptr
from tg_mlc.nn.attention import AttentionConv, BlockOptions, check_options
from tg_mlc.ops import Blocks, Pattern

FeatureAttention = tuple[Adj | Pattern, Tensor]


class FeatureStates(NamedTuple):
    """Output of :class:`FeatureMessagePassing` with :obj:`return_attention_weights`."""

    states: Tensor  #: ``[N, d]``, the final states
    #: for each layer, its edges, and the attention weights in the layout of these edges
    attention: list[FeatureAttention]


class FeatureMessagePassing(nn.Module):
    r"""The feature message passing module from the `"Neural Message Passing for Multi-Label
    Classification" <https://arxiv.org/abs/1904.08049>`_ paper: attention among all components of a
    sample, or along a known graph of components, *e.g.* the bonds of a molecule.

    .. math::
        \mathbf{m}_i = \mathbf{z}_i + \sum_{j \in \mathcal{N}(i)} \alpha_{ij} \mathbf{W}^v
        \mathbf{z}_j, \qquad
        \mathbf{z}_i^{\prime} = \mathbf{m}_i + \textrm{MLP}(\mathbf{m}_i)

    Args:
        channels (int): Size :math:`d` of a component's state.
        num_layers (int, optional): Number of blocks. Weights are not shared. (default: :obj:`2`)
        edge_dim (int, optional): Size of features of known edges. (default: :obj:`None`)
        **block (optional): Options of the blocks (see :class:`~tg_mlc.nn.AttentionConv`); with
            :obj:`norm="pre"`, final states are normalised once more.

    Shapes:
        - **input:** component states :math:`(N, d)`, batch vector :math:`(N)`, edges
          :math:`(2, |\mathcal{E}|)`, edge features :math:`(|\mathcal{E}|, D)`
        - **output:** component states :math:`(N, d)`

    Raises:
        ValueError: If :obj:`num_layers` is less than 1.
    """

    def __init__(
        self,
        channels: int,
        num_layers: int = 2,
        *,
        edge_dim: int | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        check_options(block)
        self.channels = channels
        convs = (AttentionConv(channels, edge_dim=edge_dim, **block) for _ in range(num_layers))
        self.convs = nn.ModuleList(convs)
        self.final_norm = nn.LayerNorm(channels) if block.get("norm") == "pre" else nn.Identity()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        for conv in cast("list[AttentionConv]", self.convs):
            conv.reset_parameters()
        if isinstance(self.final_norm, nn.LayerNorm):
            self.final_norm.reset_parameters()

    def forward(
        self,
        x: Tensor,
        batch: Tensor | None = None,
        *,
        ptr: Tensor | None = None,
        edge_index: Adj | None = None,
        edge_attr: Tensor | None = None,
        batch_size: int | None = None,
        max_num_nodes: int | None = None,
        return_attention_weights: bool = False,
    ) -> Tensor | FeatureStates:
        r"""Runs the forward pass of the module.

        Args:
            x, batch, ptr, batch_size, max_num_nodes: As in :meth:`LabelMessagePassing.forward`; the
                last two are needed under :meth:`torch.compile` without :obj:`edge_index`.
            edge_index (torch.Tensor or SparseTensor, optional): The known graph of components; by
                default, the complete graph of each sample. (default: :obj:`None`)
            edge_attr (torch.Tensor, optional): The features of known edges. (default: :obj:`None`)
            return_attention_weights (bool, optional): If set to :obj:`True`, returns
                :class:`FeatureStates` with the attention of every block. (default: :obj:`False`)
        """
        check_components(x)
        edges: Adj | Blocks = edge_index
        if edges is None:
            ptr = to_ptr(x, batch, ptr, batch_size, max_num_nodes)
            sizes = {"num_queries": x.size(0), "num_keys": x.size(0)}
            max_sizes = {"max_queries": max_num_nodes, "max_keys": max_num_nodes}
            edges = Blocks(ptr, ptr, **sizes, **max_sizes, validate=False)
        attention: list[FeatureAttention] = []
        for conv in self.convs:
            out = conv(x, edges, edge_attr, return_attention_weights=return_attention_weights)
            x, weights = out if return_attention_weights else (out, None)
            attention += [] if weights is None else [weights]
        x = self.final_norm(x)
        return FeatureStates(x, attention) if return_attention_weights else x

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.channels}, num_layers={len(self.convs)})"
