"""Components: what every input encoder returns."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc.nn._batch import to_ptr


class Components(NamedTuple):
    """The components of a batch of inputs, as states that labels can attend to."""

    x: Tensor  #: ``[N, channels]``, the states of all samples one after another
    ptr: Tensor  #: ``[B + 1]``, where those of every sample begin and end
    edge_index: Tensor | None = None  #: the known graph among them, if there is one
    edge_attr: Tensor | None = None  #: ``[num_edges, channels]``, the states of its edges
    to_label: Tensor | None = None  #: ``[N]``, the one label that attends to each component, all if None


def check_columns(x: Tensor, num_columns: int, name: str) -> None:
    """Raises a clear error unless every row of :obj:`x` has so many entries; -1 stands for any number."""
    if x.dim() != 2 or (num_columns != -1 and x.size(1) != num_columns):
        raise ValueError(
            f"Expected {name} of shape [N, {'F' if num_columns == -1 else num_columns}] (got {list(x.shape)})"
        )


def read_symbols(data: Data, called: str, dtypes: tuple[torch.dtype, ...], highest: int, hint: str) -> Tensor:
    """The words or letters ``x`` of a batch as ``[N]`` numbers from 0 to the highest."""
    x: Tensor = data.x
    if x.dim() != 1 and (x.dim() != 2 or x.size(1) != 1):
        raise ValueError(
            f"Expected {called} 'x' of shape [N] or [N, 1], those of all samples one after another (got "
            f"{list(x.shape)}); of padded rows, make a sample of each without its padding and batch these"
        )
    if x.dtype not in dtypes:
        wanted = " or ".join(map(str, dtypes))
        raise ValueError(f"Expected {called} 'x' to be whole numbers, {wanted} (got {x.dtype}); {hint}")
    # On a GPU, a look would wait for all work before it.
    if not torch.compiler.is_compiling() and x.device.type == "cpu" and x.numel() > 0:
        lowest, most = (int(value) for value in x.aminmax())
        if lowest < 0 or most > highest:
            raise ValueError(f"Expected {called} 'x' from 0 to {highest} (got {lowest} to {most}); {hint}")
    return x.flatten().long()


def ptr_of(data: Data) -> Tensor:
    """Pointers to the nodes of every sample of a :class:`~torch_geometric.data.Data` or a batch of them."""
    ptr: Tensor | None = data.get("ptr")
    batch: Tensor | None = data.get("batch") if ptr is None else None
    # Only a Batch knows how many samples it holds, the last of which may be empty.
    return to_ptr(data.x, batch, ptr, getattr(data, "num_graphs", None))
