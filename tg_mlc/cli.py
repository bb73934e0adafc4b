"""The command line, ``tg-mlc``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import tg_mlc
from tg_mlc._optional import require
from tg_mlc.datasets import ChecksumError, DatasetUnavailableError, registry
from tg_mlc.datasets.card import DatasetCard

#: What a person can mend, as the message says; anything else is a mistake of ours and shows its traceback.
_EXPECTED = (ValueError, ImportError, OSError, ChecksumError, DatasetUnavailableError)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``tg-mlc`` and returns its exit status: 0; 1 if something went wrong; 2 if the command is not one."""
    try:
        return int(
            require("jsonargparse", extra="data").CLI(
                {"data": {"get": get, "info": info, "list": list_}},
                args=None if argv is None else list(argv),
                prog="tg-mlc",
                version=tg_mlc.__version__,
                description=tg_mlc.__doc__.splitlines()[0],
            )
        )
    except _EXPECTED as error:
        print(f"tg-mlc: {error}", file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        print("tg-mlc: interrupted; run it again to go on", file=sys.stderr)  # noqa: T201
        return 130


def get(name: str, root: str = "data") -> int:
    """Downloads a data set where needed, and processes it.

    Args:
        name: One of those that "tg-mlc data list" shows.
        root: The folder of all data sets; this one gets a folder of its own in it.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    _count(name, root)
    return 0


def info(name: str, root: str | None = None) -> int:
    """Prints the card of a data set.

    Args:
        name: One of those that "tg-mlc data list" shows.
        root: Counts the data set in this folder of all data sets again, and fails if anything differs from what is
            recorded.
    """
    recorded = registry.card(name)
    if root is None:
        print(recorded)  # noqa: T201
        return 0
    if not Path(root).is_dir():
        raise ValueError(f"Expected '--root' to be the folder of all data sets (got '{root}', which is none)")
    return int(bool(_count(name, root)))


def list_() -> int:
    """Lists the published data sets."""
    for name in registry.names():
        card = registry.card(name)
        print(f"{name:<12} {card.samples:>9,} x {card.labels:<4} {card.kind:<9} {card.title}")  # noqa: T201
    return 0


def _count(name: str, root: str) -> list[str]:
    """Prints the card of a data set as it is counted, and returns what is not as recorded."""
    recorded = registry.card(name)
    card = DatasetCard.of(registry.load(name, root), registry.published(name).facts)
    print(card)  # noqa: T201
    if recorded.origin != "computed":
        print("Recorded is only what papers report, so that there is nothing to compare with.")  # noqa: T201
        return []
    differences = card.differences(recorded)
    print("\n".join(["Not as recorded:", *differences]) if differences else "As recorded.")  # noqa: T201
    return differences
