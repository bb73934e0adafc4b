"""Checks of names: of the labels that the parts of a model have, and of classes that are found by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def check_names(names: Sequence[str], number: int, argument: str, of: str = "columns") -> None:
    """Refuses names that are too few, too many, or not unique."""
    if len(names) != number:
        raise ValueError(f"Expected '{argument}' to name each of the {number} {of} (got {len(names)} names)")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"Expected '{argument}' to be unique (got {repeated[:5]} more than once)")


def check_same_names(
    found: Sequence[str] | None, label_names: Sequence[str] | None, whose: str, of: str = "'label_names'"
) -> None:
    """Refuses other names than the given ones, or the same in another order; no names fit any."""
    if found is None or label_names is None or list(found) == list(label_names):
        return
    at = next((i for i, pair in enumerate(zip(found, label_names, strict=False)) if pair[0] != pair[1]), -1)
    what = f"label {at} is {found[at]!r} there and {label_names[at]!r} here" if at >= 0 else "their numbers differ"
    expected = f"{whose} to have the {len(label_names)} labels of {of} in the same order"
    raise ValueError(f"Expected {expected} (got {len(found)}; {what}); make both of one data set, or permute one")


def register(classes: dict[str, Any], cls: type) -> None:
    """Adds a class under its name, and refuses the name of a class of another module, which it would replace."""
    known = classes.setdefault(cls.__name__, cls)
    if known.__module__ != cls.__module__:
        expected = f"'{cls.__module__}.{cls.__qualname__}' to have a name of its own, as checkpoints find classes by it"
        raise ValueError(f"Expected {expected} (got that of '{known.__module__}.{known.__qualname__}'); rename it")
    classes[cls.__name__] = cls
