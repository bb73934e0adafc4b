"""Settings of a model that change its outputs but none of its shapes, so that a state dict does not hold them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from numbers import Real
from typing import Any

from torch import nn

#: Texts by module and attribute, *e.g.* ``{"labels.label_to_label.0": {"heads": "4"}}``.
Settings = Mapping[str, Mapping[str, str]]

# What changes no output of a model in evaluation, or what shapes tell already (before lazy layers know them).
_IRRELEVANT = re.compile(
    r"training|inplace|momentum|device|backend|fuse|checkpointing|\w*drop\w*|\w*_initializer|\w*(channels|features)"
)
_IDLE = re.compile(r"Identity|\w*(Dropout\w*|DropPath|Loss)")
# The entry for the type of a module without state, such as a pooling; no attribute has the name of a keyword.
_TYPE = "class"


def describe_settings(model: nn.Module) -> dict[str, dict[str, str]]:
    """Returns the public attributes of all modules that are numbers, strings, truth values, None or tuples of these,
    and the types of modules without children, parameters and buffers.
    """
    return {name: settings for name, part in model.named_modules() if (settings := _settings_of(part))}


def check_settings(trained: Settings, present: Settings) -> None:
    """Refuses weights that were trained with other settings, as far as both sides know them: outputs would be wrong."""
    changed = [
        f"{module}.{name}={now} instead of {was}".lstrip(".")
        for module in dict.fromkeys(chain(trained, present))
        for name, was, now in _pairs(trained.get(module, {}), present.get(module, {}))
        if was != now
    ]
    if changed:
        others = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise ValueError(
            f"Expected a model with the settings that these weights were trained with (got "
            f"{', '.join(changed[:3])}{others}); build it with them, or take the weights alone with "
            f"model.load_state_dict(read_checkpoint(path).state_dict)"
        )


def _settings_of(part: nn.Module) -> dict[str, str]:
    if _IDLE.fullmatch(type(part).__name__):
        return {}
    public = {name: value for name, value in vars(part).items() if not name.startswith("_")}
    texts = {name: _text(value) for name, value in public.items() if not _IRRELEVANT.fullmatch(name)}
    settings = {name: text for name, text in texts.items() if text is not None}
    if next(chain(part.children(), part.parameters(), part.buffers()), None) is None:
        settings[_TYPE] = type(part).__name__
    return settings


def _pairs(trained: Mapping[str, str], present: Mapping[str, str]) -> list[tuple[str, str, str]]:
    names = [name for name in trained if name in present or name == _TYPE]
    names += [_TYPE] if _TYPE in present and _TYPE not in trained else []
    return [(name, trained.get(name, "nothing"), present.get(name, "nothing")) for name in names]


def _text(value: Any) -> str | None:
    """A text that is equal where values are, up to the rounding in which machines differ; None for objects."""
    if value is None or isinstance(value, bool | str):
        return repr(value)
    if isinstance(value, Real):
        return f"{value:.12g}"
    if isinstance(value, tuple):
        texts = [_text(item) for item in value]
        return None if None in texts else f"({', '.join(map(str, texts))})"
    return None
