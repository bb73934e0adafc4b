"""The attention block of label message passing and related networks, and its options."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Final, TypedDict, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.parameter import is_lazy
from torch.utils.checkpoint import checkpoint
from torch_geometric import EdgeIndex
from torch_geometric.nn import Linear, MessagePassing
from torch_geometric.typing import Adj, OptTensor, SparseTensor
from torch_geometric.utils import softmax

from tg_mlc._options import check_choice, check_count, check_share
from tg_mlc.nn import _fast
from tg_mlc.nn._fast import add_repeated, any_number, folded_attention, normalised_branch
from tg_mlc.nn._plan import Norm, Plan, no_kernels, not_fused, plan
from tg_mlc.ops import Blocks, Edges, Pattern, graph_attention
from tg_mlc.ops.attention import registry
from tg_mlc.ops.attention.backend import AttentionCall
from tg_mlc.ops.dropout import dropout
from tg_mlc.ops.patterns import shape_error, to_list

#: Options of PyG's message passing that layers pass on; nodes are always the first dimension.
MESSAGE_PASSING_OPTIONS = frozenset(inspect.signature(MessagePassing).parameters) - {"node_dim"}


class BlockOptions(TypedDict, total=False):
    """Options of an :class:`AttentionConv`, which documents them."""

    heads: int
    mlp_channels: int | None
    dropout: float
    attention_dropout: float | None
    norm: Norm
    bias: bool
    scale: float | None
    head_channels: int | None
    value_channels: int | None
    checkpointing: bool
    backend: str


class AttentionConv(MessagePassing):
    r"""The attention block from the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper.

    .. math::
        \mathbf{m}_i = \mathbf{v}_i + \Big( \big\Vert_{k=1}^{K} \sum_{j \in \mathcal{N}(i)}
        \alpha^k_{ij} \mathbf{W}^{v,k} \mathbf{v}_j \Big) \mathbf{W}^c, \qquad
        \mathbf{v}_i^{\prime} = \mathbf{m}_i + \textrm{MLP}(\mathbf{m}_i)

    with :math:`\alpha^k_{ij} = \textrm{softmax}_j \big( s \, (\mathbf{W}^{q,k} \mathbf{v}_i)^{\top}
    \mathbf{W}^{u,k} \mathbf{v}_j \big)` and a layer normalisation after each residual (or, with
    :obj:`norm="pre"`, before each block).

    With an :obj:`edge_index`, the block passes PyG messages, with all of PyG's hooks. With a
    :class:`~tg_mlc.ops.Pattern`, it calls :func:`~tg_mlc.ops.graph_attention`, which makes no
    message per edge. With an adjacency (a sparse matrix, or a :class:`~torch_geometric.EdgeIndex`
    sorted by column), it makes messages only for hooks, explainers, edge features, another
    :obj:`flow` or requested weights. :meth:`explain_choice` describes the last call, with reasons.

    Args:
        channels (int or tuple): Size :math:`d` of a state, or sizes of source and target states.
            The source size may be :obj:`-1`, to infer it from the first input.
        heads (int, optional): Number of heads :math:`K`, a divisor of :math:`d` unless
            :obj:`head_channels` is given. (default: :obj:`4`)
        mlp_channels (int, optional): Hidden size, by default :math:`d`. (default: :obj:`None`)
        dropout (float, optional): Dropout after attention and MLP. (default: :obj:`0.0`)
        attention_dropout (float, optional): Dropout on attention weights, by default
            :obj:`dropout`. (default: :obj:`None`)
        norm (str, optional): :obj:`"post"` or :obj:`"pre"`. With :obj:`"pre"`, separate source
            states must already be normalised. (default: :obj:`"post"`)
        bias (bool, optional): If :obj:`True`, projections have a bias. (default: :obj:`False`)
        scale (float, optional): The factor :math:`s`, by default :math:`1 / \sqrt{d / K}` as in the
            authors' code; the paper writes :math:`1 / \sqrt{d}`. (default: :obj:`None`)
        head_channels (int, optional): Size :math:`C` of a head's queries and keys, by default
            :math:`d / K`. (default: :obj:`None`)
        value_channels (int, optional): Size of values, by default :math:`C`. (default: :obj:`None`)
        checkpointing (bool, optional): If set to :obj:`True`, training keeps only the block's
            inputs and recomputes the rest in the backward pass (`"Training Deep Nets with Sublinear
            Memory Cost" <https://arxiv.org/abs/1604.06174>`_). (default: :obj:`False`)
        backend (str, optional): The backend of the operator. (default: :obj:`"auto"`)
        edge_dim (int, optional): Size of edge features. Their projection is added to keys and
            values. (default: :obj:`None`)
        **kwargs (optional): Additional arguments of :class:`torch_geometric.nn.MessagePassing`.

    Shapes:
        - **input:** node states :math:`(N, d)` or :math:`((N_s, d_s), (N_t, d))`, edges
          :math:`(2, |\mathcal{E}|)`, edge features :math:`(|\mathcal{E}|, D)`
        - **output:** node states :math:`(N, d)` or :math:`(N_t, d)`

    Raises:
        TypeError: If :obj:`channels` is not a size, an option is unknown, or dtypes differ.
        ValueError: If an option is out of range, :obj:`heads` does not divide :math:`d`, sizes of
            values and keys differ although :obj:`edge_dim` is set, or states have another size.
    """

    SUPPORTS_FUSED_EDGE_INDEX: Final[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # PyG replaces 'propagate' of a class by a generated function that ignores the masks of
        # explainers. A subclass must not inherit this function.
        if "propagate" not in cls.__dict__:
            cls.propagate = MessagePassing.propagate

    def __init__(
        self,
        channels: int | tuple[int, int],
        heads: int = 4,
        *,
        mlp_channels: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float | None = None,
        norm: Norm = "post",
        bias: bool = False,
        scale: float | None = None,
        head_channels: int | None = None,
        value_channels: int | None = None,
        checkpointing: bool = False,
        backend: str = "auto",
        edge_dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_options(kwargs, (*BlockOptions.__annotations__, "edge_dim", *MESSAGE_PASSING_OPTIONS))
        super().__init__(aggr=kwargs.pop("aggr", "add"), node_dim=0, **kwargs)
        source_dim, target_dim = pair_of(channels)
        hidden = target_dim if mlp_channels is None else mlp_channels
        attention_dropout = dropout if attention_dropout is None else attention_dropout
        check_count("heads", heads)
        check_share("dropout", dropout)
        check_share("attention_dropout", attention_dropout)
        if head_channels is None and target_dim % heads != 0:
            got = f"heads={heads}, channels={target_dim}"
            raise ValueError(f"Expected 'heads' to divide 'channels' (got {got})")
        head_channels = target_dim // heads if head_channels is None else head_channels
        value_channels = head_channels if value_channels is None else value_channels
        sizes = {"head_channels": head_channels, "value_channels": value_channels}
        for name, size in {"mlp_channels": hidden, **sizes}.items():
            check_count(name, size)
        if edge_dim is not None and value_channels != head_channels:
            got = f"{value_channels} and {head_channels}"
            expected = "'value_channels' to equal 'head_channels' beside 'edge_dim'"
            raise ValueError(f"Expected {expected} (got {got})")
        check_choice("norm", norm, get_args(Norm))
        if backend != "auto":
            registry.get(backend)
        self.channels = target_dim
        self.source_channels = source_dim
        self.heads = heads
        self.head_channels = head_channels
        self.value_channels = value_channels
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.norm = norm
        self.scale = head_channels**-0.5 if scale is None else scale
        self.checkpointing = checkpointing
        self.backend = backend
        self._alpha: OptTensor = None
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._last_plan: Plan | None = None

        init = {"weight_initializer": "glorot", "bias_initializer": "zeros"}
        self.lin_query = Linear(target_dim, heads * head_channels, bias=bias, **init)
        self.lin_key = Linear(source_dim, heads * head_channels, bias=bias, **init)
        self.lin_value = Linear(source_dim, heads * value_channels, bias=bias, **init)
        size = heads * head_channels
        self.lin_edge = None if edge_dim is None else Linear(edge_dim, size, bias=False, **init)
        self.lin_out = Linear(heads * value_channels, target_dim, bias=bias, **init)
        self.attention_norm = nn.LayerNorm(target_dim)
        expand, contract = Linear(target_dim, hidden, **init), Linear(hidden, target_dim, **init)
        self.mlp = nn.Sequential(expand, nn.ReLU(), contract)
        self.mlp_norm = nn.LayerNorm(target_dim)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        super().reset_parameters()
        for module in self.modules():
            if isinstance(module, Linear | nn.LayerNorm):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor],
        edge_index: Adj | Pattern,
        edge_attr: OptTensor = None,
        *,
        num_copies: int = 1,
        return_attention_weights: bool | None = None,
    ) -> Any:
        r"""Runs the forward pass of the module.

        Args:
            x (torch.Tensor or tuple): The node states, or source states and target states.
            edge_index (torch.Tensor, SparseTensor or Pattern): The edges, from sources to targets.
            edge_attr (torch.Tensor, optional): The edge features. (default: :obj:`None`)
            num_copies (int, optional): Number of samples that share the target states. Shared
                states are projected once. (default: :obj:`1`)
            return_attention_weights (bool, optional): If set to :obj:`True`, returns
                :obj:`(out, (edge_index, attention_weights))`. (default: :obj:`None`)
        """
        trains = self.training and torch.is_grad_enabled() and not torch.compiler.is_compiling()
        # Lazy layers draw weights in the first call only: dropout would differ in a recomputation.
        arguments = (x, edge_index, edge_attr, num_copies, bool(return_attention_weights))
        recomputes = self.checkpointing and trains and not return_attention_weights
        if recomputes and not any(map(is_lazy, self.parameters())):
            return checkpoint(self._forward, *arguments, use_reentrant=False)
        return self._forward(*arguments)

    def _forward(
        self,
        x: Tensor | tuple[Tensor, Tensor],
        edge_index: Adj | Pattern,
        edge_attr: OptTensor,
        num_copies: int,
        return_weights: bool,
    ) -> Any:
        source, target = (x, x) if isinstance(x, Tensor) else x
        _check_states("source", source, self.source_channels, self.attention_norm.weight.dtype)
        _check_states("target", target, self.channels, self.attention_norm.weight.dtype)
        edge_attr = self._edge_attr(edge_index, edge_attr)
        states = self.attention_norm(target) if self.norm == "pre" else target
        source = states if isinstance(x, Tensor) else source
        inputs = (states, source, edge_index, edge_attr)
        message, weights, planned = self._message(*inputs, num_copies, return_weights)
        out = self._update(target, message, planned)
        if not return_weights:
            return out
        if isinstance(edge_index, SparseTensor):
            return out, edge_index.set_value(weights, layout="coo")
        return out, (edge_index, weights)

    def explain_choice(self) -> str:
        r"""Returns the choices of the last uncompiled call and their reasons, one line per choice.

        .. code-block:: python

            model(batch)
            print(model.labels.label_to_label[0].explain_choice())

        Raises:
            RuntimeError: If there has been no call.
        """
        if self._last_plan is None:
            raise RuntimeError("Expected a call of the layer before (got none); pass it a batch")
        return str(self._last_plan)

    def project(self, source: Tensor) -> tuple[Tensor, Tensor]:
        r"""Returns keys and values of source states for :meth:`attend`."""
        onednn = plan(self, source, source).onednn
        return self._project(source, "lin_key", onednn), self._project(source, "lin_value", onednn)

    def attend(self, x: Tensor, key: Tensor, value: Tensor, mask: OptTensor = None) -> Tensor:
        r"""Applies the block to groups of equally many targets, with keys and values of each group.

        Args:
            x (torch.Tensor): The target states :math:`(G \cdot n, d)`.
            key (torch.Tensor): The keys :math:`(G, m, K, C)`.
            value (torch.Tensor): The values :math:`(G, m, K, C_v)`.
            mask (torch.Tensor, optional): The mask :math:`(G, m)` of keys. (default: :obj:`None`)
        """
        states = self.attention_norm(x) if self.norm == "pre" else x
        planned = plan(self, states)
        query = self._project(states, "lin_query", planned.onednn)
        query = query.view(key.size(0), -1, self.heads, key.size(-1))
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        allowed = None if mask is None else mask[:, None, None]
        p = self.attention_dropout if self.training else 0.0
        message = scaled_dot_product_attention(query, key, value, allowed, p, scale=self.scale)
        return self._update(x, message.transpose(1, 2).reshape(x.size(0), -1), planned)

    def feed_forward(self, x: Tensor) -> Tensor:
        r"""Applies the second half of the block: MLP, residual and normalisation."""
        obstacle = no_kernels(x) or not_fused(x.size(0), self.mlp, self.mlp_norm)
        return self._feed_forward(x, obstacle is None)

    def _feed_forward(self, x: Tensor, fuses: bool) -> Tensor:
        p = self.dropout if self.training else 0.0
        if self.norm == "pre":
            return x + dropout(self.mlp(self.mlp_norm(x)), p)
        return normalised_branch(x, x, self.mlp, self.mlp_norm, p, fuses)

    def _project(self, x: Tensor, name: str, onednn: tuple[str, ...]) -> Tensor:
        return self._split_heads(_fast.projected(x, getattr(self, name), name in onednn))

    def _message(
        self,
        states: Tensor,
        source: Tensor,
        edge_index: Adj | Pattern,
        edge_attr: OptTensor,
        num_copies: int,
        return_weights: bool,
    ) -> tuple[Tensor, Any, Plan]:
        """Returns the message to every target, requested weights, and the plan of the block."""
        planned = plan(self, states, source, edge_index, num_copies, return_weights)
        key = self._project(source, "lin_key", planned.onednn)
        value = self._project(source, "lin_value", planned.onednn)
        p = self.attention_dropout if self.training else 0.0
        if planned.way == "folded":
            assert isinstance(edge_index, Blocks)
            options = (self.lin_query, self.lin_out, self.scale, p, num_copies)
            return folded_attention(states, key, value, edge_index, *options), None, planned
        query = self._project(states, "lin_query", planned.onednn)
        if any_number(num_copies):
            query = _fast.repeat_rows(query, num_copies * query.size(0))
        elif num_copies != 1:  # For one copy, the backward pass would sum to no purpose.
            query = query.expand(num_copies, *query.shape).flatten(end_dim=1)
        if isinstance(edge_index, Pattern):
            assert planned.backend is not None
            call = AttentionCall(query, key, value, edge_index, self.scale, p, None, return_weights)
            message, weights = registry.get(planned.backend).run(call)
        else:
            edge = None if self.lin_edge is None else self._split_heads(self.lin_edge(edge_attr))
            edges = to_list(edge_index) if planned.way == "messages" else edge_index
            message = self.propagate(edges, query=query, key=key, value=value, edge_attr=edge)
            weights, self._alpha = self._alpha, None
        return message.flatten(start_dim=1), weights, planned

    def _update(self, target: Tensor, message: Tensor, planned: Plan) -> Tensor:
        p = self.dropout if self.training else 0.0
        lin_out = nn.Identity() if planned.way == "folded" else self.lin_out
        if self.norm == "post":
            norm, fuses = self.attention_norm, planned.fused[0]
            out = normalised_branch(target, message, lin_out, norm, p, fuses)
        else:
            out = add_repeated(target, dropout(lin_out(message), p))
        return self._feed_forward(out, planned.fused[1])

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), self.heads, x.size(1) // self.heads)

    def _edge_attr(self, edge_index: Adj | Pattern, edge_attr: OptTensor) -> OptTensor:
        """Returns the edge features, which may be the values of a SparseTensor."""
        if edge_attr is None and self.lin_edge is not None and isinstance(edge_index, SparseTensor):
            edge_attr = edge_index.storage.value()
        if (self.lin_edge is None) != (edge_attr is None):
            shape = None if edge_attr is None else list(edge_attr.shape)
            edge_dim = None if self.lin_edge is None else self.lin_edge.in_channels
            got = f"{shape}, edge_dim={edge_dim}"
            raise ValueError(f"Expected 'edge_attr' exactly if 'edge_dim' was given (got {got})")
        if edge_attr is not None and isinstance(edge_index, Pattern):
            raise ValueError("Expected 'edge_attr' only beside an edge list (got a Pattern)")
        return edge_attr

    @property
    def explain(self) -> bool | None:
        """Tells whether an explainer masks the messages. PyG sets this attribute."""
        return cast("bool | None", self._explain)

    @explain.setter
    def explain(self, explain: bool | None) -> None:
        MessagePassing.explain.fset(self, explain)
        # Use PyG's original 'propagate' in parents: the generated function ignores masks.
        for parent in type(self).__mro__[1:] if explain else ():
            if "_orig_propagate" in vars(parent):
                cast(Any, parent).propagate = vars(parent)["_orig_propagate"]

    def needs_messages(self) -> bool:
        """Tells whether hooks, an explainer, the flow or a subclass need single messages."""
        adds = self.flow == "source_to_target" and self.aggr in ("add", "sum")
        plain = type(self).message is AttentionConv.message
        plain = plain and type(self).aggregate is MessagePassing.aggregate
        message_hooks = self._message_forward_pre_hooks or self._message_forward_hooks
        hooks = message_hooks or self._aggregate_forward_pre_hooks or self._aggregate_forward_hooks
        return not (adds and plain) or self.lin_edge is not None or bool(self.explain or hooks)

    def message_and_aggregate(
        self, edge_index: Adj, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        """Returns the sum of messages to each target, without computing single messages."""
        num_queries, num_keys = query.size(0), key.size(0)
        # Reuse the order of sorted edges. A compiler sees only the list of edges.
        if torch.compiler.is_compiling() or not isinstance(edge_index, EdgeIndex | SparseTensor):
            pattern = Edges(to_list(edge_index), num_queries, num_keys)
        else:
            is_index = isinstance(edge_index, EdgeIndex)
            ptr, index = edge_index.get_csc()[0] if is_index else edge_index.csr()[:2]
            pattern = Edges.from_csr(ptr, index, num_queries, num_keys)
        p = self.attention_dropout if self.training else 0.0
        options: Any = {"scale": self.scale, "dropout_p": p, "backend": self.backend}
        out: Tensor = graph_attention(query, key, value, pattern, **options)
        return out

    def message(
        self,
        query_i: Tensor,
        key_j: Tensor,
        value_j: Tensor,
        edge_attr: OptTensor,
        index: Tensor,
        ptr: OptTensor,
        size_i: int | None,
    ) -> Tensor:
        """Returns the messages along all edges, weighted by attention."""
        # PyG passes values of a sparse adjacency even if these are not edge features.
        if self.lin_edge is not None:
            key_j, value_j = key_j + edge_attr, value_j + edge_attr
        alpha = softmax((query_i * key_j).sum(dim=-1) * self.scale, index, ptr, size_i)
        self._alpha = alpha
        alpha = dropout(alpha, self.attention_dropout, self.training)
        return value_j * alpha.unsqueeze(-1).to(value_j.dtype)

    def __repr__(self) -> str:
        sizes = (self.source_channels, self.channels)
        size = self.channels if sizes[0] == sizes[1] else sizes
        return f"{self.__class__.__name__}({size}, heads={self.heads})"


def check_options(
    names: Iterable[str], known: Iterable[str] = BlockOptions.__annotations__
) -> None:
    """Raises TypeError if options are unknown. The message lists known options."""
    if unknown := ", ".join(sorted(set(names) - set(known))):
        expected = f"options of a block among {', '.join(sorted(known))}"
        raise TypeError(f"Expected {expected} (got {unknown})")


def pair_of(channels: Any) -> tuple[int, int]:
    """Returns the sizes of source and target states."""
    is_pair = isinstance(channels, tuple | list) and len(channels) == 2
    source, target = channels if is_pair else (channels, channels)
    if not isinstance(source, int) or not isinstance(target, int):
        got = type(channels).__name__
        raise TypeError(f"Expected 'channels' to be a size or a pair of sizes (got {got})")
    if source < -1 or source == 0 or target <= 0:
        expected = "'channels' to be at least 1, or -1 for a source's"
        raise ValueError(f"Expected {expected} (got {channels})")
    return source, target


def _check_states(name: str, states: Tensor, channels: int, dtype: torch.dtype) -> None:
    if states.dim() != 2 or (channels != -1 and states.size(1) != channels):
        size = "channels" if channels == -1 else channels
        raise shape_error(f"{name} states", f"[N, {size}], as 'channels' says", states)
    if states.dtype != dtype and not torch.is_autocast_enabled(states.device.type):
        expected = f"{name} states in {dtype}, as the parameters are"
        raise TypeError(f"Expected {expected} (got {states.dtype})")
