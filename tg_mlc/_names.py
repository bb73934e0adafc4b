"""Checks of names, their spelling in messages, and a registry of classes by name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

_MAX_CANDIDATES = 1_000  # names that are compared with a misspelt one
_MAX_COMPARED = 100  # characters of a name that are compared


def shorten(text: Any, size: int = 80) -> str:
    """Returns a text, truncated to a maximum size for messages."""
    text = str(text)
    return text if len(text) <= size else f"{text[: size - 3]}..."


def closest(name: str, names: Iterable[str]) -> str | None:
    """Returns the most similar name among the first 1,000 that are not too long, if any.

    The time to compare two names grows with the square of their length.
    """
    candidates = [other[:_MAX_COMPARED] for other in islice(names, _MAX_CANDIDATES)]
    return next(iter(get_close_matches(name[:_MAX_COMPARED], candidates, 1)), None)


def nearest(name: Any, names: Sequence[str]) -> str:
    """Returns the end of a message about an unknown name: the nearest known name, if any."""
    near = closest(str(name), names)
    return "" if near is None else f"; did you mean {near!r}?"


def few(names: Sequence[str], limit: int = 5) -> str:
    """Joins the first names by commas, and adds the number of other names."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def check_names(names: Sequence[str], number: int, argument: str, of: str = "columns") -> None:
    """Raises ValueError if the number of names is wrong, or names are not unique."""
    if len(names) != number:
        expected = f"'{argument}' to name each of the {number} {of}"
        raise ValueError(f"Expected {expected} (got {len(names)} names)")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"Expected '{argument}' to be unique (got {repeated[:5]} more than once)")


def check_same_names(
    names: Sequence[str] | None,
    label_names: Sequence[str] | None,
    whose: str,
    of: str = "'label_names'",
) -> None:
    """Raises ValueError if names differ from the label names or are in a different order."""
    if names is None or label_names is None or list(names) == list(label_names):
        return
    difference = "their numbers differ"
    for index, (name, label) in enumerate(zip(names, label_names, strict=False)):
        if name != label:
            difference = f"label {index} is {name!r} there and {label!r} here"
            break
    expected = f"{whose} to have the {len(label_names)} labels of {of} in the same order"
    got, hint = f"{len(names)}; {difference}", "make both from one data set, or reorder one of them"
    raise ValueError(f"Expected {expected} (got {got}); {hint}")


#: Modules that :func:`find` imports, with the names that they register.
ROOMS = {
    "tg_mlc.exporting.folder": "export",
    "tg_mlc.training": "BinaryObjective",
    "tg_mlc.explanations": "explain",
    "tg_mlc.joint": "audit dependencies suggest",
    "tg_mlc.explanations.report": "report",
    "tg_mlc.explanations.suspects": "suspects_page",
    "tg_mlc.stacking": "GivenLabelStacking StackingFeatures",
    "tg_mlc.sequences": "EventPreprocessor lanet",
    "tg_mlc.papers.base_scores": "inputs morgan_bits",
    "tg_mlc.papers.next_set": "C2AEObjective",
    "tg_mlc.papers": (
        "InferenceNetworkObjective LabelSequenceObjective UnrolledObjective binary_relevance "
        "energy_network gaml graph2graph graph2graph_autoregressive mped mped_autoregressive "
        "pooled_mlp seq2seq"
    ),
}

_REGISTERED: defaultdict[str, dict[str, Any]] = defaultdict(dict)


def register(role: str, value: Any, name: str | None = None) -> None:
    """Registers a class or function for :func:`find`, under a name that no other module registers.

    Args:
        role (str): Its role in saved models: :obj:`"preprocessor"`, :obj:`"objective"`,
            :obj:`"builder"`, :obj:`"view"`, and so on.
        value (Any): The class or function, or a :obj:`partial` of it.
        name (str, optional): The name. (default: :obj:`None`, the name of the value)
    """
    name = name or value.__name__
    registered = _REGISTERED[role].get(name, value)
    known, new = (obj.func if isinstance(obj, partial) else obj for obj in (registered, value))
    if known.__module__ != new.__module__:
        expected = f"'{new.__module__}.{new.__qualname__}' to have a name of its own"
        got = f"that of '{known.__module__}.{known.__qualname__}', a {role} of saved models"
        raise ValueError(f"Expected {expected} (got {got}); rename it")
    _REGISTERED[role][name] = value


def find(role: str, name: str) -> Any:
    """Returns a registered class or function by name. Imports modules of this package if needed."""
    if name not in _REGISTERED[role]:
        for room in [room for room, names in ROOMS.items() if name in names.split()]:
            import_module(room)
    if name not in _REGISTERED[role]:
        known, hint = sorted(_REGISTERED[role]), "import the module that defines it first"
        raise ValueError(f"Expected a {role} among {known} (got {shorten(name)!r}); {hint}")
    return _REGISTERED[role][name]
