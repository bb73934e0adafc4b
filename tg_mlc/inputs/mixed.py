"""Mixed: rows of several kinds of input, such as a text, a molecule and columns of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from scipy.linalg import block_diag
from torch import nn
from torch_geometric.data import Batch, Data
from typing_extensions import Self, Unpack

from tg_mlc._frames import as_frame
from tg_mlc._names import few
from tg_mlc._warnings import note, warn
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.parts import (
    KIND,
    Blank,
    MixedData,
    Part,
    attributes_of,
    has_part,
    mixed_dataset,
    part_of,
    with_part,
)
from tg_mlc.data.samples import Samples
from tg_mlc.inputs.checks import check_lost, check_samples
from tg_mlc.inputs.components import Links, Section
from tg_mlc.inputs.kind import (
    EncoderOptions,
    FileOptions,
    Form,
    InputKind,
    ReadOptions,
    Rows,
    SampleOptions,
    View,
    with_parents,
)
from tg_mlc.inputs.part_columns import (
    PartColumns,
    PartInputs,
    as_table,
    columns_of,
    infer_columns,
    infer_schema,
    presence_of,
    read_parts,
    schema_of,
)
from tg_mlc.inputs.part_views import PartView, SideBySide
from tg_mlc.inputs.preprocessor import Chain, Preprocessor, from_state, to_state
from tg_mlc.inputs.registry import claimed, kind_of
from tg_mlc.inputs.schema import (
    Role,
    Schema,
    cells_of,
    hints_of,
    is_dense_frame,
    is_mixed_frame,
)
from tg_mlc.inputs.tables import Table, read_table


class PartSteps(Preprocessor):
    """The steps between the samples of parts and a model, of the parts whose kind has some.

    Args:
        is_scaled (bool, optional): As in :meth:`.InputKind.steps`. (default: :obj:`False`)
    """

    chains: dict[str, Chain]
    blanks: dict[str, Blank]

    def __init__(self, is_scaled: bool = False) -> None:
        self.is_scaled = is_scaled

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        self.fit_transform(dataset, split)
        return self

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        self.chains, self.blanks = {}, {}
        for name in dataset.parts:
            samples = part_of(dataset, name)
            steps = kind_of(samples).steps(scaled=self.is_scaled)[1:]
            if not steps:
                continue
            self.chains[name] = Chain(*steps)
            samples = self.chains[name].fit_transform(samples, split_of(split, dataset, name))
            self.blanks[name] = Blank.of(samples)
            dataset = with_part(dataset, name, samples, self.blanks[name])
        return dataset

    def transform(self, raw: MultiLabelDataset) -> MultiLabelDataset:
        for name, chain in self.chains.items():
            samples = part_of(raw, name)
            samples = chain.transform(samples) if len(samples) else samples
            raw = with_part(raw, name, samples, self.blanks[name])
        return raw

    def unreadable(self, raw: MultiLabelDataset) -> dict[int, str]:
        reasons = dict[int, str]()
        for name, chain in self.chains.items():
            rows, samples = has_part(raw, name).nonzero().flatten().tolist(), part_of(raw, name)
            unfit = chain.unreadable(samples) if rows else {}
            reasons |= {rows[row]: f"{reason} in '{name}'" for row, reason in unfit.items()}
        return reasons

    def steps_of(self, name: str) -> tuple[Preprocessor, ...]:
        """Returns the steps of a part."""
        return self.chains[name].steps if name in self.chains else ()

    def state_dict(self) -> dict[str, Any]:
        chains = {name: to_state(chain) for name, chain in self.chains.items()}
        blanks = {name: blank._asdict() for name, blank in self.blanks.items()}
        return {"is_scaled": self.is_scaled, "chains": chains, "blanks": blanks}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.is_scaled = state["is_scaled"]
        self.chains = {name: cast(Chain, from_state(s)) for name, s in state["chains"].items()}
        self.blanks = {name: Blank(**blank) for name, blank in state["blanks"].items()}
        return self


class Mixed(InputKind):
    """Rows with inputs of several kinds, each in its columns of a table.

    A part is one column of texts, molecules or another kind, named as the column, or all columns of
    numbers and categories together. A part may be missing: its cells are blank. It becomes one
    learned component, and is told apart from an empty part, such as a text without words.

    Raises:
        ValueError: On use, if a column is missing or used twice, holds inputs of another kind, or a
            row lacks all parts.
    """

    forms = {"mixed": Form(KIND)}
    option = settings = "mixed"
    noun, parts = "a row with its columns", "components of parts"
    views = {"part": PartView, "side_by_side": SideBySide}
    reads_columns = True
    kinds: dict[str, InputKind]  #: the fitted kind of each part
    columns: dict[str, list[str]]  #: the columns of each part
    blanks: dict[str, Blank]

    def __init__(self, is_scaled: bool = False) -> None:
        self.is_scaled = is_scaled

    @classmethod
    def recognise(cls, X: Any) -> tuple[str, str] | None:
        """Takes data frames with columns that seem to hold texts, molecules or DNA."""
        if not is_mixed_frame(X) or len(X.columns) == 1:
            return None
        cells = cells_of(X)
        claims = list(claimed(infer_schema(cells, hints_of(X, cells)), cells))
        names = few([f"'{column.name}' ({kind.option})" for column, kind in claims])
        return (
            (KIND, f"columns seem to hold inputs of their own kinds: {names}") if claims else None
        )

    @classmethod
    def read(
        cls, X: Any, kind: str | None, **options: Unpack[ReadOptions]
    ) -> tuple[Rows, list[str] | None]:
        """Raises ValueError, because the parts are no rows of a matrix; see :meth:`samples`."""
        raise ValueError("Expected a data frame with columns of several kinds (got a matrix)")

    @classmethod
    def listed(cls, X: Any, form: str) -> Any:
        return as_table(X)

    @classmethod
    def samples(
        cls,
        X: Any,
        y: np.ndarray,
        label_names: Sequence[str],
        kind: str | None = None,
        *,
        columns: Mapping[str, Any] | None = None,
        schema: Schema | None = None,
        **options: Unpack[SampleOptions],
    ) -> MultiLabelDataset:
        """Makes a data set of a data frame, or of a list of dictionaries.

        Args:
            X (Any): The data frame, or the list.
            y, label_names, kind: As in :meth:`.InputKind.samples`.
            columns (dict, optional): The column, or the list of columns, of each kind by its
                option, such as :obj:`{"text": "note", "features": ["age", "city"]}`.
                (default: :obj:`None`, by the cells)
            schema (Schema, optional): The schema of all columns. (default: :obj:`None`, inferred)
            **options (optional): As in :meth:`.InputKind.samples`.
        """
        frame = as_table(X)
        cells = cells_of(frame)
        hints = hints_of(frame, cells)
        parts = columns_of(infer_columns(cells, hints) if columns is None else columns, [*cells])
        schema = schema or schema_of(parts, cells, hints)
        inputs, reasons = read_parts(frame, parts)
        for row, reason in reasons.items():
            raise ValueError(f"{reason} in row {row}")
        train, test = options.get("train"), options.get("test")
        official = [None if rows is None else torch.as_tensor(rows) for rows in (train, test)]
        labels = Data(y=torch.from_numpy(np.asarray(y, np.float32)))
        base = Samples(labels, None, list(label_names), None, KIND, None, None, *official)
        facts = {name: Part(part.names) for name, part in parts.items()}
        dataset = mixed_dataset(base, facts, presence_of(inputs, len(frame)))
        mixed: MultiLabelDataset = dataset
        for name, part in parts.items():
            rows = inputs[name].rows
            own = part.samples(inputs[name], y[rows], label_names, schema, train)
            mixed = with_part(mixed, name, own, Blank.of(own))
        mixed.transform, mixed.schema = options.get("transform"), schema
        return mixed

    @classmethod
    def from_csv(
        cls,
        path: Path,
        columns: Sequence[str],
        labels: Sequence[str],
        options: FileOptions | None = None,
    ) -> MultiLabelDataset:
        """Makes a data set of the columns in :obj:`options.parts`, and skips unreadable rows."""
        options = options or FileOptions()
        table = read_table(path, options.delimiter, options.encoding)
        parts = columns_of(options.parts, table.header)
        used = [name for part in parts.values() for name in part.names]
        table.require(labels, used)
        y, label_names = table.targets(labels, options.label_separator, options.label_paths)
        frame = table.inputs(used)
        others: dict[str, Role] = dict.fromkeys(labels, "label")
        cells, hints = table.cells(), replace(options.hints, delimiter=table.delimiter)
        schema = schema_of(parts, cells, hints, table.place, others)
        refused = cls.refused_rows(table, columns, options.parts)
        check_lost(refused, len(frame), table.where, options.max_lost)
        rows = [row for row in range(len(frame)) if row not in refused]
        chosen: Any = {"columns": options.parts, "schema": schema}
        dataset = cls.samples(frame.iloc[rows], y[rows], label_names, **chosen)
        check_samples(dataset)
        return with_parents(dataset, table, labels, options)

    @classmethod
    def refused_rows(
        cls, table: Table, columns: Sequence[str], parts: Mapping[str, Sequence[str]]
    ) -> dict[int, str]:
        found = columns_of(parts, table.header)
        frame = table.inputs([name for part in found.values() for name in part.names])
        inputs, refused = read_parts(frame, found)
        for name, part in found.items():
            if not part.kind.reads_columns:
                reasons = part.kind.refused(inputs[name].raw)
                refused |= {inputs[name].rows[row]: reason for row, reason in reasons.items()}
        return dict(sorted(refused.items()))

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        self.fit_transform(dataset, split)
        return self

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        """Fits the kind of each part, and returns samples as these kinds transform them."""
        if not dataset.parts:
            raise ValueError(f"Expected samples of several parts (got {dataset})")
        super().fit(dataset, split)
        self.kinds, self.blanks = {}, {}
        self.columns = {name: list(part.columns) for name, part in dataset.parts.items()}
        for name in dataset.parts:
            samples, own_split = part_of(dataset, name), split_of(split, dataset, name)
            if not own_split.train.numel():
                got = f"none of {split.train.numel()}"
                raise ValueError(f"Expected a training sample with the part '{name}' (got {got})")
            kind = cast(InputKind, kind_of(samples).steps(scaled=self.is_scaled)[0])
            samples = kind.fit_transform(samples, own_split)
            self.kinds[name], self.blanks[name] = kind, Blank.of(samples)
            dataset = with_part(dataset, name, samples, self.blanks[name])
        return dataset

    def training_columns(self) -> list[str]:
        return [column for columns in self.columns.values() for column in columns]

    def inputs_of(self, raw: Any, columns: Sequence[str] = ()) -> Any:
        return as_table(raw) if is_dense_frame(as_frame(raw)) else raw

    def transform(self, raw: Any) -> MultiLabelDataset:
        """Makes samples of a data frame or a list of dictionaries, with unknown labels."""
        if isinstance(raw, MultiLabelDataset):
            return self._of_samples(raw)
        table = self.inputs_of(raw)
        inputs, reasons = self._read(table)
        for row, reason in reasons.items():
            raise ValueError(f"{reason} in row {row}")
        y = torch.from_numpy(self._unknown(len(table)))
        base = Samples(Data(y=y), None, self.label_names, None)
        facts = dict[str, Part]()
        for name, kind in self.kinds.items():
            names = getattr(kind, "feature_names", None)
            facts[name] = Part(self.columns[name], feature_names=names)
        samples: MultiLabelDataset = mixed_dataset(base, facts, presence_of(inputs, len(table)))
        for name, kind in self.kinds.items():
            own, rows = part_of(samples, name), inputs[name].rows
            note("blank", name, len(table) - len(rows))
            if rows:
                try:
                    own = kind.transform(inputs[name].raw)
                except ValueError:
                    # Finding the row takes as long as reading, so it happens only after an error.
                    for row, reason in self.unreadable(table).items():
                        raise ValueError(f"{reason} in row {row}") from None
                    raise
            samples = with_part(samples, name, own, self.blanks[name])
        return samples

    def _of_samples(self, samples: MultiLabelDataset) -> MultiLabelDataset:
        if list(samples.parts) != list(self.kinds):
            expected = f"samples of the parts {list(self.kinds)}"
            raise ValueError(f"Expected {expected} (got those of {list(samples.parts)})")
        for name, kind in self.kinds.items():
            own = part_of(samples, name)
            transformed = kind.transform(own) if len(own) else own
            if transformed is not own:
                samples = with_part(samples, name, transformed, self.blanks[name])
        return samples

    def unreadable(self, raw: Any) -> dict[int, str]:
        inputs, reasons = self._read(self.inputs_of(raw))
        for name, kind in self.kinds.items():
            where = "" if kind.reads_columns else f" in column '{name}'"
            own = kind.unreadable(inputs[name].raw) if inputs[name].rows else {}
            reasons |= {inputs[name].rows[row]: f"{why}{where}" for row, why in own.items()}
        return dict(sorted(reasons.items()))

    def _read(self, table: Any) -> tuple[dict[str, PartInputs], dict[int, str]]:
        if not (hasattr(table, "columns") or isinstance(table, (list, tuple))):
            got = f"a {type(table).__name__}"
            raise ValueError(f"Expected a data frame or a list of dictionaries (got {got})")
        if len(table) == 0:
            raise ValueError("Expected at least one raw input (got none); pass a row per sample")
        parts = {
            name: PartColumns(type(kind), self.columns[name]) for name, kind in self.kinds.items()
        }
        return read_parts(table, parts)

    @classmethod
    def steps(cls, *, scaled: bool = False) -> list[Preprocessor]:
        return [cls(scaled), PartSteps(scaled)]

    @classmethod
    def smiles_of(cls, dataset: MultiLabelDataset) -> list[str]:
        """Returns the SMILES of the first part with molecules, blank where it is missing."""
        kinds = {name: kind_of(part_of(dataset, name)) for name in dataset.parts}
        name = next((name for name, kind in kinds.items() if "scaffold" in kind.splits), None)
        if name is None:
            return super().smiles_of(dataset)
        own = iter(kinds[name].smiles_of(part_of(dataset, name)))
        smiles = [next(own) if is_present else "" for is_present in has_part(dataset, name)]
        without = (
            f"{smiles.count('')} of {len(smiles)} rows lack one, as do molecules without rings"
        )
        warn(f"Rows are split by the scaffolds of column '{name}'; {without}")
        return smiles

    @classmethod
    def encoder(
        cls, train: MultiLabelDataset, channels: int, **options: Unpack[EncoderOptions]
    ) -> nn.Module:
        from tg_mlc.nn.encoders import MixedEncoder

        parts = {name: part_of(train, name) for name in train.parts}
        encoders = {n: kind_of(own).encoder(own, channels, **options) for n, own in parts.items()}
        return MixedEncoder(encoders)

    @classmethod
    def make_views(cls, dataset: MultiLabelDataset) -> dict[str, View]:
        """Returns the views of each part, between the first ones of all parts side by side, and
        the last ones side by side.
        """
        own_views = {name: [*kind_of(part_of(dataset, name)).views] for name in dataset.parts}
        views: dict[str, View] = {}
        views["first_views"] = SideBySide({name: own[0] for name, own in own_views.items()})
        for name, own in own_views.items():
            views |= {f"{name}.{view}": PartView(name, view) for view in own}
        views["last_views"] = SideBySide({name: own[-1] for name, own in own_views.items()})
        return views

    @classmethod
    def on_scale(
        cls,
        dataset: MultiLabelDataset,
        choose: Callable[[Sequence[str]], str],
        matrix: Callable[[str], Any],
    ) -> MultiLabelDataset:
        for name in dataset.parts:
            own, is_present = part_of(dataset, name), has_part(dataset, name).numpy()
            if not len(own):
                continue
            options = _choose_own(name, choose), _own_matrix(name, is_present, matrix)
            scaled = kind_of(own).on_scale(own, *options)
            if scaled is not own:
                dataset = with_part(dataset, name, scaled, Blank.of(scaled))
        return dataset

    def examples(self, number: int) -> Any:
        rows: list[dict[str, Any]] = [{} for _ in range(number)]
        for name, kind in self.kinds.items():
            for row, example in zip(rows, kind.examples(number), strict=True):
                cells = example if kind.reads_columns else [example]
                is_named = isinstance(cells, Mapping)
                row.update(cells if is_named else zip(self.columns[name], cells, strict=True))
        return rows

    def components(self, sample: Data) -> list[str]:
        return self._names(sample, lambda part, own: part.kind.components(own))

    def component_names(self, sample: Data, raw: Any) -> list[str]:
        cells = raw if isinstance(raw, Mapping) else {}

        def names(part: PartOfSample, own: Data) -> list[str]:
            return part.kind.component_names(own, cells.get(self.columns[part.name][0]))

        return self._names(sample, names)

    def _names(self, sample: Data, of: Callable[[PartOfSample, Data], list[str]]) -> list[str]:
        names = list[str]()
        for part in self._parts(sample):
            prefix = "" if part.kind.reads_columns else f"{part.name}: "
            names += [f"{prefix}{name}" for name in of(part, part.sample)]
        return names

    def _parts(self, sample: Data) -> Iterator[PartOfSample]:
        """Yields the parts that a sample has."""
        start, sizes = 0, sample.part_sizes.flatten().tolist()
        for index, (name, kind) in enumerate(self.kinds.items()):
            if sizes[index] >= 0:
                own = cast(MixedData, sample).part(name, index)
                stop = start + len(kind.components(own))
                yield PartOfSample(name, index, kind, own, slice(start, stop))
                start = stop

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        hidden = sample
        for part in self._parts(sample):
            own_steps = list[Preprocessor]()
            for step in steps:
                own_steps += step.steps_of(part.name) if isinstance(step, PartSteps) else [step]
            hidden = part.put(hidden, part.kind.hide(part.sample, kept[part.rows], own_steps))
        return hidden

    def symmetry(self, sample: Data) -> np.ndarray:
        numbers, offset = [np.empty(0, int)], 0
        for part in self._parts(sample):
            own = np.unique(part.kind.symmetry(part.sample), return_inverse=True)[1]
            numbers.append(own + offset)
            offset += len(own)
        return np.concatenate(numbers)

    def groups(self, sample: Data) -> np.ndarray | None:
        size, masks = len(self.components(sample)), list[np.ndarray]()
        for part in self._parts(sample):
            own = part.kind.groups(part.sample)
            if own is not None:
                wide = np.zeros((len(own), size), dtype=bool)
                wide[:, part.rows] = own
                masks.append(wide)
        return np.concatenate(masks) if masks else None

    def links(self, sample: Data) -> Links:
        names, ends, symmetry = list[str](), [np.empty((0, 2), int)], [np.empty(0, int)]
        for part in self._parts(sample):
            own = part.kind.links(part.sample)
            symmetry.append(own.symmetry + len(names))
            names += [f"{part.name}: {name}" for name in own.names]
            ends.append(own.ends + part.rows.start)
        return Links(names, np.concatenate(ends), np.concatenate(symmetry))

    def without_link(self, sample: Data, index: int) -> Data:
        for part in self._parts(sample):
            number = len(part.kind.links(part.sample).names)
            if index < number:
                return part.put(sample, part.kind.without_link(part.sample, index))
            index -= number
        return super().without_link(sample, index)

    def smiles(self, sample: Data) -> str | None:
        """Returns the first molecule of a sample."""
        smiles = (part.kind.smiles(part.sample) for part in self._parts(sample))
        return next(filter(None, smiles), None)

    def sections(self, sample: Data, raw: Any) -> list[Section]:
        cells, sections = raw if isinstance(raw, Mapping) else {}, list[Section]()
        for part in self._parts(sample):
            own = cells if part.kind.reads_columns else cells.get(part.name)
            names = part.kind.component_names(part.sample, own)
            smiles = part.kind.smiles(part.sample)
            sections.append(Section(part.name, own or None, names, part.rows.start, smiles))
        return sections

    def state_fractions(
        self, sample: Data, prepared: Data, network: nn.Module, num_rows: int
    ) -> np.ndarray | None:
        """Returns the fractions of components per row. Rows that are images of all components of a
        part, such as of a vector, are divided among these equally; a row for a missing part is of
        no component.
        """
        encoder = next((m for m in network.modules() if hasattr(m, "part_names")), None)
        if encoder is None:
            return super().state_fractions(sample, prepared, network, num_rows)
        blocks, own_parts = list[np.ndarray](), {part.name: part for part in self._parts(sample)}
        for index, name in enumerate(self.kinds):
            if name not in own_parts:
                blocks.append(np.zeros((0, 1)))
                continue
            part, own_encoder = own_parts[name], cast(nn.ModuleList, encoder.encoders)[index]
            own = cast(MixedData, prepared).part(name, index)
            device = next(own_encoder.parameters()).device
            size = own_encoder(Batch.from_data_list([own]).to(device)).x.size(0)
            shape = (part.rows.stop - part.rows.start, size)
            module: Any = SimpleNamespace(encoder=own_encoder)
            fractions = part.kind.state_fractions(part.sample, own, module, size)
            if fractions is None:
                fractions = np.full(shape, 1 / max(shape[0], 1))
            blocks.append(fractions)
        joint: np.ndarray = block_diag(*blocks)
        is_fit = joint.shape[1] == num_rows
        return joint if is_fit else super().state_fractions(sample, prepared, network, num_rows)

    def max_hidden(self, sample: Data) -> int:
        numbers = [part.kind.max_hidden(part.sample) for part in self._parts(sample)]
        return min(numbers, default=super().max_hidden(sample))

    def collate(self, samples: Sequence[Data], like: Any) -> Any:
        dataset = super().collate(samples, like)
        dataset.parts = like.parts
        return dataset

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["kinds"] = {name: to_state(kind) for name, kind in self.kinds.items()}
        state["blanks"] = {name: blank._asdict() for name, blank in self.blanks.items()}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        super().load_state_dict(state)
        self.kinds = {n: cast(InputKind, from_state(item)) for n, item in state["kinds"].items()}
        self.blanks = {name: Blank(**item) for name, item in state["blanks"].items()}
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(getattr(self, 'kinds', ()))})"


class PartOfSample(NamedTuple):
    """A part that a sample has."""

    name: str
    column: int  #: its column of the attribute :obj:`part_sizes`
    kind: InputKind
    sample: Data
    rows: slice  #: its components among those of all parts

    def put(self, sample: Data, own: Data) -> Data:
        """Returns a copy of a sample with another sample of the part."""
        changed = copy(sample)
        for name in attributes_of(sample, self.name):
            changed[f"{self.name}.{name}"] = own[name]
        changed.part_sizes = sample.part_sizes.clone()
        changed.part_sizes[:, self.column] = own.num_nodes or 0
        return changed


def split_of(split: Split, dataset: MultiLabelDataset, name: str) -> Split:
    """Returns the split of the samples that have a part."""
    is_present = has_part(dataset, name)
    position = is_present.cumsum(0) - 1
    own = [position[rows[is_present[rows]]] for rows in split.parts]
    return Split(own[0], own[1], own[2], split.name)


def _choose_own(
    part: str, choose: Callable[[Sequence[str]], str]
) -> Callable[[Sequence[str]], str]:
    """Returns the choice among the views of a part."""
    prefix = f"{part}."
    return lambda views: choose([prefix + view for view in views]).removeprefix(prefix)


def _own_matrix(
    part: str, is_present: np.ndarray, matrix: Callable[[str], Any]
) -> Callable[[str], Any]:
    """Returns the features of the samples that have a part, by the part's views."""
    # The last column of PartView tells where the part is missing.
    return lambda view: np.ascontiguousarray(matrix(f"{part}.{view}")[is_present, :-1])
