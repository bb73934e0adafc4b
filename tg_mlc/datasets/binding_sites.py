"""Binding sites of five transcription factors in DNA."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tg_mlc.data.records import Records, Tokens
from tg_mlc.datasets.base import PublishedTable
from tg_mlc.datasets.registry import published
from tg_mlc.inputs.dna_dataset import LETTERS, FastaFiles, label_floats, one_known

FACTORS = ("CTCF", "EP300", "JUND", "RAD21", "SIN3A")


class BindingSites(PublishedTable):
    """Pieces of human DNA to which transcription factors bind or do not, from the `"FastSK: Fast
    Sequence Analysis with Gapped String Kernels" <https://github.com/QData/FastSK>`_ paper.

    Each piece was examined for one of the five factors only; its four other labels are unknown
    (NaN). A sample has 100 letters as ``x``: 0 to 3 for A, C, G and T. Pieces that were examined
    for two factors occur twice, 22 of them in both parts. Arguments and errors are those of
    :class:`~tg_mlc.datasets.base.PublishedDataset`.
    """

    files = published("binding-sites").files[0]

    def read(self) -> Records:
        self.read_raw()  # checks the SHA-256 of all files
        raw = Path(self.raw_dir)
        parts = "train", "test"
        files = FastaFiles(*([raw / f"{name}.{part}.fasta" for name in FACTORS] for part in parts))
        labels = torch.from_numpy(np.concatenate(list(one_known(files, len(FACTORS)))))
        train, test = np.split(np.arange(len(files)), [files.num_train])
        tokens, y = Tokens(files.letters, files.ptr), label_floats(labels).numpy()
        return Records(tokens, y, list(FACTORS), list(LETTERS), train, test)
