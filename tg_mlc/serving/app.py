"""The server: an application of FastAPI, run by uvicorn."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tg_mlc
from tg_mlc._optional import require
from tg_mlc.inference import Model, load
from tg_mlc.serving.batching import Batcher, OverloadedError, RefusedError
from tg_mlc.serving.requests import CONTENT, Limits, Request, read

if TYPE_CHECKING:
    import fastapi
    from fastapi.responses import JSONResponse
else:  # which says what to install
    fastapi = require("fastapi", extra="serve")
    JSONResponse = require("fastapi.responses", extra="serve").JSONResponse


class _Numbers:
    """The counts and measurements of a server, for Prometheus."""

    def __init__(self) -> None:
        prometheus = require("prometheus_client", extra="serve")
        registry = prometheus.CollectorRegistry()
        sizes = {"registry": registry, "buckets": [2**k for k in range(11)]}
        self.requests = prometheus.Counter(
            "tg_mlc_requests", "By status.", ["model", "status"], registry=registry
        )
        self.inputs = prometheus.Counter(
            "tg_mlc_inputs", "Read or not.", ["model", "read"], registry=registry
        )
        self.seconds = prometheus.Histogram(
            "tg_mlc_request_seconds", "Per request.", ["model"], registry=registry
        )
        self.batch_inputs = prometheus.Histogram(
            "tg_mlc_batch_inputs", "Per batch.", ["model"], **sizes
        )
        self.batch_seconds = prometheus.Histogram(
            "tg_mlc_batch_seconds", "Per batch.", ["model"], registry=registry
        )
        self.waiting = prometheus.Gauge(
            "tg_mlc_inputs_waiting", "For a model.", ["model"], registry=registry
        )
        self.type = prometheus.CONTENT_TYPE_LATEST
        self.registry, self.generate = registry, prometheus.generate_latest


class _Server:
    """The models, and the functions that answer requests."""

    def __init__(self, models: dict[str, Model], limits: Limits, tokens: Sequence[str]) -> None:
        self.models, self.limits, self.tokens = models, limits, tokens
        self.numbers, self.batchers, self.is_ready = _Numbers(), dict[str, Batcher](), False

    @asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        with ExitStack() as stack:
            tasks = []
            for name, model in self.models.items():
                observed = (
                    self.numbers.batch_inputs.labels(name),
                    self.numbers.batch_seconds.labels(name),
                )
                batcher = Batcher(model, self.limits, observed)
                stack.callback(batcher.thread.shutdown)
                self.numbers.waiting.labels(name).set_function(
                    lambda batcher=batcher: batcher.num_waiting
                )
                self.batchers[name] = batcher
                tasks.append(asyncio.create_task(batcher.run()))
                stack.callback(tasks[-1].cancel)
            self.is_ready = True
            yield
            self.is_ready = False

    async def allow(self, request: fastapi.Request) -> None:
        """Refuses requests without a token, if there are any; all are compared, in the same time."""
        sent = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
        if (
            self.tokens
            and sum(hmac.compare_digest(sent, token.encode()) for token in self.tokens) == 0
        ):
            headers = {"WWW-Authenticate": "Bearer"}
            raise fastapi.HTTPException(
                401, "Expected a known token (got none, or another)", headers
            )

    async def health(self) -> dict[str, str]:
        """Tells that the process lives."""
        return {"status": "alive"}

    async def ready(self) -> dict[str, Any]:
        """Tells that models are loaded, and that the server is not about to stop."""
        if not self.is_ready:
            raise fastapi.HTTPException(
                503, "Expected a server that is ready (got one that starts or stops)"
            )
        return {"status": "ready", "models": list(self.models)}

    async def metrics(self) -> Any:
        """Numbers of requests, inputs and batches, for Prometheus."""
        return fastapi.Response(
            self.numbers.generate(self.numbers.registry), media_type=self.numbers.type
        )

    async def names(self) -> dict[str, Any]:
        """The models, with their labels, and the metrics that decisions may be best for."""
        return {
            name: {"labels": model.label_names, "metrics": model.decision.metrics}
            for name, model in self.models.items()
        }

    async def predict(self, name: str, request: fastapi.Request) -> Any:
        """Probabilities and decisions of inputs; one that cannot be read has an error in its place."""
        if name not in self.models:
            raise fastapi.HTTPException(
                404, f"Expected one of the models {list(self.models)} (got {name[:80]!r})"
            )
        start, status = time.monotonic(), 500
        try:
            checked = await read(request, self.limits, self.models[name])
            content = await asyncio.wait_for(
                answer(checked, self.batchers[name]), self.limits.max_seconds
            )
            num_unread = sum("error" in result for result in content["results"])
            num_read = len(content["results"]) - num_unread
            self.numbers.inputs.labels(name, "yes").inc(num_read)
            self.numbers.inputs.labels(name, "no").inc(num_unread)
            status = 200 if num_read else 422
            return JSONResponse({"model": name, **content}, status)
        except RefusedError as error:
            status = 422
            raise fastapi.HTTPException(status, str(error)) from None
        except OverloadedError as error:
            status = 429
            raise fastapi.HTTPException(status, str(error), {"Retry-After": "1"}) from None
        except (TimeoutError, asyncio.TimeoutError):  # two classes before Python 3.11
            status = 503
            expected = f"an answer in {self.limits.max_seconds:g} seconds (got none)"
            hint = {"Retry-After": "5"}
            raise fastapi.HTTPException(
                status, f"Expected {expected}; send fewer inputs", hint
            ) from None
        except fastapi.HTTPException as refused:
            status = refused.status_code
            raise
        finally:
            self.numbers.requests.labels(name, status).inc()
            self.numbers.seconds.labels(name).observe(time.monotonic() - start)


def make_app(
    models: dict[str, Model], limits: Limits | None = None, tokens: Sequence[str] = ()
) -> Any:
    """Makes the application.

    Args:
        models (dict): The models by the names that requests give.
        limits (Limits, optional): Limits of requests. (default: :obj:`None`, those of :class:`Limits`)
        tokens (Sequence[str], optional): The tokens of those who may ask; with none, all may. (default: :obj:`()`)
    """
    server = _Server(models, limits or Limits(), tokens)
    options: dict[str, Any] = {
        "title": "tg_mlc",
        "version": tg_mlc.__version__,
        "lifespan": server.lifespan,
    }
    app = fastapi.FastAPI(
        description="Multi-label classification with message passing between labels.", **options
    )
    guarded = [fastapi.Depends(server.allow)]
    app.get("/health")(server.health)
    app.get("/ready")(server.ready)
    app.get("/metrics", dependencies=guarded)(server.metrics)
    app.get("/models", dependencies=guarded)(server.names)
    body = {"requestBody": {"required": True, "content": CONTENT}}
    app.post("/models/{name}/predict", dependencies=guarded, openapi_extra=body)(server.predict)
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
    """Serves the models of folders until SIGTERM or an interruption, after which requests in progress are answered.

    Args:
        folders (Sequence[str]): The folders, whose names requests give.
        host (str, optional): The address to listen at. (default: :obj:`"127.0.0.1"`, this machine alone)
        port (int, optional): The port. (default: :obj:`8000`)
        token_file (str, optional): A file with a token in each line, one of which requests must bear.
            (default: :obj:`None`)
        limits (Limits, optional): Limits of requests. (default: :obj:`None`)
        drain (int, optional): The most seconds that requests in progress get at the end. (default: :obj:`30`)

    Raises:
        ValueError: If two folders have one name, or the file has no token.
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
    # The first request should not wait for what is compiled and imported.
    for model in models.values():
        with suppress(ValueError):  # Some kinds make up no inputs.
            if model.kind is not None:
                model.answer(model.kind.examples(2))
    # Connections outlive those of load balancers, which else meet closed ones.
    kept: dict[str, Any] = {"timeout_keep_alive": 75, "timeout_graceful_shutdown": drain}
    options = {"log_level": "warning", "server_header": False, **kept}
    server = uvicorn.Server(uvicorn.Config(make_app(models, limits, tokens), host, port, **options))
    print(f"Serving {', '.join(names)} at http://{host}:{port} (try /docs)", flush=True)  # noqa: T201
    try:
        server.run()
    except (SystemExit, KeyboardInterrupt):
        if not server.started:
            got = "a port in use, or an address of another machine"
            raise OSError(
                f"Expected to listen at {host}:{port} (got {got}); choose another"
            ) from None
        # It was told to end, and uvicorn raises the signal once more when all is done.


