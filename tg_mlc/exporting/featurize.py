"""Turns raw inputs into the tensors of an exported program, without PyTorch and scikit-learn.

    python featurize.py --check
    python featurize.py rows.csv tensors.npz

An exported folder has this file with all that it needs of this package
(:mod:`tg_mlc.exporting.bundle`), so that both read inputs alike. What a model has learned about its
inputs is in ``featurize.json``.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from tg_mlc.inputs.cells import clean, numbers_of, one_hot, single_cells
from tg_mlc.inputs.dna import SIZES, kmer_numbers
from tg_mlc.inputs.dna_dataset import letter_codes
from tg_mlc.inputs.notations import PLAIN, notation_of
from tg_mlc.inputs.smiles import descriptors_of, find_molecule, fingerprint_of, parse_canonical
from tg_mlc.inputs.words import tokenize

Tensors = dict[str, Any]
TOLERANCE = 1e-5  #: The largest allowed difference of numbers in golden inputs.


def featurize(about: Mapping[str, Any], raw: Sequence[Any], given: Any = None) -> Tensors:
    """Returns the tensors of inputs by name.

    Args:
        about (dict): The contents of ``model.json`` and ``featurize.json`` together.
        raw (list): The inputs: rows (dictionaries by column, or lists), texts, SMILES or DNA.
        given (list, optional): Known labels of each input, 1 or 0 by name. (default: :obj:`None`)
    """
    first, *others = about["steps"]
    tensors = READERS[first["name"]](first["state"], raw, about)
    for step in others:
        tensors = STEPS[step["name"]](step["state"], tensors)
    for name, view in about.get("views", {}).items():
        tensors[name] = VIEWS[first["name"]](view["state"], tensors, name)
    if "x_is_view" in about and first["name"] == "Vectors":
        tensors["x"] = tensors[f"features_{about['x_is_view']}"]
    tensors["batch"] = np.repeat(np.arange(len(raw)), np.diff(tensors["ptr"]))
    tensors["given"] = np.full((len(raw), len(about["label_names"])), np.nan)
    for row, labels in enumerate(given or ()):
        for label, value in (labels or {}).items():
            tensors["given"][row, about["label_names"].index(label)] = value
    dtypes = {name: entry["dtype"] for name, entry in about["inputs"].items()}
    return {name: np.asarray(tensors[name], dtypes[name]) for name in dtypes if name in tensors}


def read_table(state: Mapping[str, Any], raw: Sequence[Any], about: Any) -> Tensors:
    """Reads rows by the schema of the training table, or as they are."""
    entries = (state.get("schema") or {}).get("columns")
    names = state["feature_names"]
    if entries is None and names is not None:
        entries = [{"name": name, "role": "number"} for name in names]
    entries = [entry for entry in entries or () if entry["role"] in ("number", "category")]
    if not isinstance(raw[0], Mapping):
        entries = [{"name": str(i), "role": "number"} for i in range(state["num_inputs"])]
        raw = [dict(zip([entry["name"] for entry in entries], row, strict=True)) for row in raw]
    rows = [{_folded(name): cell for name, cell in row.items()} for row in raw]
    blocks = []
    for entry in entries:
        name, key = entry["name"], _folded(entry["name"])
        if lacking := [row for row, cells in enumerate(rows) if key not in cells]:
            raise ValueError(f"Expected the column '{name}' in row {lacking[0]} (got none)")
        cells = single_cells(name, [row[key] for row in rows])
        if entry["role"] == "category":
            blocks.append(one_hot(name, entry["values"], cells))
        else:
            notation = PLAIN if entry.get("notation") is None else notation_of(entry["notation"])
            blocks.append(numbers_of(name, notation, cells)[:, None])
    return {"x": np.concatenate(blocks, axis=1).astype(np.float32), "ptr": _ptr([1] * len(raw))}


def _folded(name: Any) -> str:
    return " ".join(clean(str(name)).split()).casefold()


def read_words(state: Mapping[str, Any], raw: Sequence[Any], about: Any) -> Tensors:
    """Numbers the words of texts, of lists of words, or of rows with the weight of each word."""
    index_of = {word: index for index, word in enumerate(state["feature_names"] or ())}
    unknown, is_bag = index_of.get("<unk>", -1), state["kind"] == "bag"
    words, weights = [], []
    for entry in _cells(raw, about):
        document = tokenize(entry, state["tokenizer"]) if isinstance(entry, str) else list(entry)
        are_numbers = not any(isinstance(word, str) for word in document)
        if is_bag and are_numbers and len(document) == state["num_inputs"]:
            row = np.asarray(document, dtype=np.float32)
            words.append(np.flatnonzero(row))
            weights.append(row[words[-1]])
            continue
        if is_bag and state["values"] == "weights":
            raise ValueError("Expected a row with the weight of each word (got a text or words)")
        ids = document if are_numbers else [index_of.get(word, unknown) for word in document]
        if not is_bag and -1 in ids:
            raise ValueError("Expected words of the vocabulary, which has no '<unk>' for others")
        numbers = np.asarray(ids, dtype=np.int64)
        counts: np.ndarray = np.ones(len(numbers))
        if is_bag:
            numbers, counts = np.unique(numbers[numbers != unknown], return_counts=True)
            counts = counts if state["values"] != "presence" else np.ones(len(numbers))
        words.append(numbers)
        weights.append(counts.astype(np.float32))
    tensors = {"x": np.concatenate(words), "ptr": _ptr(map(len, words))}
    tensors["weight"], tensors["num_words"] = np.concatenate(weights), state["num_inputs"]
    return tensors


def read_dna(state: Mapping[str, Any], raw: Sequence[Any], about: Any) -> Tensors:
    """Returns the codes of letters."""
    codes = [letter_codes(text) for text in _cells(raw, about)]
    return {"x": np.concatenate(codes).astype(np.int64), "ptr": _ptr(map(len, codes))}


def read_molecules(state: Mapping[str, Any], raw: Sequence[Any], about: Any) -> Tensors:
    """Returns the graphs of molecules, and their vectors."""
    graphs, vectors = [], {key: list[Any]() for key in state["sizes"]}
    for text in _cells(raw, about):
        smiles, molecule = parse_canonical(text)
        graphs.append(_graph_of(molecule, about["atoms"], about["bonds"]))
        described: Any = find_molecule(smiles)
        for key, size in state["sizes"].items():
            is_table = key == "descriptors"
            values = descriptors_of(described) if is_table else fingerprint_of(described, key, size)
            if len(values) != size:
                hint = "install RDKit as in requirements.txt"
                raise ValueError(f"Expected {size} {key} (got {len(values)}); {hint}")
            vectors[key].append(values)
    atoms, edges, bonds = (list(parts) for parts in zip(*graphs, strict=True))
    ptr = _ptr(map(len, atoms))
    edges = [edge_index + start for edge_index, start in zip(edges, ptr, strict=False)]
    tensors = {"x": np.concatenate(atoms), "ptr": ptr, "edge_attr": np.concatenate(bonds)}
    tensors["edge_index"] = np.concatenate(edges, axis=1)
    return tensors | {key: np.stack(values) for key, values in vectors.items()}


def _graph_of(molecule: Any, atom_values: Any, bond_values: Any) -> tuple[Any, Any, Any]:
    """Returns atoms, edges and bonds with the categories of PyTorch Geometric."""
    atoms, edges, bonds = [], [], []
    for atom in molecule.GetAtoms():
        values = {
            "atomic_num": atom.GetAtomicNum(),
            "chirality": str(atom.GetChiralTag()),
            "degree": atom.GetTotalDegree(),
            "formal_charge": atom.GetFormalCharge(),
            "num_hs": atom.GetTotalNumHs(),
            "num_radical_electrons": atom.GetNumRadicalElectrons(),
            "hybridization": str(atom.GetHybridization()),
            "is_aromatic": atom.GetIsAromatic(),
            "is_in_ring": atom.IsInRing(),
        }
        atoms.append([atom_values[name].index(value) for name, value in values.items()])
    for bond in molecule.GetBonds():
        values = {
            "bond_type": str(bond.GetBondType()),
            "stereo": str(bond.GetStereo()),
            "is_conjugated": bond.GetIsConjugated(),
        }
        start, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        edges += [[start, end], [end, start]]
        bonds += [[bond_values[name].index(value) for name, value in values.items()]] * 2
    edge_index = np.array(edges, dtype=np.int64).reshape(-1, 2)
    order = np.lexsort((edge_index[:, 1], edge_index[:, 0]))
    bonds_of_edges = np.array(bonds, dtype=np.int64).reshape(-1, len(bond_values))
    return np.array(atoms, dtype=np.int64), edge_index[order].T, bonds_of_edges[order]


def read_vectors(state: Mapping[str, Any], raw: Sequence[Any], about: Any) -> Tensors:
    """Returns the vectors of matrices, one below the other."""
    matrices = [np.asarray(matrix, dtype=np.float32) for matrix in _cells(raw, about)]
    return {"x": np.concatenate(matrices), "ptr": _ptr(map(len, matrices))}


def scale(state: Mapping[str, Any], tensors: Tensors) -> Tensors:
    """Scales vectors for networks."""
    x = tensors["x"]
    if state["method"] == "standard" and np.isnan(x).any():
        raise ValueError("Expected rows without blanks, as in training (got some)")
    return {**tensors, "x": _scaled(state["scaler"], x)}


def _scaled(state: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
    arrays = {name: np.asarray(values, dtype=np.float32) for name, values in state.items()}
    if "mean" in arrays:
        return (x - arrays["mean"]) / (arrays["spread"] * np.float32(math.sqrt(x.shape[1])))
    quantiles = arrays["quantiles"]
    size = quantiles.shape[1]
    ranks = np.clip(np.arange(2 * size + 1) / 2, 0.5, size - 0.5) / size
    scores = np.array([*map(NormalDist().inv_cdf, ranks.tolist())], dtype=np.float32)
    scaled = np.zeros_like(x)
    for column, (values, varies) in enumerate(zip(quantiles, arrays["varies"], strict=True)):
        entries = x[:, column]
        if varies:
            rank = np.searchsorted(values, entries) + np.searchsorted(values, entries, "right")
            scaled[:, column] = np.where(np.isnan(entries), 0.0, scores[rank])
    return scaled


def weigh(state: Mapping[str, Any], tensors: Tensors) -> Tensors:
    """Weights words by TF-IDF; words outside all training documents are dropped."""
    idf, ptr = np.asarray(state["idf"], dtype=np.float64), tensors["ptr"]
    words, weights = [], []
    for start, end in pairwise(ptr):
        ids, position = np.unique(tensors["x"][start:end], return_inverse=True)
        values = np.bincount(position, tensors["weight"][start:end], len(ids)).astype(np.float32)
        if state["counts"]:
            values = np.log(values) + 1
        values = values * idf[ids]
        norm = math.sqrt(np.square(values).sum())
        is_kept = values != 0
        words.append(ids[is_kept])
        weights.append((values / (norm or 1.0))[is_kept])
    x, weight = np.concatenate(words), np.concatenate(weights).astype(np.float32)
    return {**tensors, "x": x, "weight": weight, "ptr": _ptr(map(len, words))}


def view_of_words(state: Any, tensors: Tensors, name: str) -> np.ndarray:
    """Returns the weights of words as a matrix."""
    matrix = np.zeros((len(tensors["ptr"]) - 1, tensors["num_words"]), dtype=np.float32)
    rows = np.repeat(np.arange(len(matrix)), np.diff(tensors["ptr"]))
    np.add.at(matrix, (rows, tensors["x"]), tensors["weight"])
    return matrix


def view_of_table(state: Any, tensors: Tensors, name: str) -> np.ndarray:
    """Returns vectors, scaled for classifiers; means of the training replace blanks."""
    x = tensors["x"]
    x = np.where(np.isnan(x), np.asarray(state["fill"], dtype=np.float32), x)
    scaled = _scaled(state["scaler"], x)
    is_quantile = "quantiles" in state["scaler"]
    return scaled / np.float32(math.sqrt(x.shape[1])) if is_quantile else scaled


def view_of_vectors(state: Any, tensors: Tensors, name: str) -> np.ndarray:
    """Returns the mean and the maximum of the vectors of each sample, scaled."""
    parts = np.split(tensors["x"], tensors["ptr"][1:-1])
    pooled = [np.concatenate([part.mean(axis=0), part.max(axis=0)]) for part in parts]
    return view_of_table(state, {"x": np.stack(pooled)}, name)


def view_of_dna(state: Any, tensors: Tensors, name: str) -> np.ndarray:
    """Returns the weights of k-mers as a matrix."""
    kmers = [kmer_numbers(part) for part in np.split(tensors["x"], tensors["ptr"][1:-1])]
    counts = {"x": np.concatenate(kmers), "ptr": _ptr(map(len, kmers))}
    counts["weight"] = np.ones(len(counts["x"]), dtype=np.float32)
    counts["num_words"] = sum(4**size for size in SIZES)
    return view_of_words(state, weigh(state, counts), name)


def view_of_molecules(state: Any, tensors: Tensors, name: str) -> np.ndarray:
    """Returns the vectors of molecules, scaled to one length, side by side."""
    parts = []
    for key, scaler in state.items():
        x = tensors[key]
        if "quantiles" in scaler:
            parts.append(_unit(_scaled(scaler, x)))
        else:
            parts.append(_unit(_unit(np.log1p(x)) * np.float32(0.5 * math.sqrt(x.shape[1]))))
    return np.concatenate(parts, axis=1) / np.float32(len(parts) ** 0.5)


def _unit(x: np.ndarray) -> np.ndarray:
    norm: np.ndarray = np.linalg.norm(x, axis=1, keepdims=True)
    unit: np.ndarray = x / np.maximum(norm, np.float32(1e-12))
    return unit


def _cells(raw: Sequence[Any], about: Mapping[str, Any]) -> list[Any]:
    """Returns the input of each row, which may be a dictionary with one column or more."""
    cells, wanted = [], {*map(_folded, about["columns"])}
    is_text = about["steps"][0]["name"] == "Words"
    for entry in raw:
        cell = entry
        if isinstance(entry, Mapping):
            names = [name for name in entry if _folded(name) in wanted] or list(entry)
            if len(names) != 1:
                raise ValueError(f"Expected rows with one column of inputs (got {names[:5]})")
            cell = entry[names[0]]
        cells.append("" if cell is None and is_text else cell)
    return cells


def _ptr(sizes: Any) -> np.ndarray:
    return np.cumsum([0, *sizes])


#: The readers of raw inputs, by kind; the steps after them; and the views of classifiers.
READERS: dict[str, Callable[..., Tensors]] = {
    "Vectors": read_table,
    "Words": read_words,
    "DNA": read_dna,
    "Molecules": read_molecules,
    "Inchi": read_molecules,
    "Embeddings": read_vectors,
}
STEPS: dict[str, Callable[..., Tensors]] = {"Scale": scale, "TfIdf": weigh}
VIEWS: dict[str, Callable[..., np.ndarray]] = {
    "Vectors": view_of_table,
    "Words": view_of_words,
    "DNA": view_of_dna,
    "Molecules": view_of_molecules,
    "Inchi": view_of_molecules,
    "Embeddings": view_of_vectors,
}


def why_not(about: Mapping[str, Any]) -> str | None:
    """Returns why the tensors of a model cannot be made here; :obj:`None` if they can."""
    names = [step["name"] for step in about["steps"]]
    if not names:
        return "the model takes samples, not raw inputs"
    if names[0] not in READERS or not STEPS.keys() >= {*names[1:]}:
        return f"its preprocessors {names} need this package"
    if about["steps"][0]["state"].get("tokenizer", "words") not in ("words", "letters"):
        return "its texts were split by a custom tokenizer"
    return None


def compare(tensors: Mapping[str, Any], golden: Mapping[str, Any]) -> float:
    """Returns the largest difference of tensors from golden ones. Raises ValueError if it is more
    than :obj:`TOLERANCE`, relative to numbers above 1.
    """
    largest = 0.0
    for name, values in tensors.items():
        if name == "given":  # Golden inputs have given labels beside the raw inputs.
            continue
        expected = np.array(golden[name], dtype=float)
        if values.size == expected.size == 0:  # Lists of lists do not hold such a shape.
            continue
        if values.shape != expected.shape:
            got = f"{values.shape} instead of {expected.shape}"
            raise ValueError(f"Expected tensors '{name}' as in golden.json (got {got})")
        differences = np.abs(values - expected) / np.maximum(1, np.abs(expected))
        error = float(np.nan_to_num(differences[~np.isnan(expected)]).max(initial=0.0))
        if error > TOLERANCE or (np.isnan(values) != np.isnan(expected)).any():
            raise ValueError(f"Expected tensors '{name}' as in golden.json (got {error:g} apart)")
        largest = max(largest, error)
    return largest


def read_inputs(path: Path, delimiter: str) -> Any:
    """Reads a list of inputs in JSON, or the rows of a table of text with a header."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        is_json = path.suffix == ".json"
        return json.load(file) if is_json else [*csv.DictReader(file, delimiter=delimiter)]


def main() -> None:
    """Compares golden inputs, or writes the tensors of a file of inputs."""
    parser = argparse.ArgumentParser(description="Turns raw inputs into the program's tensors.")
    parser.add_argument("inputs", nargs="?", type=Path, help="table of text, or list in .json")
    parser.add_argument("out", nargs="?", type=Path, help="the file of tensors, .npz")
    parser.add_argument("--delimiter", default=",", help="between the cells of the table")
    parser.add_argument("--check", action="store_true", help="compare the golden inputs")
    options = parser.parse_args()
    folder = Path(__file__).parent
    names = ("model", "featurize", "golden")
    model, learned, golden = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in names
    )
    about = {**model, **learned}
    if options.check:
        apart = compare(featurize(about, golden["raw"]), golden["inputs"])
        print(f"the same tensors, to {apart:.2g}")  # noqa: T201
    elif options.inputs is None or options.out is None:
        parser.error("pass a file of inputs and a file of tensors, or --check")
    else:
        np.savez(options.out, **featurize(about, read_inputs(options.inputs, options.delimiter)))


if __name__ == "__main__":
    main()
