"""Stories of the Reuters-21578 files, which are SGML that no XML parser reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

OPEN = re.compile(r"<REUTERS\b([^>]{0,1000})>")
CLOSE = "</REUTERS>"
# What may stand between stories: white space, and the document type in front.
BETWEEN = re.compile(r"\s*(?:<!DOCTYPE[^>]*>)?\s*")
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
TOPIC = re.compile(r"<D>([^<]*)</D>")
ENTITY = re.compile(r"&(lt|gt|amp|#\d{1,3});")
CHARACTERS = {"lt": "<", "gt": ">", "amp": "&"}
ALLOWED = {"TOPICS": ("YES", "NO", "BYPASS"), "LEWISSPLIT": ("TRAIN", "TEST", "NOT-USED")}


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
        return ENTITY.sub(_character, "\n".join(found))


def read_stories(content: bytes, name: str) -> Iterator[Story]:
    """Yields the stories of a file in order.

    Raises:
        ValueError: If the file is truncated or not of this form; the message names the line.
    """
    text = content.decode("latin-1")  # reut2-017.sgm is not UTF-8
    position = _skip(text, 0)
    line = 1 + text.count("\n", 0, position)
    if position == len(text):
        raise ValueError(f"Expected '{name}' to hold stories between <REUTERS> and {CLOSE} (got none)")
    while position < len(text):
        where = f"line {line} of '{name}'"
        begin = OPEN.match(text, position)
        if begin is None:
            raise ValueError(f"Expected a story to begin in {where} (got {text[position : position + 40]!r})")
        end = text.find(CLOSE, begin.end())
        if end < 0 or OPEN.search(text, begin.end(), end):
            raise ValueError(f"Expected the story that begins in {where} to end with {CLOSE} (got no such tag)")
        yield _story(dict(ATTRIBUTE.findall(begin[1])), text[begin.end() : end], where)
        after = _skip(text, end + len(CLOSE))
        line += text.count("\n", position, after)
        position = after


def _story(attributes: dict[str, str], inside: str, where: str) -> Story:
    for key, values in ALLOWED.items():
        if attributes.get(key) not in values:
            raise ValueError(
                f"Expected the story in {where} to have {key} of {', '.join(values)} (got {attributes.get(key)!r})"
            )
    number = attributes.get("NEWID", "")
    if not re.fullmatch("[0-9]{1,9}", number):
        raise ValueError(f"Expected the story in {where} to have a number as NEWID (got {number[:20]!r})")
    topics, markup = _inside(inside, "TOPICS"), _inside(inside, "TEXT")
    if topics is None or markup is None:
        raise ValueError(f"Expected the story in {where} to have <TOPICS> and <TEXT> with their ends (got not both)")
    names = TOPIC.findall(topics)
    if len(names) != topics.count("<D>"):
        raise ValueError(f"Expected the topics in {where} to stand between <D> and </D> (got {topics[:60]!r})")
    return Story(int(number), attributes["TOPICS"] == "YES", attributes["LEWISSPLIT"], names, markup)


def _inside(markup: str, tag: str) -> str | None:
    """What stands between a tag and its end."""
    begin = markup.find(f"<{tag}")
    start = markup.find(">", begin)
    end = markup.rfind(f"</{tag}>")
    return markup[start + 1 : end] if 0 <= begin < start < end else None


def _skip(text: str, position: int) -> int:
    between = BETWEEN.match(text, position)
    return position if between is None else between.end()


def _character(entity: re.Match[str]) -> str:
    # The numbered ones are all control characters of the newswire, which separate.
    return CHARACTERS.get(entity[1], " ")
