"""Molecules: graphs of atoms with vectors that describe each molecule as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import subgraph
from typing_extensions import Self, Unpack

from tg_mlc._input_options import INPUT_OPTIONS
from tg_mlc._names import shorten
from tg_mlc._optional import is_installed, require
from tg_mlc.data import ArrayDataset, MultiLabelDataset, Split
from tg_mlc.data.bags import with_attribute
from tg_mlc.inputs.checks import check_samples
from tg_mlc.inputs.components import Links
from tg_mlc.inputs.kind import (
    EncoderOptions,
    FileOptions,
    Form,
    InputKind,
    ReadOptions,
    Rows,
    SampleOptions,
    View,
    check_is_list,
)
from tg_mlc.inputs.molecule_dataset import MoleculeDataset, molecule_samples
from tg_mlc.inputs.preprocessor import Preprocessor
from tg_mlc.inputs.scalers import LogCounts, QuantileScaler
from tg_mlc.inputs.smiles import (
    INCHI,
    VECTORS,
    MoleculeDescriptors,
    find_molecule,
    molecule_features,
    molecule_from_smiles,
    parse_smiles,
    with_dummies,
    without_bond,
)

#: Symbols in the names of bonds, by RDKit's bond types.
BONDS = {"SINGLE": "-", "DOUBLE": "=", "TRIPLE": "#", "AROMATIC": ":"}
_EXAMPLES = """
    C CCO CC(=O)O c1ccccc1 CC(=O)Oc1ccccc1C(=O)O CN1C=NC2=C1C(=O)N(C(=O)N2C)C [Na+].[Cl-]
    CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O CC(=O)Nc1ccc(O)cc1 C1CCCCC1 N#Cc1ccccc1 OC[C@H]1OC(O)[C@H](O)C1O
    C[N+](C)(C)CCO O=S(=O)(N)c1ccc(N)cc1 FC(F)(F)c1ccccc1 CCN(CC)CCNC(=O)c1ccc(N)cc1 C/C=C/C O
    Clc1ccc(cc1)C(c1ccccc1)N1CCNCC1 CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O
