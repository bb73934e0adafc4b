"""Assignment of rows to samples, in the forms that modules take."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.utils import to_dense_batch

from tg_mlc.ops.patterns import check_ptr, longest
from tg_mlc.ops.runtime import is_recorded


def to_ptr(
    x: Tensor,
    batch: Tensor | None,
    ptr: Tensor | None,
    batch_size: int | None,
    max_num_nodes: int | None = None,
) -> Tensor:
    """Pointers to where the rows of every sample begin and end, from whichever of the two forms is given."""
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
    if max_num_nodes is not None and not is_recorded() and longest(ptr) > max_num_nodes:
        raise ValueError(
            f"Expected 'max_num_nodes' to be at least {longest(ptr)}, the components of the largest sample "
            f"(got {max_num_nodes})"
        )
    return ptr


def to_dense(x: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of every sample in :obj:`[B, m, *]`, filled up with zeros, and which of the :math:`m >= 1` it has."""
    batch = ptr2index(ptr, output_size=x.size(0))
    return to_dense_batch(x, batch, max_num_nodes=max(longest(ptr), 1), batch_size=ptr.numel() - 1)  # type: ignore[no-any-return]


def check_components(x: Any) -> None:
    """Refuses anything but the states of components."""
    if not isinstance(x, Tensor):
        hint = "; pass a batch as its 'x' and its 'batch'" if hasattr(x, "x") else ""
        raise TypeError(f"Expected 'x' to be a tensor (got {type(x).__name__}){hint}")
    if x.dim() != 2:
        raise ValueError(
            f"Expected 'x' of shape [N, channels], a row for each component (got {list(x.shape)})"
        )


def check_batch(batch: Any, num_rows: int, batch_size: int | None) -> int:
    """Refuses anything but a sample for every row, in ascending order, and returns the number of samples."""
    if not isinstance(batch, Tensor) or batch.dtype != torch.long:
        got = batch.dtype if isinstance(batch, Tensor) else type(batch).__name__
        raise TypeError(f"Expected 'batch' to be a tensor of torch.long (got {got})")
    if batch.shape != (num_rows,):
        raise ValueError(
            f"Expected 'batch' of shape [{num_rows}], as 'x' has rows (got {list(batch.shape)})"
        )
    if num_rows == 0 and batch_size is None:
        raise ValueError("Expected 'batch_size' beside an empty 'batch' (got None)")
    if num_rows == 0:
        return int(batch_size or 0)
    # Every question would wait for the device, so that all are asked at once:
    first, last, falls = torch.stack([batch[0], batch[-1], (batch.diff() < 0).any()]).tolist()
    if first < 0 or falls:
        raise ValueError(
            "Expected 'batch' in ascending order from 0, as a PyG Batch has it (got another order)"
        )
    if batch_size is not None and last >= batch_size:
        raise ValueError(
            f"Expected 'batch' to be less than 'batch_size' (got {last} and {batch_size})"
        )
    return int(last + 1 if batch_size is None else batch_size)
