"""News stories of 1987 with their topics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tg_mlc.data._settings import settings_key
from tg_mlc.data.records import Records
from tg_mlc.data.vocabulary import tokenize
from tg_mlc.datasets._archive import fetch_members
from tg_mlc.datasets._label_rows import LabelRows
from tg_mlc.datasets._sgml import read_stories
from tg_mlc.datasets._sources import RawFile, read_checked
from tg_mlc.datasets._texts import TextOptions
from tg_mlc.datasets.base import PublishedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch_geometric.data import Data

    from tg_mlc.datasets._sgml import Story

LOCAL = "reuters21578/raw"
# reut2-000.sgm to reut2-021.sgm of Distribution 1.0.
SHA256 = (
    "0ec53cda8f6d605a3ba710df14be7f00fc02f0c222a14748101df22326afe0f6",
    "1528e7e82d110d88d0234eb9619eadb7f9fd805711971df05975b92277dfdf4d",
    "99f18068d0518952987dedd78c622e5c2a584e357d264d3754696c815f3e6628",
    "78a3a8d7e04bc9d42c4614d5d5c60a4293dbe3f708df6fb5a71d9ef31f4b3fa3",
    "726342c19a65873330b412378cd6a3f0d512035f5223146ddd60930c62eb6ff0",
    "d09de619b6dd2d047d5124681f6df90550abaf592020d1c1ce338ae9b91522e7",
    "b5535c0d66b01f4976f84621a4a795afbc00d2c4bd0a1b7ae426df6630fb361d",
    "aa706007ec84a03537a3921ca976d60e11b3f99e4b9e9b2d5c81dd384d2c2062",
    "a3994583694a00b7c744097c1d7eabfcf90f2e6650cc21663e46828035a336cb",
    "29995f606dd1a9bdf907eacc9d879846c716860d9d9141676979474aaea39c7d",
    "996df6008089bd09fa5b28a4d2eb0ee5f7b9d4601cde566fed3926ac82960fa3",
    "d3a2782015247d9c2bffb8926267827fdd449c70d619435ef01a25a1c56a53ca",
    "da31035d483851f2aebce5b66d779e5e2c0ac9dcfe098596c6d544e81c5604ab",
    "8f7700bc0455fac3fcc12377ced4807b7df8aba1f21ecad059b9cc2b1cf0b8be",
    "ef936bd3e0f36cf722afa9a6957563549775af32e9e28b4f539c8737ceda83ab",
    "6d3bcec73eff871b8a5403588af814c4e50a0de6bc25707480522ab836f74026",
    "be2f03a185fff70131f3b4fdbd6229b7ee2be077eba9691eaa597c8cfbda8812",
    "f370e610b4b1342e41a98e0c426a08541044bd1d7e539674f32372a6060b73b5",
    "a5f971bf25448e915781962309e669359a35fbcaf3017a806eca0590897f209a",
    "d3b07097fba2633d130b4914aceba671645985248943ce9e39c289315339dffb",
    "f6ad1b724125c202566c63b35ea0b5ee23881f8b7ed47a32829d5af05d8e860d",
    "3f5196d32869723c9042aa5756805b4e90360f1f45ea17f4594fa0e2b3630b18",
)
DESCRIPTIONS = RawFile(
    "cat-descriptions_120396.txt", "70ae663742b7f94217c9dc8b2741a07c339fd272460f17523aed683b5ad7ee1f", local=LOCAL
)
# The distribution is one archive, offered by the editor of the collection and by two archives of the same university.
URLS = (
    "http://www.daviddlewis.com/resources/testcollections/reuters21578/reuters21578.tar.gz",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/reuters21578.tar.gz",
    "http://kdd.ics.uci.edu/databases/reuters21578/reuters21578.tar.gz",
)
# A line of the section of topics: 'Housing Starts (HOUSING)', or 'COCOA' alone.
DESCRIBED = re.compile(r"(.*\S) \(([A-Z-]+)\)")
NAME_ALONE = re.compile(r"[A-Z-]+")


class Reuters21578(PublishedTable):
    """The stories of the `Reuters-21578 text categorization collection
    <http://www.daviddlewis.com/resources/testcollections/reuters21578/>`_ with their topics, split as in the "ModApte"
    split and reduced to the 90 topics that occur in both of its parts, as in the `"Neural Message Passing for
    Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    **Licence of the data:** free distribution for research purposes only, says the collection's ``README.txt``; the
    copyright is with Reuters Ltd.

    A sample is the words of a title and a body in order: all runs of letters in lower case
    (:func:`tg_mlc.data.vocabulary.tokenize`). The vocabulary is that of the published training stories, which
    :meth:`official_split` divides into training and validation; word 0, ``"<unk>"``, stands for all others. (The
    paper counts 23,662 words in its 6,993 training stories; by our count, 6,993 of the 7,770 have about 23,700.)
    Samples are in the order of their numbers in the collection. Texts that were never divided into title and body are
    taken whole. Two stories have a topic twice, which counts once (counted twice, a story has 1.236 labels).

    The raw files come from ``root/raw``, from ``reuters21578/raw`` in the folder that the environment variable
    :obj:`TG_MLC_DATA` names, or from the collection's archive. Their SHA-256 is checked in each case.

    Args:
        root (str or Path): Folder to keep the data set in.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to every sample before it is stored. (default: :obj:`None`)
        pre_filter (callable, optional): Says which samples to keep. (default: :obj:`None`)
        force_reload (bool, optional): Whether to make the samples again. (default: :obj:`False`)
        min_count (int, optional): How often a word must occur in the training stories. (default: :obj:`1`)
        max_size (int, optional): How many words to keep, the most frequent ones. (default: :obj:`None`, all)
        max_tokens (int, optional): How many words of a story to keep, from its beginning.
            (default: :obj:`None`, all)

    Raises:
        DatasetUnavailableError: If no source can be reached; the message says how to place the files by hand.
        ChecksumError: If a file in ``root/raw`` is another one; it is set aside with the suffix ``.bad``.
        ValueError: If an option is out of range.

    **STATS:**

    .. list-table::
        :widths: 10 10 10 10 10 10
        :header-rows: 1

        * - #stories
          - #training / #test
          - #words
          - words of a story
          - #labels
          - labels of a story
        * - 10,789
          - 7,770 / 3,019
          - 24,804
          - ~122.8 (5 to 1,332)
          - 90
          - 1.235
    """

    license = "research purposes only"
    files = (
        *(RawFile(f"reut2-{number:03}.sgm", digest, local=LOCAL) for number, digest in enumerate(SHA256)),
        DESCRIPTIONS,
    )

    def __init__(
        self,
        root: str | Path,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
        force_reload: bool = False,
        *,
        min_count: int = 1,
        max_size: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.options = TextOptions(min_count, max_size, max_tokens).check()
        super().__init__(root, transform, pre_transform, pre_filter, force_reload)

    @property
    def processed_file_names(self) -> str:
        """The processed file, one for each choice of options."""
        return "data.pt" if self.options == TextOptions() else f"data_{settings_key(*self.options)}.pt"

    @property
    def label_descriptions(self) -> dict[str, str]:
        """What each topic is, as in the collection's list; the commodities have no words there but their name."""
        return _read_descriptions(read_checked(DESCRIPTIONS, Path(self.raw_dir)).decode("latin-1"))

    def download(self) -> None:
        """Gets the raw files that are missing."""
        fetch_members(self.files, Path(self.raw_dir), URLS)

    @property
    def stories(self) -> list[Story]:
        """The story of each sample, with its number in the collection and its text, read again from the raw files."""
        if self.pre_filter is not None:
            raise ValueError("Expected a data set of all stories (got one with 'pre_filter'); load it without")
        stories, _ = select_modapte(self._read_stories())
        return [stories[place] for place in self._places()]

    def read(self) -> Records:
        """Makes the table from the raw files."""
        stories, topics = select_modapte(self._read_stories())
        documents = [tokenize(story.text) for story in stories]
        in_train = np.array([story.split == "TRAIN" for story in stories])
        train, test = np.flatnonzero(in_train), np.flatnonzero(~in_train)
        tokens, words = self.options.encode((documents[row] for row in train), documents)
        labels = LabelRows(topics)
        for story in stories:
            labels.add(set(story.topics).intersection(topics))
        return Records(tokens, labels.to_csr(), topics, words, train, test)

    def _read_stories(self) -> Iterator[Story]:
        raw = self.read_raw()
        del raw[DESCRIPTIONS.name]
        return (story for name, content in raw.items() for story in read_stories(content, name))


def select_modapte(stories: Iterable[Story]) -> tuple[list[Story], list[str]]:
    """The stories of both parts of the "ModApte" split (README.txt, section VIII.B) that have one of the topics which
    occur in both, in order of their numbers, and these topics in the order of the alphabet.
    """
    chosen = [story for story in stories if story.has_topics and story.split in ("TRAIN", "TEST")]
    by_part = [
        {topic for story in chosen if story.split == part for topic in story.topics} for part in ("TRAIN", "TEST")
    ]
    topics = by_part[0] & by_part[1]
    kept = [story for story in chosen if not topics.isdisjoint(story.topics)]
    return sorted(kept, key=lambda story: story.number), sorted(topics)


def _read_descriptions(text: str) -> dict[str, str]:
    topics = text.partition("****Subject Codes")[2].partition("____")[0]
    descriptions = {}
    for line in map(str.strip, topics.splitlines()):
        if found := DESCRIBED.fullmatch(line):
            descriptions[found[2].lower()] = found[1]
        elif NAME_ALONE.fullmatch(line):
            descriptions[line.lower()] = line.replace("-", " ").capitalize()
    return descriptions