"""
#: Molecules to try a model with, among them a single atom, salts, rings, charges, stereo centres.
EXAMPLES = tuple(_EXAMPLES.split())


def molecule_scaler(key: str, size: int) -> LogCounts | QuantileScaler:
    """Returns an unfitted scaler for a vector of molecules, by its attribute and size."""
    return QuantileScaler(size) if key == "descriptors" else LogCounts()


class MoleculeVectors(View):
    """The vectors of each molecule, concatenated with equal weights and scaled to unit length
    overall.

    Args:
        keys (tuple[str, ...], optional): The attributes of the vectors. (default: :obj:`VECTORS`)
    """

    def __init__(self, keys: tuple[str, ...] = VECTORS) -> None:
        self.keys = keys
        self.scalers: dict[str, Any] = {}

    def fit(self, dataset: MultiLabelDataset) -> Self:
        vectors = {key: dataset.rows(key) for key in self.keys if key in dataset[0]}
        if not vectors:
            got = f"those with {shorten(dataset[0].keys())}"
            raise ValueError(f"Expected molecules with one of the vectors {self.keys} (got {got})")
        self.scalers = {key: molecule_scaler(key, x.size(1)).fit(x) for key, x in vectors.items()}
        return self

    def matrix(self, dataset: MultiLabelDataset) -> np.ndarray:
        vectors = list[Tensor]()
        for key, scaler in self.scalers.items():
            vectors.append(nn.functional.normalize(scaler(dataset.rows(key)), dim=1))
        matrix: np.ndarray = (torch.cat(vectors, dim=1) / len(vectors) ** 0.5).numpy()
        return matrix

    def state_dict(self) -> dict[str, Any]:
        return {key: scaler.state_dict() for key, scaler in self.scalers.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.scalers = {}
        for key, tensors in state.items():
            self.scalers[key] = molecule_scaler(key, len(tensors.get("quantiles", ())))
            self.scalers[key].load_state_dict(tensors)
        return self


class Molecules(InputKind):
    """Converts SMILES or InChI to molecules with the vectors that a model was trained on.

    Args:
        describe (bool, optional): If set to :obj:`True`, missing :obj:`VECTORS` are added to
            training samples. (default: :obj:`False`)

    Raises:
        ImportError: On use, if RDKit is not installed (extra ``molecules``).
        ValueError: On use, if a molecule cannot be read, or the installed RDKit has
            another number of descriptors than in training.
    """

    forms = {"smiles": Form(None)}
    option, noun, parts, settings, role = "smiles", "a molecule", "atoms", "molecules", "molecule"
    command_option = INPUT_OPTIONS["smiles"]
    splits = ("random", "stratified", "scaffold")
    views = {"substructures": partial(MoleculeVectors, ("morgan",)), "vectors": MoleculeVectors}
    sizes: dict[str, int]  #: sizes of the vectors of training samples

    def __init__(self, describe: bool = False) -> None:
        self.describe = describe

    @classmethod
    def matches(cls, dataset: MultiLabelDataset) -> bool:
        return dataset.kind is None and "edge_attr" in dataset[0]

    @classmethod
    def claims(cls, texts: Sequence[Any]) -> bool:
        """Tells whether strings are molecules. Raises ValueError if most, but not all, are."""
        if not is_installed("rdkit"):
            return False
        invalid = [row for row, text in enumerate(texts) if not _is_molecule(text)]
        if 0 < len(invalid) < len(texts) / 2:
            row = invalid[0]
            got = f"{len(invalid)} others, the first {shorten(texts[row])!r} in row {row}"
            hint = "drop these rows, or pass inputs='texts'"
            raise ValueError(f"Expected SMILES alone (got {got}); {hint}")
        return not invalid

    @classmethod
    def check(cls, raw: Any) -> None:
        if not isinstance(raw, str):
            raise ValueError(f"Expected {cls.noun} (got {type(raw).__name__})")
        molecule_from_smiles(raw)

    @classmethod
    def read(
        cls, X: Any, kind: str | None, **options: Unpack[ReadOptions]
    ) -> tuple[Rows, list[str] | None]:
        """Raises ValueError, because molecules are not matrix rows; see :meth:`samples`."""
        hint = "make them with 'MoleculeDataset.from_smiles'"
        raise ValueError(f"Expected molecules as SMILES (got a table); {hint}")

    @classmethod
    def samples(
        cls,
        X: Any,
        y: np.ndarray,
        label_names: Sequence[str],
        kind: str | None = None,
        **options: Unpack[SampleOptions],
    ) -> MultiLabelDataset:
        transform, features = options.get("transform"), molecule_features()
        return MoleculeDataset.from_smiles(
            X, y, label_names, on_error="raise", transform=transform, pre_transform=features
        )

    @classmethod
    def from_csv(
        cls,
        path: Path,
        columns: Sequence[str],
        labels: Sequence[str],
        options: FileOptions | None = None,
    ) -> MultiLabelDataset:
        """Makes molecules with all vectors, and skips rows that cannot be read."""
        options = options or FileOptions()
        if any((options.label_separator, options.label_paths, options.hierarchy)):
            return super().from_csv(path, columns, labels, options)
        dataset = MoleculeDataset.from_csv(
            path,
            columns[0],
            labels,
            delimiter=options.delimiter,
            encoding=options.encoding,
            max_lost=options.max_lost,
            pre_transform=molecule_features(),
        )
        check_samples(dataset)
        return dataset

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        """Learns labels and sizes of vectors, and returns samples with these vectors."""
        described = with_vectors(dataset, dict.fromkeys(VECTORS)) if self.describe else dataset
        self.sizes = {key: described[0][key].size(-1) for key in VECTORS if key in described[0]}
        super().fit(dataset, split)
        return described

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        self.fit_transform(dataset, split)
        return self

    def transform(self, raw: Any) -> MultiLabelDataset:
        """Returns samples of SMILES; existing samples get the vectors that they lack."""
        return with_vectors(super().transform(raw), self.sizes)

    def _new_samples(self, raw: Sequence[str]) -> MultiLabelDataset:
        size = MoleculeDescriptors().num_descriptors if "descriptors" in self.sizes else 0
        if size != self.sizes.get("descriptors", 0):
            expected = f"an RDKit of {self.sizes['descriptors']} descriptors, as in training"
            raise ValueError(f"Expected {expected} (got {size}); install the same version")
        check_is_list(raw)
        y, names = torch.from_numpy(self._unknown(len(raw))), self.label_names
        options: Any = {"on_error": "raise", "pre_transform": molecule_features(self.sizes)}
        return ArrayDataset(molecule_samples(list(raw), y, names, **options))

    @classmethod
    def steps(cls, *, scaled: bool = False) -> list[Preprocessor]:
        return [cls(describe=not scaled)]

    @classmethod
    def smiles_of(cls, dataset: MultiLabelDataset) -> list[str]:
        return [sample.smiles for sample in dataset]

    @classmethod
    def encoder(
        cls, train: MultiLabelDataset, channels: int, **options: Unpack[EncoderOptions]
    ) -> nn.Module:
        from tg_mlc.nn.encoders import MoleculeEncoder

        return MoleculeEncoder(channels)

    def examples(self, number: int) -> Any:
        return [EXAMPLES[row % len(EXAMPLES)] for row in range(number)]

    def components(self, sample: Data) -> list[str]:
        atoms = parse_smiles(sample.smiles).GetAtoms()
        return [f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in atoms]

    def smiles(self, sample: Data) -> str:
        return str(sample.smiles)

    def max_hidden(self, sample: Data) -> int:
        # RDKit computes the vectors of every hidden sample.
        return 500 if any(key in sample for key in VECTORS) else super().max_hidden(sample)

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        """Returns a sample without some atoms; its vectors are computed with dummies instead."""
        hidden, mask = copy(sample), torch.from_numpy(kept)
        hidden.x = sample.x[mask]
        if "num_nodes" in sample:
            hidden.num_nodes = int(mask.sum())
        hidden.edge_index, hidden.edge_attr = subgraph(
            mask, sample.edge_index, sample.edge_attr, relabel_nodes=True, num_nodes=len(kept)
        )
        return _described_as(hidden, partial(with_dummies, sample.smiles, ~kept))

    def symmetry(self, sample: Data) -> np.ndarray:
        """Returns a number for each atom, the same for atoms that are symmetric."""
        chem = require("rdkit.Chem", extra="molecules")
        return np.array(chem.CanonicalRankAtoms(parse_smiles(sample.smiles), breakTies=False))

    def groups(self, sample: Data) -> np.ndarray:
        """Returns the atoms :math:`(G, C)` of each ring and functional group."""
        catalogue = require("rdkit.Chem.FunctionalGroups", extra="molecules")
        mol = parse_smiles(sample.smiles)
        groups = [*mol.GetRingInfo().AtomRings()]
        for group in catalogue.BuildFuncGroupHierarchy():
            groups += mol.GetSubstructMatches(group.pattern)
        atoms = np.arange(mol.GetNumAtoms())
        masks = [np.isin(atoms, group) for group in groups if len(group) > 1]
        return np.array(masks, dtype=bool).reshape(-1, len(atoms))

    def links(self, sample: Data) -> Links:
        """Returns the bonds, with equal symmetry numbers for symmetric bonds."""
        atoms, names, ends = self.components(sample), list[str](), list[tuple[int, int]]()
        for bond in parse_smiles(sample.smiles).GetBonds():
            start, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            names.append(f"{atoms[start]}{BONDS.get(bond.GetBondType().name, '~')}{atoms[end]}")
            ends.append((start, end))
        cut_smiles = np.array([without_bond(sample.smiles, bond) for bond in range(len(ends))], str)
        symmetry = np.unique(cut_smiles, return_inverse=True)[1]
        return Links(names, np.array(ends, int).reshape(-1, 2), symmetry)

    def without_link(self, sample: Data, index: int) -> Data:
        """Returns a sample without the edges of a bond, and with vectors of the cut molecule."""
        bond, cut = parse_smiles(sample.smiles).GetBondWithIdx(index), copy(sample)
        start, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        source, target = sample.edge_index
        is_other = ~((source == start) & (target == end) | (source == end) & (target == start))
        cut.edge_index, cut.edge_attr = sample.edge_index[:, is_other], sample.edge_attr[is_other]
        return _described_as(cut, partial(without_bond, sample.smiles, index))


class Inchi(Molecules):
    """InChI inputs, which become the same samples as :class:`Molecules`."""

    forms = {}
    option, noun, command_option = "inchi", "an InChI", INPUT_OPTIONS["inchi"]

    @classmethod
    def matches(cls, dataset: MultiLabelDataset) -> bool:
        return False

    @classmethod
    def claims(cls, texts: Sequence[Any]) -> bool:
        """Tells whether all strings begin as an InChI."""
        return all(isinstance(text, str) and text.startswith(INCHI) for text in texts)


def with_vectors(dataset: MultiLabelDataset, sizes: Mapping[str, int | None]) -> MultiLabelDataset:
    """Returns the molecules with all vectors named in :obj:`sizes`. Missing vectors are added."""
    present = {*dataset[0].keys()}
    if present.issuperset(sizes):
        return dataset
    missing = {key: size for key, size in sizes.items() if key not in present}
    describe = molecule_features(missing)
    described = [describe(copy(data)) for data in dataset]
    for key in missing:
        dataset = with_attribute(dataset, key, torch.cat([data[key] for data in described]))
    return dataset


def _described_as(sample: Data, smiles: Callable[[], str]) -> Data:
    """Returns the sample with the vectors of another molecule, specified by its SMILES."""
    if not (sizes := {key: sample[key].size(-1) for key in VECTORS if key in sample}):
        return sample
    original, sample.smiles = sample.smiles, smiles()
    described: Data = molecule_features(sizes)(sample)
    described.smiles = original
    return described


def _is_molecule(text: Any) -> bool:
    return isinstance(text, str) and text.split() == [text] and find_molecule(text) is not None
