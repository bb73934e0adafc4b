"""LaMP in three layouts with the same weights: ours, ours along explicit lists of edges, and the released code's."""

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
OURS, CHECKPOINTED, LITERAL, RELEASED = (
    "ours",
    "ours, checkpointed",
    "literal path",
    "released layout",
)
MODES = INFERENCE, TRAINING = "inference", "training"
#: The row of the matrix products of LaMP alone, at their own sizes.
PRODUCTS = "its products alone"
DEGREE = 10
#: Tensors with a row for every edge that the literal path keeps for the backward pass of one attention, and that it has
#: beside these while it computes.
KEPT_PER_EDGE, OTHERS_PER_EDGE = 3, 4
#: The literal path is left out where it would need more.
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
    num_layers: int = 2  #: steps of label message passing, and as many feature blocks
    dropout: float = 0.1

    @classmethod
    def tiny(cls, num_labels: int, graph: GraphName) -> Sizes:
        """The same model in small."""
        return cls(
            num_labels, graph, channels=16, heads=2, num_samples=3, num_components=5, num_tokens=20
        )

    def adjacency(self) -> Tensor | None:
        """The label graph as a matrix, whose rows attend to its columns; :obj:`None` if it is complete."""
        if self.graph == "complete":
            return None
        return random_graph(spread(self.num_labels, min(DEGREE, self.num_labels - 1))).mask()

    def num_label_edges(self) -> int:
        """The number of edges of the label graph."""
        adjacency = self.adjacency()
        return self.num_labels**2 if adjacency is None else int(adjacency.sum())


class Product(NamedTuple):
    """As many products of matrices ``[rows, inner]`` and ``[inner, columns]``, a batch at a time."""

    count: int
    batch: int
    rows: int
    inner: int
    columns: int

    @property
    def flop(self) -> int:
        """That of all products."""
        return 2 * self.count * self.batch * self.rows * self.inner * self.columns


