"""Networks under a probe: component states are read where labels attend to them, and replaced."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.index import ptr2index

from tg_mlc._names import nearest
from tg_mlc.nn import LabelHead, LabelMessagePassing
from tg_mlc.nn._batch import to_ptr
from tg_mlc.nn.encoders import JointEncoder, VectorEncoder
from tg_mlc.ops import Edges, Pattern
from tg_mlc.ops.patterns import to_list
from tg_mlc.sequences.lanet import LabelTransformer
from tg_mlc.sequences.windows import Occurrences, WindowViews

NUM_POINTS, MAX_POINTS = 16, 256  #: of the path of integrated gradients, at first and at most
LABELS = 32  #: whose gradients are computed together
ROWS = 2**14  #: component states that labels attend to at a time
ALIKE = 1e-4  #: differences of logits that are those of floating point

Change = Callable[[Tensor], Tensor]


class Attention(NamedTuple):
    """The attention of labels, and the logits that are read out of their states."""

    states: Tensor  #: ``[S, B, L]``, logits read out of all states by the head alone
    to_components: Tensor  #: ``[T, heads, N, L]``
    #: ``[T, heads, B, L, L]``, from source to target; no step if labels pass no messages
    to_labels: Tensor
    ptr: Tensor  #: to the components of every sample


class NetworkProbe:
    """A network of logits whose component states can be read and replaced: those that enter its first
    :class:`~tg_mlc.nn.LabelMessagePassing`, or that another module puts out, or those of the labels that occur in
    windows of events.

    Args:
        network (torch.nn.Module): Maps a batch to logits :math:`(B, L)`.
        at (str, optional): The name of the module. (default: :obj:`None`, label message passing)
        inputs (bool, optional): If set to :obj:`True`, the components are the columns of :obj:`x` :math:`(B, F)`, and
            gradients are those of the inputs. (default: :obj:`False`)
    """

    def __init__(self, network: nn.Module, at: str | None = None, inputs: bool = False) -> None:
        # A copy, which stays in evaluation mode, and whose weights need no gradients.
        self.network = deepcopy(network).eval().requires_grad_(False)

        several = sum(isinstance(module, LabelMessagePassing) for module in self.network.modules())
        if several > 1:
            raise ValueError(
                f"Expected a network with at most one LabelMessagePassing, because effects of labels are exact only if "
                f"all of a label's messages are cut (got {several}); explain a network for each of them"
            )
        names = [name for name, _ in self.network.named_modules() if name]
        if at is not None and at not in names:
            raise ValueError(
                f"Expected 'at' to name a module of the network (got {at!r}){nearest(at, names)}"
            )

        def first(kind: type[nn.Module]) -> Any:
            return next(
                (module for module in self.network.modules() if isinstance(module, kind)), None
            )

        self.labels: LabelMessagePassing | None = first(LabelMessagePassing)
        self.head: LabelHead | None = first(LabelHead)
        self.layers: LabelTransformer | None = first(LabelTransformer)
        self.views: WindowViews | None = first(WindowViews)
        self.at = None if at is None else self.network.get_submodule(at)
        self.inputs = inputs
        self._call: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
        #: to the rows of every sample, since the last call
        self.ptr = torch.empty(0, dtype=torch.long)
        self._ptr_of_labels = self.ptr
        self._of: Batch | None = None  #: the batch that :obj:`_apart` is of
        self._apart: Tensor | None = None

    @property
    def reads_components(self) -> bool:
        """Tells whether labels attend to the components themselves."""
        return self.labels is not None and self.at is None and not self.inputs

    @property
    def has_states(self) -> bool:
        """Tells whether there are component states to take gradients of."""
        return self.inputs or self.at is not None or self.reads_components or self.views is not None

    def logits(self, batch: Batch, change: Change | None = None) -> Tensor:
        """The logits :math:`(B, L)`, with other component states in place of those that there are."""
        if (change is not None or self._of is batch) and (
            apart := self.beside_labels(batch)
        ) is not None:
            assert self.labels is not None
            assert self.head is not None
            (x,), kwargs = self._call
            return cast(
                Tensor, self.head(self.labels(x if change is None else change(x), **kwargs)) + apart
            )
        return self._run(batch, change)

    def _run(self, batch: Batch, change: Change | None) -> Tensor:
        if self._of is not batch:
            self._of = None
        if self.inputs and change is not None:
            batch = copy(batch)
            batch.x = change(batch.x)
            self.ptr = torch.arange(batch.x.size(0) + 1) * batch.x.size(1)
            change = None
        with self._hooked(change), self._viewed(change, batch.num_graphs):
            logits: Tensor = self.network(batch)
        if self.at is not None:
            self.ptr = batch.ptr
        return logits

    @property
    def vectors_beside(self) -> list[tuple[str, int]]:
        """The vectors that an encoder makes components of beside those of a sample, and how many of each."""
        encoder = getattr(self.network, "encoder", None)
        joined: Any = encoder.encoders if isinstance(encoder, JointEncoder) else []
        return [
            (each.key, each.num_components) for each in joined if isinstance(each, VectorEncoder)
        ]

    @property
    def beside(self) -> str:
        """The name of what may bypass labels on the way to logits."""
        skip, path = (
            getattr(self.network, name, None) is not None for name in ("score_skip", "linear_path")
        )
        return "beside messages" if skip == path else "base scores" if skip else "linear path"

    def is_part(self, batch: Batch) -> bool:
        """Tells whether scores of component states may explain a part of the logits alone."""
        if self.inputs:
            return "base_scores" in batch
        if not self.reads_components:
            return False
        apart = self.beside_labels(batch)
        return apart is None or bool(apart.abs().max() > ALIKE)

    @torch.no_grad()
    def beside_labels(self, batch: Batch) -> Tensor | None:
        """The part of logits that the head does not read out of labels; :obj:`None` if it depends on components. While
        a batch stays the same, what comes before labels is then computed once.
        """
        if self.labels is None or self.head is None or not self.reads_components:
            return None
        if self._of is not batch:
            apart: list[Tensor] = []
            for change in (torch.zeros_like, None):
                logits, (args, kwargs) = self._run(batch, change), self._call
                apart.append(logits - self.head(self.labels(*args, **kwargs)))
            self._of, self._apart = (
                batch,
                apart[1] if torch.allclose(apart[0], apart[1], atol=ALIKE) else None,
            )
        return self._apart

    def gradients(
        self, batch: Batch, labels: list[int], factor: float = 1.0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The products of component states and the gradients of each asked label where all states are multiplied by a
        factor, :math:`(N, L)`; the pointers to the rows of every sample; and the logits.
        """
        seen: list[Tensor] = []

        def change(x: Tensor) -> Tensor:
            seen[:] = [x.detach(), (factor * x.detach()).requires_grad_()]
            return seen[1]

        with torch.enable_grad():
            logits = self.logits(batch, change)[:, labels]
            sums, ones = (
                logits.sum(dim=0),
                torch.eye(len(labels), dtype=logits.dtype, device=logits.device),
            )
            parts = range(0, len(labels), LABELS)
            found = [
                torch.autograd.grad(
                    sums,
                    seen[1],
                    ones[start : start + LABELS],
                    retain_graph=True,
                    is_grads_batched=True,
                )
                for start in parts
            ]
        products = (seen[0] * torch.cat([gradients for (gradients,) in found])).movedim(0, -1)
        return (
            products.flatten(0, 1) if self.inputs else products.sum(dim=1),
            self.ptr,
            logits.detach(),
        )

    def integrated(
        self,
        batch: Batch,
        labels: list[int],
        num_points: int = NUM_POINTS,
        max_points: int = MAX_POINTS,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Integrated gradients along the straight path from zero states, as :meth:`gradients` returns products; and the
        differences of logits :math:`(B, L)` between both ends.

        The sum over points is not the integral where rectifiers bend the path. For each sample, points are doubled
        until its scores sum to the differences within 1 %, or 0.01 of small ones; a warning says if that takes too
        many.
        """
        with torch.no_grad():
            difference = (self.logits(batch) - self.logits(batch, torch.zeros_like))[
                :, labels
            ].double()
        is_done = torch.zeros(len(difference), dtype=torch.bool, device=difference.device)
        found = torch.zeros(())
        while True:
            points, weights = np.polynomial.legendre.leggauss(num_points)
            total, ptr = torch.zeros(()), torch.empty(0)
            for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
                products, ptr, _ = self.gradients(batch, labels, float(point))
                total = total + weight * products.double()
            sample = ptr2index(ptr, output_size=total.size(0))
            found = torch.where(is_done[sample, None], found, total)
            missing = difference - torch.zeros_like(difference).index_add_(0, sample, found)
            is_done = (missing.abs() <= 0.01 * difference.abs().clamp_min(1)).all(dim=1)
            if is_done.all() or 2 * num_points > max_points:
                break
            num_points *= 2
        if not is_done.all():
            warnings.warn(
                f"Integrated gradients of {int((~is_done).sum())} samples do not sum to the difference of logits "
                f"within 1 % or 0.01 after {num_points} points: up to {float(missing.abs().max()):.2g} is missing",
                stacklevel=2,
            )
        return found, ptr, difference

    @torch.no_grad()
    def among(self, place: int, masks: np.ndarray) -> np.ndarray:
        """Logits :math:`(M, L)`, but for a constant of each label, of one sample of the last call where labels attend
        to some of its components alone, in masks :math:`(M, n)`.
        """
        assert self.labels is not None
        assert self.head is not None
        (x,), kwargs = self._call
        start, stop = int(self.ptr[place]), int(self.ptr[place + 1])
        size, found = max(1, ROWS // max(stop - start, 1)), []
        for first in range(0, len(masks), size):
            kept = torch.from_numpy(masks[first : first + size]).to(x.device)
            sample, row = kept.nonzero(as_tuple=True)
            options: dict[str, Any] = {"batch": sample, "batch_size": len(kept)}
            if kwargs.get("edge_index") is not None:
                source, target = to_list(kwargs["edge_index"])
                own = (source >= start) & (source < stop)
                copy_of, edge = kept[:, source[own] - start].nonzero(as_tuple=True)
                number = kept.flatten().cumsum(0).view_as(kept) - 1
                options["edge_index"] = torch.stack(
                    [number[copy_of, source[own][edge] - start], target[own][edge]]
                )
            if kwargs.get("base_scores") is not None:
                options["base_scores"] = kwargs["base_scores"][place].expand(len(kept), -1, -1)
            found.append(self.head(self.labels(x[start:stop][row], **options)))
        return torch.cat(found).double().cpu().numpy()

    @torch.no_grad()
    def attention(self, batch: Batch) -> Attention | None:
        """Attention and states; :obj:`None` if labels pass and get no messages."""
        if self.labels is None and self.layers is None:
            return None
        num_rows, ptr, intermediate = 0, torch.zeros(batch.num_graphs + 1, dtype=torch.long), []
        if self.labels is None:
            found = self.network(batch, return_attention_weights=True)
            num_samples, num_labels = map(int, found.logits.shape)
        else:
            self.logits(batch)
            args, kwargs = self._call
            found = self.labels(
                *args, **{**kwargs, "return_intermediate": True, "return_attention_weights": True}
            )
            num_samples, num_labels, _ = map(int, found.states.shape)
            num_rows, ptr = args[0].size(0), self._ptr_of_labels
            intermediate = (
                []
                if self.head is None
                else [self.head(u) for u in (*found.intermediate, found.states)]
            )
        to_components, to_labels = [], []
        for step in found.attention:
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
                dense = weights.new_zeros(weights.size(-1), num_samples, num_labels, num_labels)
                dense[:, :, source, target] = weights.view(
                    num_samples, -1, weights.size(-1)
                ).permute(2, 0, 1)
                to_labels.append(dense)

        def stacked(parts: list[Tensor], *shape: int) -> Tensor:
            return torch.stack(parts) if parts else torch.zeros(0, *shape)

        return Attention(
            stacked(intermediate, num_samples, num_labels),
            stacked(to_components, 1, num_rows, num_labels),
            stacked(to_labels, 1, num_samples, num_labels, num_labels),
            ptr,
        )

    @property
    def state_names(self) -> list[str]:
        """The names 1.1, 1.2, ... of the states that logits can be read out of."""
        if self.labels is None or self.head is None:
            return []
        parts = 1 + (len(self.labels.label_to_label) > 0)
        return [
            f"{step + 1}.{part + 1}"
            for step in range(self.labels.num_steps)
            for part in range(parts)
        ]

    @torch.no_grad()
    def label_effects(self, batch: Batch, labels: list[int]) -> Tensor:
        """How much the messages of each label to others raise the asked logits, :math:`(B, J, L)`: these less those
        after all edges from it to others were cut.
        """
        self.beside_labels(batch)
        whole = self.logits(batch)[:, labels]
        place, first = (
            (self.layers, int(self.layers.hub)) if self.layers is not None else (self.labels, 0)
        )
        attribute = "_edges" if self.layers is not None else "_label_edges"
        edges, effects = getattr(place, attribute), []
        source, target = edges.edge_index
        try:
            for label in range(first, edges.num_keys):
                cut = (source == label) & (target != label) & (target >= first)
                if not cut.any():
                    effects.append(torch.zeros_like(whole))
                    continue
                kept = Edges(edges.edge_index[:, ~cut], edges.num_queries, edges.num_keys)
                setattr(place, attribute, kept.prepare())
                effects.append(whole - self.logits(batch)[:, labels])
        finally:
            setattr(place, attribute, edges)
        return torch.stack(effects, dim=1)

    @contextmanager
    def _hooked(self, change: Change | None) -> Iterator[None]:
        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            x, *rest = args or (kwargs["x"],)
            kwargs = {name: value for name, value in kwargs.items() if name != "x"}
            if rest:
                kwargs["batch"] = rest[0]
            # each sample gets copies of its own
            if (pairs := kwargs.pop("components", None)) is not None:
                row, sample = pairs[:, pairs[1].argsort(stable=True)]
                x, kwargs["batch"] = x[row], sample
            self._ptr_of_labels = to_ptr(
                x, kwargs.get("batch"), kwargs.get("ptr"), kwargs.get("batch_size")
            )
            if self.reads_components:
                x, self.ptr = x if change is None else change(x), self._ptr_of_labels
            self._call = (x,), kwargs
            return self._call

        handles: list[Any] = []
        if self.labels is not None:
            handles.append(self.labels.register_forward_pre_hook(enter, with_kwargs=True))
        if self.at is not None and change is not None:
            handles.append(self.at.register_forward_hook(lambda module, args, out: change(out)))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def _viewed(self, change: Change | None, num_samples: int) -> Iterator[None]:
        if self.views is None or self.at is not None or change is None:
            yield
            return
        of_occurrences = self.views._views

        def changed(found: Occurrences) -> Tensor:
            self.ptr = nn.functional.pad(
                found.sample.bincount(minlength=num_samples).cumsum(0), (1, 0)
            )
            return change(of_occurrences(found))

        self.views.__dict__["_views"] = changed  # instead of the method of its class
        try:
            yield
        finally:
            del self.views.__dict__["_views"]
