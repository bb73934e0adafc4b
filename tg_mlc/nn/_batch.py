"""The two ways to say which sample a row belongs to."""

from __future__ import annotations

import torch
from torch import Tensor

from tg_mlc.ops.checks import check_ptr


def to_ptr(x: Tensor, batch: Tensor | None, ptr: Tensor | None, batch_size: int | None) -> Tensor:
    """Where the rows of every sample begin and end, from whichever of the two forms is given."""
    if batch is not None and ptr is not None:
        raise ValueError("Expected either 'batch' or 'ptr' (got both)")
    if batch is None and ptr is None:
        return torch.tensor([0, x.size(0)], device=x.device)
    if ptr is None:
        assert batch is not None
        if not torch.compiler.is_compiling():
            check_batch(batch, x.size(0), batch_size)
        size = int(batch.max()) + 1 if batch_size is None else batch_size
        # PyG's index2ptr would fix 'size' under torch.compile.
        ptr = torch.searchsorted(batch, torch.arange(size + 1, device=batch.device))
    elif not torch.compiler.is_compiling():
        check_ptr("ptr", ptr, x.size(0), None)
    assert ptr is not None
    return ptr


def check_batch(batch: Tensor, num_rows: int, batch_size: int | None) -> None:
    """Raises a clear error unless :obj:`batch` assigns every row to a sample, in ascending order."""
    if batch.shape != (num_rows,) or batch.dtype != torch.long:
        raise ValueError(
            f"Expected 'batch' of shape [{num_rows}] in torch.long (got {list(batch.shape)} in {batch.dtype})"
        )
    if num_rows == 0 and batch_size is None:
        raise ValueError("Expected 'batch_size' beside an empty 'batch' (got None)")
    if num_rows > 0 and (int(batch[0]) < 0 or bool((batch.diff() < 0).any())):
        raise ValueError("Expected 'batch' in ascending order from 0, as a PyG Batch has it (got another order)")
    if num_rows > 0 and batch_size is not None and int(batch[-1]) >= batch_size:
        raise ValueError(f"Expected 'batch' to be less than 'batch_size' (got {int(batch[-1])} and {batch_size})")
