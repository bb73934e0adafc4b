"""The commands ``tg-mlc data``: published data sets, and checks of files."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from tg_mlc.cli._options import InputColumns, TableOptions


def get(name: str, *, root: str = "data", force: bool = False) -> int:
    """Downloads a data set if needed, and processes it.

    Args:
        name (NAME): The data set, one of those that "tg-mlc data list" shows.
        root (FOLDER): The folder of all data sets; this one gets a folder of its own in it.
        force: Processes it again, even if it is there.

    Examples:
        tg-mlc data get yeast
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    _print_card(name, root, force=force)
    return 0


def info(name: str, *, root: str | None = None) -> int:
    """Prints the card of a data set.

    Args:
        name (NAME): The data set, one of those that "tg-mlc data list" shows.
        root (FOLDER): Counts the data set in this folder of all data sets again, and fails if it is
            not there or anything differs from what is recorded; nothing is downloaded.

    Examples:
        tg-mlc data info yeast
    """
    from tg_mlc.datasets import registry

    if root is None:
        print(registry.card(name))  # noqa: T201
        return 0
    if not Path(root).is_dir():
        got = f"'{root}', which is not a folder"
        raise ValueError(f"Expected '--root' to be the folder of all data sets (got {got})")
    return int(bool(_print_card(name, root, download=False)))


def check(columns: InputColumns, table: TableOptions, *, write: str | None = None) -> int:
    """Prints the inferred role of each column of a file.

    It takes the options of "train" for the file. The exit status is 1 if a column is refused. For
    ARFF, --labels may be Mulan's XML file.

    Args:
        write (FILE): A YAML file for the result, to be edited and passed to "train" as --schema.

    Examples:
        tg-mlc data check --csv drugs.csv
        tg-mlc data check --csv drugs.csv --smiles smiles --labels rest --write schema.yaml
    """
    from tg_mlc._files import replace_when_done
    from tg_mlc._optional import require

    path = table.path
    is_arff = ".arff" in map(str.lower, Path(path).suffixes)
    schema, text = _arff_schema(columns, table) if is_arff else _schema(columns, table)
    print(text)  # noqa: T201
    if write is not None:
        yaml = require("yaml", extra="data")
        text = yaml.dump(schema.to_dict(), None, _dumper(yaml), sort_keys=False, allow_unicode=True)
        with replace_when_done(write) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    return int(any(column.role == "refused" for column in schema.columns))


def _dumper(yaml: Any) -> Any:
    """Returns a writer of YAML that quotes texts which begin with a digit, because other readers
    take 02906 for a number.
    """

    class Dumper(yaml.SafeDumper):
        def represent_text(self, text: str) -> Any:
            style = "'" if text[:1].isdigit() else None
            return self.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, Dumper.represent_text)
    return Dumper


def _arff_schema(columns: InputColumns, options: TableOptions) -> tuple[Any, str]:
    from tg_mlc.cli._inputs import file_options, split_names
    from tg_mlc.inputs._arff_table import read_arff
    from tg_mlc.inputs.arff import read_label_xml

    supported = {"csv", "arff", "labels", "encoding", "ignore"}
    defaults = vars(TableOptions(**{name: getattr(options, name) for name in supported}))
    unsupported = [f"--{name}" for name, value in vars(options).items() if value != defaults[name]]
    unsupported += [f"--{option} {name}" for option, name in columns.given.items()]
    if unsupported:
        expected = "--labels, --ignore, --encoding and --write alone for ARFF"
        raise ValueError(f"Expected {expected} (got {unsupported})")
    names: Any = split_names(options.labels) or None
    if names is not None and names[0].endswith(".xml"):
        names = read_label_xml(names[0]).names
    encoding = options.encoding or "utf-8"
    attributes = read_arff(options.path, labels=names, encoding=encoding, keep_text=True)
    schema = attributes.schema(file_options(options).hints, strict=False)
    rows = attributes.matrix.shape[0]
    return schema, f"{rows:,} rows of {len(schema.columns):,} attributes.\n{schema}"


def _schema(columns: InputColumns, options: TableOptions) -> tuple[Any, str]:
    from tg_mlc._names import few
    from tg_mlc.cli._inputs import file_options, make_inputs
    from tg_mlc.inputs.checks import warn_of_names
    from tg_mlc.inputs.kinds import claim_texts, kinds_by_columns
    from tg_mlc.inputs.label_columns import likely_labels
    from tg_mlc.inputs.schema import Schema
    from tg_mlc.inputs.tables import check_columns, read_table

    settings, source = file_options(options), f"'{options.path}'"
    table = read_table(options.path, settings.delimiter, settings.encoding)
    inputs, _ = make_inputs(columns, replace(options, labels=options.labels or []))
    roles: Any = dict.fromkeys(inputs.labels, "label")
    is_matrix = inputs.input_kind.reads_columns
    for option, names in (inputs.parts or {inputs.kind: inputs.columns}).items():
        kind = kinds_by_columns()[option] if inputs.parts else inputs.input_kind
        roles |= {} if kind.reads_columns else dict.fromkeys(names, kind.role)
    check_columns([*inputs.columns, *inputs.labels], table.header, source)
    hints = replace(settings.hints, delimiter=table.delimiter)
    if is_matrix and inputs.columns and hints.schema is None:
        unused = set(table.header).difference(inputs.columns, inputs.labels)
        hints = replace(hints, ignore=[*{*hints.ignore, *unused}])
    schema = Schema.infer(table.cells(), roles, hints, table.place, strict=False)
    if hints.schema is None:
        schema = claim_texts(schema, table.cells())
    text = f"{len(table):,} rows of {len(table.header):,} columns.\n{schema}"
    if inputs.labels:
        separators = settings.label_separator, settings.label_paths
        _, label_names = table.targets(inputs.labels, *separators)
        warn_of_names(label_names)
    elif names := likely_labels(schema, table.cells()):
        text += f"\nPerhaps --labels, as all cells are 0, 1 or blank: {few(names)}."
    return schema, text


def list_() -> int:
    """Lists the published data sets."""
    from tg_mlc.datasets import registry

    width = max(map(len, registry.names()))
    for name in registry.names():
        card = registry.card(name)
        size = f"{card.samples:>9,} x {card.labels:<4}"
        print(f"{name:<{width}} {size} {card.kind:<9} {card.title}")  # noqa: T201
    return 0


def _print_card(name: str, root: str, *, force: bool = False, download: bool = True) -> list[str]:
    """Computes and prints a data set's card. Returns differences from the recorded card."""
    from tg_mlc.data.samples import DamagedError
    from tg_mlc.datasets import DatasetCard, registry

    recorded = registry.card(name)
    try:
        dataset = registry.load(name, root, force_reload=force, download=download)
    except DamagedError as error:
        cure = f"run '{registry.get_command(name, root, '--force')}'"
        raise DamagedError(error.reason, cure) from error
    card = DatasetCard.of(dataset, registry.published(name))
    lines, differences = [str(card)], list[str]()
    if not dataset.has_process:
        lines.append(
            "These samples are made anew when they are loaded: no file is downloaded or written."
        )
    if recorded.origin != "computed":
        lines.append("Only what papers report is recorded: there is nothing to compare with.")
    elif differences := card.differences(recorded):
        lines += ["Not as recorded:", *differences]
    else:
        lines.append("As recorded.")
    print("\n".join(lines))  # noqa: T201
    return differences
