"""Reads requests in JSON or CSV, and checks them against limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from tg_mlc._optional import require
from tg_mlc._options import SPELLING, in_python
from tg_mlc._warnings import collected_warnings
from tg_mlc.inference import Model
from tg_mlc.inference.flow import Query
from tg_mlc.inputs.limits import TableLimits, TooLargeError
from tg_mlc.inputs.tables import read_text
from tg_mlc.metrics.coverage import Per

if TYPE_CHECKING:
    import fastapi
    import pydantic
    import pydantic_core
else:  # If a package is missing, the error says what to install.
    fastapi, pydantic = (require(name, extra="serve") for name in ("fastapi", "pydantic"))
    pydantic_core = require("pydantic_core", extra="serve")

Number: TypeAlias = int | float | None
Input: TypeAlias = (
    str | list[str] | list[Number] | list[list[float]] | dict[str, str | bool | Number]
)
#: Any JSON is accepted, because the model reports a reason for each unreadable input.
AnyInput: TypeAlias = Annotated[
    Any, pydantic.WithJsonSchema(pydantic.TypeAdapter(Input).json_schema())
]


class Body(pydantic.BaseModel):
    """Inputs of a model, and the options of the prediction."""

    model_config = pydantic.ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        json_schema_extra={
            "examples": [{"inputs": ["CCO", "c1ccccc1"], "given": [{"nausea": 1}, None]}]
        },
    )

    inputs: list[AnyInput] = pydantic.Field(
        description="Texts, SMILES or DNA; lists of words or numbers; matrices; or rows by columns."
    )
    given: list[dict[str, Literal[0, 1] | None] | None] | None = pydantic.Field(
        None, description="Labels that are known of each input: 1 or 0 by name."
    )
    metric: str = pydantic.Field("f1_micro", description="The metric that decisions are best for.")
    coverage: float | None = pydantic.Field(
        None, description="The fraction of true labels that decisions hold, if any."
    )
    coverage_per: Per = pydantic.Field(
        "label", description="The unit of the fraction: each label, or each sample."
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
    """Limits on the requests of a server.

    Args:
        max_bytes (int, optional): Bytes per body of a request. (default: :obj:`10000000`)
        max_items (int, optional): Inputs per request. (default: :obj:`1000`)
        max_columns (int, optional): Different names of columns per request.
            (default: :obj:`20000`)
        max_cells (int, optional): Cells of CSV, or commas and brackets of JSON, per request.
            (default: :obj:`1000000`)
        max_explained (int, optional): Inputs times explained labels per request.
            (default: :obj:`32`)
        max_seconds (float, optional): Seconds until a request is answered. (default: :obj:`30`)
        max_waiting (int, optional): Inputs of all requests that are waiting for a model.
            (default: :obj:`10000`)
        max_batch (int, optional): Inputs that are scored together. (default: :obj:`256`)
        pause (float, optional): Seconds that an incomplete batch waits for more requests.
            (default: :obj:`0.002`)
    """

    max_bytes: int = 10_000_000
    max_items: int = 1000
    max_explained: int = 32
    max_seconds: float = 30.0
    max_waiting: int = 10_000
    max_batch: int = 256
    pause: float = 0.002
    max_columns: int = 20_000
    max_cells: int = 1_000_000

    @property
    def table(self) -> TableLimits:
        """The limits of the table in a body."""
        sizes = self.max_items, self.max_columns, self.max_cells
        return TableLimits("the body", *sizes, hint="send fewer inputs")


@dataclass(frozen=True)
class Request:
    """A well-formed request. The model checks the inputs and the query later."""

    inputs: Any  #: a list of inputs, or a data frame of the rows of a CSV body
    query: Query
    explain: list[str]  #: the labels to explain
    warnings: Sequence[str] = ()  #: warnings of the reader of a CSV body


async def read_body(request: fastapi.Request, limits: Limits) -> bytes:
    """Returns the body of a request.

    Raises:
        fastapi.HTTPException: If it is too large.
    """
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > limits.max_bytes:
            expected = f"a body of at most {limits.max_bytes:,} bytes"
            message = f"Expected {expected} (got more); send fewer inputs"
            # Otherwise, the client could go on sending.
            raise fastapi.HTTPException(413, message, {"Connection": "close"})
    return bytes(content)


def read(request: fastapi.Request, content: bytes, limits: Limits, model: Model) -> Request:
    """Reads a request. Reading a large body takes seconds, so the event loop must not call this.

    Raises:
        fastapi.HTTPException: If the request is malformed or too large.
    """
    content_type = request.headers.get("content-type", "")
    is_csv, inputs, messages = content_type.startswith("text/csv"), None, list[str]()
    try:
        if is_csv:
            names, query = ("metric", "coverage", "coverage_per"), request.query_params
            options: dict[str, Any] = {name: query[name] for name in names if name in query}
            options |= {"inputs": [], "explain": query.getlist("explain")}
            body = Body.model_validate(options)
            file = content, query.get("delimiter"), _charset(content_type)
            inputs, messages = read_csv(model, *file, limits.table)
        else:
            body = Body.model_validate(_from_json(content, limits.table))
    except pydantic.ValidationError as error:
        errors = ((".".join(map(str, item["loc"])), item["msg"]) for item in error.errors()[:3])
        got = "; ".join(f"{location or 'body'}: {message}" for location, message in errors)
        expected = "a request as /docs shows it"
        raise fastapi.HTTPException(422, f"Expected {expected} (got {got:.300})") from None
    except TooLargeError as error:
        raise fastapi.HTTPException(413, str(error)) from None
    except ValueError as error:
        message = str(error) if is_csv else f"Expected JSON (got {error!s:.300})"
        raise fastapi.HTTPException(422, message) from None
    return _checked(body.inputs if inputs is None else inputs, body, limits, model, messages)


def _from_json(content: bytes, limits: TableLimits) -> Any:
    """Returns the entries of a body in JSON. Raises TooLargeError if it may have too many values,
    or has too many names in objects.
    """
    # Values are counted before, because reading millions of lists stops all threads for seconds.
    limits.check_cells(sum(map(content.count, (b",", b"[", b"{"))))
    entries = pydantic_core.from_json(content, allow_inf_nan=False)
    names, waiting = set[str](), [entries]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            names.update(value)
            limits.check(0, len(names))
        if isinstance(value, (list, Mapping)):
            items = value.values() if isinstance(value, Mapping) else value
            waiting += [item for item in items if isinstance(item, (list, Mapping))]
    return entries


def _charset(content_type: str) -> str | None:
    match = re.search(r'charset="?([^";\s]+)', content_type)
    # The reader detects UTF-8 itself, and removes a byte order mark.
    return None if match is None or match[1].lower() in ("utf-8", "utf8") else match[1]


def _spell(name: str, *value: Any) -> str:
    """Spells an option of the reader for clients, which set the encoding by the content type."""
    if name != "encoding":
        return in_python(name, *value)
    return f"'content-type: text/csv; charset={value[0] if value else 'NAME'}'"


def read_csv(
    model: Model,
    content: bytes,
    delimiter: str | None = None,
    encoding: str | None = None,
    limits: TableLimits | None = None,
) -> tuple[Any, list[str]]:
    """Reads a CSV body like a file.

    Returns:
        tuple: The inputs of the model, and the warnings of the reader.

    Raises:
        ValueError: If the body cannot be read, or lacks a column of the model.
    """
    columns = model.facts.get("inputs", {}).get("columns", ())
    with collected_warnings() as messages:
        context = copy_context()
        context.run(SPELLING.set, _spell)
        table = context.run(read_text, content, "the body", delimiter, encoding, limits)
        kind = model.kind
        takes_one_column = kind is not None and not kind.reads_columns and len(columns) == 1
        raw = table.inputs(columns if takes_one_column else (), single=takes_one_column)
    return raw, messages


def _checked(inputs: Any, body: Body, limits: Limits, model: Model, messages: list[str]) -> Request:
    size, explain = len(inputs), body.explain or []
    if not 0 < size <= limits.max_items:
        status = 422 if size == 0 else 413
        got = size if size <= limits.max_items else "more"
        raise fastapi.HTTPException(status, f"Expected 1 to {limits.max_items} inputs (got {got})")
    if size * len(explain) > limits.max_explained:
        expected = f"at most {limits.max_explained} inputs times labels to explain"
        raise fastapi.HTTPException(413, f"Expected {expected} (got {size * len(explain)})")
    given = None if body.given is None else [labels or {} for labels in body.given]
    try:
        if given is not None and len(given) != size:
            got = f"(got {len(given)})"
            raise ValueError(f"Expected 'given' with an entry for each of {size} inputs {got}")
        coverage = body.coverage, body.coverage_per
        query = Query(given, body.metric, *coverage, batch_size=limits.max_batch)
        if unknown := {*explain} - {*model.label_names}:
            expected = "'explain' to name labels of the model"
            raise ValueError(f"Expected {expected} (got {sorted(unknown)[:5]})")
    except ValueError as error:
        raise fastapi.HTTPException(422, str(error)) from None
    return Request(inputs, query, explain, messages)
