"""What a setting does, in words, by which samples that were made with it are found again."""

from __future__ import annotations

import dis
import hashlib
import re
from collections.abc import Callable
from functools import partial, singledispatch
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tg_mlc._files import sha256

Words = Callable[[Any], str]

_ATOMS = (bool, int, float, complex, str, type, type(None), type(...))
#: What a function may take from its module as a value: a data set or a log there changes as it is used.
_VALUES = (*_ATOMS, bytes, tuple, list, dict, set, frozenset, np.ndarray, Tensor)


def settings_key(*settings: Any) -> str:
    """A short name for settings, the same in every run."""
    return sha256(describe(settings).encode())[:8]


def describe(value: Any) -> str:
    """A value in the same words in every run of a program, and in others for what does something else.

    Functions are described by their code and by the values that it takes from around them, objects by what a pickle of
    them would hold, and if they are called by the code of their class.
    """
    return _describe(value, ())


def _describe(value: Any, within: tuple[int, ...]) -> str:
    if isinstance(value, _ATOMS):
        return repr(value)
    if id(value) in within:  # as a function that calls itself
        return "..."
    return _in_words(value, partial(_describe, within=(*within, id(value))))


@singledispatch
def _in_words(value: Any, words: Words) -> str:
    try:
        pickled = value.__reduce_ex__(2)
    except Exception:  # what has no pickle says so in many ways
        pickled = re.sub(r" at 0x[0-9a-f]+", "", repr(value))  # addresses change from run to run
    if isinstance(pickled, str):
        return pickled
    called = [entry for entry in vars(type(value)).values() if isinstance(entry, FunctionType) and callable(value)]
    return f"object {words([type(value), *pickled[1:], *called])}"


@_in_words.register
def _(value: FunctionType, words: Words) -> str:
    return f"function {words([value.__code__, value.__defaults__, value.__kwdefaults__, *_taken(value)])}"


@_in_words.register
def _(value: CodeType, words: Words) -> str:
    return f"code {words([value.co_code, value.co_names, value.co_consts])}"


@_in_words.register
def _(value: Tensor, words: Words) -> str:
    if value.layout != torch.strided:
        return _in_words.dispatch(object)(value, words)
    content = value.detach().cpu().flatten().view(torch.uint8).numpy().tobytes()
    return f"tensor {value.dtype} {list(value.shape)} {words(content)}"


@_in_words.register
def _(value: bytes, words: Words) -> str:
    return f"bytes {hashlib.sha256(value).hexdigest()}"


@_in_words.register(tuple)
def _(value: tuple[Any, ...], words: Words) -> str:
    return f"({', '.join(map(words, value))})"


@_in_words.register(list)
def _(value: list[Any], words: Words) -> str:
    return f"[{', '.join(map(words, value))}]"


@_in_words.register(dict)
def _(value: dict[Any, Any], words: Words) -> str:
    return f"dict {words(list(value.items()))}"


@_in_words.register(set)
@_in_words.register(frozenset)
def _(value: set[Any] | frozenset[Any], words: Words) -> str:
    return f"set {sorted(map(words, value))}"  # else in the order of hashes, which runs do not share


def _taken(function: FunctionType) -> list[Any]:
    """What the code of a function takes from the functions around it and from its module."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    names = sorted(_global_names(function.__code__) & function.__globals__.keys())
    found = [function.__globals__[name] for name in names]
    own = [entry for entry in found if getattr(entry, "__module__", None) == function.__module__]
    return [cells, [x for x in own if isinstance(x, FunctionType)], [x for x in found if isinstance(x, _VALUES)]]


def _global_names(code: CodeType) -> set[str]:
    names = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return names.union(*(_global_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))
