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
    max_columns: int = 20_000,
    max_cells: int = 1_000_000,
    max_characters: int = 1_000_000,
    max_seconds: float = 30.0,
    max_batch: int = 256,
    drain: int = 30,
) -> int:
    """Serves models over HTTP until terminated; http://127.0.0.1:8000/docs documents requests.

    Args:
        model (MODEL): The folder of a model, whose name is in requests: POST /models/NAME/predict.
        also (FOLDERS): Folders of further models, separated by commas.
        host (ADDRESS): The address to listen on; 0.0.0.0 for all addresses of this machine.
        port (NUMBER): The port.
        token_file (FILE): A file with a token in each line; requests must bear one of them.
        max_bytes (NUMBER): The maximum number of bytes in the body of a request.
        max_items (NUMBER): The maximum number of inputs of a request.
        max_columns (NUMBER): The maximum number of names of columns in a request.
        max_cells (NUMBER): The maximum number of cells in a request, of all rows.
        max_characters (NUMBER): The maximum number of characters in a cell, text or name.
        max_seconds (SECONDS): The maximum time until a request is answered.
        max_batch (NUMBER): The maximum number of inputs that are scored together.
        drain (SECONDS): The maximum time for requests in progress when the server is terminated.

    Examples:
        tg-mlc serve model --port 8000 --token_file tokens.txt
    """
    from tg_mlc.cli._inputs import split_names
    from tg_mlc.serving import Limits
    from tg_mlc.serving.app import run

    limits = Limits(
        max_bytes,
        max_items,
        max_seconds=max_seconds,
        max_batch=max_batch,
        max_columns=max_columns,
        max_cells=max_cells,
        max_characters=max_characters,
    )
    folders = [model, *split_names(also)]
    run(folders, host=host, port=port, token_file=token_file, limits=limits, drain=drain)
    return 0
