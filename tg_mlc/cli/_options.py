"""Options that several commands share. Kinds of input declare the options for inputs."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, make_dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from tg_mlc._input_options import INPUT_OPTIONS, InputOption


@dataclass(kw_only=True)
class RowsFile:
    r"""The file.

    Args:
        csv (FILE): The file, with a header: CSV or other text, Parquet, Excel or JSON.
        sdf (FILE): The file, if it is an SDF of molecules; its properties are columns.
        arff (FILE): The file, if it is ARFF.
        delimiter (MARK): The delimiter of cells, \t for a tab; by default, the most frequent one of
            the header.
        encoding (NAME): The encoding of characters; by default, what the first bytes say, else
            UTF-8.
    """

    csv: str | None = None
    sdf: str | None = None
    arff: str | None = None
    delimiter: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        # Users write \t for a tab.
        self.delimiter = None if self.delimiter is None else self.delimiter.replace(r"\t", "\t")

    @property
    def is_given(self) -> bool:
        """Whether any file is specified."""
        return bool(self._files())

    @property
    def path(self) -> str:
        """The path of the file, from ``--csv``, ``--sdf`` or ``--arff``."""
        files = self._files()
        if len(files) != 1:
            got = ", ".join(f"--{name} {path}" for name, path in files.items()) or "none"
            raise ValueError(f"Expected one of --csv, --sdf and --arff with the file (got {got})")
        [(name, path)] = files.items()
        if name != "csv" and f".{name}" not in map(str.lower, Path(path).suffixes):
            expected = f"a name that ends in .{name}, perhaps compressed, for --{name}"
            raise ValueError(f"Expected {expected} (got '{path}'); or use --csv")
        return path

    def _files(self) -> dict[str, str]:
        files = {"csv": self.csv, "sdf": self.sdf, "arff": self.arff}
        return {name: path for name, path in files.items() if path is not None}


@dataclass(kw_only=True)
class TableOptions(RowsFile):
    r"""The file, its labels, and how its columns are read.

    Args:
        arff (FILE): The file, if it is ARFF; --labels is not needed if the file says which
            attributes are labels, as those of MEKA and, with paths of a hierarchy, of Clus do.
        labels (NAMES): The columns of labels, separated by commas, whose cells are 0, 1 or blank
            (unknown); also patterns such as 'NR-*', and rest for all columns that no other option
            names.
        decimal (MARK): The mark of decimals, a dot or a comma.
        ignore (NAMES): Columns to skip, separated by commas.
        id (NAMES): Columns that name the rows and are no inputs, separated by commas.
        categorical (NAMES): Columns whose numbers are names of categories, separated by commas.
        label_separator (MARK): The mark between names, if --labels is one column that lists the
            labels of a row.
        label_paths (MARK): The mark in labels that are paths, such as / in science/physics, to add
            their ancestors.
        hierarchy (FILE): The parents of labels (OBO, SKOS in RDF/XML, or a table of child and
            parent), to add ancestors and to make predictions coherent.
        schema (FILE): A file of "data check --write", in place of what is inferred.
        max_lost (FRACTION): The fraction of rows that may be skipped because they cannot be read;
            five always may be.
    """

    labels: str | list[str] | None = None
    decimal: str | None = None
    ignore: str | list[str] | None = None
    id: str | list[str] | None = None
    categorical: str | list[str] | None = None
    label_separator: str | None = None
    label_paths: str | None = None
    hierarchy: str | None = None
    schema: str | None = None
    max_lost: float = 0.1


@dataclass(kw_only=True)
class TrainOptions:
    """Training.

    Args:
        out (FOLDER): The folder of the result: a model, or the tables of a comparison.
        split (NAME): How to choose the rows for testing: random, stratified or, for molecules,
            scaffold.
        seconds (SECONDS): The time that all trainings may take, roughly; small files take less.
        seed (NUMBER): Seed of the split, of folds, trees and weights; equal seeds give equal models
            unless time ends a search.
    """

    out: str
    split: str = "random"
    seconds: float = 300.0
    seed: int = 0


class KindOptions:
    """Options for inputs, one for each kind of input that has one."""

    help_text: ClassVar[str]  #: the attribute of :class:`InputOption` that holds the help text

    @classmethod
    def declared(cls) -> Any:
        """Returns a subclass that is a data class of the options of all registered kinds."""
        base: Any = cls
        return _data_class(base, tuple(INPUT_OPTIONS.values()))

    @property
    def given(self) -> dict[str, Any]:
        """The values of the specified options, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


class InputColumns(KindOptions):
    """The columns of inputs. Rows of several kinds take several options, or repeated ones."""

    help_text = "column"


class SingleInput(KindOptions):
    """A single input."""

    help_text = "single"


@cache
def _data_class(base: type[KindOptions], options: tuple[InputOption, ...]) -> Any:
    fields = list[tuple[str, Any, None]]()
    lines = [inspect.getdoc(base) or "", "", "Args:"]
    for option in options:
        text = getattr(option, base.help_text)
        if text is not None:
            is_single = base is SingleInput
            fields.append((option.name, str | None if is_single else str | list[str] | None, None))
            metavar = option.name.upper() if is_single else "COLUMN" + "S" * option.several
            lines.append(f"    {option.name} ({metavar}): {text}")
    namespace = {"__doc__": "\n".join(lines), "__module__": __name__}
    return make_dataclass(base.__name__, fields, bases=(base,), namespace=namespace, kw_only=True)
