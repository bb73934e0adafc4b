"""Molecules: graphs of atoms with vectors that describe each as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.transforms import Compose
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
    Fingerprint,
    MoleculeDescriptors,
    find_molecule,
    molecule_features,
    molecule_from_smiles,
    parse_smiles,
    with_dummies,
    without_bond,
)

#: The vectors that describe a molecule as a whole, by the attribute that holds them.
VECTORS = ("morgan", "atom_pair", "torsion", "maccs", "descriptors")
#: Signs for bonds in their names, by RDKit's names of their types.
BONDS = {"SINGLE": "-", "DOUBLE": "=", "TRIPLE": "#", "AROMATIC": ":"}
#: Molecules to try a model with: a single atom, salts, rings, charges and stereo centres among them.
EXAMPLES = (
    *(
        "C",
        "CCO",
        "CC(=O)O",
        "c1ccccc1",
        "CC(=O)Oc1ccccc1C(=O)O",
        "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
        "[Na+].[Cl-]",
    ),
    *(
        "CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O",
        "CC(=O)Nc1ccc(O)cc1",
        "C1CCCCC1",
        "N#Cc1ccccc1",
        "OC[C@H]1OC(O)[C@H](O)C1O",
    ),
    *(
        "C[N+](C)(C)CCO",
        "O=S(=O)(N)c1ccc(N)cc1",
        "FC(F)(F)c1ccccc1",
        "CCN(CC)CCNC(=O)c1ccc(N)cc1",
        "C/C=C/C",
        "O",
    ),
    *("Clc1ccc(cc1)C(c1ccccc1)N1CCNCC1", "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O"),
)


def molecule_scaler(key: str, size: int) -> LogCounts | QuantileScaler:
    """The scaler, not fitted yet, for a vector that describes a molecule, by its attribute and number of entries."""
    return QuantileScaler(size) if key == "descriptors" else LogCounts()


class MoleculeVectors(View):
    """All vectors of a molecule, or those of :obj:`keys`, as far as samples have them, side by side with equal weight
    and of unit length together.
    """

    def __init__(self, keys: tuple[str, ...] = VECTORS) -> None:
        self.keys = keys
        self.scalers: dict[str, Any] = {}

    def fit(self, dataset: MultiLabelDataset) -> Self:
        vectors = {key: dataset.rows(key) for key in self.keys if key in dataset[0]}
        if not vectors:
            raise ValueError(
                f"Expected molecules with one of the vectors {self.keys} (got {dataset[0]})"
            )
        self.scalers = {key: molecule_scaler(key, x.size(1)).fit(x) for key, x in vectors.items()}
        return self

    def matrix(self, dataset: MultiLabelDataset) -> np.ndarray:
        scaled = [scaler(dataset.rows(key)) for key, scaler in self.scalers.items()]
        unit = [nn.functional.normalize(values, dim=1) for values in scaled]
        together: np.ndarray = (torch.cat(unit, dim=1) / len(unit) ** 0.5).numpy()
        return together

    def state_dict(self) -> dict[str, Any]:
        return {key: scaler.state_dict() for key, scaler in self.scalers.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.scalers = {}
        for key, tensors in state.items():
            self.scalers[key] = molecule_scaler(key, len(tensors.get("quantiles", ())))
            self.scalers[key].load_state_dict(tensors)
        return self


class Molecules(InputKind):
    """SMILES as molecules with the vectors that a model was trained on, which samples without them get as well.

    Args:
        describe (bool, optional): Whether training samples get all :obj:`VECTORS` that they lack.
            (default: :obj:`False`)

    Raises:
        ImportError: On use, if RDKit is not installed (extra ``molecules``).
        ValueError: On use, if a SMILES cannot be read, or the installed RDKit has other descriptors.
    """

    forms = {"smiles": Form(None)}
    option, noun, parts, settings, role = "smiles", "a molecule", "atoms", "molecules", "molecule"
    command_option = INPUT_OPTIONS["smiles"]
    splits = ("random", "stratified", "scaffold")
    views = {"substructures": partial(MoleculeVectors, ("morgan",)), "vectors": MoleculeVectors}
    sizes: dict[str, int]  #: of each vector

    def __init__(self, describe: bool = False) -> None:
        self.describe = describe

    @classmethod
    def matches(cls, dataset: MultiLabelDataset) -> bool:
        return dataset.kind is None and "edge_attr" in dataset[0]

    @classmethod
    def claims(cls, texts: Sequence[Any]) -> bool:
        """Tells whether strings are SMILES; a :class:`ValueError` if most are, but not all."""
        if not is_installed("rdkit"):
            return False
        are_words = [isinstance(text, str) and text.split() == [text] for text in texts]
        others = [
            row
            for row, text in enumerate(texts)
            if not are_words[row] or find_molecule(text) is None
        ]
        if 0 < len(others) < len(texts) / 2:
            got = (
                f"{len(others)} others, the first {shorten(texts[others[0]])!r} in row {others[0]}"
            )
            raise ValueError(
                f"Expected SMILES alone (got {got}); leave these rows out, or pass inputs='texts'"
            )
        return not others

    @classmethod
    def check(cls, raw: Any) -> None:
        if not isinstance(raw, str):
            raise ValueError(f"Expected {cls.noun} (got {type(raw).__name__})")
        molecule_from_smiles(raw)

    @classmethod
    def read(
        cls, X: Any, kind: str | None, **options: Unpack[ReadOptions]
    ) -> tuple[Rows, list[str] | None]:
        """Refuses all: molecules are no rows of a table; see :meth:`samples`."""
        raise ValueError(
            "Expected molecules as SMILES (got a table); make them with 'MoleculeDataset.from_smiles'"
        )

    @classmethod
    def samples(
        cls,
        X: Any,
        y: np.ndarray,
        label_names: Sequence[str],
        kind: str | None = None,
        **options: Unpack[SampleOptions],
    ) -> MultiLabelDataset:
        kept: dict[str, Any] = {
            "transform": options.get("transform"),
            "pre_transform": molecule_features(),
        }
        return MoleculeDataset.from_smiles(X, y, label_names, on_error="raise", **kept)

    @classmethod
    def from_csv(
        cls,
        path: Path,
        columns: Sequence[str],
        labels: Sequence[str],
        options: FileOptions | None = None,
    ) -> MultiLabelDataset:
        """Makes molecules with all vectors; rows that cannot be read are skipped."""
        options = options or FileOptions()
        reading: dict[str, Any] = {
            "pre_transform": molecule_features(),
            "delimiter": options.delimiter,
            "encoding": options.encoding,
            "max_lost": options.max_lost,
        }
        dataset = MoleculeDataset.from_csv(path, columns[0], labels, **reading)
        check_samples(dataset)
        return dataset

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        """Takes labels and sizes of vectors, and returns samples with these vectors."""
        described = with_vectors(dataset, dict.fromkeys(VECTORS)) if self.describe else dataset
        self.sizes = {key: described[0][key].size(-1) for key in VECTORS if key in described[0]}
        super().fit(dataset, split)
        return described

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        self.fit_transform(dataset, split)
        return self

    def transform(self, raw: Any) -> MultiLabelDataset:
        """Samples of SMILES, or samples with the vectors that they lack."""
        return with_vectors(super().transform(raw), self.sizes)

    def state_dict(self) -> dict[str, Any]:
        """Labels and sizes of vectors; :attr:`describe` matters for training samples alone."""
        return {key: value for key, value in super().state_dict().items() if key != "describe"}

    def _new_samples(self, raw: Sequence[str]) -> MultiLabelDataset:
        found = MoleculeDescriptors().num_descriptors if "descriptors" in self.sizes else 0
        if found != self.sizes.get("descriptors", 0):
            expected = f"an RDKit of {self.sizes['descriptors']} descriptors, as where the model was trained"
            raise ValueError(f"Expected {expected} (got {found}); install the same version")
        check_is_list(raw)
        y, describe = torch.from_numpy(self._unknown(len(raw))), _vectors(self.sizes)
        return ArrayDataset(
            molecule_samples(
                list(raw), y, self.label_names, on_error="raise", pre_transform=describe
            )
        )

    @classmethod
    def steps(cls, *, scaled: bool = False) -> list[Preprocessor]:
        return [cls(describe=not scaled)]

    @classmethod
    def encoder(
        cls, train: MultiLabelDataset, channels: int, **options: Unpack[EncoderOptions]
    ) -> nn.Module:
        from tg_mlc.nn.encoders import MoleculeEncoder

        return MoleculeEncoder(channels)

    def examples(self, number: int) -> Any:
        return [EXAMPLES[row % len(EXAMPLES)] for row in range(number)]

    def components(self, sample: Data) -> list[str]:
        return [
            f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in parse_smiles(sample.smiles).GetAtoms()
        ]

    def smiles(self, sample: Data) -> str:
        return str(sample.smiles)

    def max_hidden(self, sample: Data) -> int:
        # The vectors of each sample are computed anew.
        return 500 if any(key in sample for key in VECTORS) else super().max_hidden(sample)

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        """A sample without some of its atoms and their bonds, which are dummies in its vectors."""
        hidden, rows = copy(sample), torch.from_numpy(kept)
        hidden.x = sample.x[rows]
        if "num_nodes" in sample:
            hidden.num_nodes = int(rows.sum())
        edges = subgraph(
            rows, sample.edge_index, sample.edge_attr, relabel_nodes=True, num_nodes=len(kept)
        )
        hidden.edge_index, hidden.edge_attr = edges
        return _described_as(hidden, partial(with_dummies, sample.smiles, ~kept))

    def symmetry(self, sample: Data) -> np.ndarray:
        """The same number for atoms that may change places while the molecule stays the same."""
        chem = require("rdkit.Chem", extra="molecules")
        return np.array(chem.CanonicalRankAtoms(parse_smiles(sample.smiles), breakTies=False))

    def groups(self, sample: Data) -> np.ndarray:
        """The atoms :math:`(G, C)` of each ring and functional group."""
        mol, catalogue = (
            parse_smiles(sample.smiles),
            require("rdkit.Chem.FunctionalGroups", extra="molecules"),
        )
        groups = [*mol.GetRingInfo().AtomRings()]
        for group in catalogue.BuildFuncGroupHierarchy():
            groups += mol.GetSubstructMatches(group.pattern)
        atoms = np.arange(mol.GetNumAtoms())
        masks = [np.isin(atoms, group) for group in groups if len(group) > 1]
        return np.array(masks, dtype=bool).reshape(-1, len(atoms))

    def links(self, sample: Data) -> Links:
        """The bonds; two of them are alike if the molecule stays the same where they change places."""
        atoms, bonds = self.components(sample), [*parse_smiles(sample.smiles).GetBonds()]
        ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]
        marks = [BONDS.get(bond.GetBondType().name, "~") for bond in bonds]
        names = [
            f"{atoms[start]}{mark}{atoms[end]}"
            for (start, end), mark in zip(ends, marks, strict=True)
        ]
        cut = np.array([without_bond(sample.smiles, bond) for bond in range(len(bonds))], str)
        symmetry = np.unique(cut, return_inverse=True)[1]
        return Links(names, np.array(ends, int).reshape(-1, 2), symmetry)

    def without_link(self, sample: Data, index: int) -> Data:
        """A sample without the edges of a bond in both directions; in its vectors, the bond is cut."""
        bond, cut = parse_smiles(sample.smiles).GetBondWithIdx(index), copy(sample)
        start, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        source, target = sample.edge_index
        kept = ~((source == start) & (target == end) | (source == end) & (target == start))
        cut.edge_index, cut.edge_attr = sample.edge_index[:, kept], sample.edge_attr[kept]
        return _described_as(cut, partial(without_bond, sample.smiles, index))


def with_vectors(dataset: MultiLabelDataset, sizes: Mapping[str, int | None]) -> MultiLabelDataset:
    """Molecules with the vectors that they lack."""
    missing = {key: size for key, size in sizes.items() if key not in dataset[0]}
    if not missing:
        return dataset
    describe = _vectors(missing)
    described = [describe(copy(data)) for data in dataset]
    for key in missing:
        dataset = with_attribute(dataset, key, torch.cat([data[key] for data in described]))
    return dataset


def _described_as(sample: Data, smiles: Callable[[], str]) -> Data:
    """The sample with vectors, if it has some, of another molecule."""
    if not (sizes := {key: sample[key].size(-1) for key in VECTORS if key in sample}):
        return sample
    own, sample.smiles = sample.smiles, smiles()
    described: Data = _vectors(sizes)(sample)
    described.smiles = own
    return described


def _vectors(sizes: Mapping[str, int | None]) -> Compose:
    """The transform that adds vectors of these sizes, or of the usual ones."""
    return Compose(
        [
            MoleculeDescriptors()
            if key == "descriptors"
            else Fingerprint(cast(Any, key), *([size] if size else []))
            for key, size in sizes.items()
        ]
    )
