"""Where five transcription factors bind to DNA."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tg_mlc.data.readers.fasta import LETTERS
from tg_mlc.data.readers.fasta_files import FastaFiles
from tg_mlc.data.readers.fasta_labels import one_known
from tg_mlc.data.readers.label_bytes import label_floats
from tg_mlc.data.records import Records, Tokens
from tg_mlc.datasets._sources import RawFile
from tg_mlc.datasets.base import PublishedTable

FACTORS = ("CTCF", "EP300", "JUND", "RAD21", "SIN3A")
URL = "https://raw.githubusercontent.com/QData/FastSK/cbaef897a0aaff44d1d85bde3547aa09b33d62f2/data/{}"
SHA256 = {
    "CTCF.train.fasta": "071a49683e6c7705cc324c9a5e326e7e086cde07b37749635ccbb5fd8562a1c3",
    "EP300.train.fasta": "8857a47831c6b576575163ad6850f5b40f179b497a70cd2ef11033d8706eb5f1",
    "JUND.train.fasta": "97a78f5fef8d7c180433d30112e8bc2bc2aa70be3b12a84f5f4b3489d1393261",
    "RAD21.train.fasta": "ebcd552a4535343e33e81156c2bfde64e6788ff1281bb95cb96b521321685223",
    "SIN3A.train.fasta": "3bf1b33738eb60538569b10d5b5b20769e908c1ccb2ac2052b0a7534d81a4931",
    "CTCF.test.fasta": "45d202d96c21ade343399c4642e57746df4a9c2f118c06073ee4fa2df3d4ecf0",
    "EP300.test.fasta": "8c5702c454d47f5e3b6791861db2d752a86b074b40fa016c1694116a38d601dd",
    "JUND.test.fasta": "9926884733ca2fc6f1522b095ebf971f339966c3dd1316dee4b4ca69e57ec6c8",
    "RAD21.test.fasta": "f75bebcb7c4f8645cd3c7cac91c355a26de8e03220ca31d1a555ba9691d5c67c",
    "SIN3A.test.fasta": "8faae06d440f9644cbde7130a111ce95b0d54ce14778ac65e6306bf8ba9ddfb1",
}


class BindingSites(PublishedTable):
    """Pieces of human DNA to which transcription factors bind or do not, from the `"FastSK: Fast Sequence Analysis
    with Gapped String Kernels" <https://github.com/QData/FastSK>`_ paper.

    A piece was looked at for one of the five factors only, so that the other four of its labels are unknown (NaN). A
    sample is its 100 letters as ``x``: 0 to 3 for A, C, G and T. Pieces that were looked at for two factors occur
    twice, 22 of them in both parts.

    Args:
        root (str or Path): Folder to keep the data set in.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to every sample before it is stored. (default: :obj:`None`)
        pre_filter (callable, optional): Says which samples to keep. (default: :obj:`None`)
        force_reload (bool, optional): Whether to make the samples again. (default: :obj:`False`)

    Raises:
        DatasetUnavailableError: If no source can be reached; the message says how to place the files by hand.
        ChecksumError: If a file in ``root/raw`` is another one; it is set aside with the suffix ``.bad``.

    **STATS:**

    .. list-table::
        :widths: 10 10 10 10 10
        :header-rows: 1

        * - #sequences
          - #training / #test
          - letters of a sequence
          - #labels
          - known labels of a sequence
        * - 20,000
          - 10,000 / 10,000
          - 100
          - 5
          - 1
    """

    files = tuple(
        RawFile(name, digest, urls=(URL.format(name),), local="tfbs_binary_dna/raw") for name, digest in SHA256.items()
    )

    def read(self) -> Records:
        """The sequences of all files, those for training first."""
        self.read_raw()  # checks them
        train, test = (
            [Path(self.raw_dir) / f"{factor}.{part}.fasta" for factor in FACTORS] for part in ("train", "test")
        )
        files = FastaFiles(train, test)
        labels = np.concatenate(list(one_known(files, len(FACTORS))))
        return Records(
            Tokens(files.letters, files.ptr),
            label_floats(torch.from_numpy(labels)).numpy(),
            list(FACTORS),
            list(LETTERS),
            np.arange(files.num_train),
            np.arange(files.num_train, len(files)),
        )
