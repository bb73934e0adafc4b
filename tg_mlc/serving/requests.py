"""Reads requests in JSON or CSV, and checks them against limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeAlias, TypeVar

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


def _examples(options: dict[str, Any]) -> pydantic.ConfigDict:
    """Returns the settings of a body, with an example for OpenAPI."""
    example = {"inputs": ["CCO", "c1ccccc1"], **options}
    return pydantic.ConfigDict(json_schema_extra={"examples": [example]})


#: Labels of each input: 1, 0 or null (unknown) by name.
Labels: TypeAlias = list[dict[str, Literal[0, 1] | None] | None]


class Body(pydantic.BaseModel):
    """Inputs of a model."""

    model_config = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)

    inputs: list[AnyInput] = pydantic.Field(
        description="Texts, SMILES or DNA; lists of words or numbers; matrices; or rows by columns."
    )


class GivenBody(Body):
    """Inputs of a model, with the labels that are known of them."""

    given: Labels | None = pydantic.Field(
        None, description="Labels that are known of each input: 1 or 0 by name."
    )


class PredictBody(GivenBody):
    """Inputs of a model, and the options of the prediction."""

    model_config = _examples({"given": [{"nausea": 1}, None]})

    metric: str = pydantic.Field("f1_micro", description="The metric that decisions are best for.")
    coverage: float | None = pydantic.Field(
        None, description="The fraction of true labels that decisions hold, if any."
    )
    coverage_per: Per = pydantic.Field(
        "label", description="The unit of the fraction: each label, or each sample."
    )
    top: int | None = pydantic.Field(
        None, description="The number of most probable labels to answer with, if not all."
    )
    explain: list[str] | None = pydantic.Field(
        None, description="Labels to explain, which takes long."
    )


class SuggestBody(GivenBody):
    """Inputs of a model, and the options of suggestions which labels to look up next."""

    model_config = _examples({"given": [{"nausea": 1}, None], "k": 2, "cost": {"rash": 3}})

    k: int = pydantic.Field(1, description="The largest number of labels per input.")
    targets: list[str] | None = pydantic.Field(
        None, description="The labels whose values matter; by default, all."
    )
    candidates: list[str] | None = pydantic.Field(
        None, description="The labels that can be looked up; by default, all."
    )
    cost: dict[str, float] | None = pydantic.Field(
        None, description="Costs of labels by name; others cost 1."
    )
    budget: float | None = pydantic.Field(
        None, description="The largest cost of all suggestions together, which the inputs share."
    )


class AuditBody(Body):
    """Inputs that the model was not fitted to, with their recorded labels."""

    model_config = _examples({"recorded": [{"nausea": 1, "rash": 0}, {"nausea": 0}]})

    recorded: Labels = pydantic.Field(
        description="Recorded labels of each input: 1 or 0 by name; others are unknown."
    )
    top: int = pydantic.Field(
        100, ge=1, le=10_000, description="The largest number of suspects in the answer."
    )


BodyT = TypeVar("BodyT", bound=Body)


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
        max_characters (int, optional): Characters per cell, text or name.
            (default: :obj:`1000000`)
        max_explained (int, optional): Inputs times explained labels per request.
            (default: :obj:`32`)
        max_suggested (int, optional): Inputs times suggested labels per request.
            (default: :obj:`1000`)
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
    max_suggested: int = 1000
    max_seconds: float = 30.0
    max_waiting: int = 10_000
    max_batch: int = 256
    pause: float = 0.002
    max_columns: int = 20_000
    max_cells: int = 1_000_000
    max_characters: int = 1_000_000

    @property
    def table(self) -> TableLimits:
        """The limits of the table in a body."""
        sizes = self.max_items, self.max_columns, self.max_cells
        return TableLimits("the body", *sizes, "", self.max_characters, "")


#: The limits by the unit of a :class:`TooLargeError`.
_LIMITS = {
    "rows": "max_items",
    "columns": "max_columns",
    "cells": "max_cells",
    "characters": "max_characters",
}


def cure(limit: str) -> str:
    """Returns what to do about a request beyond a limit, by its name in :class:`Limits`."""
    less = "shorten it" if limit == "max_characters" else "send fewer inputs"
    return f"{less}, or start the server with a larger {limit}"


#: Options of a request that are options of a query.
_QUERY = ("given", "metric", "coverage", "coverage_per", "top")


@dataclass(frozen=True)
class Request(Generic[BodyT]):
    """A well-formed request. The model checks the inputs and the query later."""

    inputs: Any  #: a list of inputs, or a data frame of the rows of a CSV body
    body: BodyT  #: the options
    query: Query
    warnings: Sequence[str] = ()  #: warnings of the reader of a CSV body


def content_of(kind: type[Body]) -> dict[str, Any]:
    """Returns the content types of a request with their schemas, for OpenAPI."""
    content: dict[str, Any] = {"application/json": {"schema": kind.model_json_schema()}}
    if takes_csv(kind):
        description = "The columns of the model, with a header."
        content["text/csv"] = {"schema": {"type": "string", "description": description}}
    return content


def takes_csv(kind: type[Body]) -> bool:
    """Tells whether a CSV body can be read, because labels of each input are optional."""
    return issubclass(kind, GivenBody)


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
            message = f"Expected {expected} (got more); {cure('max_bytes')}"
            # Otherwise, the client could go on sending.
            raise fastapi.HTTPException(413, message, {"Connection": "close"})
    return bytes(content)


def read(
    request: fastapi.Request, kind: type[BodyT], content: bytes, limits: Limits, model: Model
) -> Request[BodyT]:
    """Reads a request. Reading a large body takes seconds, so the event loop must not call this.

    Raises:
        fastapi.HTTPException: If the request is malformed or too large.
    """
    content_type = request.headers.get("content-type", "")
    is_csv, inputs, messages = content_type.startswith("text/csv"), None, list[str]()
    if is_csv and not takes_csv(kind):
        raise fastapi.HTTPException(422, "Expected JSON, with labels by name (got text/csv)")
    try:
        if is_csv:
            body = kind.model_validate({"inputs": [], **_parameters(request, kind)})
            file = content, request.query_params.get("delimiter"), _charset(content_type)
            inputs, messages = read_csv(model, *file, limits.table)
            known = [name for name in model.label_names if name in inputs.columns]
            if kind is SuggestBody and known:
                expected = "a body in JSON, with known labels in 'given'"
                got = f"(got columns of labels in text/csv: {known[:3]})"
                raise fastapi.HTTPException(422, f"Expected {expected} {got}")
        else:
            body = kind.model_validate(_from_json(content, limits.table))
    except pydantic.ValidationError as error:
        errors = ((".".join(map(str, item["loc"])), item["msg"]) for item in error.errors()[:3])
        got = "; ".join(f"{location or 'body'}: {message}" for location, message in errors)
        expected = "a request as /docs shows it"
        raise fastapi.HTTPException(422, f"Expected {expected} (got {got:.300})") from None
    except TooLargeError as error:
        raise fastapi.HTTPException(413, f"{error}; {cure(_LIMITS[error.unit])}") from None
    except ValueError as error:
        message = str(error) if is_csv else f"Expected JSON (got {error!s:.300})"
        raise fastapi.HTTPException(422, message) from None
    return _checked(body.inputs if inputs is None else inputs, body, limits, model, messages)


def _parameters(request: fastapi.Request, kind: type[Body]) -> dict[str, Any]:
    """Returns the options of a CSV body, which are parameters of the address."""
    parameters, options = request.query_params, dict[str, Any]()
    in_json = {"given", "cost"} & kind.model_fields.keys() & {*parameters.keys()}
    if in_json:
        expected = f"a body in JSON with '{min(in_json)}'"
        raise fastapi.HTTPException(422, f"Expected {expected} (got a parameter beside text/csv)")
    for name in kind.model_fields.keys() & {*parameters.keys()} - {"inputs"}:
        is_list = name in ("explain", "targets", "candidates")
        options[name] = parameters.getlist(name) if is_list else parameters[name]
    return options


def _from_json(content: bytes, limits: TableLimits) -> Any:
    """Returns the entries of a body in JSON. Raises TooLargeError if it may have too many values,
    or has too many names in objects, or too long a text.
    """
    # Values are counted before, because reading millions of lists stops all threads for seconds.
    limits.check_cells(sum(map(content.count, (b",", b"[", b"{"))))
    entries = pydantic_core.from_json(content, allow_inf_nan=False)
    names, waiting = set[str](), [entries]
    is_long = len(content) > limits.max_characters  # Only a long body can hold a long text.
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            names.update(value)
            limits.check(0, len(names))
        if isinstance(value, (list, Mapping)):
            items = value.values() if isinstance(value, Mapping) else value
            if is_long:
                limits.check_texts(items)
            waiting += [item for item in items if isinstance(item, (list, Mapping))]
    limits.check_texts(names)
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


def _checked(
    inputs: Any, body: BodyT, limits: Limits, model: Model, messages: list[str]
) -> Request[BodyT]:
    size = len(inputs)
    if not 0 < size <= limits.max_items:
        status = 422 if size == 0 else 413
        got = size if size <= limits.max_items else "more"
        hint = f"; {cure('max_items')}" if size else ""
        message = f"Expected 1 to {limits.max_items} inputs (got {got}){hint}"
        raise fastapi.HTTPException(status, message)
    options, names = dict(body), model.label_names
    explain, k = options.get("explain") or [], min(options.get("k", 0), len(names))
    bounds = {
        "max_explained": (size * len(explain), "labels to explain", limits.max_explained),
        "max_suggested": (size * k, "'k'", limits.max_suggested),
    }
    for name, (number, factor, limit) in bounds.items():
        if number > limit:
            expected = f"at most {limit} inputs times {factor}"
            raise fastapi.HTTPException(413, f"Expected {expected} (got {number}); {cure(name)}")
    asked = _QUERY if isinstance(body, PredictBody) else ("given",)
    query = {name: options[name] for name in asked if name in options}
    try:
        for name in ("given", "recorded"):
            if options.get(name) is not None:
                _check_labels(name, options[name], size, names)
        if query.get("given") is not None:
            query["given"] = [labels or {} for labels in query["given"]]
        if unknown := {*explain} - {*names}:
            expected = "'explain' to name labels of the model"
            raise ValueError(f"Expected {expected} (got {sorted(unknown)[:5]})")
        return Request(inputs, body, Query(**query, batch_size=limits.max_batch), messages)
    except ValueError as error:
        raise fastapi.HTTPException(422, str(error)) from None


def _check_labels(argument: str, labels: Labels, size: int, names: Sequence[str]) -> None:
    """Raises ValueError if labels of inputs have another number of rows, or unknown names."""
    if len(labels) != size:
        expected = f"'{argument}' with an entry for each of {size} inputs"
        raise ValueError(f"Expected {expected} (got {len(labels)})")
    all_names = dict.fromkeys(name for row in labels for name in row or {})
    if unknown := [name for name in all_names if name not in names]:
        expected = f"'{argument}' to name labels of the model, such as {[*names[:5]]}"
        raise ValueError(f"Expected {expected} (got {unknown[:5]})")
