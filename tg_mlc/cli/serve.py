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
    """Serves models over HTTP until it is terminated; http://127.0.0.1:8000/docs then documents requests.

    Args:
        model: The folder of a model, whose name requests give: POST /models/NAME/predict.
        also: Folders of further models, separated by commas.
        host: The address to listen on; 0.0.0.0 for all addresses of this machine.
        port: The port.
        token_file: A file with a token in each line; requests must bear one of them.
        max_bytes: The most bytes in the body of a request.
        max_items: The most inputs of a request.
        max_seconds: The most seconds until a request is answered.
        max_batch: The most inputs that are scored together.
        drain: The most seconds that requests in progress get when the server is terminated.
    """
    from tg_mlc.cli._inputs import split_names
    from tg_mlc.serving import Limits
    from tg_mlc.serving.app import run

    limits = Limits(max_bytes, max_items, max_seconds=max_seconds, max_batch=max_batch)
    run(
        [model, *split_names(also or [])],
        host=host,
        port=port,
        token_file=token_file,
        limits=limits,
        drain=drain,
    )
    return 0
