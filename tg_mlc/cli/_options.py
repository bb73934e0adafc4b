"""Options that several commands share; kinds of input declare those for inputs."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Any

from tg_mlc._input_options import INPUT_OPTIONS, InputOption


@dataclass(kw_only=True)
class FileFlags:
    r"""Options of how a file is read, which is inferred otherwise.

    Args:
        delimiter: The mark between cells, \t for a tab; by default, the one that occurs most in the header.
        encoding: The encoding of characters; by default, what the first bytes say, else UTF-8.
        decimal: The mark of decimals, a dot or a comma.
        ignore: Columns to leave out, separated by commas.
        id: Columns that name the rows and are no inputs, separated by commas.
        categorical: Columns whose numbers are names of categories, separated by commas.
        label_separator: The mark between names, if --labels is one column that lists the names of a row's labels.
        label_paths: The mark in names of labels that are paths, such as / in science/physics, to add their ancestors.
        hierarchy: A file of the parents of labels (OBO, SKOS in RDF/XML, or a table of child and parent), to add
            ancestors and to make predictions coherent.
        schema: A file that "tg-mlc data check --write" wrote, in place of what is inferred.
        max_lost: The share of rows that may be left out because they cannot be read; five rows always may be.
    """

    delimiter: str | None = None
    encoding: str | None = None
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
    r"""Options of the commands that train.

    Args:
        out: The folder of the result: a model, or the tables of a comparison.
        csv: The file, with a header: CSV or other text, Parquet, Excel or JSON.
        labels: The columns of labels, separated by commas; their cells are 0, 1 or blank (unknown).
        arff: The file, if it is ARFF; leave out --labels if the file says which attributes are labels, as those of MEKA
            and, with paths of a hierarchy, of Clus do.
        split: How to choose the rows for testing: random, stratified or, for SMILES, scaffold.
        seconds: The time that all trainings may take, roughly; small files take less.
        seed: Seed of the split, of folds, trees and weights; equal seeds give equal models unless time ends a search.
    """

    out: str
    csv: str | None = None
    labels: str | list[str] | None = None
    arff: str | None = None
    split: str = "random"
    seconds: float = 300.0
    seed: int = 0


class KindOptions:
    """Options for inputs, one for each kind of input that has one."""

    @classmethod
    def declared(cls) -> Any:
        """Returns the data class of these options, a subclass, as the kinds declare them now."""
        base: Any = cls
        return _data_class(base, tuple(INPUT_OPTIONS.values()))

    @classmethod
    def help_of(cls, option: InputOption) -> str | None:
        """Returns the help of an option; :obj:`None` if it is none of these."""
        raise NotImplementedError

    @property
    def given(self) -> dict[str, Any]:
        """The values of the options that were given, by their names."""
        return {name: value for name, value in vars(self).items() if value is not None}


class InputColumns(KindOptions):
    """The columns of inputs in a file."""

    @classmethod
    def help_of(cls, option: InputOption) -> str | None:
        return option.column


class InputColumn(KindOptions):
    """The column of inputs in a file, of kinds of which a cell is an input."""

    @classmethod
    def help_of(cls, option: InputOption) -> str | None:
        return None if option.several else option.column


class SingleInput(KindOptions):
    """One input."""

    @classmethod
    def help_of(cls, option: InputOption) -> str | None:
        return option.single


@cache
def _data_class(base: type[KindOptions], options: tuple[InputOption, ...]) -> Any:
    fields = list[tuple[str, Any, None]]()
    lines = [inspect.getdoc(base) or "", "", "Args:"]
    for option in options:
        text = base.help_of(option)
        if text is not None:
            takes_list = option.several and base is InputColumns
            fields.append((option.name, str | list[str] | None if takes_list else str | None, None))
            lines.append(f"    {option.name}: {text}")
    namespace = {"__doc__": "\n".join(lines), "__module__": __name__}
    return make_dataclass(base.__name__, fields, bases=(base,), namespace=namespace, kw_only=True)
