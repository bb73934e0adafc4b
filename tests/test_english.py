from __future__ import annotations

import ast
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    path
    for folder in ("tg_mlc", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
]
PAGES = [
    ROOT / "README.md",
    *(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]
#: A sentence starts a text, a paragraph, an item or a cell, or follows another sentence or a colon.
START = r"(?:\A|[.:!?][\"')*`]*\s|\n\s*\n|^\s*[-*>]\s|\|)[\s*]*"
SENTENCE = re.compile(START + r"((?:Of|What)\b[^.?!|]+)(\??)", re.MULTILINE)
PERSON = re.compile(r"\b(?:nobody|somebody)\b", re.IGNORECASE)


def mistakes(text):
    """Sentences that open with "Of" or "What" and are no questions, and words for unknown persons."""
    return [
        sentence for sentence, question in SENTENCE.findall(text) if not question
    ] + PERSON.findall(text)


def texts(source):
    """The strings of a module, docstrings among them, and its comments."""
    yield from (
        each.value
        for each in ast.walk(ast.parse(source))
        if isinstance(getattr(each, "value", None), str)
    )
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("#: ")


def test_sentences_are_plain():
    parts = [(page, page.read_text()) for page in PAGES]
    parts += [(path, text) for path in SOURCES for text in texts(path.read_text())]
    assert not [
        f"{path.relative_to(ROOT)}: {each}" for path, text in parts for each in mistakes(text)
    ]


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ('"""What is read."""', 1),
        ("x = 1  #: Of squared weights.", 1),
        ('"""Reads.\n\nArgs:\n    x: What is read.\n\nOf it\nall."""', 2),
        ('print(f"One. **Of** {2}", "| What it is | Of it |", "- What")', 3),
        ("# nobody, nor Somebody", 2),
        ('"""What is\nread? A list of what is given, and `Of` too."""', 0),
        ("What = Of = nobody = 1", 0),
    ],
)
def test_mistakes_are_found(source, number):
    assert len([each for text in texts(source) for each in mistakes(text)]) == number
