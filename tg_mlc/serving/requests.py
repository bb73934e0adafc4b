"""Requests: what a client sends, in JSON or CSV, within limits, as plain data."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from tg_mlc._numbers import is_blank
from tg_mlc._optional import require
from tg_mlc.inference import Model
from tg_mlc.inference.flow import Query
from tg_mlc.metrics.coverage import Per

if TYPE_CHECKING:
    import fastapi
    import pydantic
    import pydantic_core
else:  # which says what to install
    fastapi, pydantic = (require(name, extra="serve") for name in ("fastapi", "pydantic"))
    pydantic_core = require("pydantic_core", extra="serve")

Number: TypeAlias = int | float | None
Input: TypeAlias = (
    str | list[str] | list[Number] | list[list[float]] | dict[str, str | bool | Number]
)
#: Any JSON, as the model says of each input by itself why it cannot be read.
AnyInput: TypeAlias = Annotated[
    Any, pydantic.WithJsonSchema(pydantic.TypeAdapter(Input).json_schema())
]


class Body(pydantic.BaseModel):
    """Inputs of a model, and what is asked of them."""

    model_config = pydantic.ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={
            "examples": [{"inputs": ["CCO", "c1ccccc1"], "given": [{"nausea": 1}, None]}]
        },
    )

    inputs: list[AnyInput] = pydantic.Field(
        description="Texts, SMILES or DNA; lists of words or numbers; matrices; or rows by names of columns."
    )
    given: list[dict[str, Literal[0, 1] | None] | None] | None = pydantic.Field(
        None, description="Labels that are known of each input: 1 or 0 by name."
    )
    metric: str = pydantic.Field("f1_micro", description="The metric that decisions are best for.")
    coverage: float | None = pydantic.Field(
        None, description="The share of true labels that decisions hold, if any."
    )
    coverage_per: Per = pydantic.Field(
        "label", description="The unit of the share: each label, or each sample."
    )
    explain: list[str] | None = pydantic.Field(
        None, description="Labels to explain, which takes long."
    )


#: The body of a request, for OpenAPI.
CONTENT = {
    "application/json": {"schema": Body.model_json_schema()},
    "text/csv": {
        "schema": {"type": "string", "description": "The columns of the model, with a header."}
    },
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


@dataclass(frozen=True)
class Request:
    """A request that is well-formed; the model checks its inputs and its query when it reads them."""

    inputs: list[Any]
    query: Query
    explain: list[str]  #: the labels to explain


async def read(request: fastapi.Request, limits: Limits, model: Model) -> Request:
    """Reads a request; an :class:`fastapi.HTTPException` says what is wrong with it."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > limits.max_bytes:
            expected = f"a body of at most {limits.max_bytes:,} bytes"
            raise fastapi.HTTPException(413, f"Expected {expected} (got more); send fewer inputs")
    is_csv = request.headers.get("content-type", "").startswith("text/csv")
    try:
        if is_csv:
            options: dict[str, Any] = {"explain": request.query_params.getlist("explain")}
            for name in ("metric", "coverage", "coverage_per"):
                if name in request.query_params:
                    options[name] = request.query_params[name]
            inputs = rows_of(bytes(content), model, limits.max_items + 1)
            body = Body.model_validate({"inputs": inputs, **options})
        else:
            body = Body.model_validate(pydantic_core.from_json(bytes(content), allow_inf_nan=False))
    except (
        ValueError,
        csv.Error,
    ) as error:  # Pydantic and other encodings than UTF-8 raise ValueError.
        wrong: list[Any] = getattr(error, "errors", list)()
        reasons = [
            f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in wrong[:3]
        ]
        got = "; ".join(reasons) or str(error)
        raise fastapi.HTTPException(
            422, f"Expected a request as /docs shows it (got {got:.300})"
        ) from None
    return _checked(body, limits, model)


def _checked(body: Body, limits: Limits, model: Model) -> Request:
    size, explain = len(body.inputs), body.explain or []
    if not 0 < size <= limits.max_items:
        status = 422 if size == 0 else 413
        got = size if size <= limits.max_items else "more"
        raise fastapi.HTTPException(status, f"Expected 1 to {limits.max_items} inputs (got {got})")
    if size * len(explain) > limits.max_explained:
        expected = f"at most {limits.max_explained} inputs times labels to explain"
        raise fastapi.HTTPException(413, f"Expected {expected} (got {size * len(explain)})")
    given = None if body.given is None else [each or {} for each in body.given]
    try:
        if given is not None and len(given) != size:
            raise ValueError(
                f"Expected 'given' with an entry for each of {size} inputs (got {len(given)})"
            )
        query = Query(
            given=given,
            metric=body.metric,
            coverage=body.coverage,
            coverage_per=body.coverage_per,
            batch_size=limits.max_batch,
        )
        if unknown := {*explain} - {*model.label_names}:
            raise ValueError(
                f"Expected 'explain' to name labels of the model (got {sorted(unknown)[:5]})"
            )
    except ValueError as error:
        raise fastapi.HTTPException(422, str(error)) from None
    return Request(body.inputs, query, explain)


def rows_of(content: bytes, model: Model, most: int) -> list[Any]:
    """Returns the inputs of a CSV file as texts: rows by names of columns, or the cells of the one column that the
    model takes, None if blank.

    Args:
        content (bytes): The file, with a header.
        model (Model): The model.
        most (int): The number of rows that are read at most.

    Raises:
        ValueError: If a row has more cells than the header, or fewer.
    """
    lines = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    header = next(lines, [])
    rows = list[Mapping[str, str]]()
    for cells in islice(lines, most):
        if not cells:
            continue
        if len(cells) != len(header):
            got = f"{len(cells)} in line {lines.line_num}"
            raise ValueError(
                f"Expected {len(header)} cells in each line, as in the header (got {got})"
            )
        rows.append(_by_name(header, cells))
    column = _column_of(header, model)
    if column is None:
        return rows
    return [None if is_blank(row[column]) else row[column] for row in rows]


def _by_name(header: list[str], cells: list[str]) -> dict[str, str]:
    row = dict(zip(header, cells, strict=True))
    if len(row) < len(header):
        raise ValueError(f"Expected every column to be used once (got the columns {header[:20]})")
    return row


def _column_of(header: list[str], model: Model) -> str | None:
    """The only column that the model takes; none if it takes several."""
    if model.kind is not None and model.kind.reads_columns:
        return None
    trained = model.facts.get("inputs", {}).get("columns", ())
    columns = [name for name in trained if name in header]
    columns = columns if len(columns) == 1 else header
    return columns[0] if len(columns) == 1 else None
