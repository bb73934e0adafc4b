"""HTML pages without external resources or links, from the templates of this folder."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np

from tg_mlc._optional import require

jinja2: Any = require("jinja2", extra="explain")
Markup: Any = require("markupsafe", extra="explain").Markup

#: Scores are rounded to this many steps from 0 to the largest of a sample, label and method.
STEPS = 99


def render(name: str, data: Any, **values: Any) -> str:
    """Returns a page of the template ``name.html``, with the style of all pages, and the scripts
    ``page.js`` and ``name.js``, which read :obj:`data` as JSON. Values are escaped.
    """
    folder = files("tg_mlc.explanations")

    def source(file: str) -> str:
        return folder.joinpath(file).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(source),
    )
    options = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    environment.policies["json.dumps_kwargs"] = options
    script = source("page.js") + source(f"{name}.js")
    text: str = environment.get_template(f"{name}.html").render(
        style=Markup(source("report.css")),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        data=data,
        **values,
    )
    return text


def plain(values: Any, digits: int = 4) -> Any:
    """Returns rounded numbers as plain lists, with None for NaN."""
    if isinstance(values, np.ndarray) and values.ndim:
        return [plain(value, digits) for value in values]
    value = float(values)
    if not np.isfinite(value):
        return None
    return round(value, digits) if digits and value != round(value) else round(value)


def significant(value: float) -> float | None:
    """Returns a number with three digits; None for NaN and infinity."""
    return float(f"{value:.3g}") if np.isfinite(value) else None


def in_steps(scores: np.ndarray) -> tuple[list[list[int]], list[float | None]]:
    """Returns scores :math:`(L, C)` in steps of the largest score of each label, which a page
    shades, and these largest scores.
    """
    largest = np.nan_to_num(np.abs(scores)).max(axis=1, initial=0.0)
    steps = STEPS * scores / np.where(largest > 0, largest, 1.0)[:, None]
    return plain(steps, 0), list(map(significant, largest))
