"""The commands ``tg-mlc data``: published data sets."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from tg_mlc.cli._options import FileFlags, InputColumn


class DamagedError(Exception):
    """A data set that was processed before cannot be used."""


def get(name: str, *, root: str = "data", force: bool = False) -> int:
    """Downloads a data set if needed, and processes it.

    Args:
        name: The data set, one of those that "tg-mlc data list" shows.
        root: The folder of all data sets; this one gets a folder of its own in it.
        force: Processes it again, even if it is there.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    _count(name, root, force=force)
    return 0


def info(name: str, *, root: str | None = None) -> int:
    """Prints the card of a data set.

    Args:
        name: The data set, one of those that "tg-mlc data list" shows.
        root: Counts the data set in this folder of all data sets again, and fails if it is not there or anything
            differs from what is recorded; nothing is downloaded.
    """
    from tg_mlc.datasets import registry

    if root is None:
        print(registry.card(name))  # noqa: T201
        return 0
    if not Path(root).is_dir():
        raise ValueError(
            f"Expected '--root' to be the folder of all data sets (got '{root}', which is none)"
        )
    return int(bool(_count(name, root, download=False)))


def check(
    csv: str, file: FileFlags, column: InputColumn, *, labels: str = "", write: str | None = None
) -> int:
    """Prints the inferred role of each column of a file; the exit status is 1 if one is refused.

    Args:
        csv: The file, which may be ARFF.
        labels: The columns of labels, separated by commas; for ARFF also Mulan's XML file.
        write: A YAML file for the result, to be changed by hand and passed to "tg-mlc train" as --schema.
    """
    from tg_mlc._files import replace_when_done
    from tg_mlc._optional import require
    from tg_mlc.cli._inputs import file_options, split_names
    from tg_mlc.cli._output import with_options
    from tg_mlc.inputs._arff_table import read_arff
    from tg_mlc.inputs.arff import read_label_xml
    from tg_mlc.inputs.kinds import claim_texts, kinds_by_columns
    from tg_mlc.inputs.schema import Schema
    from tg_mlc.inputs.tables import check_columns, read_table

    options = file_options(file)
    if ".arff" in Path(csv).suffixes:
        usual = FileFlags(encoding=file.encoding, ignore=file.ignore)
        others = [
            f"--{name}" for name, value in vars(file).items() if value != getattr(usual, name)
        ]
        others += [f"--{option} {name}" for option, name in column.given.items()]
        if others:
            raise ValueError(
                f"Expected --labels, --ignore, --encoding and --write alone for ARFF (got {others})"
            )
        named: Any = (
            read_label_xml(labels).names
            if labels.endswith(".xml")
            else split_names(labels)
            if labels
            else None
        )
        encoding = file.encoding or "utf-8"
        attributes = read_arff(csv, labels=named, encoding=encoding, keep_text=True)
        schema = attributes.schema(options.hints, strict=False)
        size = f"{attributes.matrix.shape[0]:,} rows of {len(schema.columns):,} attributes"
    else:
        table = read_table(csv, options.delimiter, options.encoding)
        roles: Any = dict.fromkeys(split_names(labels) if labels else [], "label")
        kinds = kinds_by_columns()
        roles |= {name: kinds[option].role for option, name in column.given.items()}
        hints = replace(options.hints, delimiter=table.delimiter)
        schema = Schema.infer(table.cells(), roles, hints, table.place, strict=False)
        schema = claim_texts(schema, table.cells()) if hints.schema is None else schema
        if roles:
            check_columns(list(roles), table.header, f"'{csv}'")
            targets = [name for name, role in roles.items() if role == "label"]
            table.targets(targets, options.label_separator, options.label_paths)
        size = f"{len(table):,} rows of {len(table.header):,} columns"
    print(with_options(f"{size}.\n{schema}"))  # noqa: T201
    if write is not None:
        with replace_when_done(write) as unfinished:
            yaml = require("yaml", extra="data")
            unfinished.write_text(
                yaml.safe_dump(schema.to_dict(), sort_keys=False, allow_unicode=True)
            )
    return int(any(column.role == "refused" for column in schema.columns))


def list_() -> int:
    """Lists the published data sets."""
    from tg_mlc.datasets import registry

    width = max(map(len, registry.names()))
    for name in registry.names():
        card = registry.card(name)
        print(f"{name:<{width}} {card.samples:>9,} x {card.labels:<4} {card.kind:<9} {card.title}")  # noqa: T201
    return 0


def _count(name: str, root: str, *, force: bool = False, download: bool = True) -> list[str]:
    """Prints the card of a data set as it is counted, and returns what is not as recorded."""
    from tg_mlc.datasets import DatasetCard, registry

    recorded = registry.card(name)
    try:
        dataset = registry.load(name, root, force_reload=force, download=download)
    except RuntimeError as error:
        again = f"run '{registry.get_command(name, root, '--force')}'"
        message, mentioned = re.subn(r"pass '?force_reload=True'?", lambda _: again, str(error))
        if not mentioned:
            raise
        raise DamagedError(message) from error
    card = DatasetCard.of(dataset, registry.published(name))
    print(card)  # noqa: T201
    if not dataset.has_process:
        print(
            "These samples are made anew whenever they are loaded: no file is downloaded or written."
        )  # noqa: T201
    if recorded.origin != "computed":
        print("Recorded is only what papers report, so that there is nothing to compare with.")  # noqa: T201
        return []
    differences = card.differences(recorded)
    print("\n".join(["Not as recorded:", *differences]) if differences else "As recorded.")  # noqa: T201
    return differences
