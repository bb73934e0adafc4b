"""Inputs: raw texts, rows, molecules and DNA as the samples that a model was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
import scipy.sparse as sp
from torch_geometric.transforms import Compose
from typing_extensions import Self

from tg_mlc._numbers import as_list
from tg_mlc.data import ArrayDataset, MultiLabelDataset, Split
from tg_mlc.data.bags import bag_of_words
from tg_mlc.data.records import Kind, Records, Tokens
from tg_mlc.inputs._inputs import num_rows
from tg_mlc.inputs._words import Document, as_documents, from_documents, may_be_rows
from tg_mlc.inputs.arrays import from_arrays
from tg_mlc.inputs.fasta import LETTERS, letter_codes
from tg_mlc.inputs.molecules import MoleculeDataset
from tg_mlc.inputs.preprocessor import Preprocessor
from tg_mlc.inputs.tables import column_of
from tg_mlc.inputs.transforms import Fingerprint, MoleculeDescriptors
from tg_mlc.inputs.vocabulary import tokenize

#: The vectors that describe a molecule as a whole, by the attribute that holds them.
VECTORS = ("morgan", "atom_pair", "torsion", "maccs", "descriptors")


class Inputs(Preprocessor):
    """Raw inputs as samples without known labels; samples stay as they are.

    Attributes:
        label_names (list[str]): The labels of the samples that it was fitted to.

    Raises:
        ValueError: On use, if there is no input, or a string in place of a list of them.
    """

    label_names: list[str]

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        """Takes the labels of the samples."""
        self.label_names = list(dataset.label_names)
        return self

    def transform(self, raw: Any) -> MultiLabelDataset:
        """Samples of raw inputs; samples as they are."""
        return raw if isinstance(raw, MultiLabelDataset) else self._read(_listed(self._column(raw)))

    def _column(self, raw: Any) -> Any:
        """The only column of a data frame; anything else but a data frame as it is."""
        columns = list(getattr(raw, "columns", ()))
        if len(columns) > 1:
            raise ValueError(
                f"Expected a list or one column of raw inputs (got a data frame of the columns {columns[:5]}); choose "
                f"one, as in frame[{columns[0]!r}]"
            )
        return raw[columns[0]] if columns else raw

    def _read(self, raw: Any) -> MultiLabelDataset:
        raise NotImplementedError

    def _unknown(self, num_samples: int) -> np.ndarray:
        return np.full((num_samples, len(self.label_names)), np.nan, dtype=np.float32)

    def state_dict(self) -> dict[str, Any]:
        """All attributes, once it is fitted."""
        if not hasattr(self, "label_names"):
            raise RuntimeError("Expected 'fit' to be called before 'state_dict'")
        return super().state_dict()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.label_names)} labels)"


class TableInputs(Inputs):
    """Texts, lists of words, or rows of numbers as samples with the words or columns that a model was trained on.

    It takes all that :func:`~tg_mlc.data.from_arrays` takes with :obj:`like`, and texts, which
    :func:`~tg_mlc.data.tokenize` splits into words.

    Attributes:
        kind (str): What an input is, as of :class:`~tg_mlc.data.MultiLabelDataset`.
        feature_names (list[str], optional): The vocabulary, or the names of columns.
        num_inputs (int): The size of the vocabulary, or of a row.
        values (str): What the words of training bags had: :obj:`"presence"` where all values are 1, :obj:`"counts"`,
            as texts get too, or :obj:`"weights"`, which texts do not have.

    Raises:
        ValueError: On use, if samples are neither bags, sequences nor vectors, or have other words or columns than
            those that it was fitted to, or texts are given where words had weights.
    """

    kind: Kind
    feature_names: list[str] | None
    num_inputs: int
    values: Literal["presence", "counts", "weights"] = "presence"

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        """Takes the labels, and the words or columns, of the samples."""
        if dataset.kind is None or dataset.num_inputs is None:
            raise ValueError(f"Expected samples of kind 'bag', 'sequence' or 'vector' (got {dataset})")
        self.kind, self.feature_names, self.num_inputs = dataset.kind, dataset.feature_names, dataset.num_inputs
        self.values = _values(dataset[split.train]) if self.kind == "bag" else "presence"
        return super().fit(dataset, split)

    def transform(self, raw: Any) -> MultiLabelDataset:
        """Samples of raw inputs; samples as they are, if they have the same words or columns."""
        samples = super().transform(raw)
        if any(getattr(samples, name) != getattr(self, name) for name in ("kind", "num_inputs", "feature_names")):
            expected = f"samples of kind {self.kind!r} with the {self.num_inputs} words or columns of those before"
            got = f"{samples} of kind {samples.kind!r}"
            raise ValueError(f"Expected {expected} (got {got}); pass raw inputs, or take 'from_arrays(..., like=...)'")
        return samples

    def _read(self, raw: Any) -> MultiLabelDataset:
        if isinstance(raw, (list, tuple)) and any(isinstance(text, str) for text in raw):
            raw = [tokenize(text) if isinstance(text, str) else text for text in raw]
        documents = as_documents(raw)
        if documents and self.kind == "bag" and may_be_rows(documents) and len(documents[0]) == self.num_inputs:
            raw, documents = np.array(documents), None  # nobody tells all words by their numbers
        if documents is None or self.values == "presence":
            return from_arrays(raw, like=self._like())
        return self._counted(documents)

    def _column(self, raw: Any) -> Any:
        """The column of a data frame that is the only one and holds texts or lists; of others, those that
        training had, if all are there.
        """
        columns = [str(column) for column in getattr(raw, "columns", ())]
        if len(columns) == 1 and self.kind != "vector":
            column = as_list(raw[raw.columns[0]])
            return column if isinstance(column, list) else raw
        if not columns:
            return raw
        wanted = {column_of(name, columns) for name in self.feature_names or ()}
        if not wanted or not wanted.issubset(columns):
            return raw
        return raw[[own for own, column in zip(raw.columns, columns, strict=True) if column in wanted]]

    def _counted(self, documents: list[Document]) -> ArrayDataset:
        """Documents as bags of how often each word occurs."""
        if self.values == "weights":
            expected = "a matrix with the weights of words, as training samples had weights that are no counts"
            raise ValueError(f"Expected {expected} (got texts or lists of words); weigh words as there")
        x, words = from_documents(documents, "bag", self.feature_names, None, self.num_inputs, counts=True)
        return ArrayDataset(Records(x, self._unknown(len(documents)), self.label_names, words).to_samples())

    def _like(self) -> ArrayDataset:
        """No samples, with words or columns and labels."""
        x: Any = Tokens.of([]) if self.kind == "sequence" else np.zeros((0, self.num_inputs), dtype=np.float32)
        x = sp.csr_array(x) if self.kind == "bag" else x
        samples = Records(x, self._unknown(0), self.label_names, self.feature_names).to_samples()
        return ArrayDataset(samples._replace(num_features=self.num_inputs))


class MoleculeInputs(Inputs):
    """SMILES as molecules with the vectors that a model was trained on.

    Attributes:
        sizes (dict[str, int]): The size of each vector, of those in :obj:`VECTORS`.

    Raises:
        ImportError: On use, if RDKit is not installed (extra ``molecules``).
        ValueError: On use, if a SMILES cannot be read, or the installed RDKit has other descriptors.
    """

    sizes: dict[str, int]

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        """Takes the labels, and the sizes of the vectors, of the samples."""
        self.sizes = {key: dataset[0][key].size(-1) for key in VECTORS if key in dataset[0]}
        return super().fit(dataset, split)

    def _read(self, raw: Sequence[str]) -> MultiLabelDataset:
        known = MoleculeDescriptors().num_descriptors if "descriptors" in self.sizes else 0
        if known != self.sizes.get("descriptors", 0):
            expected = f"an RDKit of {self.sizes['descriptors']} descriptors, as where the model was trained"
            raise ValueError(f"Expected {expected} (got {known}); install the same version")
        vectors = Compose([_vector(key, size) for key, size in self.sizes.items()])
        y = self._unknown(len(raw))
        return MoleculeDataset.from_smiles(list(raw), y, self.label_names, on_error="raise", pre_transform=vectors)


class DNAInputs(Inputs):
    """DNA in letters as samples of their codes, as of :class:`~tg_mlc.data.DNADataset`.

    Raises:
        ValueError: On use, if a letter is none of DNA.
    """

    def _read(self, raw: Sequence[str]) -> MultiLabelDataset:
        tokens = Tokens.of([cast(Any, letter_codes(text)) for text in raw])
        return ArrayDataset(Records(tokens, self._unknown(len(raw)), self.label_names, list(LETTERS)).to_samples())


def _listed(raw: Any) -> Any:
    """Raw inputs, those of a column as a list."""
    if isinstance(raw, (str, bytes)):
        raise ValueError(f"Expected a list of raw inputs (got the string {raw[:40]!r}); pass one input as [input]")
    raw = as_list(raw)
    raw = raw.tolist() if isinstance(raw, np.ndarray) and raw.ndim == 1 and raw.dtype.kind == "U" else raw
    if num_rows(raw) == 0:
        raise ValueError("Expected at least one raw input (got none); pass a list with one entry per sample")
    return raw


def _values(bags: MultiLabelDataset) -> Literal["presence", "counts", "weights"]:
    values = bag_of_words(bags).data
    if (values == 1).all():
        return "presence"
    return "counts" if ((values >= 0) & (values == np.floor(values))).all() else "weights"


def _vector(key: str, size: int) -> Any:
    return MoleculeDescriptors() if key == "descriptors" else Fingerprint(cast(Any, key), size)
