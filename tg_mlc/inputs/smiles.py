"""Converts SMILES, InChI and SDF to PyG graphs, fingerprints and descriptors."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform, Compose
from torch_geometric.utils import from_rdmol

from tg_mlc._files import read_unpacked
from tg_mlc._names import shorten
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc._warnings import check_abandoned

if TYPE_CHECKING:
    from rdkit.Chem import Mol

FingerprintKind = Literal["morgan", "atom_pair", "torsion", "maccs"]
#: Attributes of samples that hold the vectors of whole molecules.
VECTORS: tuple[str, ...] = (*get_args(FingerprintKind), "descriptors")

INCHI = "InChI="  #: the beginning of an InChI
MAX_ATOMS = 1_000  #: default maximum number of atoms of a molecule, see :func:`max_atoms`
MAX_CHARACTERS = 10  #: maximum number of SMILES characters per atom
STRUCTURE = "structure"  #: the column of molecules in the table of an SDF
_END = "M  END"
_PROPERTY = re.compile(r"^>.*<(.+?)>.*\n((?:(?!>.*<.+>).+\n?)*)", re.MULTILINE)
# RDKit's names of the generators. Morgan substructures of radius 2 are the usual ECFP4.
_GENERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "morgan": ("GetMorganGenerator", {"radius": 2}),
    "atom_pair": ("GetAtomPairGenerator", {}),
    "torsion": ("GetTopologicalTorsionGenerator", {}),
}
#: Reasons for strings that RDKit refuses, by pattern.
_REASONS = {
    r"record [0-9]+: (.*)": r"\1",  # Records of an SDF.
    r".*>.*>.*": "a reaction; pass its reactants or its products as one molecule",
    r"(\[[^\[\]]+\])+": "perhaps SELFIES; turn it into SMILES with 'selfies.decoder'",
    r"[A-Z]{14}-[A-Z]{10}-[A-Z]": "an InChIKey, which names no atoms; pass the InChI or the SMILES",
    rf"{INCHI}.*": "not a valid InChI",
}
# RDKit reads some SELFIES as bare atoms.
_SELFIES = re.compile(r"(?=.*\[[=#]?(?:C\]|Branch|Ring))(?:\[[^\[\]]+\]){2,}")
_require = partial(require, extra="molecules")


class MoleculeError(ValueError):
    """A string that cannot become a molecule graph; the message is the reason."""


def molecule_from_smiles(smiles: str) -> Data:
    """Converts a SMILES or InChI string to the graph of its molecule, with the features of
    :func:`torch_geometric.utils.from_smiles`.

    Unlike that function, this one raises an error for invalid strings instead of returning graphs
    without nodes, and leaves RDKit's log settings unchanged. Molecules of several fragments become
    one graph of several components; a single atom has ``edge_index`` of shape ``[2, 0]``. All
    spellings of a molecule have the same features.

    Args:
        smiles (str): The SMILES or InChI string.

    Raises:
        MoleculeError: If the string is neither, or the molecule is chemically impossible (*e.g.* a
            valence), has no atom or more than :func:`~tg_mlc.inputs.smiles.max_atoms`, or lies
            outside the categories of PyG's features.
    """
    smiles, mol = parse_canonical(smiles)
    try:
        data = from_rdmol(mol)
    except ValueError as error:  # PyG looks up categories with `list.index`.
        reason = f"PyG's features have no category for one of its atoms or bonds ({error})"
        raise MoleculeError(reason) from error
    data.smiles = smiles
    return data


def parse_canonical(smiles: str) -> tuple[str, Mol]:
    """Returns the SMILES of a SMILES or InChI string, and its molecule with chiral tags that do not
    depend on the order of atoms in the string; or raises :class:`MoleculeError`.
    """
    if smiles.startswith(INCHI):
        smiles = str(_require("rdkit.Chem").MolToSmiles(parse_smiles(smiles)))
    mol = parse_smiles(smiles)
    has_tags = any(map(_require("rdkit.Chem").Atom.GetChiralTag, mol.GetAtoms()))
    return smiles, _with_canonical_tags(mol) if has_tags else mol


def _with_canonical_tags(mol: Mol) -> Mol:
    """Returns a copy whose chiral tags refer to the order of atoms in its canonical SMILES.

    RDKit's tags are clockwise or not with respect to the order of atoms in the string, so that two
    spellings of one molecule differ in them. They are features of PyG.
    """
    chem = _require("rdkit.Chem")
    tagged: Mol = chem.Mol(mol)
    canonical: Any = _unsanitized(chem.MolToSmiles(tagged))
    order = map(int, re.findall("[0-9]+", tagged.GetProp("_smilesAtomOutputOrder")))
    for atom, index in zip(canonical.GetAtoms(), order, strict=True):
        tagged.GetAtomWithIdx(index).SetChiralTag(atom.GetChiralTag())
    return tagged


def parse_smiles(smiles: str) -> Mol:
    """Parses and sanitizes a SMILES or InChI string, or raises :class:`MoleculeError`."""
    mol = find_molecule(smiles)
    if mol is None:
        raise MoleculeError(_why_text_refused(smiles))
    if mol.GetNumAtoms() == 0:
        raise MoleculeError("the SMILES has no atoms")
    return mol


def max_atoms() -> int:
    """Returns the maximum number of atoms of a molecule: 1,000, or the environment variable
    ``TG_MLC_MAX_ATOMS``. RDKit takes seconds for the descriptors of a molecule of 1,000 atoms, and
    its time grows with the cube of the number of atoms.
    """
    value = os.environ.get("TG_MLC_MAX_ATOMS", str(MAX_ATOMS))
    if not value.isdecimal() or int(value) < 1:
        expected = "'TG_MLC_MAX_ATOMS' to be a whole number of at least 1"
        raise ValueError(f"Expected {expected} (got {shorten(value)!r})")
    return int(value)


@lru_cache(maxsize=1)  # One parse serves the graph and all vectors of a molecule.
def find_molecule(smiles: str) -> Mol | None:
    """Returns the molecule of a SMILES or InChI string; :obj:`None` if RDKit cannot parse it, or if
    it is SELFIES or larger than :func:`max_atoms`.
    """
    if _SELFIES.fullmatch(smiles) or _is_too_large(smiles):
        return None
    chem = _require("rdkit.Chem")
    parse = chem.MolFromInchi if smiles.startswith(INCHI) else chem.MolFromSmiles
    with _require("rdkit.rdBase").BlockLogs():
        mol: Mol | None = parse(smiles)
    return mol


def _is_too_large(smiles: str) -> bool:
    limit = max_atoms()
    if len(smiles) <= limit:  # Each atom takes at least one character.
        return False
    if len(smiles) > MAX_CHARACTERS * limit:  # RDKit may take minutes to refuse such a string.
        return True
    mol = _unsanitized(smiles)
    return mol is not None and mol.GetNumAtoms() > limit


def _unsanitized(smiles: str) -> Mol | None:
    with _require("rdkit.rdBase").BlockLogs():
        mol: Mol | None = _require("rdkit.Chem").MolFromSmiles(smiles, sanitize=False)
    return mol


class Fingerprint(BaseTransform):  # type: ignore[misc, unused-ignore]
    r"""Adds a vector of the substructures that a molecule has.

    Args:
        kind (str): The substructures, and the attribute to write: :obj:`"morgan"`, circular ones of
            radius 2 as in the `"Extended-Connectivity Fingerprints"
            <https://doi.org/10.1021/ci100050t>`_ paper; :obj:`"atom_pair"`, two atoms and the
            distance between them as in the `"Atom Pairs as Molecular Features in Structure-Activity
            Studies" <https://doi.org/10.1021/ci00046a002>`_ paper; :obj:`"torsion"`, paths of four
            atoms as in the `"Topological Torsion" <https://doi.org/10.1021/ci00054a008>`_ paper;
            these three are counts, folded to :obj:`num_bits`; or :obj:`"maccs"`, the 166 keys of
            the `"Reoptimization of MDL Keys for Use in Drug Discovery"
            <https://doi.org/10.1021/ci010132r>`_ paper, 0 or 1, after an unused entry 0.
        num_bits (int, optional): The size of a vector of counts. (default: :obj:`2048`)

    Shapes:
        - **output:** counts or bits :math:`(1, F)`

    Raises:
        ValueError: If :obj:`kind` is unknown or, on use, the molecule's SMILES is invalid.
        ImportError: On use, if RDKit is not installed (extra ``molecules``).
    """

    def __init__(self, kind: FingerprintKind, num_bits: int = 2048) -> None:
        check_choice("kind", kind, get_args(FingerprintKind))
        self.kind = kind
        self.num_bits = num_bits

    def forward(self, data: Data) -> Data:
        """Returns the sample with its fingerprint."""
        values = fingerprint_of(_valid_molecule(data), self.kind, self.num_bits)
        data[self.kind] = torch.from_numpy(values).unsqueeze(0)
        return data

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}('{self.kind}', num_bits={self.num_bits})"


class MoleculeDescriptors(BaseTransform):  # type: ignore[misc, unused-ignore]
    r"""Adds RDKit's physicochemical descriptors (weight, lipophilicity, polar surface, counts of
    groups, ...) as :obj:`descriptors`.

    :obj:`Ipc` and :obj:`AvgIpc`, the information contents of `"Information Theory, Distance Matrix,
    and Molecular Branching" <https://doi.org/10.1063/1.1674955>`_, are skipped: of over two hundred
    descriptors, these two take most of the time, and the first exceeds single precision. A
    descriptor that RDKit cannot compute for a molecule is NaN.

    Shapes:
        - **output:** descriptors :math:`(1, F)`, with as many :math:`F` as the installed RDKit has,
          :attr:`num_descriptors`
    """

    @property
    def num_descriptors(self) -> int:
        """The number of descriptors of the installed RDKit."""
        return len(_descriptors())

    def forward(self, data: Data) -> Data:
        """Returns the sample with its descriptors."""
        data.descriptors = torch.from_numpy(descriptors_of(_valid_molecule(data))).unsqueeze(0)
        return data


def fingerprint_of(molecule: Any, kind: str, num_bits: int) -> np.ndarray:
    """Returns the entries :math:`(F)` of a :class:`Fingerprint`."""
    if kind == "maccs":
        keys = list(_require("rdkit.Chem.MACCSkeys").GenMACCSKeys(molecule))
        return np.array(keys, dtype=np.float32)
    counts: np.ndarray = _generator(kind, num_bits).GetCountFingerprintAsNumPy(molecule)
    return counts.astype(np.float32)


def descriptors_of(molecule: Any) -> np.ndarray:
    """Returns the :class:`MoleculeDescriptors` of a molecule :math:`(F)`."""
    values = []
    for compute in _descriptors():
        check_abandoned()
        try:
            values.append(float(compute(molecule)))
        except ZeroDivisionError:  # A mean over the heavy atoms of a molecule without any.
            values.append(math.nan)
    limit = float(np.finfo(np.float32).max)
    # Clipping keeps huge values finite; NaN stays.
    clipped: np.ndarray = np.clip(np.array(values), -limit, limit)
    return clipped.astype(np.float32)


def with_dummies(smiles: str, masked: np.ndarray) -> str:
    """Returns the SMILES of a molecule with dummies in place of masked atoms; descriptors and
    fingerprints do not know dummies.
    """
    chem = _require("rdkit.Chem")
    mol = chem.RWMol(parse_smiles(smiles))
    for index in np.flatnonzero(masked).tolist():
        dummy = chem.Atom(0)
        dummy.SetIsAromatic(mol.GetAtomWithIdx(index).GetIsAromatic())
        mol.ReplaceAtom(index, dummy)
    return str(chem.MolToSmiles(mol))


def without_bond(smiles: str, index: int) -> str:
    """Returns the SMILES of a molecule in which a bond is cut, and each of its atoms is bonded to a
    dummy instead. Symmetric bonds give the same SMILES.
    """
    chem = _require("rdkit.Chem")
    mol = parse_smiles(smiles)
    if mol.GetBondWithIdx(index).GetIsAromatic():
        # The bond is made single if possible, so that cuts of symmetric bonds are the same.
        edited = chem.RWMol(mol)
        edited.GetBondWithIdx(index).SetIsAromatic(False)
        edited.GetBondWithIdx(index).SetBondType(chem.BondType.SINGLE)
        with _require("rdkit.rdBase").BlockLogs():
            try:
                chem.Kekulize(edited, clearAromaticFlags=True)
                mol = edited
            except chem.KekulizeException:
                chem.Kekulize(mol, clearAromaticFlags=True)
    cut = chem.FragmentOnBonds(mol, [index], dummyLabels=[(0, 0)])
    chem.SanitizeMol(cut)
    return str(chem.MolToSmiles(cut))


def molecule_features(sizes: Mapping[str, int | None] | None = None) -> Compose:
    """Returns the transform that adds vectors to molecules.

    Args:
        sizes (dict, optional): Sizes of vectors by attribute; :obj:`None` is the default size.
            (default: :obj:`None`, all vectors of default sizes)
    """
    transforms: list[Any] = []
    for key, size in (dict.fromkeys(VECTORS) if sizes is None else sizes).items():
        options: Any = (key, size) if size else (key,)
        transforms.append(MoleculeDescriptors() if key == "descriptors" else Fingerprint(*options))
    return Compose(transforms)


def _why_text_refused(smiles: str) -> str:
    if _is_too_large(smiles):
        limit = f"more than {max_atoms():,} atoms, or {MAX_CHARACTERS} characters per atom"
        return f"{limit}; for larger molecules, set the environment variable TG_MLC_MAX_ATOMS"
    for pattern, reason in _REASONS.items():
        if match := re.fullmatch(pattern, smiles, re.DOTALL):
            return match.expand(reason)
    return why_refused(_unsanitized(smiles), "a valid SMILES")


def why_refused(mol: Mol | None, expected: str) -> str:
    """Returns why RDKit could not sanitize a molecule, or not even parse it (:obj:`None`)."""
    if mol is None:
        return f"not {expected}"
    with _require("rdkit.rdBase").BlockLogs():
        detected = _require("rdkit.Chem").DetectChemistryProblems(mol)
        problems = [problem.Message() for problem in detected]
    more = f"; and {len(problems) - 3} more problems" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more or "RDKit cannot sanitize the molecule"


def _valid_molecule(data: Data) -> Any:
    molecule = find_molecule(data.smiles)
    if molecule is None:
        got = f"'{shorten(data.smiles)}'"
        raise ValueError(f"Expected 'data.smiles' to be a valid SMILES (got {got})")
    return molecule


@cache
def _generator(kind: str, num_bits: int) -> Any:
    name, options = _GENERATORS[kind]
    make = getattr(_require("rdkit.Chem.rdFingerprintGenerator"), name)
    return make(fpSize=num_bits, **options)


@cache
def _descriptors() -> list[Callable[[Any], float]]:
    descriptors = _require("rdkit.Chem.Descriptors").descList
    return [compute for name, compute in descriptors if name not in ("Ipc", "AvgIpc")]


def is_sdf(path: str | Path) -> bool:
    """Tells whether a file is an SDF by its name, such as ``drugs.sdf.gz``."""
    return ".sdf" in map(str.lower, Path(path).suffixes)


def read_sdf_cells(path: Path) -> Any:
    """Reads the molecules of an SDF as a data frame with a row for each record.

    RDKit removes hydrogens, infers stereo centres from coordinates, and writes canonical SMILES.
    The cell of an unreadable record is its number and the reason. The row is refused later,
    because its cell is not SMILES.
    """
    content = read_unpacked(path)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin1")
    records = re.split(r"^\$\$\$\$.*\n?", text.replace("\r\n", "\n"), flags=re.MULTILINE)
    rows = [_record(record, number) for number, record in enumerate(records, 1) if record.strip()]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = list(names) or [STRUCTURE]
    return _require("pandas").DataFrame(rows, columns=columns, dtype=object).fillna("")


def _record(record: str, number: int) -> dict[str, str]:
    block, _, data_items = record.partition(_END)
    properties = {match[1]: match[2].strip() for match in _PROPERTY.finditer(data_items)}
    if STRUCTURE in properties:
        got = f"one in record {number}"
        raise ValueError(f"Expected no property '{STRUCTURE}' in an SDF (got {got}); rename it")
    chem, block = _require("rdkit.Chem"), f"{block}{_END}\n"
    with _require("rdkit.rdBase").BlockLogs():
        mol = chem.MolFromMolBlock(block)
        if mol is not None:
            return {STRUCTURE: chem.MolToSmiles(mol), **properties}
        reason = why_refused(chem.MolFromMolBlock(block, sanitize=False), "a valid molblock")
    return {STRUCTURE: f"record {number}: {reason}", **properties}
