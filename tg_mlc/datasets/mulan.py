"""Multi-label tables in the format of the Mulan library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tg_mlc.datasets._mulan_files import find_published
from tg_mlc.datasets._mulan_forms import read_published
from tg_mlc.datasets.base import PublishedTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_geometric.data import Data

    from tg_mlc.data.records import Records


class MulanDataset(PublishedTable):
    """Multi-label tables in the format of the `"Mulan: A Java Library for Multi-Label Learning"
    <https://jmlr.org/papers/v12/tsoumakas11a.html>`_ paper, in its authors' training and test parts.

    .. code-block:: python

        dataset = MulanDataset(root="data/mulan", name="Bibtex")
        split = dataset.official_split()  # 10% of the training part validate
        label_graph = tg_mlc.graphs.co_occurrence(dataset, split=split)

    - **Bibtex** and **Bookmarks**: tags of publications and web pages on BibSonomy, from the "Multilabel Text
      Classification for Automated Tag Suggestion" paper.
    - **Delicious**: tags of web pages, from the "Effective and Efficient Multilabel Classification in Domains with
      Large Number of Labels" paper.
    - **Yeast**: functions of genes, from the "A Kernel Method for Multi-Labelled Classification" paper.
    - **Scene**: what photographs show, from the "Learning Multi-Label Scene Classification" paper.
    - **Emotions**: moods of music, from the "Multi-Label Classification of Music into Emotions" paper.
    - **Genbase**: families of proteins, from the "Protein Classification with Multiple Algorithms" paper. The name of
      the protein, a 1,186th attribute, is left out.
    - **Corel5k**: words for photographs, from the "Object Recognition as Machine Translation: Learning a Lexicon for a
      Fixed Image Vocabulary" paper; its features are clusters of image regions.
    - **Mediamill**: concepts in news video, from the "The Challenge Problem for Automated Detection of 101 Semantic
      Concepts in Multimedia" paper.
    - **NUS-WIDE**: concepts in photographs, from the "NUS-WIDE: A Real-World Web Image Database from National
      University of Singapore" paper, as the 128 features cVLAD+ of the "A Comprehensive Study over VLAD and Product
      Quantization in Large-Scale Image Retrieval" paper.
    - **rcv1subset1** to **rcv1subset5**: topics of Reuters news, from the "RCV1: A New Benchmark Collection for Text
      Categorization Research" paper, with the 944 most frequent of 47,236 words; words and topics have numbers for
      names.

    Bibtex and Delicious hold 16 and 34 more training samples than the papers on label message passing count; all are
    kept. 14 samples of Delicious and 1,730 of Mediamill have no label.

    Each raw file is the one in ``root/<name>/raw``, or in the folder that the environment variable :obj:`TG_MLC_DATA`
    names, or is downloaded from the authors' repository, and its SHA-256 is checked. Bookmarks and NUS-WIDE are offered
    as ``.rar`` archives only: they have to be unpacked by hand, and as their SHA-256 are not known here, what was found
    is logged instead. The pickles of Mediamill and the subsets of RCV1 have to be placed by hand, too. No licence is
    stated for the tables.

    Mediamill is read from the two pickles of the scikit-multilearn package or, if they are in ``root/Mediamill/raw``,
    from Mulan's ARFF files. The pickles are never unpickled: after their SHA-256 was checked, a reader that knows the
    few operations in them, and refuses all others, takes the arrays' bytes out.

    Args:
        root (str or Path): Folder to keep the data sets in, each in a folder of its own.
        name (str): Which one, in the spelling of the table below or any with other capitals, spaces and hyphens.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to every sample before it is stored. (default: :obj:`None`)
        pre_filter (callable, optional): Says which samples to keep. (default: :obj:`None`)
        force_reload (bool, optional): Whether to make the samples again. (default: :obj:`False`)

    Raises:
        DatasetUnavailableError: If no source can be reached; the message says how to place the files by hand.
        ChecksumError: If a raw file is another one; it is set aside with the suffix ``.bad``.
        ValueError: If there is no data set of that name, or a raw file is malformed.
        RuntimeError: If the stored samples are damaged.

    **STATS** (those of Bookmarks and NUS-WIDE as Mulan reports them, all others as counted):

    .. list-table::
        :widths: 20 10 10 12 16 10 10
        :header-rows: 1

        * - name
          - #train
          - #test
          - #features
          - #labels
          - cardinality
          - density
        * - Bibtex
          - 4,880
          - 2,515
          - 1,836 words
          - 159
          - 2.402
          - 0.0151
        * - Delicious
          - 12,920
          - 3,185
          - 500 words
          - 983 (982 in test)
          - 19.020
          - 0.0193
        * - Yeast
          - 1,500
          - 917
          - 103
          - 14
          - 4.237
          - 0.3026
        * - Scene
          - 1,211
          - 1,196
          - 294
          - 6
          - 1.074
          - 0.1790
        * - Emotions
          - 391
          - 202
          - 72
          - 6
          - 1.868
          - 0.3114
        * - Genbase
          - 463
          - 199
          - 1,185 motifs
          - 27 (24 in test)
          - 1.252
          - 0.0464
        * - Corel5k
          - 4,500
          - 500
          - 499 words
          - 374 (263 in test)
          - 3.522
          - 0.0094
        * - Mediamill
          - 30,993
          - 12,914
          - 120
          - 101
          - 4.376
          - 0.0433
        * - rcv1subset1
          - 6,000
          - no split
          - 944 words
          - 101
          - 2.880
          - 0.0285
        * - rcv1subset2
          - 6,000
          - no split
          - 944 words
          - 101
          - 2.634
          - 0.0261
        * - rcv1subset3
          - 6,000
          - no split
          - 944 words
          - 101
          - 2.614
          - 0.0259
        * - rcv1subset4
          - 6,000
          - no split
          - 944 words
          - 101 (94 occur)
          - 2.266
          - 0.0224
        * - rcv1subset5
          - 6,000
          - no split
          - 944 words
          - 101 (100 occur)
          - 2.625
          - 0.0260
        * - Bookmarks, as reported
          - 87,856
          - no split
          - 2,150 words
          - 208
          - 2.028
          - 0.010
        * - NUS-WIDE, as reported
          - 161,789
          - 107,859
          - 128
          - 81
          - 1.869
          - 0.023
    """

    def __init__(
        self,
        root: str | Path,
        name: str,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
        force_reload: bool = False,
    ) -> None:
        self._published = find_published(name)
        self.name = self._published.name
        folder = Path(root) / self.name
        self.files = self._published.find_form(folder / "raw")
        super().__init__(folder, transform, pre_transform, pre_filter, force_reload)

    def read(self) -> Records:
        """Makes the table from the raw files."""
        return read_published(self.read_raw(), self._published.kind)