async def answer(request: Request, batcher: Batcher) -> dict[str, Any]:
    """Returns the answer to a request, with a result for each input."""
    prediction = await batcher.submit(request.inputs, request.query)
    model, results = batcher.model, list[dict[str, Any]]()
    for row in range(len(prediction)):
        if row in prediction.reasons:
            results.append({"error": prediction.reasons[row]})
            continue
        results.append(
            {
                "probability": prediction.of_labels(prediction.probabilities[row]),
                "decision": prediction.of_labels(prediction.decisions[row]),
            }
        )
        if request.explain:
            in_thread = asyncio.get_running_loop().run_in_executor
            results[-1]["explanation"] = await in_thread(
                batcher.thread, _explained, request, model, row
            )
    return {
        "calibrated": prediction.calibrated,
        "metric": str(request.query.decides),
        "thresholds": prediction.of_labels(prediction.thresholds),
        "warnings": list(dict.fromkeys([*request.warnings, *prediction.warnings])),
        "results": results,
    }


def _explained(request: Request, model: Model, row: int) -> dict[str, Any]:
    """By how much the logit of each asked label falls without each component."""
    given = None if request.query.given is None else request.query.given[row : row + 1]
    try:
        [sample] = model.explain(
            request.inputs[row : row + 1], request.explain, "occlusion", given=given
        ).samples
    except ValueError as error:
        return {"error": str(error)}
    [scores] = sample.scores.values()
    return {
        label: [
            {"component": name, "score": float(score)}
            for name, score in zip(sample.components, scores[:, place], strict=True)
        ]
        for place, label in enumerate(request.explain)
    }
