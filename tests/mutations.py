"""Damages the contents of files for tests of readers."""

from hypothesis import strategies as st


def mutated(data, content, max_changes):
    """Draws a copy of bytes with at most `max_changes` changed bytes. Its end may be missing."""
    copy = bytearray(content)
    for _ in range(data.draw(st.integers(1, max_changes))):
        copy[data.draw(st.integers(0, len(copy) - 1))] = data.draw(st.integers(0, 255))
    return bytes(copy[: data.draw(st.integers(0, len(copy)))])
