"""Conversions between formats that assign rows to samples."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.utils import to_dense_batch

from tg_mlc.ops.patterns import check_ptr, longest, shape_error
from tg_mlc.ops.runtime import is_recorded


def to_ptr(
    x: Tensor,
    batch: Tensor | None,
    ptr: Tensor | None,
    batch_size: int | None,
    max_num_nodes: int | None = None,
) -> Tensor:
    """Returns the bounds of each sample's rows, given ``batch``, ``ptr`` or neither."""
    if batch is not None and ptr is not None:
        raise ValueError("Expected either 'batch' or 'ptr' (got both)")
    if batch is not None:
        if not is_recorded():
            batch_size = check_batch(batch, x.size(0), batch_size)
        elif batch_size is None:
            batch_size = int(batch.max()) + 1
        # PyG's index2ptr would fix 'batch_size' under torch.compile.
        ptr = torch.searchsorted(batch, torch.arange(batch_size + 1, device=batch.device))
    elif ptr is None:
        ptr = torch.tensor([0, x.size(0)], device=x.device)
    elif not is_recorded():
        check_ptr("ptr", ptr, x.size(0), None)
    if max_num_nodes is not None and not is_recorded() and (most := longest(ptr)) > max_num_nodes:
        expected = f"'max_num_nodes' to be at least {most}, the components of the largest sample"
        raise ValueError(f"Expected {expected} (got {max_num_nodes})")
    return ptr


def to_dense(x: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """Returns rows as :obj:`[B, m, *]`, padded with zeros, and a mask that is False for padding."""
    batch, size = ptr2index(ptr, output_size=x.size(0)), max(longest(ptr), 1)
    dense: tuple[Tensor, Tensor]
    dense = to_dense_batch(x, batch, max_num_nodes=size, batch_size=ptr.numel() - 1)
    return dense


def check_components(x: Any) -> None:
    """Raises unless :obj:`x` is a matrix with one row per component."""
    if not isinstance(x, Tensor):
        cure = "; pass a batch as its 'x' and its 'batch'" if hasattr(x, "x") else ""
        raise TypeError(f"Expected 'x' to be a tensor (got {type(x).__name__}){cure}")
    if x.dim() != 2:
        raise shape_error("'x'", "[N, channels], a row for each component", x)


def check_batch(batch: Any, num_rows: int, batch_size: int | None) -> int:
    """Checks that sample indices of rows ascend, and returns the number of samples."""
    if not isinstance(batch, Tensor) or batch.dtype != torch.long:
        got = batch.dtype if isinstance(batch, Tensor) else type(batch).__name__
        raise TypeError(f"Expected 'batch' to be a tensor of torch.long (got {got})")
    if batch.shape != (num_rows,):
        raise shape_error("'batch'", f"[{num_rows}], as 'x' has rows", batch)
    if num_rows == 0 and batch_size is None:
        raise ValueError("Expected 'batch_size' beside an empty 'batch' (got None)")
    if num_rows == 0:
        return int(batch_size or 0)
    # Read all values at once, because each transfer waits for the device.
    first, last, falls = torch.stack([batch[0], batch[-1], (batch.diff() < 0).any()]).tolist()
    if first < 0 or falls:
        expected = "'batch' in ascending order from 0, as a PyG Batch has it"
        raise ValueError(f"Expected {expected} (got another order)")
    if batch_size is not None and last >= batch_size:
        got = f"{last} and {batch_size}"
        raise ValueError(f"Expected 'batch' to be less than 'batch_size' (got {got})")
    return int(last + 1 if batch_size is None else batch_size)
