"""Requests: what a client sends, in JSON or CSV, within limits, as plain data."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tg_mlc._numbers import is_missing
from tg_mlc._optional import require
from tg_mlc.data import given_labels
from tg_mlc.inference import Predictor
from tg_mlc.metrics.coverage import Coverage, Per

if TYPE_CHECKING:
    import fastapi
    import pydantic
else:  # which says what to install
    fastapi, pydantic = (require(name, extra="serve") for name in ("fastapi", "pydantic"))

Number: TypeAlias = int | float | None
Input: TypeAlias = str | list[str] | list[Number] | list[list[float]] | dict[str, str | bool | Number]


class Request(pydantic.BaseModel):
    """Inputs of a model, and what is asked of them."""

    model_config = pydantic.ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={"examples": [{"inputs": ["CCO", "c1ccccc1"], "given": [{"nausea": 1}, None]}]},
    )

    inputs: list[Input] = pydantic.Field(
        description="Texts, SMILES or DNA; lists of words or numbers; matrices; or rows by names of columns."
    )
    given: list[dict[str, Literal[0, 1] | None] | None] | None = pydantic.Field(
        None, description="Labels that are known of each input: 1 or 0 by name."
    )
    metric: str = pydantic.Field("f1_micro", description="The metric that decisions are best for.")
    coverage: float | None = pydantic.Field(None, description="The share of true labels that decisions hold, if any.")
    coverage_per: Per = pydantic.Field("label", description="The unit of the share: each label, or each sample.")
    explain: list[str] | None = pydantic.Field(None, description="Labels to explain, which takes long.")


#: The body of a request, for OpenAPI.
CONTENT = {
    "application/json": {"schema": Request.model_json_schema()},
    "text/csv": {"schema": {"type": "string", "description": "The columns of the model, with a header."}},
}


@dataclass(frozen=True)
class Limits:
    """Limits of what a server takes.

    Args:
        max_bytes (int, optional): Bytes in the body of a request. (default: :obj:`10000000`)
        max_items (int, optional): Inputs of a request. (default: :obj:`1000`)
        max_explained (int, optional): Inputs times labels of a request that asks for explanations.
            (default: :obj:`32`)
        max_seconds (float, optional): Seconds until a request is answered. (default: :obj:`30`)
        max_waiting (int, optional): Inputs of all requests that wait for a model. (default: :obj:`10000`)
        max_batch (int, optional): Inputs that are scored together. (default: :obj:`256`)
        pause (float, optional): Seconds to wait for further requests before a batch that is not full.
            (default: :obj:`0.002`)
    """

    max_bytes: int = 10_000_000
    max_items: int = 1000
    max_explained: int = 32
    max_seconds: float = 30.0
    max_waiting: int = 10_000
    max_batch: int = 256
    pause: float = 0.002


@dataclass
class Asked:
    """A request that was read."""

    inputs: list[Any]
    given: np.ndarray | None  #: ``[n, L]``
    metric: str | Coverage
    thresholds: dict[str, float | None]  #: by label; none where label sets decide
    explain: list[str]


async def read(request: fastapi.Request, limits: Limits, predictor: Predictor) -> Asked:
    """Reads a request; an :class:`fastapi.HTTPException` says what is wrong with it."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.max_bytes:
            expected = f"a body of at most {limits.max_bytes:,} bytes"
            raise fastapi.HTTPException(413, f"Expected {expected} (got more); send fewer inputs")
    try:
        if request.headers.get("content-type", "").startswith("text/csv"):
            query = request.query_params
            options = {name: query[name] for name in ("metric", "coverage", "coverage_per") if name in query}
            found = Request.model_validate({"inputs": [], "explain": query.getlist("explain"), **options})
            found.inputs = rows_of(bytes(body), predictor)
        else:
            found = Request.model_validate_json(bytes(body))
    except ValueError as error:  # of pydantic, of pandas and of other encodings than UTF-8
        wrong: list[Any] = getattr(error, "errors", list)()
        reasons = [f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in wrong[:3]]
        got = "; ".join(reasons) or str(error)
        raise fastapi.HTTPException(422, f"Expected a request as /docs shows it (got {got:.300})") from None
    return _checked(found, limits, predictor)


def _checked(found: Request, limits: Limits, predictor: Predictor) -> Asked:
    size, explain = len(found.inputs), found.explain or []
    if not 0 < size <= limits.max_items:
        status = 422 if size == 0 else 413
        raise fastapi.HTTPException(status, f"Expected 1 to {limits.max_items} inputs (got {size})")
    if size * len(explain) > limits.max_explained:
        expected = f"at most {limits.max_explained} inputs times labels to explain"
        raise fastapi.HTTPException(413, f"Expected {expected} (got {size * len(explain)})")
    given: np.ndarray | None = None
    metric = found.metric if found.coverage is None else Coverage(found.coverage, found.coverage_per)
    try:
        numbers = predictor.thresholds(metric).tolist()
        if found.given is not None:
            if len(found.given) != size:
                raise ValueError(f"Expected 'given' with an entry for each of {size} inputs (got {len(found.given)})")
            given = given_labels(predictor.label_names, [each or {} for each in found.given], size).numpy()
            predictor.decide(np.zeros(given.shape), metric, given)  # which refuses some coverages
        if unknown := {*explain} - {*predictor.label_names}:
            raise ValueError(f"Expected 'explain' to name labels of the model (got {sorted(unknown)[:5]})")
    except ValueError as error:
        raise fastapi.HTTPException(422, str(error)) from None
    named = zip(predictor.label_names, numbers, strict=True)
    thresholds = {name: None if np.isnan(number) else number for name, number in named}
    return Asked(list(found.inputs), given, metric, thresholds, explain)


def rows_of(body: bytes, predictor: Predictor) -> list[Any]:
    """The inputs of a CSV file: whole rows, or those of the one column that the model takes."""
    pandas = require("pandas", extra="serve")
    table = pandas.read_csv(io.BytesIO(body))
    inputs = predictor.facts.get("inputs", {})
    columns = [name for name in inputs.get("columns", ()) if name in table.columns]
    texts = [name for name in table.columns if pandas.api.types.is_string_dtype(table[name])]
    if (len(columns) == 1 and columns[0] in texts) or table.shape[1] == len(texts) == 1:
        return [None if is_missing(each) else each for each in table[(columns or texts)[0]]]
    rows: list[Any] = table.astype(object).where(table.notna(), None).to_dict("records")
    return rows
