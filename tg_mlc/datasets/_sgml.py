"""Stories in the files of Reuters-21578: SGML that no XML parser reads, of a known SHA-256."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

STORY = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
TOPIC = re.compile(r"<D>([^<]*)</D>")
ENTITY = re.compile(r"&(lt|gt|amp|#\d{1,3});")
CHARACTERS = {"lt": "<", "gt": ">", "amp": "&"}


class Story(NamedTuple):
    """One story of the newswire."""

    number: int  #: the attribute NEWID
    has_topics: bool  #: whether the attribute TOPICS is YES: the indexers looked at it
    split: str  #: the attribute LEWISSPLIT: TRAIN, TEST or NOT-USED
    topics: list[str]
    markup: str  #: all between the text's tags

    @property
    def text(self) -> str:
        """The title and the body; a text that was never divided (``TYPE="UNPROC"``) as a whole."""
        parts = [_inside(self.markup, "TITLE"), _inside(self.markup, "BODY")]
        found = [part for part in parts if part is not None] or [self.markup]
        # The numbered entities are all control characters of the newswire, which separate.
        return ENTITY.sub(lambda entity: CHARACTERS.get(entity[1], " "), "\n".join(found))


def read_stories(content: bytes) -> Iterator[Story]:
    """Yields the stories of a file in order."""
    for story in STORY.finditer(content.decode("latin-1")):  # reut2-017.sgm is not UTF-8
        attributes = dict(ATTRIBUTE.findall(story[1]))
        topics, markup = (_inside(story[2], tag) or "" for tag in ("TOPICS", "TEXT"))
        number, has_topics = int(attributes["NEWID"]), attributes["TOPICS"] == "YES"
        yield Story(number, has_topics, attributes["LEWISSPLIT"], TOPIC.findall(topics), markup)


def _inside(markup: str, tag: str) -> str | None:
    """The text between a tag and its end."""
    begin = markup.find(f"<{tag}")
    start = markup.find(">", begin)
    end = markup.rfind(f"</{tag}>")
    return markup[start + 1 : end] if 0 <= begin < start < end else None
