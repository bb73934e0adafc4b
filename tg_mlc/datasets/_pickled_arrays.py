"""Arrays in old pickle files, without running anything that stands in them."""

from __future__ import annotations

import codecs
import warnings
from typing import Any, NamedTuple

import numpy as np

_MARK = object()
_NAMES = frozenset({"numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"})
_DTYPES = frozenset({"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "f4", "f8"})


class _Name(NamedTuple):
    path: str


class _Call(NamedTuple):
    path: str
    arguments: tuple[Any, ...]
    state: list[Any]  # what the object was told after it was made


def read_pickled_arrays(content: bytes, name: str = "pickle content") -> dict[str, np.ndarray]:
    """Reads a dictionary of numeric NumPy arrays from a pickle of protocol 0, as Python 2 wrote it.

    This is no unpickler: it follows the few operations that make such a dictionary, takes the three names of NumPy
    that stand in it as mere words, calls nothing, and makes the arrays itself from their bytes.

    Args:
        content (bytes): The file, unpacked.
        name (str, optional): How to call the file in messages.

    Raises:
        ValueError: If anything else stands in the file.
    """
    try:
        found = _Machine(content).run()
        if not isinstance(found, dict) or not found:
            raise ValueError("Expected a dictionary of arrays (got something else)")
        return {key: _array(value) for key, value in found.items()}
    except (ValueError, IndexError, KeyError, TypeError, MemoryError, OverflowError, DeprecationWarning) as error:
        raise ValueError(f"{name}: Expected a pickle of numeric arrays alone ({error})") from None


class _Machine:
    """Follows the operations of protocol 0 that make dictionaries of arrays."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.steps = {
            b"(": lambda: _MARK,
            b"N": lambda: None,
            b"I": self._integer,
            b"S": self._string,
            b"c": self._name,
            b"g": lambda: self.memo[int(self._line())],
            b"t": lambda: tuple(self._since_mark()),
            b"d": self._dictionary,
            b"R": self._call,
        }

    def run(self) -> Any:
        while (operation := self.content[self.position : self.position + 1]) != b".":
            self.position += 1
            if operation in self.steps:
                self.stack.append(self.steps[operation]())
            elif operation == b"p":
                self.memo[int(self._line())] = self.stack[-1]
            elif operation == b"b":
                state = self.stack.pop()
                self.stack[-1].state.append(state) if isinstance(self.stack[-1], _Call) else self._refuse(operation)
            elif operation == b"s":
                value, key = self.stack.pop(), _text(self.stack.pop())
                self.stack[-1][key] = value
            else:
                self._refuse(operation)
        return self.stack.pop()

    def _refuse(self, operation: bytes) -> None:
        what = f"the operation {operation!r}" if operation else "its end; it is cut off"
        raise ValueError(f"got {what} at byte {self.position}")

    def _line(self) -> bytes:
        end = self.content.index(b"\n", self.position)
        line = self.content[self.position : end]
        self.position = end + 1
        return line

    def _integer(self) -> int | bool:
        line = self._line()
        return line == b"01" if line in (b"00", b"01") else int(line)

    def _string(self) -> bytes:
        line = self._line()
        if len(line) < 2 or line[:1] not in b"'\"" or line[-1:] != line[:1]:
            raise ValueError("got a string without quotes")
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # What Python does with escapes that are none.
            return codecs.escape_decode(line[1:-1])[0]

    def _name(self) -> _Name:
        path = f"{self._line().decode('latin1')} {self._line().decode('latin1')}"
        if path not in _NAMES:
            raise ValueError(f"got the name {path.replace(' ', '.')[:80]!r}, which is none of NumPy's arrays")
        return _Name(path)

    def _since_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def _dictionary(self) -> dict[Any, Any]:
        items = self._since_mark()
        return dict(zip(map(_text, items[::2]), items[1::2], strict=True))

    def _call(self) -> _Call:
        arguments, name = self.stack.pop(), self.stack.pop()
        if not isinstance(name, _Name) or not isinstance(arguments, tuple):
            raise ValueError("got a call of something else")
        return _Call(name.path, arguments, [])


def _array(value: Any) -> np.ndarray:
    if not isinstance(value, _Call) or value.path != "numpy.core.multiarray _reconstruct" or len(value.state) != 1:
        raise ValueError("got an entry that is no array")
    _, shape, dtype, by_columns, data = value.state[0]
    if not isinstance(dtype, _Call) or dtype.path != "numpy dtype" or _text(dtype.arguments[0]) not in _DTYPES:
        raise ValueError("got an array of objects")
    order: Any = _text(dtype.state[0][1])
    numbers = np.frombuffer(data, np.dtype(_text(dtype.arguments[0])).newbyteorder("=" if order == "|" else order))
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError("got an array without a shape")
    return numbers.reshape(shape, order="F" if by_columns else "C")


def _text(value: Any) -> str:
    if not isinstance(value, bytes) or len(value) > 100:
        raise ValueError("got no short name where one should be")
    return value.decode("latin1")
