"""Reads and replaces component states of a network (:class:`NetworkProbe`), and wraps one of its
labels for PyG's explainers (:class:`OneLabel`).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy, deepcopy
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.index import ptr2index

from tg_mlc._names import nearest
from tg_mlc.inference.network import names_in
from tg_mlc.nn import LabelHead, LabelMessagePassing, NeighbourComponents
from tg_mlc.nn._batch import to_ptr
from tg_mlc.nn.encoders import JointEncoder, VectorEncoder
from tg_mlc.nn.nodes import NodeComponents
from tg_mlc.ops import Edges, Pattern
from tg_mlc.ops.patterns import to_list
from tg_mlc.sequences.lanet import LabelTransformer
from tg_mlc.sequences.windows import Occurrences, WindowViews

NUM_POINTS, MAX_POINTS = 16, 256  #: Initial and maximum number of points of integrated gradients.
LABELS_PER_CHUNK = 32  #: The number of labels whose gradients are computed together.
COPIES_PER_CHUNK = 256  #: Copies of a sample in one pass, each with one of its components.
TOLERANCE = 1e-4  #: Smaller differences of logits count as rounding errors.

Change = Callable[[Tensor], Tensor]  #: A function that replaces component states.


class Attention(NamedTuple):
    """The attention of labels, and the logits that the head computes from label states."""

    states: Tensor  #: ``[S, B, L]``, logits that the head computes from each state
    to_components: Tensor  #: ``[T, heads, N, L]``
    #: ``[T, heads, B, L, L]``, from source to target; ``T`` is 0 if labels pass no messages
    to_labels: Tensor
    ptr: Tensor  #: pointers to the components of every sample


class NetworkProbe:
    """A network whose component states can be read and replaced. Component states are the input of
    :class:`~tg_mlc.nn.LabelMessagePassing`, the output of another module, the columns of
    :obj:`x`, or the label states in windows of events.

    Args:
        network (torch.nn.Module): Maps a batch to logits :math:`(B, L)`.
        at (str, optional): The name of the module that returns component states. (default:
            :obj:`None`, the input of label message passing)
        inputs (bool, optional): If set to :obj:`True`, the columns of :obj:`x` :math:`(B, F)` are
            the components, and their values are the states. (default: :obj:`False`)
    """

    def __init__(self, network: nn.Module, at: str | None = None, inputs: bool = False) -> None:
        # A copy stays in evaluation mode, and its weights need no gradients.
        self.network = deepcopy(network).eval().requires_grad_(False)

        def all_of(module_type: type[nn.Module]) -> list[Any]:
            return [module for module in self.network.modules() if isinstance(module, module_type)]

        def first(module_type: type[nn.Module]) -> Any:
            return next(iter(all_of(module_type)), None)

        if (number := len(all_of(LabelMessagePassing))) > 1:
            reason = "effects of labels are exact only if all of a label's messages are cut"
            raise ValueError(
                f"Expected a network with at most one LabelMessagePassing, because {reason} "
                f"(got {number}); explain one network per LabelMessagePassing"
            )
        names = [name for name, _ in self.network.named_modules() if name]
        if at is not None and at not in names:
            got = f"(got {at!r}){nearest(at, names)}"
            raise ValueError(f"Expected 'at' to name a module of the network {got}")
        self.labels: LabelMessagePassing | None = first(LabelMessagePassing)
        self.head: LabelHead | None = first(LabelHead)
        self.layers: LabelTransformer | None = first(LabelTransformer)
        self.views: WindowViews | None = first(WindowViews)
        self.neighbours: NeighbourComponents | None = first(NeighbourComponents)
        self.at = None if at is None else self.network.get_submodule(at)
        self.inputs = inputs
        #: Arguments of the last call of label message passing.
        self._call: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
        #: Pointers to the component states of every sample of the last call.
        self.ptr = torch.empty(0, dtype=torch.long)
        self._label_ptr = self.ptr
        #: The pairs of the last :class:`NodeComponents`, and the rows that component states copy.
        self._node_pairs: Tensor | None = None
        self._node_rows: Tensor | None = None
        if self.neighbours is not None:
            self.neighbours.register_forward_hook(self._remember_pairs)
        self._bypass_batch: Batch | None = None  #: The batch that ``_bypass`` belongs to.
        self._bypass: Tensor | None = None

    @property
    def reads_components(self) -> bool:
        """Whether labels attend to the components themselves."""
        return self.labels is not None and self.at is None and not self.inputs

    @property
    def has_states(self) -> bool:
        """Whether there are component states to take gradients of."""
        return self.inputs or self.at is not None or self.reads_components or self.views is not None

    def logits(self, batch: Batch, change: Change | None = None) -> Tensor:
        """Returns the logits :math:`(B, L)`, with changed component states if specified."""
        if change is not None or self._bypass_batch is batch:
            bypass = self.bypass(batch)
            if bypass is not None:
                (x,), kwargs = self._call
                return self._read_out(x if change is None else change(x), **kwargs) + bypass
        return self._run(batch, change)

    def _read_out(self, x: Tensor, **kwargs: Any) -> Tensor:
        """Returns the head's logits for labels that attend to component states ``x``."""
        assert self.labels is not None
        assert self.head is not None
        return cast(Tensor, self.head(self.labels(x, **kwargs)))

    def _run(self, batch: Batch, change: Change | None) -> Tensor:
        if self._bypass_batch is not batch:
            self._bypass_batch = None
        if self.inputs and change is not None:
            batch = copy(batch)
            batch.x = change(batch.x)
            self.ptr = torch.arange(batch.x.size(0) + 1) * batch.x.size(1)
            change = None
        with self._hooked(change, batch.num_graphs):
            logits: Tensor = self.network(batch)
        if self.at is not None:
            self.ptr = batch.ptr
        return logits

    def _remember_pairs(self, module: nn.Module, args: Any, components: NodeComponents) -> None:
        self._node_pairs = components.components

    def nodes(self, batch: Batch) -> list[np.ndarray] | None:
        """Returns, for each sample of the last call, the node of each component state; :obj:`None`
        if :class:`~tg_mlc.nn.NeighbourComponents` did not make the states.
        """
        if self._node_rows is None or not self.reads_components:
            return None
        # The rows are the seeds, then all nodes, once for each hop and for its known labels.
        rows, num_seeds = self._node_rows, batch.num_graphs
        node = (rows - num_seeds) % batch.num_nodes
        node = torch.where(rows < num_seeds, batch.seed_index[rows.clamp(max=num_seeds - 1)], node)
        node = node - batch.ptr[ptr2index(self._label_ptr)]
        return np.split(node.cpu().numpy(), self._label_ptr[1:-1].tolist())

    @property
    def extra_vectors(self) -> list[tuple[str, int]]:
        """The vectors that the encoder appends as further components: the name of each vector, and
        its number of components.
        """
        encoder = getattr(self.network, "encoder", None)
        encoders: Any = encoder.encoders if isinstance(encoder, JointEncoder) else []
        vectors = [module for module in encoders if isinstance(module, VectorEncoder)]
        return [(vector.key, vector.num_components) for vector in vectors]

    @property
    def bypass_name(self) -> str:
        """The name of the term of the logits that bypasses label messages."""
        has_score_skip = getattr(self.network, "score_skip", None) is not None
        has_linear_path = getattr(self.network, "linear_path", None) is not None
        if has_score_skip == has_linear_path:
            return "beside messages"
        return "base scores" if has_score_skip else "linear path"

    def explains_only_part(self, batch: Batch) -> bool:
        """Returns whether scores of component states may explain only a part of the logits."""
        if self.inputs:
            return "base_scores" in batch
        if not self.reads_components:
            return False
        bypass = self.bypass(batch)
        return bypass is None or bool(bypass.abs().max() > TOLERANCE)

    @torch.no_grad()
    def bypass(self, batch: Batch) -> Tensor | None:
        """Returns the term of the logits that bypasses label messages; :obj:`None` if it depends on
        component states. The result for the last batch is cached.
        """
        if self.labels is None or self.head is None or not self.reads_components:
            return None
        if self._bypass_batch is not batch:
            terms: list[Tensor] = []
            for change in (torch.zeros_like, None):
                logits = self._run(batch, change)
                (x,), kwargs = self._call
                terms.append(logits - self._read_out(x, **kwargs))
            is_constant = torch.allclose(terms[0], terms[1], atol=TOLERANCE)
            self._bypass_batch, self._bypass = batch, terms[1] if is_constant else None
        return self._bypass

    def gradients(self, batch: Batch, labels: list[int], factor: float) -> tuple[Tensor, Tensor]:
        """Returns component states times gradients :math:`(N, L)`, and pointers to the rows of
        every sample. Gradients are computed at ``factor`` times the states.
        """
        states: list[Tensor] = []

        def change(x: Tensor) -> Tensor:
            states[:] = [x.detach(), (factor * x.detach()).requires_grad_()]
            return states[1]

        with torch.enable_grad():
            logits = self.logits(batch, change)[:, labels]
            sums = logits.sum(dim=0)
            identity = torch.eye(len(labels), dtype=logits.dtype, device=logits.device)
            options: dict[str, Any] = {"retain_graph": True, "is_grads_batched": True}
            chunks = torch.split(identity, LABELS_PER_CHUNK)
            grads = [torch.autograd.grad(sums, states[1], chunk, **options)[0] for chunk in chunks]
        products = (states[0] * torch.cat(grads)).movedim(0, -1)
        return products.flatten(0, 1) if self.inputs else products.sum(dim=1), self.ptr

    def integrated(self, batch: Batch, labels: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Returns integrated gradients :math:`(N, L)` along the straight path from zero states,
        pointers to the rows of every sample, and the differences of logits :math:`(B, L)` between
        both ends of the path.

        The number of points is doubled until the scores of every sample sum to its difference,
        with an error of at most 1 % or 0.01. Warns if :obj:`MAX_POINTS` do not suffice.
        """
        with torch.no_grad():
            all_differences = self.logits(batch) - self.logits(batch, torch.zeros_like)
        difference = all_differences[:, labels].double()
        is_done = torch.zeros(len(difference), dtype=torch.bool, device=difference.device)
        scores, num_points = torch.zeros(()), NUM_POINTS
        while True:
            points, weights = np.polynomial.legendre.leggauss(num_points)
            total, ptr = torch.zeros(()), torch.empty(0)
            for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
                products, ptr = self.gradients(batch, labels, float(point))
                total = total + weight * products.double()
            sample_index = ptr2index(ptr, output_size=total.size(0))
            scores = torch.where(is_done[sample_index, None], scores, total)
            error = difference - torch.zeros_like(difference).index_add_(0, sample_index, scores)
            is_done = (error.abs() <= 0.01 * difference.abs().clamp_min(1)).all(dim=1)
            if is_done.all() or 2 * num_points > MAX_POINTS:
                break
            num_points *= 2
        if not is_done.all():
            got = f"after {num_points} points: up to {float(error.abs().max()):.2g} is missing"
            warnings.warn(
                f"Integrated gradients of {int((~is_done).sum())} samples do not sum to the "
                f"difference of logits within 1 % or 0.01 {got}",
                stacklevel=2,
            )
        return scores, ptr, difference

    @torch.no_grad()
    def alone(self, row: int) -> np.ndarray:
        """Returns, for each component of a sample of the last call, how far logits rise
        :math:`(n, L)` if labels attend to this component alone instead of to none.
        """
        (x,), kwargs = self._call
        begin, end = self.ptr[row : row + 2].tolist()
        rises = []
        for start in range(begin, max(end, begin + 1), COPIES_PER_CHUNK):
            stop = min(start + COPIES_PER_CHUNK, end)
            # Labels attend to nothing in the first copy of the sample, to one component in others.
            copies = torch.arange(1 + stop - start, device=x.device)
            options: dict[str, Any] = {"batch": copies[1:], "batch_size": len(copies)}
            if kwargs.get("edge_index") is not None:
                source, target = to_list(kwargs["edge_index"])
                is_copied = (source >= start) & (source < stop)
                options["edge_index"] = torch.stack([source[is_copied] - start, target[is_copied]])
            if kwargs.get("base_scores") is not None:
                options["base_scores"] = kwargs["base_scores"][row].expand(len(copies), -1, -1)
            logits = self._read_out(x[start:stop], **options).double()
            rises.append(logits[1:] - logits[0])
        return torch.cat(rises).cpu().numpy()

    @torch.no_grad()
    def attention(self, batch: Batch) -> Attention | None:
        """Returns attention and states; :obj:`None` if labels neither pass nor get messages."""
        if self.labels is None and self.layers is None:
            return None
        num_rows, ptr = 0, torch.zeros(batch.num_graphs + 1, dtype=torch.long)
        readouts: list[Tensor] = []
        if self.labels is None:
            output = self.network(batch, return_attention_weights=True)
            num_samples, num_labels = output.logits.shape
        else:
            self.logits(batch)
            (x,), kwargs = self._call
            options = {"return_intermediate": True, "return_attention_weights": True}
            output = self.labels(x, **{**kwargs, **options})
            num_samples, num_labels, _ = output.states.shape
            num_rows, ptr = x.size(0), self._label_ptr
            if self.head is not None:
                readouts = [self.head(u) for u in (*output.intermediate, output.states)]
        to_components, to_labels = [], []
        for step in output.attention:
            if self.labels is not None:
                edges, weights = step.feature_to_label
                if isinstance(edges, Pattern):
                    edges, weights = edges.to_edge_list(weights)
                dense = weights.new_zeros(weights.size(-1), num_rows, num_labels)
                dense[:, edges[0], edges[1] % num_labels] = weights.T
                to_components.append(dense)
            if step.label_to_label is not None:
                edges, weights = step.label_to_label
                source, target = edges.graph.edge_index
                values = weights.view(num_samples, -1, weights.size(-1)).permute(2, 0, 1)
                dense = values.new_zeros(*values.shape[:2], num_labels, num_labels)
                dense[:, :, source, target] = values
                to_labels.append(dense)

        def stacked(parts: list[Tensor], *shape: int) -> Tensor:
            return torch.stack(parts) if parts else torch.zeros(0, *shape)

        return Attention(
            stacked(readouts, num_samples, num_labels),
            stacked(to_components, 1, num_rows, num_labels),
            stacked(to_labels, 1, num_samples, num_labels, num_labels),
            ptr,
        )

    @property
    def state_names(self) -> list[str]:
        """The names 1.1, 1.2, ... of the label states that the head can read."""
        if self.labels is None or self.head is None:
            return []
        substeps = (1, 2) if len(self.labels.label_to_label) else (1,)
        steps = range(1, self.labels.num_steps + 1)
        return [f"{step}.{substep}" for step in steps for substep in substeps]

    @torch.no_grad()
    def label_effects(self, batch: Batch, labels: list[int]) -> Tensor:
        """Returns how far the messages of each label :math:`j` raise the logits of ``labels``
        :math:`(B, J, L)`: the logits minus the logits without edges from :math:`j` to others.
        """
        self.bypass(batch)
        logits = self.logits(batch)[:, labels]
        module: nn.Module | None = self.labels
        attribute, first_label = "_label_edges", 0
        if self.layers is not None:
            module, attribute, first_label = self.layers, "_edges", int(self.layers.hub)
        edges, effects = getattr(module, attribute), []
        source, target = edges.edge_index
        try:
            for label in range(first_label, edges.num_keys):
                is_cut = (source == label) & (target != label) & (target >= first_label)
                if not is_cut.any():
                    effects.append(torch.zeros_like(logits))
                    continue
                remaining = Edges(edges.edge_index[:, ~is_cut], edges.num_queries, edges.num_keys)
                setattr(module, attribute, remaining.prepare())
                effects.append(logits - self.logits(batch)[:, labels])
        finally:
            setattr(module, attribute, edges)
        return torch.stack(effects, dim=1)

    @contextmanager
    def _hooked(self, change: Change | None, num_samples: int) -> Iterator[None]:
        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            x, *positional = args or (kwargs["x"],)
            kwargs = {name: value for name, value in kwargs.items() if name != "x"}
            if positional:
                kwargs["batch"] = positional[0]
            # Components that several samples share are copied for each of them.
            if (pairs := kwargs.pop("components", None)) is not None:
                row, sample = pairs[:, pairs[1].argsort(stable=True)]
                x, kwargs["batch"] = x[row], sample
                self._node_rows = row if pairs is self._node_pairs else None
            pointers = [kwargs.get(name) for name in ("batch", "ptr", "batch_size")]
            self._label_ptr = to_ptr(x, *pointers)
            if self.reads_components:
                x, self.ptr = x if change is None else change(x), self._label_ptr
            self._call = (x,), kwargs
            return self._call

        with ExitStack() as stack:
            if self.labels is not None:
                hook = self.labels.register_forward_pre_hook(enter, with_kwargs=True)
                stack.callback(hook.remove)
            if self.at is not None and change is not None:
                hook = self.at.register_forward_hook(lambda module, args, out: change(out))
                stack.callback(hook.remove)
            elif self.views is not None and change is not None:
                original_views = self.views._views

                def changed_views(occurrences: Occurrences) -> Tensor:
                    counts = occurrences.sample.bincount(minlength=num_samples)
                    self.ptr = nn.functional.pad(counts.cumsum(0), (1, 0))
                    return change(original_views(occurrences))

                self.views.__dict__["_views"] = changed_views  # Hides the method of the class.
                stack.callback(self.views.__dict__.pop, "_views")
            yield


class OneLabel(nn.Module):
    """The logit of one label of a network, for PyG's
    :class:`~torch_geometric.explain.Explainer`, which treats it as a regression per graph.

    .. code-block:: python

        explainer = Explainer(
            OneLabel(network, "nausea"),
            CaptumExplainer("IntegratedGradients"),
            explanation_type="model",
            node_mask_type="attributes",
            edge_mask_type="object",
            model_config={"mode": "regression", "task_level": "graph", "return_type": "raw"},
        )
        explanation = explainer(
            batch.x, batch.edge_index, edge_attr=batch.edge_attr, batch=batch.batch
        )

    Args:
        network (torch.nn.Module): Maps a batch, or the arguments of PyG's explainers, to logits
            :math:`(B, L)`.
        label (str or int): The label, by name or index.
        label_names (Sequence[str], optional): The names of all labels.
            (default: :obj:`None`, the names in the label graph)

    Shapes:
        - **input:** node features :math:`(N, F)`, edges :math:`(2, E)`, and attributes of a batch
          by name; captum passes only :obj:`edge_attr` and :obj:`batch`, in this order
        - **output:** logits :math:`(B, 1)`

    Raises:
        ValueError: If the network has no label of this name.
    """

    def __init__(
        self, network: nn.Module, label: str | int, label_names: Sequence[str] | None = None
    ) -> None:
        super().__init__()
        self.network = network
        names = list(label_names or names_in(network))
        if isinstance(label, str) and label not in names:
            got = f"(got {label!r}){nearest(label, names)}"
            raise ValueError(f"Expected 'label' to be one of the network {got}")
        self.index = names.index(label) if isinstance(label, str) else range(len(names))[label]
        # A network that takes a batch has two positional arguments: 'self' and the batch.
        self.takes_batch = len(inspect.getfullargspec(network.forward).args) == 2

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        **attributes: Any,
    ) -> Tensor:
        """Returns the logits :math:`(B, 1)` of the label."""
        # Captum's explainers pass edge_attr and batch by position, most others by name.
        optional = {"edge_attr": edge_attr, "batch": batch}
        attributes |= {name: value for name, value in optional.items() if value is not None}
        if not self.takes_batch:
            logits: Tensor = self.network(x, edge_index, **attributes)
            return logits[:, [self.index]]
        sample = attributes.setdefault("batch", edge_index.new_zeros(x.size(0)))
        ptr = nn.functional.pad(sample.bincount().cumsum(0), (1, 0))
        data = Batch(x=x, edge_index=edge_index, **{"ptr": ptr, **attributes})
        data._num_graphs = data.ptr.numel() - 1
        logits = self.network(data)
        return logits[:, [self.index]]
