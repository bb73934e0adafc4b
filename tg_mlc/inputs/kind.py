"""InputKind: everything that depends on the kind of input, in one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypedDict, cast

import numpy as np
import scipy.sparse as sp
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Self, Unpack

from tg_mlc._frames import as_frame
from tg_mlc._input_options import INPUT_OPTIONS, InputOption
from tg_mlc._names import register
from tg_mlc._numbers import as_list, is_missing
from tg_mlc._warnings import check_abandoned, note, warn
from tg_mlc.data import ArrayDataset, MultiLabelDataset, Split
from tg_mlc.data.records import Records, Tokens
from tg_mlc.graphs import read_parents
from tg_mlc.inputs.checks import check_lost, check_samples
from tg_mlc.inputs.components import Components
from tg_mlc.inputs.hierarchies import with_hierarchy
from tg_mlc.inputs.preprocessor import Preprocessor
from tg_mlc.inputs.rows import only_cell, take_column
from tg_mlc.inputs.schema import INPUTS, Hints, Role
from tg_mlc.inputs.tables import Table, read_table

#: The inputs of all samples: bags, vectors or sequences.
Rows: TypeAlias = sp.csr_array | np.ndarray | Tokens


class View(ABC):
    """A conversion of samples to a matrix for classifiers, fitted to training samples.

    Saved models find a view by its registered name (:func:`tg_mlc._names.register`).
    """

    def fit(self, dataset: MultiLabelDataset) -> Self:
        """Learns from training samples."""
        return self

    @abstractmethod
    def matrix(self, dataset: MultiLabelDataset) -> Any:
        """Returns features :math:`(N, F)` of samples; their mean square length is about 1."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the learned values, as arrays and plain data."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Loads the learned values of another view."""
        return self


class Form(NamedTuple):
    """A form in which an estimator takes raw inputs."""

    kind: str | None  #: the :obj:`kind` of the resulting data set
    is_matrix: bool = False  #: whether inputs are the rows of a matrix, not a list


class ReadOptions(TypedDict, total=False):
    """Options of how raw inputs are read."""

    feature_names: Sequence[str] | None  #: words or columns; by default, read from the inputs
    #: rows of training samples, from which the vocabulary is built; by default, all rows
    train: np.ndarray | None
    #: number of words or columns of an earlier data set, which the new one must have too
    num_inputs: int | None


class SampleOptions(ReadOptions, total=False):
    """Options of how raw inputs become a data set."""

    test: np.ndarray | None  #: the rows of test samples
    transform: Callable[[Data], Data] | None  #: applied to a sample at every access


@dataclass(frozen=True)
class FileOptions:
    """Options of how a file is read, chosen by the user; other properties are inferred."""

    label_separator: str | None = None  #: separator of names in a column of labels
    label_paths: str | None = None  #: separator of the parts of label names that are paths
    delimiter: str | None = None  #: delimiter of cells
    encoding: str | None = None  #: encoding of characters
    max_lost: float = 0.1  #: the fraction of rows that may be skipped because they are unreadable
    #: for rows of several kinds, the columns by the option of each kind
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hints: Hints = field(default_factory=Hints)  #: choices about columns
    hierarchy: str | Path | None = None  #: a file of parents of labels for read_parents


class EncoderOptions(TypedDict, total=False):
    """Options of encoders, with the defaults of :func:`~tg_mlc.inputs.input_encoder`."""

    num_components: int
    input_dropout: float
    min_df: int


class InputKind(Preprocessor, Components):
    """One kind of input: recognises and reads raw inputs, converts them to samples like those of
    training, and makes matrices for classifiers and encoders for networks.

    A new kind is a subclass in a file of its own and a line in :obj:`tg_mlc.inputs.kinds.KINDS`.
    An object is a preprocessor, fitted to training samples and saved with a model.

    Raises:
        ValueError: On use, if inputs are empty, or are a string instead of a list.
    """

    #: forms of raw inputs, by their names in estimators
    forms: ClassVar[Mapping[str, Form]]
    #: command-line option of the kind; None if no file has such inputs
    command_option: ClassVar[InputOption | None] = None
    noun: ClassVar[str] = "an input"  #: what a single input is, for messages
    #: role of a column of inputs of this kind (:class:`~tg_mlc.inputs.schema.Column`)
    role: ClassVar[Role] = "number"
    #: the name of LaMP's settings in :obj:`tg_mlc.stacking.folds.SETTINGS`
    settings: ClassVar[str] = "table"
    #: Factories of views by name; the last view keeps most information about a sample.
    views: ClassVar[Mapping[str, Callable[[], View]]]
    #: whether an input is several columns of a table, not one cell
    reads_columns: ClassVar[bool] = False
    splits: ClassVar[tuple[str, ...]] = ("random", "stratified")  #: the ways to choose test samples
    #: the :obj:`feature_names` of all data sets of the kind
    constant_names: ClassVar[list[str] | None] = None
    label_names: list[str]  #: the labels of the training samples

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, make in vars(cls).get("views", {}).items():
            register("view", make, name)
        if cls.command_option is not None:
            INPUT_OPTIONS[cls.command_option.name] = cls.command_option

    @classmethod
    def matches(cls, dataset: MultiLabelDataset) -> bool:
        """Tells whether samples are of this kind, by :attr:`forms` and :attr:`constant_names`."""
        is_form = dataset.kind in map(attrgetter("kind"), cls.forms.values())
        return is_form and cls.constant_names in (None, dataset.feature_names)

    @classmethod
    def claims(cls, texts: Sequence[Any]) -> bool:
        """Tells whether the cells of a column are likely to be inputs of this kind."""
        return False

    @classmethod
    def recognise(cls, X: Any) -> tuple[str, str] | None:
        """Infers the :obj:`kind` of arrays, with the reason; None if they are not of this class."""
        return None

    @classmethod
    @abstractmethod
    def read(
        cls, X: Any, kind: str | None, **options: Unpack[ReadOptions]
    ) -> tuple[Rows, list[str] | None]:
        """Reads raw inputs, and returns them with the names of their features, if any.

        Args:
            X (Any): The raw inputs.
            kind (str): The :obj:`kind` of the resulting data set.
            **options (optional): Options of :class:`ReadOptions`.
        """

    @classmethod
    def listed(cls, X: Any, form: str) -> list[Any]:
        """Converts raw inputs to a list, for estimators whose inputs are not rows of a matrix."""
        texts = as_texts(X)
        if texts is None:
            expected = f"a list or column of strings for inputs '{form}'"
            raise ValueError(f"Expected {expected} (got {X!r:.60})")
        return texts

    @classmethod
    def split(cls, raw: Any) -> Any:
        """Converts raw inputs to the form that :meth:`read` takes."""
        return raw

    @classmethod
    def check(cls, raw: Any) -> None:
        """Raises :class:`ValueError` if a raw input cannot be read."""

    @classmethod
    def check_column(cls, name: str, cells: Sequence[Any]) -> None:
        """Raises :class:`ValueError` if the cells of a column can only be inputs of other kinds.

        Args:
            name (str): The name of the column.
            cells (Sequence): Its cells, without those that are missing.
        """

    @classmethod
    def samples(
        cls,
        X: Any,
        y: np.ndarray,
        label_names: Sequence[str],
        kind: str | None = None,
        **options: Unpack[SampleOptions],
    ) -> MultiLabelDataset:
        """Makes a data set of raw inputs and a matrix of labels.

        Args:
            X (Any): The raw inputs.
            y (numpy.ndarray): Labels :math:`(N, L)`: 0, 1 or NaN.
            label_names (Sequence[str]): The names of the labels.
            kind (str, optional): As in :meth:`read`.
                (default: :obj:`None`, the first of :attr:`forms`)
            **options (optional): Options of :class:`SampleOptions`.
        """
        kind = kind or next(iter(cls.forms.values())).kind
        test, transform = options.pop("test", None), options.pop("transform", None)
        x, names = cls.read(X, kind, **cast(ReadOptions, options))
        samples = Records(x, y, list(label_names), names, options.get("train"), test).to_samples()
        size = options.get("num_inputs")
        size = samples.num_features if size is None else size
        return ArrayDataset(samples._replace(kind=kind, num_features=size), transform)

    @classmethod
    def from_csv(
        cls,
        path: Path,
        columns: Sequence[str],
        labels: Sequence[str],
        options: FileOptions | None = None,
    ) -> MultiLabelDataset:
        """Makes a data set of columns of a file.

        Args:
            path (Path): The file.
            columns (Sequence[str]): The column of inputs. If the kind :attr:`reads_columns`,
                several columns, or none to use all columns except labels.
            labels (Sequence[str]): The columns of labels, or one column with lists of label names.
            options (FileOptions, optional): How to read the file. (default: :obj:`None`)
        """
        options = options or FileOptions()
        table = read_table(path, options.delimiter, options.encoding)
        role = None if cls.reads_columns else cls.role
        schema = table.schema(columns, labels, options.hints, role)
        y, label_names = table.targets(labels, options.label_separator, options.label_paths)
        X: Any
        if cls.reads_columns:
            cells = table.cells([column.name for column in schema.inputs])
            X, names = schema.matrix(cells, table.place), schema.feature_names
        else:
            texts, names = table.documents(columns[0]), None
            refused = cls.refused(texts)
            check_lost(refused, len(texts), table.where, options.max_lost)
            rows = [row for row in range(len(texts)) if row not in refused]
            X, y = cls.split([texts[row] for row in rows]), y[rows]
        dataset = cls.samples(X, y, label_names, feature_names=names)
        dataset.schema = schema
        check_samples(dataset)
        return with_parents(dataset, table, labels, options)

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        self.label_names = list(dataset.label_names)
        return self

    @classmethod
    def roles(cls) -> tuple[str, ...]:
        """Returns the roles of columns that hold inputs of this kind."""
        return INPUTS if cls.reads_columns else (cls.role,)

    def training_columns(self) -> list[str]:
        """Returns the names of the training columns, as far as they are known."""
        schema, names = getattr(self, "schema", None), getattr(self, "feature_names", None)
        if schema is not None:
            roles = self.roles()
            return [entry["name"] for entry in schema["columns"] if entry["role"] in roles]
        return list(names or ()) if self.reads_columns else []

    def inputs_of(self, raw: Any, columns: Sequence[str] = ()) -> Any:
        """Converts raw inputs to the form that :meth:`transform` takes.

        Args:
            raw (Any): Raw inputs, also as a table of pyarrow or a dictionary of columns.
            columns (Sequence[str], optional): The training columns, if they are known; only one
                column for kinds whose inputs are single cells. (default: :obj:`()`)
        """
        raw = raw if isinstance(raw, (list, tuple)) else as_list(as_frame(raw))
        if self.reads_columns or self.role == "number":
            return raw
        inputs = take_column(raw, columns or self.training_columns())
        if self.role != "text" or not isinstance(inputs, list):
            return inputs
        if missing := sum(text is None for text in inputs):
            note("blank", "", missing)
            warn(f"Missing texts become samples without words ({missing} of {len(inputs)})")
        return ["" if text is None else text for text in inputs]

    def transform(self, raw: Any) -> MultiLabelDataset:
        """Makes samples of raw inputs, with unknown labels. A data set is returned unchanged."""
        if isinstance(raw, MultiLabelDataset):
            return raw
        if isinstance(raw, (str, bytes)):
            got = f"(got the string {raw[:40]!r}); pass one input as [input]"
            raise ValueError(f"Expected a list of raw inputs {got}")
        raw = raw if isinstance(raw, (list, tuple)) else as_list(as_frame(raw))
        if num_rows(raw) is None or (isinstance(raw, Tensor) and raw.is_meta):
            forms = "a list, a column, a matrix or a data frame, with one for each sample"
            got = f"{str(raw)[:40]!r} of {type(raw).__name__}"
            raise ValueError(f"Expected raw inputs in {forms} (got {got})")
        raw = as_list(self._column(raw))
        if num_rows(raw) == 0:
            hint = "pass a list with one entry per sample"
            raise ValueError(f"Expected at least one raw input (got none); {hint}")
        if isinstance(raw, (list, tuple)):
            return self._of_list(list(raw))
        return self._new_samples(self._split(raw))

    def _of_list(self, raw: list[Any]) -> MultiLabelDataset:
        """Makes samples of a list of inputs, which may also be rows with one column."""
        inputs = []
        for row, single in enumerate(raw):
            try:
                inputs.append(only_cell(single, self.noun))
            except ValueError as error:
                raise ValueError(f"{error} in row {row}") from None
        return self._new_samples(self._split(inputs))

    def unreadable(self, raw: Any) -> dict[int, str]:
        """Returns by row why raw inputs are missing, or refused by :meth:`check`."""
        raw = as_list(self._column(raw))
        is_list = hasattr(raw, "__len__") and not isinstance(raw, (MultiLabelDataset, str, bytes))
        return self.refused(raw) if is_list else {}

    @classmethod
    def refused(cls, raw: Sequence[Any]) -> dict[int, str]:
        """Returns by row why inputs are missing, or refused by :meth:`check`."""
        refused = {}
        for row, entry in enumerate(raw):
            check_abandoned()
            try:
                single = only_cell(entry, cls.noun)
                if not isinstance(single, (str, list, tuple)):
                    got = "nothing" if is_missing(single) else type(single).__name__
                    raise ValueError(f"Expected {cls.noun} (got {got})")
                cls.check(single)
            except (ValueError, TypeError) as error:
                refused[row] = str(error)
        return refused

    @classmethod
    def refused_rows(
        cls, table: Table, columns: Sequence[str], parts: Mapping[str, Sequence[str]]
    ) -> dict[int, str]:
        """Returns by row of a file why :meth:`from_csv` skips the row.

        Args:
            table (Table): The file.
            columns (Sequence[str]): As in :meth:`from_csv`.
            parts (dict): As in :class:`FileOptions`.
        """
        return {} if cls.reads_columns else cls.refused(table.documents(columns[0]))

    def _split(self, raw: Any) -> Any:
        return self.split(raw)

    def _new_samples(self, raw: Any) -> MultiLabelDataset:
        check_is_list(raw)
        return self.samples(raw, self._unknown(len(raw)), self.label_names)

    def _column(self, raw: Any) -> Any:
        """Returns the only column of a data frame. Other inputs are returned unchanged."""
        columns = list(getattr(raw, "columns", ()))
        if len(columns) > 1:
            got = f"a data frame of the columns {columns[:5]}"
            hint = f"choose one, as in frame[{columns[0]!r}]"
            raise ValueError(f"Expected a list or one column of raw inputs (got {got}); {hint}")
        return raw[columns[0]] if columns else raw

    def _unknown(self, num_samples: int) -> np.ndarray:
        return np.full((num_samples, len(self.label_names)), np.nan, dtype=np.float32)

    @classmethod
    def steps(cls, *, scaled: bool = False) -> list[Preprocessor]:
        """Returns the preprocessors between raw inputs and models, not fitted yet.

        Args:
            scaled (bool, optional): If set to :obj:`True`, inputs are scaled for networks;
                classifiers scale inputs themselves. (default: :obj:`False`)
        """
        return [cls()]

    @classmethod
    @abstractmethod
    def encoder(
        cls, train: MultiLabelDataset, channels: int, **options: Unpack[EncoderOptions]
    ) -> nn.Module:
        """Makes the encoder of samples."""

    @classmethod
    def smiles_of(cls, dataset: MultiLabelDataset) -> list[str]:
        """Returns the SMILES of all samples of a kind that can be split by scaffold."""
        raise ValueError(f"Expected samples with molecules (got those of {cls.__name__})")

    @classmethod
    def make_views(cls, dataset: MultiLabelDataset) -> dict[str, View]:
        """Returns the unfitted views of samples by name, in the order of :attr:`views`."""
        return {name: make() for name, make in cls.views.items()}

    @classmethod
    def on_scale(
        cls,
        dataset: MultiLabelDataset,
        choose: Callable[[Sequence[str]], str],
        matrix: Callable[[str], Any],
    ) -> MultiLabelDataset:
        """Returns samples whose inputs are on the scale of a view, for networks that need one.

        Args:
            dataset (MultiLabelDataset): The samples.
            choose (callable): Returns the best one of some views, by their names.
            matrix (callable): Returns the features :math:`(N, F)` of the samples by a view's name.
        """
        return dataset

    def examples(self, number: int) -> Any:
        """Makes up raw inputs, the same in every call, to try a model without data."""
        expected = "a kind of input that makes up examples"
        raise ValueError(f"Expected {expected} (got {type(self).__name__}); pass inputs")

    def state_dict(self) -> dict[str, Any]:
        if not hasattr(self, "label_names"):
            raise RuntimeError("Expected 'fit' to be called before 'state_dict'")
        return super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Loads all attributes of another fitted kind.

        Raises:
            ValueError: If names are not strings, or sizes are not whole numbers.
        """
        for name in ("label_names", "feature_names"):
            names = state.get(name)
            are_names = isinstance(names, list) and all(isinstance(entry, str) for entry in names)
            if names is not None and not are_names:
                raise ValueError(f"Expected '{name}' to list strings (got {str(names)[:40]})")
        sizes = [state.get("num_inputs", 0), *dict(state.get("sizes", {})).values()]
        if not all(type(size) is int and size >= 0 for size in sizes) or "label_names" not in state:
            expected = "'label_names', and whole numbers as sizes of inputs"
            raise ValueError(f"Expected {expected} (got {str(sizes)[:40]})")
        return super().load_state_dict(state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.label_names)} labels)"


