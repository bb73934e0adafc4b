import numpy as np
import pytest

from tg_mlc.data import MoleculeDataset, from_arrays
from tg_mlc.inputs.distinct import distinct_inputs


def test_equal_inputs_have_one_index_whatever_their_labels():
    x = np.array([[1.0, 2], [3, 4], [1, 2], [1, 5]])
    y = np.array([[0.0, 1], [1, 1], [1, 1], [0, 0]])
    dataset = from_arrays(x, y, label_names=["a", "b"], kind="vector")
    assert distinct_inputs(dataset).tolist() == [0, 1, 0, 2]
    assert distinct_inputs(dataset[[2, 3, 0]]).tolist() == [0, 1, 0]
    documents = [["red", "wine"], ["wine"], ["wine", "red"]]
    words = from_arrays(documents, y[:3], label_names=["a", "b"], kind="bag")
    assert distinct_inputs(words).tolist() == [0, 1, 0]


def test_spellings_of_a_molecule_are_equal_inputs():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCN", "OCC", "C(O)C"]
    molecules = MoleculeDataset.from_smiles(smiles, np.eye(4, 2), ["a", "b"])
    assert distinct_inputs(molecules).tolist() == [0, 1, 0, 0]
    assert distinct_inputs(molecules[[1, 3, 2]]).tolist() == [0, 1, 1]
