"""Writes the statistics of every published data set that can be loaded here to catalogue.json.

    TG_MLC_DATA=... python tools/make_cards.py --root data        # all of them
    TG_MLC_DATA=... python tools/make_cards.py --root data yeast  # only some

Those that cannot be loaded stay as they are.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tg_mlc._files import replace_when_done
from tg_mlc.datasets import ChecksumError, DatasetUnavailableError, registry
from tg_mlc.datasets.card import DatasetCard


def main() -> None:
    """Updates the catalogue."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    names = registry.names()
    parser.add_argument("names", nargs="*", default=names, help="data sets (default: all)")
    parser.add_argument("--root", type=Path, required=True, help="folder to keep the data sets in")
    arguments = parser.parse_args()
    catalogue = json.loads(registry.CATALOGUE.read_text(encoding="utf-8"))
    for name in arguments.names:
        recorded = catalogue[name]["statistics"]
        catalogue[name]["statistics"] = statistics(name, arguments.root, recorded)
        print(f"{name}: {catalogue[name]['statistics']['origin']}", flush=True)
    write(catalogue, registry.CATALOGUE)


def write(catalogue: dict[str, dict[str, Any]], path: Path) -> None:
    """Writes the file atomically."""
    content = json.dumps(catalogue, indent=1, ensure_ascii=False) + "\n"
    with replace_when_done(path) as unfinished:
        unfinished.write_text(content, encoding="utf-8")


def statistics(name: str, root: Path, recorded: dict[str, Any]) -> dict[str, Any]:
    """The statistics that are computed from a data set, or else the recorded ones."""
    if not registry.published(name).maker:
        return recorded
    try:
        computed = DatasetCard.of(registry.load(name, root)).statistics
    except (ChecksumError, DatasetUnavailableError, ImportError) as error:
        print(f"{name} cannot be loaded here: {error}", flush=True)
        return recorded
    del computed["raw_sha256"]  # The catalogue lists it among the files.
    return {name: value for name, value in computed.items() if value is not None}


if __name__ == "__main__":
    main()
