"""LaMP in three layouts with the same weights: ours, along lists of edges, and as released."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from benchmarks.speed.measure import Job
from benchmarks.speed.regimes import SEED, random_graph, spread
from benchmarks.speed.released_layout import ReleasedLayout
from tg_mlc.models import LaMP
from tg_mlc.nn import AttentionConv
from tg_mlc.papers.convert import load_lamp_checkpoint

GraphName = Literal["complete", "prior"]
OURS, CHECKPOINTED = "ours", "ours, checkpointed"
LITERAL, RELEASED = "literal path", "released layout"
MODES = INFERENCE, TRAINING = "inference", "training"
#: The row that times LaMP's matrix products without the rest of the model.
PRODUCTS = "its products alone"
DEGREE = 10
#: Numbers of tensors with a row for every edge that the literal path keeps for the backward pass of
#: one attention, and that it needs in addition while it computes.
KEPT_PER_EDGE, OTHERS_PER_EDGE = 3, 4
#: The literal path is skipped if it would need more than these bytes.
MAX_LITERAL_BYTES = 12e9


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model and of its batches."""

    num_labels: int
    graph: GraphName
    channels: int = 512
    heads: int = 4
    num_samples: int = 32
    num_components: int = 80
    num_tokens: int = 2000
    num_layers: int = 2  #: Steps of label message passing, and as many feature blocks.
    dropout: float = 0.1

    @classmethod
    def tiny(cls, num_labels: int, graph: GraphName) -> Sizes:
        """A small model of the same kind."""
        tiny = {"channels": 16, "heads": 2, "num_samples": 3, "num_components": 5}
        return cls(num_labels, graph, num_tokens=20, **tiny)

    def adjacency(self) -> Tensor | None:
        """The label graph as a matrix (rows attend to columns); :obj:`None` if complete."""
        if self.graph == "complete":
            return None
        return random_graph(spread(self.num_labels, min(DEGREE, self.num_labels - 1))).mask()

    def num_label_edges(self) -> int:
        """The number of edges of the label graph."""
        adjacency = self.adjacency()
        return self.num_labels**2 if adjacency is None else int(adjacency.sum())


class Product(NamedTuple):
    """A number of products of matrices ``[rows, inner]`` and ``[inner, columns]``, in batches."""

    count: int
    batch: int
    rows: int
    inner: int
    columns: int

    @property
    def flop(self) -> int:
        """The FLOP of all products."""
        return 2 * self.count * self.batch * self.rows * self.inner * self.columns


def products(sizes: Sizes) -> list[Product]:
    """Matrix products of a forward pass. A sparse label graph needs sums along edges instead."""
    d, steps, per_head = sizes.channels, sizes.num_layers, sizes.channels // sizes.heads
    components, num_labels = sizes.num_components, sizes.num_labels
    counts = (components, num_labels, sizes.heads)
    component_rows, label_rows, batch = (sizes.num_samples * size for size in counts)
    matrix_products = [
        # The feature blocks, and keys and values for the labels.
        Product(8 * steps, 1, component_rows, d, d),
        Product(1, 1, num_labels, d, d),  # The first queries, which all samples share.
        Product(10 * steps - 1, 1, label_rows, d, d),
        *_attention(steps, batch, components, components, per_head),
        *_attention(steps, batch, num_labels, components, per_head),
    ]
    if sizes.graph == "complete":
        matrix_products += _attention(steps, batch, num_labels, num_labels, per_head)
    return matrix_products


def _attention(count: int, batch: int, queries: int, keys: int, channels: int) -> list[Product]:
    return [
        Product(count, batch, queries, channels, keys),
        Product(count, batch, queries, keys, channels),
    ]


def products_job(sizes: Sizes, mode: str, dtype: torch.dtype, device: str) -> Job:
    """All products of a pass; for training, with the gradients of both factors."""
    generator = torch.Generator().manual_seed(0)

    def matrix(product: Product, *shape: int) -> Tensor:
        shape = shape if product.batch == 1 else (product.batch, *shape)
        return torch.randn(shape, generator=generator).to(device, dtype)

    factors = []
    for product in products(sizes):
        left = matrix(product, product.rows, product.inner)
        factors.append((product.count, left, matrix(product, product.inner, product.columns)))

    def run() -> None:
        for count, left, right in factors:
            for _ in range(count):
                output = left @ right
                if mode == TRAINING:
                    output @ right.mT
                    left.mT @ output

    return run


def forward_flop(sizes: Sizes) -> int:
    """The FLOP of matrix products that the model needs. A backward pass takes twice as many.

    Products along the label graph count its edges only. The label embedding is projected
    to the first queries before it is repeated, and the readout is one dot product for each label.
    """
    states = sizes.num_samples * sizes.channels
    readout = 2 * states * sizes.num_labels
    along_edges = 4 * states * sizes.num_layers * sizes.num_label_edges()
    flop = readout + sum(product.flop for product in products(sizes))
    return flop if sizes.graph == "complete" else flop + along_edges


