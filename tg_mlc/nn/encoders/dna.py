"""Encoder of DNA: a convolution over letters."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.index import ptr2index

from tg_mlc._options import check_count
from tg_mlc.nn.encoders.components import Components, ptr_of, read_symbols

NUM_LETTERS = 4


class DNAEncoder(nn.Module):
    r"""The convolution over DNA from the `"Neural Message Passing for Multi-Label
    Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    .. math::
        \mathbf{z}_k = \max_{kp \, \leq \, i \, < \, (k + 1) p} \textrm{ReLU} \Big( \mathbf{b} +
        \sum_{j=0}^{w - 1} \mathbf{W}_j \, \mathbf{e}(x_{i + j - \lfloor w / 2 \rfloor}) \Big)

    with one-hot vectors :math:`\mathbf{e}` of A, C, G and T. An unknown letter has the value 1/4 in
    each entry. Sequences are padded with zeros. Defaults follow the authors' released code.

    Args:
        channels (int): Size :math:`d` of a state.
        kernel_size (int, optional): The width :math:`w` of the convolution. (default: :obj:`16`)
        pool (int, optional): The number :math:`p` of letters per component. (default: :obj:`2`)
        both_strands (bool, optional): If set to :obj:`True`, takes the maximum with the reverse
            complement. (default: :obj:`False`)

    Shapes:
        - **input:** a batch with letters :obj:`x` of shape :math:`(N)` or :math:`(N, 1)`: 0 to 3
          for A, C, G and T, 4 for an unknown letter
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states
          :math:`(\sum_b \lceil n_b / p \rceil, d)`

    Raises:
        ValueError: If an option is less than 1, or the letters are of another shape or type.
    """

    edge_dim: int | None = None
    one_hot: Tensor

    def __init__(
        self, channels: int, kernel_size: int = 16, pool: int = 2, *, both_strands: bool = False
    ) -> None:
        super().__init__()
        check_count("kernel_size", kernel_size)
        check_count("pool", pool)
        self.channels = channels
        self.pool = pool
        self.both_strands = both_strands
        self.conv = nn.Conv1d(NUM_LETTERS, channels, kernel_size)
        unknown = torch.full((1, NUM_LETTERS), 1 / NUM_LETTERS)
        one_hot = torch.cat([torch.eye(NUM_LETTERS), unknown])
        self.register_buffer("one_hot", one_hot, persistent=False)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.conv.reset_parameters()

    def forward(self, data: Data) -> Components:
        """Encodes the sequences of a batch."""
        ptr = ptr_of(data)
        dtypes, cure = (torch.uint8, torch.long, torch.int), "words are for SequenceEncoder"
        x = self.one_hot[read_symbols(data, "letters", dtypes, NUM_LETTERS, cure)]
        sizes = ptr.diff()
        may_be_ragged = torch.compiler.is_compiling() or sizes.numel() == 0
        if may_be_ragged or not sizes[0] or bool((sizes != sizes[0]).any()):
            return self._ragged(x, ptr)
        x = self._convolve(x.view(sizes.numel(), -1, NUM_LETTERS).mT)  # [B, d, n]
        x = nn.functional.max_pool1d(x, self.pool, ceil_mode=True).mT.reshape(-1, self.channels)
        num_components = -(-int(sizes[0]) // self.pool)
        return Components(x, torch.arange(ptr.numel(), device=x.device) * num_components)

    def _ragged(self, x: Tensor, ptr: Tensor) -> Components:
        """Convolves all samples in one sequence, with gaps wider than the kernel between them."""
        sizes = ptr.diff()
        widened = sizes + self.conv.kernel_size[0]
        slots = (torch.div(widened, self.pool, rounding_mode="floor") + 1) * self.pool
        sample = ptr2index(ptr, output_size=x.size(0))
        position = torch.arange(x.size(0), device=x.device) - ptr[sample]
        index = position + (slots.cumsum(0) - slots)[sample]
        # Upper bound of the total number of rows, known without a transfer from the device.
        num_rows = x.size(0) + sizes.numel() * (self.conv.kernel_size[0] + self.pool)
        spaced = x.new_zeros(num_rows, NUM_LETTERS).index_copy(0, index, x)
        inside = x.new_zeros(spaced.size(0)).index_fill(0, index, 1.0)
        x = self._convolve(spaced.t().unsqueeze(0))  # [1, d, sum of slots]
        # Pool in 2D, because torch.export would fix the length of a 1D pooling.
        x = nn.functional.max_pool2d(x * inside.to(x.dtype), (1, self.pool)).squeeze(0).t()
        rows = torch.div(index[position % self.pool == 0], self.pool, rounding_mode="floor")
        counts = torch.div(sizes + self.pool - 1, self.pool, rounding_mode="floor")
        return Components(x[rows], nn.functional.pad(counts.cumsum(0), (1, 0)))

    def _convolve(self, x: Tensor) -> Tensor:
        left = self.conv.kernel_size[0] // 2
        padding = (left, self.conv.kernel_size[0] - 1 - left)
        # Flipping both axes gives the reverse complement: A pairs with T, and C with G.
        strands = [x, x.flip(1, 2)] if self.both_strands else [x]
        padded = [nn.functional.pad(strand, padding) for strand in strands]
        out = [nn.functional.relu(self.conv(strand)) for strand in padded]
        return torch.maximum(out[0], out[1].flip(2)) if self.both_strands else out[0]
