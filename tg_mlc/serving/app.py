"""The server: a FastAPI application, run by uvicorn."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import tg_mlc
from tg_mlc._optional import require
from tg_mlc.inference import Model, load
from tg_mlc.serving import answers
from tg_mlc.serving.batching import Batcher, RefusedError, in_thread
from tg_mlc.serving.drift import Drift
from tg_mlc.serving.requests import (
    AuditBody,
    Body,
    BodyT,
    Limits,
    PredictBody,
    Request,
    SuggestBody,
    content_of,
    cure,
    read,
    read_body,
)

if TYPE_CHECKING:
    import fastapi
    from fastapi.responses import JSONResponse
    from starlette.requests import ClientDisconnect
else:  # If FastAPI is missing, the error says what to install.
    fastapi = require("fastapi", extra="serve")
    JSONResponse = require("fastapi.responses", extra="serve").JSONResponse
    ClientDisconnect = require("starlette.requests", extra="serve").ClientDisconnect

T = TypeVar("T")
_DISCONNECTED = 499  # The status by which servers count clients that did not wait for an answer.


class _Statistics:
    """The counts and measurements of a server, for Prometheus."""

    def __init__(self) -> None:
        prometheus = require("prometheus_client", extra="serve")
        registry = prometheus.CollectorRegistry()
        counter = partial(prometheus.Counter, registry=registry)
        gauge = partial(prometheus.Gauge, registry=registry)
        histogram = partial(prometheus.Histogram, registry=registry)
        sizes = [2**k for k in range(11)]
        self.requests = counter("tg_mlc_requests", "By status.", ["model", "status"])
        self.inputs = counter("tg_mlc_inputs", "Read or not.", ["model", "read"])
        self.seconds = histogram("tg_mlc_request_seconds", "Per request.", ["model"])
        self.batch_inputs = histogram("tg_mlc_batch_inputs", "Per batch.", ["model"], buckets=sizes)
        self.batch_seconds = histogram("tg_mlc_batch_seconds", "Per batch.", ["model"])
        self.waiting = gauge("tg_mlc_inputs_waiting", "For a model.", ["model"])
        self.type = prometheus.CONTENT_TYPE_LATEST
        self.registry, self.generate = registry, prometheus.generate_latest


class _Server:
    """The models of a server, and the functions that answer requests."""

    def __init__(self, models: dict[str, Model], limits: Limits, tokens: Sequence[str]) -> None:
        self.models, self.limits, self.tokens = models, limits, tokens
        self.statistics, self.batchers, self.is_ready = _Statistics(), dict[str, Batcher](), False
        self.drift = Drift({name: model.label_names for name, model in models.items()})
        self.statistics.registry.register(self.drift)

    @asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        with ExitStack() as stack:
            tasks, statistics = [], self.statistics
            for name, model in self.models.items():
                sizes, seconds = statistics.batch_inputs, statistics.batch_seconds
                histograms = sizes.labels(name), seconds.labels(name)
                count = partial(self.drift.count, name)
                self.batchers[name] = batcher = Batcher(model, self.limits, histograms, count)
                stack.callback(batcher.thread.shutdown)
                num_waiting = partial(getattr, batcher, "num_waiting")
                statistics.waiting.labels(name).set_function(num_waiting)
                tasks.append(asyncio.create_task(batcher.run()))
                stack.callback(tasks[-1].cancel)
            self.is_ready = True
            yield
            self.is_ready = False

    async def allow(self, request: fastapi.Request) -> None:
        """Refuses requests without a known token, in constant time. Without tokens, allows all."""
        sent_token = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
        num_matches = sum(hmac.compare_digest(sent_token, token.encode()) for token in self.tokens)
        if self.tokens and num_matches == 0:
            message = "Expected a known token (got none, or another)"
            raise fastapi.HTTPException(401, message, {"WWW-Authenticate": "Bearer"})

    async def health(self) -> dict[str, str]:
        """Reports that the process is alive."""
        return {"status": "alive"}

    async def ready(self) -> dict[str, Any]:
        """Reports that models are loaded, and that the server is not about to stop."""
        if not self.is_ready:
            got = "one that starts or stops"
            raise fastapi.HTTPException(503, f"Expected a server that is ready (got {got})")
        return {"status": "ready", "models": list(self.models)}

    async def metrics(self) -> Any:
        """Returns numbers of requests, inputs, batches, probabilities and unusual inputs, for
        Prometheus.
        """
        statistics = self.statistics
        content = statistics.generate(statistics.registry)
        return fastapi.Response(content, media_type=statistics.type)

    async def names(self) -> dict[str, Any]:
        """Returns the models, their labels, and the metrics that decisions can maximise."""
        return {
            name: {
                "labels": model.label_names,
                "metrics": model.decision.metrics,
                **_identity(model),
            }
            for name, model in self.models.items()
        }

    async def predict(self, name: str, request: fastapi.Request) -> Any:
        """Returns probabilities and decisions, or an error for an input that cannot be read."""
        return await self._respond(name, request, PredictBody, answers.predict)

    async def suggest(self, name: str, request: fastapi.Request) -> Any:
        """Returns the labels of each input to look up next, with the expected gain in bits, or an
        error for an input that cannot be read.
        """
        return await self._respond(name, request, SuggestBody, answers.suggest)

    async def audit(self, name: str, request: fastapi.Request) -> Any:
        """Returns recorded labels that are likely wrong, of inputs that the model was not fitted
        to, and an error for each input that cannot be read. How many are wrong is estimated from
        the inputs of the request, so send many.
        """
        return await self._respond(name, request, AuditBody, answers.audit)

    async def _respond(
        self,
        name: str,
        request: fastapi.Request,
        kind: type[BodyT],
        answer: Callable[[Request[BodyT], Batcher], Coroutine[Any, Any, dict[str, Any]]],
    ) -> Any:
        """Reads a request, and returns its answer, which has a result for each input."""
        if name not in self.models:
            expected = f"one of the models {list(self.models)}"
            raise fastapi.HTTPException(404, f"Expected {expected} (got {name[:80]!r})")
        start, status, statistics = time.monotonic(), 500, self.statistics
        try:
            coroutine = self._answer(name, request, kind, answer)
            num_read, num_unread, response = await asyncio.wait_for(
                coroutine, self.limits.max_seconds
            )
            statistics.inputs.labels(name, "yes").inc(num_read)
            statistics.inputs.labels(name, "no").inc(num_unread)
            status = response.status_code
            return response
        except RefusedError as error:
            status = error.status
            raise fastapi.HTTPException(status, str(error), error.headers) from None
        except (TimeoutError, asyncio.TimeoutError):  # two classes before Python 3.11
            status = 503
            expected = f"an answer in {self.limits.max_seconds:g} seconds"
            message = f"Expected {expected} (got none); {cure('max_seconds')}"
            headers = {"Retry-After": "5", "Connection": "close"}
            raise fastapi.HTTPException(status, message, headers) from None
        except ClientDisconnect:
            status = _DISCONNECTED
            return fastapi.Response(status_code=status)
        except fastapi.HTTPException as refused:
            status = refused.status_code
            raise
        finally:
            statistics.requests.labels(name, status).inc()
            statistics.seconds.labels(name).observe(time.monotonic() - start)

    async def _answer(
        self,
        name: str,
        request: fastapi.Request,
        kind: type[BodyT],
        answer: Callable[[Request[BodyT], Batcher], Coroutine[Any, Any, dict[str, Any]]],
    ) -> tuple[int, int, JSONResponse]:
        """Returns the numbers of readable and unreadable inputs, and the response."""
        body = await read_body(request, self.limits)
        arguments = request, kind, body, self.limits, self.models[name]
        model_request = await in_thread(None, read, *arguments)
        content = await while_connected(request, answer(model_request, self.batchers[name]))
        of_model = {"model": name, **_identity(self.models[name])}
        return await in_thread(None, _encoded, {**of_model, **content})


def make_app(
    models: dict[str, Model], limits: Limits | None = None, tokens: Sequence[str] = ()
) -> Any:
    """Makes the application.

    Args:
        models (dict): The models by their names in requests.
        limits (Limits, optional): Limits of requests. (default: :obj:`None`, :class:`Limits`)
        tokens (Sequence[str], optional): Each request needs one of these tokens; without tokens,
            all requests are answered. (default: :obj:`()`)
    """
    server = _Server(models, limits or Limits(), tokens)
    app = fastapi.FastAPI(
        title="tg_mlc",
        version=tg_mlc.__version__,
        description="Multi-label classification with message passing between labels.",
        lifespan=server.lifespan,
    )
    guarded = [fastapi.Depends(server.allow)]
    app.get("/health")(server.health)
    app.get("/ready")(server.ready)
    app.get("/metrics", dependencies=guarded)(server.metrics)
    app.get("/models", dependencies=guarded)(server.names)
    endpoints: dict[type[Body], Any] = {
        PredictBody: server.predict,
        SuggestBody: server.suggest,
        AuditBody: server.audit,
    }
    for kind, endpoint in endpoints.items():
        body = {"requestBody": {"required": True, "content": content_of(kind)}}
        path = f"/models/{{name}}/{endpoint.__name__}"
        app.post(path, dependencies=guarded, openapi_extra=body)(endpoint)
    return app


def run(
    folders: Sequence[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: str | None = None,
    limits: Limits | None = None,
    drain: int = 30,
) -> None:
    """Serves the models of folders until SIGTERM or an interruption; requests in progress are still
    answered.

    Args:
        folders (Sequence[str]): The folders. Their names are the models' names in requests.
        host (str, optional): The address to listen at. (default: :obj:`"127.0.0.1"`, this machine)
        port (int, optional): The port. (default: :obj:`8000`)
        token_file (str, optional): A file with one token per line; each request needs one of them.
            (default: :obj:`None`)
        limits (Limits, optional): Limits of requests. (default: :obj:`None`)
        drain (int, optional): Seconds that requests in progress may still take.
            (default: :obj:`30`)

    Raises:
        ValueError: If two folders have the same name, or the file holds no token.
        OSError: If the port is taken.
    """
    uvicorn = require("uvicorn", extra="serve")
    names = [Path(folder).resolve().name for folder in folders]
    if not names or len({*names}) < len(names):
        raise ValueError(f"Expected folders of models with different names (got {names})")
    tokens = [] if token_file is None else Path(token_file).read_text(encoding="utf-8").split()
    if token_file is not None and not tokens:
        raise ValueError(f"Expected a token in each line of '{token_file}' (got none)")
    models = {name: load(folder) for name, folder in zip(names, folders, strict=True)}
    # A prediction now saves the first request from waiting for imports and compilation.
    for model in models.values():
        with suppress(ValueError):  # Some kinds of input have no examples.
            if model.kind is not None:
                model.answer(model.kind.examples(2))
    config = uvicorn.Config(
        make_app(models, limits, tokens),
        host,
        port,
        log_level="warning",
        server_header=False,
        # The server keeps connections longer than load balancers, which may reuse them.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=drain,
    )
    server, address = uvicorn.Server(config), f"{host}:{port}"
    print(f"Serving {', '.join(names)} at http://{address} (try /docs)", flush=True)  # noqa: T201
    try:
        server.run()
    except (SystemExit, KeyboardInterrupt):
        if not server.started:
            got = "a port in use, or an address of another machine); choose another"
            raise OSError(f"Expected to listen at {address} (got {got}") from None
        # At the end, uvicorn raises the stop signal once more.


async def while_connected(request: fastapi.Request, coroutine: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a coroutine, which ends early if the client disconnects.

    Raises:
        ClientDisconnect: If the client disconnects.
    """

    async def disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    work, end = asyncio.ensure_future(coroutine), asyncio.ensure_future(disconnect())
    try:
        await asyncio.wait({work, end}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
        return work.result()
    finally:
        work.cancel()
        end.cancel()


def _identity(model: Model) -> dict[str, str | None]:
    """Returns the hash of a model's folder, and the version of the package that saved it."""
    return {"sha256": model.sha256, "version": model.facts.get("versions", {}).get("tg_mlc")}


def _encoded(content: dict[str, Any]) -> tuple[int, int, JSONResponse]:
    """Returns the numbers of readable and unreadable inputs, and the response."""
    num_unread = sum("error" in result for result in content["results"])
    num_read = len(content["results"]) - num_unread
    return num_read, num_unread, _Rows(content, 200 if num_read else 422)


class _Rows(JSONResponse):
    """A response that is encoded by rows, because Python encodes a text without switching threads,
    and large answers would stop the server for seconds.
    """

    def render(self, content: dict[str, Any]) -> bytes:
        results = b",".join(super(_Rows, self).render(row) for row in content["results"])
        head = super().render({name: value for name, value in content.items() if name != "results"})
        return head[:-1] + b',"results":[' + results + b"]}"