def literal_bytes(sizes: Sizes, mode: str) -> int:
    """The approximate peak memory of the literal path."""
    to_components = sizes.num_labels * sizes.num_components
    edges = [sizes.num_components**2, to_components, sizes.num_label_edges()]
    kept = sum(edges) * sizes.num_layers * KEPT_PER_EDGE if mode == TRAINING else 0
    return (kept + max(edges) * OTHERS_PER_EDGE) * sizes.num_samples * sizes.channels * 4


def why_left_out(name: str, sizes: Sizes, mode: str) -> str | None:
    """Why a layout is too large for a mode, or :obj:`None`."""
    needed = literal_bytes(sizes, mode) if name == LITERAL else 0
    return f"{mode} would need about {1e-9 * needed:.0f} GB" if needed > MAX_LITERAL_BYTES else None


@dataclass
class Layouts:
    """Models that compute the same function, and one batch in the formats that they take."""

    models: dict[str, nn.Module]
    batch: Batch
    tokens: Tensor
    y: Tensor

    def logits(self, name: str) -> Tensor:
        """The logits of the batch."""
        out: Tensor = self.models[name](self.tokens if name == RELEASED else self.batch)
        return out

    def loss(self, name: str) -> Tensor:
        """Binary cross-entropy."""
        return F.binary_cross_entropy_with_logits(self.logits(name).float(), self.y)

    def embeddings(self, name: str) -> list[Tensor]:
        """The embeddings of words and labels, whose gradients depend on every part of the model."""
        model = self.models[name]
        if isinstance(model, ReleasedLayout):
            return [model.encoder.src_word_emb.weight, model.decoder.tgt_word_emb.weight]
        assert isinstance(model, LaMP)
        return [model.encoder.embedding.weight, model.labels.embedding.weight]

    def job(
        self,
        name: str,
        mode: str,
        autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> Job:
        """A training step without its optimiser, or inference."""
        model = self.models[name]

        def infer() -> Tensor:
            with torch.no_grad(), autocast():
                return self.logits(name)

        def step() -> None:
            with autocast():
                loss = self.loss(name)
            loss.backward()
            model.zero_grad(set_to_none=True)

        return step if mode == TRAINING else infer


def layouts(sizes: Sizes, names: list[str], device: str = "cpu") -> Layouts:
    """Builds the named layouts with the same weights."""
    torch.manual_seed(SEED)
    adjacency = sizes.adjacency()
    mask = None if adjacency is None else ~adjacency
    block = (sizes.channels, sizes.heads, mask, sizes.num_layers, sizes.dropout)
    released = ReleasedLayout(sizes.num_tokens, sizes.num_labels, *block)
    builders: dict[str, Callable[[], nn.Module]] = {
        OURS: partial(_lamp, released, sizes, "auto"),
        CHECKPOINTED: lambda: checkpointed(_lamp(released, sizes, "auto")),
        LITERAL: partial(_lamp, released, sizes, "reference"),
        RELEASED: lambda: released,
    }
    tokens = torch.randint(1, sizes.num_tokens, (sizes.num_samples, sizes.num_components))
    y = (torch.rand(sizes.num_samples, sizes.num_labels) < 0.1).float()
    batch = Batch.from_data_list([Data(x=row) for row in tokens])
    models = {name: builders[name]().to(device) for name in names}
    return Layouts(models, batch.to(device), tokens.to(device), y.to(device))


def _lamp(released: ReleasedLayout, sizes: Sizes, backend: str) -> LaMP:
    options: Any = {"label_adj": sizes.adjacency(), "heads": sizes.heads, "dropout": sizes.dropout}
    model = load_lamp_checkpoint(released.state_dict(), **options, backend=backend)
    assert model.features is not None
    for conv in model.features.convs:
        conv.discards = released.encoder.discard
    return model


def checkpointed(model: LaMP) -> LaMP:
    """Keeps only the states between blocks, and recomputes the rest in the backward pass."""
    for module in model.modules():
        if isinstance(module, AttentionConv):
            module.checkpointing = True
    return model


def memory_jobs(
    *,
    name: str,
    sizes: dict[str, Any],
    precision: str,
    matmul_precision: str,
    device: str,
    threads: int,
) -> dict[str, Job]:
    """Both modes of one layout, after a tiny model of the same kind has run."""
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(matmul_precision)
    cast = autocast(precision, device)
    spec = Sizes(**sizes)
    tiny = layouts(Sizes.tiny(spec.num_labels, spec.graph), [name], device)
    for mode in MODES:
        tiny.models[name].train(mode == TRAINING)
        tiny.job(name, mode, cast)()
    full = layouts(spec, [name], device)

    def in_mode(mode: str) -> Any:
        full.models[name].train(mode == TRAINING)
        return full.job(name, mode, cast)()

    return {mode: partial(in_mode, mode) for mode in MODES if not why_left_out(name, spec, mode)}


def autocast(precision: str, device: str) -> Callable[[], AbstractContextManager[Any]]:
    """The context that a forward pass runs under."""
    return nullcontext if precision == "fp32" else partial(torch.autocast, device, torch.bfloat16)
