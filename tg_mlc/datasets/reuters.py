"""Reuters-21578: news stories of 1987 with their topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from typing_extensions import Unpack

from tg_mlc.data.records import Records
from tg_mlc.data.samples import settings_key
from tg_mlc.datasets.base import DatasetOptions, PublishedTable, TextOptions, label_matrix
from tg_mlc.datasets.downloads import read_checked
from tg_mlc.datasets.registry import published
from tg_mlc.inputs.words import tokenize

*_STORY_FILES, _DESCRIPTIONS = published("reuters").files[0]
# Lines in the section of topics, such as 'Housing Starts (HOUSING)', or only 'COCOA'.
DESCRIBED = re.compile(r"(.*\S) \(([A-Z-]+)\)")
NAME_ALONE = re.compile(r"[A-Z-]+")
# XML parsers cannot read the SGML of the stories.
STORY = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
TOPIC = re.compile(r"<D>([^<]*)</D>")
ENTITY = re.compile(r"&(lt|gt|amp|#\d{1,3});")
CHARACTERS = {"lt": "<", "gt": ">", "amp": "&"}


class Story(NamedTuple):
    """One story of the newswire."""

    number: int  #: the attribute NEWID
    has_topics: bool  #: whether the attribute TOPICS is YES: indexers read the story
    split: str  #: the attribute LEWISSPLIT: TRAIN, TEST or NOT-USED
    topics: list[str]
    markup: str  #: everything inside the tag TEXT
    places: Sequence[str] = ()  #: the countries that indexers named
    people: Sequence[str] = ()  #: the people that indexers named
    date: str = ""  #: when it was sent, such as 26-FEB-1987 15:01:01.79

    @property
    def text(self) -> str:
        """The title and body, or the whole text if there are none (``TYPE="UNPROC"``)."""
        parts = [_inside(self.markup, "TITLE"), _inside(self.markup, "BODY")]
        texts = [part for part in parts if part is not None] or [self.markup]
        # All numbered entities are control characters of the newswire, which separate words.
        return ENTITY.sub(lambda entity: CHARACTERS.get(entity[1], " "), "\n".join(texts))


class Reuters21578(PublishedTable):
    """The stories of the `Reuters-21578 text categorization collection
    <http://www.daviddlewis.com/resources/testcollections/reuters21578/>`_ with their topics, in
    the "ModApte" split and reduced to the 90 topics that occur in both of its parts, as in
    the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper.

    **Licence of the data:** free distribution for research purposes only, says the collection's
    ``README.txt``; the copyright is with Reuters Ltd.

    A sample is the ordered words of title and body: all runs of letters in lower case
    (:func:`tg_mlc.inputs.words.tokenize`). The vocabulary has the words of published training
    stories, which :meth:`official_split` divides into training and validation; word 0,
    ``"<unk>"``, replaces all other words. (The paper counts 23,662 words in its 6,993 training
    stories; by our count, 6,993 of the 7,770 have about 23,700.) Two stories have a topic twice,
    which counts once. The folder in :obj:`TG_MLC_DATA` is ``reuters21578/raw``.

    Args:
        root (str or Path): Folder to keep the data set in.
        min_count (int, optional): The minimum count of a word in training stories.
            (default: :obj:`1`)
        max_size (int, optional): The maximum number of words in the vocabulary, by frequency.
            (default: :obj:`None`, all)
        max_tokens (int, optional): The maximum number of words of a story, from its beginning.
            (default: :obj:`None`, all)
        **options (optional), and further errors: As in
            :class:`~tg_mlc.datasets.base.PublishedDataset`.
    """

    tokenizer = "letters"
    license = published("reuters").licence
    files = (*_STORY_FILES, _DESCRIPTIONS)

    def __init__(
        self,
        root: str | Path,
        *,
        min_count: int = 1,
        max_size: int | None = None,
        max_tokens: int | None = None,
        **options: Unpack[DatasetOptions],
    ) -> None:
        self.options = TextOptions(min_count, max_size, max_tokens).check()
        super().__init__(root, **options)

    @property
    def processed_file_names(self) -> str:
        key = "" if self.options == TextOptions() else f"_{settings_key(*self.options)}"
        return f"data{key}.pt"

    @property
    def label_descriptions(self) -> dict[str, str]:
        """Descriptions of topics in the collection's list, or the names of commodities."""
        text = read_checked(_DESCRIPTIONS, Path(self.raw_dir)).decode("latin-1")
        topics = text.partition("****Subject Codes")[2].partition("____")[0]
        descriptions = {}
        for line in map(str.strip, topics.splitlines()):
            if match := DESCRIBED.fullmatch(line):
                descriptions[match[2].lower()] = match[1]
            elif NAME_ALONE.fullmatch(line):
                descriptions[line.lower()] = line.replace("-", " ").capitalize()
        return descriptions

    @property
    def stories(self) -> list[Story]:
        """The story of each sample. Raises ValueError for a filtered data set."""
        if self.pre_filter is not None:
            got = "(got one with 'pre_filter'); load it without"
            raise ValueError(f"Expected a data set of all stories {got}")
        stories, _ = select_modapte(self._read_stories())
        return [stories[row] for row in self._places()]

    def read(self) -> Records:
        stories, topics = select_modapte(self._read_stories())
        documents = [tokenize(story.text, "letters") for story in stories]
        in_train = np.array([story.split == "TRAIN" for story in stories])
        train, test = np.flatnonzero(in_train), np.flatnonzero(~in_train)
        tokens, words = self.options.encode((documents[row] for row in train), documents)
        y = label_matrix((set(story.topics).intersection(topics) for story in stories), topics)
        return Records(tokens, y, topics, words, train, test)

    def _read_stories(self) -> Iterator[Story]:
        raw = self.read_raw()
        del raw[_DESCRIPTIONS.name]
        return (story for content in raw.values() for story in read_stories(content))


def select_modapte(stories: Iterable[Story]) -> tuple[list[Story], list[str]]:
    """Returns stories of the "ModApte" split (README.txt, section VIII.B) with topics that occur in
    both parts, ordered by number, and these topics, sorted.
    """
    topics_by_split: dict[str, set[str]] = {"TRAIN": set(), "TEST": set()}
    indexed = [story for story in stories if story.has_topics and story.split in topics_by_split]
    for story in indexed:
        topics_by_split[story.split].update(story.topics)
    topics = topics_by_split["TRAIN"] & topics_by_split["TEST"]
    selected = [story for story in indexed if not topics.isdisjoint(story.topics)]
    return sorted(selected, key=lambda story: story.number), sorted(topics)


def read_stories(content: bytes) -> Iterator[Story]:
    """Yields the stories of a file in order."""
    for story in STORY.finditer(content.decode("latin-1")):  # reut2-017.sgm is not UTF-8
        attributes = dict(ATTRIBUTE.findall(story[1]))
        tags = ("TOPICS", "PLACES", "PEOPLE")
        topics, places, people = (TOPIC.findall(_inside(story[2], tag) or "") for tag in tags)
        markup, date = (_inside(story[2], tag) or "" for tag in ("TEXT", "DATE"))
        number, has_topics = int(attributes["NEWID"]), attributes["TOPICS"] == "YES"
        known = number, has_topics, attributes["LEWISSPLIT"], topics, markup
        yield Story(*known, places, people, date.strip())


def _inside(markup: str, tag: str) -> str | None:
    """Returns the text between a tag and its end."""
    begin = markup.find(f"<{tag}")
    start = markup.find(">", begin)
    end = markup.rfind(f"</{tag}>")
    return markup[start + 1 : end] if 0 <= begin < start < end else None
