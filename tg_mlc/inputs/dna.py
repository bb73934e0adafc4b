"""DNA: sequences of the letters A, C, G and T, some of which may be unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch_geometric.data import Data
from typing_extensions import Self, Unpack

from tg_mlc._input_options import INPUT_OPTIONS
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.records import Tokens
from tg_mlc.inputs.dna_dataset import LETTERS, letter_codes
from tg_mlc.inputs.kind import EncoderOptions, Form, InputKind, ReadOptions, View
from tg_mlc.inputs.preprocessor import Preprocessor
from tg_mlc.inputs.scalers import TfIdf

#: Lengths of k-mers that distinguish binding sites (Ghandi et al. 2014,
#: doi:10.1371/journal.pcbi.1003711, use 10 with gaps): 4^5 + 4^6 = 5,120 columns.
SIZES = (5, 6)
POOL = 4  #: number of letters per component of a network
MIN_LETTERS = 10  #: minimum length of a text that is recognised as DNA


class Kmers(View):
    """Counts of k-mers of 5 and 6 letters on both strands, weighted as words by
    :class:`~tg_mlc.inputs.TfIdf`.
    """

    def __init__(self) -> None:
        self.weights = TfIdf()

    def fit(self, dataset: MultiLabelDataset) -> Self:
        self.weights.learn(self._counts(dataset))
        return self

    def matrix(self, dataset: MultiLabelDataset) -> sp.csr_array:
        return self.weights.weigh(self._counts(dataset))

    def state_dict(self) -> dict[str, Any]:
        return self.weights.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.weights.load_state_dict(state)
        return self

    def _counts(self, dataset: MultiLabelDataset) -> sp.csr_array:
        rows = [kmer_numbers(data.x.numpy()) for data in dataset]
        ptr = np.cumsum([0, *map(len, rows)])
        shape = (len(rows), sum(4**size for size in SIZES))
        ones = np.ones(ptr[-1], dtype=np.float32)
        counts = sp.csr_array((ones, np.concatenate(rows), ptr), shape=shape)
        counts.sum_duplicates()
        return counts


def kmer_numbers(letters: np.ndarray) -> np.ndarray:
    """Returns the indices of the k-mers on both strands of a sequence of codes; the complement of a
    code is 3 minus the code.
    """
    indices, offset = [], 0
    for size in SIZES:
        for strand in (letters, 3 - letters[::-1]):
            if len(strand) >= size:
                windows = np.lib.stride_tricks.sliding_window_view(strand, size)
                known = ((windows >= 0) & (windows < 4)).all(axis=1)
                indices.append(offset + windows[known].astype(np.int64) @ 4 ** np.arange(size))
        offset += 4**size
    return np.concatenate([np.zeros(0, dtype=np.int64), *indices])


class DNA(InputKind):
    """Converts DNA to samples of letter codes, as in :class:`~tg_mlc.data.DNADataset`."""

    forms = {"dna": Form("sequence")}
    option = settings = role = "dna"
    command_option = INPUT_OPTIONS["dna"]
    noun, parts = "DNA", "k-mers"
    views = {"kmers": Kmers}
    constant_names = list(LETTERS)

    @classmethod
    def claims(cls, texts: Sequence[Any]) -> bool:
        """Tells whether every string has ten letters or more, all of them DNA."""
        return all(len(text) >= MIN_LETTERS and set(text.upper()) <= {*LETTERS} for text in texts)

    @classmethod
    def check(cls, raw: Any) -> None:
        letter_codes(raw)

    @classmethod
    def read(
        cls, X: Any, kind: str | None, **options: Unpack[ReadOptions]
    ) -> tuple[Tokens, list[str] | None]:
        codes: Any = [letter_codes(text) for text in X]
        return Tokens.of(codes), list(LETTERS)

    @classmethod
    def encoder(
        cls, train: MultiLabelDataset, channels: int, **options: Unpack[EncoderOptions]
    ) -> nn.Module:
        from tg_mlc.nn.encoders import DNAEncoder

        return DNAEncoder(channels, pool=POOL, both_strands=True)

    def examples(self, number: int) -> Any:
        rng = np.random.default_rng(0)
        return ["".join(rng.choice([*LETTERS], size=60 + 11 * row)) for row in range(number)]

    def components(self, sample: Data) -> list[str]:
        """Returns the components, which are groups of four letters."""
        letters = "".join(LETTERS[code] for code in sample.x.tolist())
        return [letters[start : start + POOL] for start in range(0, len(letters), POOL)]

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        """Returns a sample with N for the letters of hidden components."""
        hidden, letters = copy(sample), torch.from_numpy(~kept).repeat_interleave(POOL)
        letters = letters[: sample.x.size(0)].view(-1, *[1] * (sample.x.dim() - 1))
        hidden.x = sample.x.masked_fill(letters, LETTERS.index("N"))
        return hidden
