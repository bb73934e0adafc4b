"""Writes tg_mlc/datasets/cards.json: the statistics of every published data set that can be loaded here.

    TG_MLC_DATA=... python tools/make_cards.py --root data        # all of them
    TG_MLC_DATA=... python tools/make_cards.py --root data yeast  # only some

Of those that cannot be loaded, the figures of the papers are recorded, unless the file has computed ones already.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tg_mlc._files import replace_when_done
from tg_mlc.datasets import ChecksumError, DatasetUnavailableError, registry
from tg_mlc.datasets.card import DatasetCard, to_plain


def main() -> None:
    """Updates the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=registry.names(), help="data sets (default: all)")
    parser.add_argument("--root", type=Path, required=True, help="folder to keep the data sets in")
    arguments = parser.parse_args()
    recorded = json.loads(registry.CARDS.read_text(encoding="utf-8")) if registry.CARDS.exists() else {}
    for name in arguments.names:
        recorded[name] = statistics(name, arguments.root, recorded.get(name))
        print(f"{name}: {recorded[name]['origin']}", flush=True)
    write(recorded, registry.CARDS)


def write(recorded: dict[str, dict[str, Any]], path: Path) -> None:
    """Writes the file in the order of the documentation: at once, or not at all."""
    ordered = {name: recorded[name] for name in registry.names() if name in recorded}
    with replace_when_done(path) as unfinished:
        unfinished.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def statistics(name: str, root: Path, recorded: dict[str, Any] | None) -> dict[str, Any]:
    """What is computed of a data set, or else reported of it."""
    entry = registry.published(name)
    if entry.maker:
        try:
            return to_plain(DatasetCard.of(registry.load(name, root), entry.facts).statistics)
        except (ChecksumError, DatasetUnavailableError, ImportError) as error:
            print(f"{name} cannot be loaded here: {error}", flush=True)
    if recorded is not None and recorded["origin"] == "computed":
        return recorded
    if entry.reported is None:
        raise SystemExit(
            f"Expected the figures of '{name}', which cannot be loaded here, in tg_mlc/datasets/_published.py"
        )
    return to_plain(entry.reported)


if __name__ == "__main__":
    main()
