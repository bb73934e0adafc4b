"""Matrix products of LaMP alone, at their own sizes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.speed.layouts import TRAINING, Sizes
from benchmarks.speed.measure import Job

#: Their row beside the layouts.
PRODUCTS = "its products alone"


class Product(NamedTuple):
    """As many products of matrices ``[rows, inner]`` and ``[inner, columns]``, a batch at a time."""

    count: int
    batch: int
    rows: int
    inner: int
    columns: int

    @property
    def flop(self) -> int:
        """Of all of them."""
        return 2 * self.count * self.batch * self.rows * self.inner * self.columns


def products(sizes: Sizes) -> list[Product]:
    """Those of one forward pass. Along a sparse label graph there are none, only sums along its edges."""
    d, steps, components, num_labels = sizes.channels, sizes.num_layers, sizes.num_components, sizes.num_labels
    rows, labels, batch = (
        sizes.num_samples * components,
        sizes.num_samples * num_labels,
        sizes.num_samples * sizes.heads,
    )
    found = [
        Product(8 * steps, 1, rows, d, d),  # all of the feature blocks, keys and values for the labels
        Product(1, 1, num_labels, d, d),  # the first queries, which all samples share
        Product(10 * steps - 1, 1, labels, d, d),
        *_attention(steps, batch, components, components, d // sizes.heads),
        *_attention(steps, batch, num_labels, components, d // sizes.heads),
    ]
    if sizes.graph == "fc":
        found += _attention(steps, batch, num_labels, num_labels, d // sizes.heads)
    return found


def _attention(count: int, batch: int, queries: int, keys: int, channels: int) -> list[Product]:
    return [Product(count, batch, queries, channels, keys), Product(count, batch, queries, keys, channels)]


def products_job(sizes: Sizes, mode: str, dtype: torch.dtype, device: str) -> Job:
    """All products of a pass; of training, both factors' gradients too."""
    generator = torch.Generator().manual_seed(0)

    def matrix(product: Product, *shape: int) -> Tensor:
        shape = shape if product.batch == 1 else (product.batch, *shape)
        return torch.randn(shape, generator=generator).to(device, dtype)

    factors = [
        (product.count, matrix(product, product.rows, product.inner), matrix(product, product.inner, product.columns))
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
