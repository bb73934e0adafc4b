"""The command ``tg-mlc serve``: models behind an HTTP server."""

from __future__ import annotations


def serve(
    model: str,
    *,
    also: str | list[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: str | None = None,
    max_bytes: int = 10_000_000,
    max_items: int = 1000,
    max_seconds: float = 30.0,
    max_batch: int = 256,
    drain: int = 30,
) -> int:
    """Serves models over HTTP until it is terminated; http://127.0.0.1:8000/docs then shows how to ask.

    Args:
        model: The folder of a model, whose name requests give: POST /models/NAME/predict.
        also: Folders of further models, between commas.
        host: The address to listen at; 0.0.0.0 for all of this machine.
        port: The port.
        token_file: A file with a token in each line, one of which requests must bear.
        max_bytes: The largest body of a request.
        max_items: The most inputs of a request.
        max_seconds: The most seconds until a request is answered.
        max_batch: The most inputs that are scored together.
        drain: The most seconds that requests in progress get at the end.
    """
    from tg_mlc.cli._inputs import split_names
    from tg_mlc.serving import Limits
    from tg_mlc.serving.app import run

    limits = Limits(max_bytes, max_items, max_seconds=max_seconds, max_batch=max_batch)
    run([model, *split_names(also or [])], host=host, port=port, token_file=token_file, limits=limits, drain=drain)
    return 0