def with_parents(
    dataset: MultiLabelDataset, table: Table, labels: Sequence[str], options: FileOptions
) -> MultiLabelDataset:
    """Returns samples with the hierarchy of their labels, if the options or the file have one."""
    names = dataset.label_names
    if options.hierarchy is not None:
        parents, listed = read_parents(options.hierarchy), names != list(labels)
        return with_hierarchy(dataset, parents, listed=listed, ancestors=True)
    paths = table.hierarchy(labels, names, options.label_paths)
    return dataset if paths is None else with_hierarchy(dataset, paths, listed=True)


def as_texts(X: Any) -> list[Any] | None:
    """Returns texts or lists of words, also from a frame of one column, as a list; else None."""
    values = as_list(X[X.columns[0]] if len(getattr(X, "columns", ())) == 1 else X)
    if not isinstance(values, list) or not values:
        return None
    for value in values:
        words = [value] if isinstance(value, str) else value
        is_list = isinstance(words, (list, tuple)) and len(words) > 0
        if not is_list or not all(isinstance(word, str) for word in words):
            return None
    return values


def check_is_list(raw: Any) -> None:
    """Raises ValueError if inputs that must be strings are a matrix of numbers."""
    if sp.issparse(raw) or isinstance(raw, Tensor):
        expected = "raw inputs as a list or a column of strings"
        raise ValueError(f"Expected {expected} (got a {type(raw).__name__})")


def num_rows(X: Any) -> int | None:
    """Returns the number of raw inputs before they are read; :obj:`None` if unknown."""
    if isinstance(X, (list, tuple)):
        return len(X)
    shape = np.shape(X)
    return int(shape[0]) if shape else None
