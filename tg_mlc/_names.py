"""Checks of names: of the labels that the parts of a model have, and of classes that are found by name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any


def shorten(text: Any, size: int = 80) -> str:
    """A text that fits into a message, as it is or cut off after so many characters."""
    text = str(text)
    return text if len(text) <= size else f"{text[: size - 3]}..."


def nearest(name: Any, names: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, or nothing if none is near."""
    near = get_close_matches(str(name), names, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def few(names: Sequence[str], most: int = 5) -> str:
    """The first names between commas, and the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def check_names(names: Sequence[str], number: int, argument: str, of: str = "columns") -> None:
    """Refuses names that are too few, too many, or not unique."""
    if len(names) != number:
        raise ValueError(
            f"Expected '{argument}' to name each of the {number} {of} (got {len(names)} names)"
        )
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"Expected '{argument}' to be unique (got {repeated[:5]} more than once)")


def check_same_names(
    found: Sequence[str] | None,
    label_names: Sequence[str] | None,
    whose: str,
    of: str = "'label_names'",
) -> None:
    """Refuses other names than the given ones, or the same in another order; no names fit any."""
    if found is None or label_names is None or list(found) == list(label_names):
        return
    at = next(
        (i for i, pair in enumerate(zip(found, label_names, strict=False)) if pair[0] != pair[1]),
        -1,
    )
    what = (
        f"label {at} is {found[at]!r} there and {label_names[at]!r} here"
        if at >= 0
        else "their numbers differ"
    )
    expected = f"{whose} to have the {len(label_names)} labels of {of} in the same order"
    raise ValueError(
        f"Expected {expected} (got {len(found)}; {what}); make both of one data set, or permute one"
    )


#: Names that models and explanations look up in the rooms above theirs, by the package or module to import for them.
ROOMS = {
    "tg_mlc.exporting.folder": "export",
    "tg_mlc.training": "BinaryObjective",
    "tg_mlc.explanations": "explain",
    "tg_mlc.explanations.report": "report",
    "tg_mlc.stacking": "GivenLabelStacking StackingFeatures",
    "tg_mlc.sequences": "EventPreprocessor lanet",
    "tg_mlc.papers.base_scores": "inputs morgan_bits",
    "tg_mlc.papers.next_set": "C2AEObjective",
    "tg_mlc.papers": (
        "InferenceNetworkObjective LabelSequenceObjective UnrolledObjective binary_relevance energy_network gaml "
        "graph2graph graph2graph_autoregressive mped mped_autoregressive pooled_mlp seq2seq"
    ),
}

_REGISTERED: defaultdict[str, dict[str, Any]] = defaultdict(dict)


def register(what: str, value: Any, name: str | None = None) -> None:
    """Lets :func:`find` find a class or a function by a name. Raises if one of another module has the
    name.

    Args:
        what (str): The role that it has in saved models: :obj:`"preprocessor"`, :obj:`"objective"`,
            :obj:`"builder"`, :obj:`"view"`, and so on.
        value (Any): The class or the function, also with some arguments fixed by a :obj:`partial`.
        name (str, optional): The name. (default: :obj:`None`, its own)
    """
    name = name or value.__name__
    known, new = (_definition(each) for each in (_REGISTERED[what].get(name, value), value))
    if known.__module__ != new.__module__:
        expected = f"'{new.__module__}.{new.__qualname__}' to have a name of its own"
        got = f"that of '{known.__module__}.{known.__qualname__}'"
        raise ValueError(
            f"Expected {expected}, because saved models find a {what} by it (got {got}); rename it"
        )
    _REGISTERED[what][name] = value


def _definition(value: Any) -> Any:
    """Returns the class or the function of a partial; others as they are."""
    return value.func if isinstance(value, partial) else value


def find(what: str, name: str) -> Any:
    """Returns what was registered under a name, and imports the module that defines it if it is one of the package."""
    if name not in _REGISTERED[what]:
        for room in [room for room, names in ROOMS.items() if name in names.split()]:
            import_module(room)
    if name not in _REGISTERED[what]:
        known = sorted({*_REGISTERED[what]})
        raise ValueError(
            f"Expected a {what} among {known} (got {name!r}); import the module that defines it first"
        )
    return _REGISTERED[what][name]