def products(sizes: Sizes) -> list[Product]:
    """Those of one forward pass. Along a sparse label graph there are none, only sums along its edges."""
    d, steps, components, num_labels = (
        sizes.channels,
        sizes.num_layers,
        sizes.num_components,
        sizes.num_labels,
    )
    rows, labels, batch = (
        sizes.num_samples * each for each in (components, num_labels, sizes.heads)
    )
    found = [
        # all of the feature blocks, keys and values for the labels
        Product(8 * steps, 1, rows, d, d),
        Product(1, 1, num_labels, d, d),  # the first queries, which all samples share
        Product(10 * steps - 1, 1, labels, d, d),
        *_attention(steps, batch, components, components, d // sizes.heads),
        *_attention(steps, batch, num_labels, components, d // sizes.heads),
    ]
    if sizes.graph == "complete":
        found += _attention(steps, batch, num_labels, num_labels, d // sizes.heads)
    return found


def _attention(count: int, batch: int, queries: int, keys: int, channels: int) -> list[Product]:
    return [
        Product(count, batch, queries, channels, keys),
        Product(count, batch, queries, keys, channels),
    ]


def products_job(sizes: Sizes, mode: str, dtype: torch.dtype, device: str) -> Job:
    """All products of a pass; of training, both factors' gradients too."""
    generator = torch.Generator().manual_seed(0)

    def matrix(product: Product, *shape: int) -> Tensor:
        shape = shape if product.batch == 1 else (product.batch, *shape)
        return torch.randn(shape, generator=generator).to(device, dtype)

    factors = [
        (
            product.count,
            matrix(product, product.rows, product.inner),
            matrix(product, product.inner, product.columns),
        )
        for product in products(sizes)
    ]

    def run() -> None:
        for count, a, b in factors:
            for _ in range(count):
                grad = a @ b
                if mode == TRAINING:
                    grad @ b.mT
                    a.mT @ grad

    return run


def forward_flop(sizes: Sizes) -> int:
    """The FLOP of the matrix products that the model itself needs, forward; backward takes twice as many.

    Products along the label graph count its edges only. The label embedding meets its first query projection before it
    is repeated, and the readout is one dot product for each label.
    """
    readout = 2 * sizes.num_samples * sizes.num_labels * sizes.channels
    along_edges = (
        4 * sizes.num_layers * sizes.num_samples * sizes.num_label_edges() * sizes.channels
    )
    return (
        sum(each.flop for each in products(sizes))
        + readout
        + (0 if sizes.graph == "complete" else along_edges)
    )


def literal_bytes(sizes: Sizes, mode: str) -> int:
    """About what the literal path has in memory at its peak."""
    edges = [
        sizes.num_components**2,
        sizes.num_labels * sizes.num_components,
        sizes.num_label_edges(),
    ]
    kept = sum(edges) * sizes.num_layers * KEPT_PER_EDGE if mode == TRAINING else 0
    return (kept + max(edges) * OTHERS_PER_EDGE) * sizes.num_samples * sizes.channels * 4


def why_left_out(name: str, sizes: Sizes, mode: str) -> str | None:
    """Why a layout is too large for a mode, or :obj:`None`."""
    needed = literal_bytes(sizes, mode) if name == LITERAL else 0
    return f"{mode} would need about {1e-9 * needed:.0f} GB" if needed > MAX_LITERAL_BYTES else None


@dataclass
class Layouts:
    """Models that compute the same, and one batch as each takes it."""

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
        """The embeddings of words and labels, whose gradients every part of the model contributes to."""
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
    """Some of the layouts, with the same weights."""
    torch.manual_seed(SEED)
    adjacency = sizes.adjacency()
    mask, block = None if adjacency is None else ~adjacency, (sizes.channels, sizes.heads)
    released = ReleasedLayout(
        sizes.num_tokens, sizes.num_labels, *block, mask, sizes.num_layers, sizes.dropout
    )
    make: dict[str, Callable[[], nn.Module]] = {
        OURS: partial(_lamp, released, sizes, "auto"),
        CHECKPOINTED: lambda: checkpointed(_lamp(released, sizes, "auto")),
        LITERAL: partial(_lamp, released, sizes, "reference"),
        RELEASED: lambda: released,
    }
    tokens = torch.randint(1, sizes.num_tokens, (sizes.num_samples, sizes.num_components))
    y = (torch.rand(sizes.num_samples, sizes.num_labels) < 0.1).float()
    batch = Batch.from_data_list([Data(x=row) for row in tokens])
    models = {name: make[name]().to(device) for name in names}
    return Layouts(models, batch.to(device), tokens.to(device), y.to(device))


def _lamp(released: ReleasedLayout, sizes: Sizes, backend: str) -> LaMP:
    model = load_lamp_checkpoint(
        released.state_dict(),
        label_adj=sizes.adjacency(),
        heads=sizes.heads,
        dropout=sizes.dropout,
        backend=backend,
    )
    assert model.features is not None
    for conv in model.features.convs:
        conv.discards = released.encoder.discard
    return model


def checkpointed(model: LaMP) -> LaMP:
    """Keeps the states between blocks only, and recomputes the rest in the backward pass."""
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
    """Both modes of one layout, after a tiny model of the kind has run."""
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(matmul_precision)
    cast = autocast(precision, device)
    spec = Sizes(**sizes)
    tiny = layouts(Sizes.tiny(spec.num_labels, spec.graph), [name], device)
    for mode in MODES:
        tiny.models[name].train(mode == TRAINING)
        tiny.job(name, mode, cast)()
    measured = layouts(spec, [name], device)

    def in_mode(mode: str) -> Any:
        measured.models[name].train(mode == TRAINING)
        return measured.job(name, mode, cast)()

    return {mode: partial(in_mode, mode) for mode in MODES if not why_left_out(name, spec, mode)}


def autocast(precision: str, device: str) -> Callable[[], AbstractContextManager[Any]]:
    """The context that a forward pass runs under."""
    return nullcontext if precision == "fp32" else partial(torch.autocast, device, torch.bfloat16)
