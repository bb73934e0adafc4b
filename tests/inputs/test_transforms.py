from __future__ import annotations

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Descriptors, MACCSkeys, rdFingerprintGenerator
from torch_geometric.data import Data

from tg_mlc.inputs import Fingerprint, MoleculeDescriptors

SMILES = "CC(=O)Nc1ccc(O)cc1"
GENERATORS = {
    "morgan": rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=512),
    "atom_pair": rdFingerprintGenerator.GetAtomPairGenerator(fpSize=512),
    "torsion": rdFingerprintGenerator.GetTopologicalTorsionGenerator(fpSize=512),
}


@pytest.mark.parametrize("kind", GENERATORS)
def test_counts(kind: str) -> None:
    data = Fingerprint(kind, num_bits=512)(Data(smiles=SMILES))
    expected = GENERATORS[kind].GetCountFingerprintAsNumPy(Chem.MolFromSmiles(SMILES))
    assert data[kind].dtype == torch.float
    np.testing.assert_array_equal(data[kind][0].numpy(), expected)
    assert data[kind].max() > 1


def test_maccs_keys() -> None:
    data = Fingerprint("maccs")(Data(smiles=SMILES))
    assert data.maccs.shape == (1, 167)
    assert data.maccs[0].nonzero().flatten().tolist() == list(
        MACCSkeys.GenMACCSKeys(Chem.MolFromSmiles(SMILES)).GetOnBits()
    )


def test_descriptors_are_those_of_rdkit_without_the_slow_two() -> None:
    transform = MoleculeDescriptors()
    data = transform(Data(smiles=SMILES))
    assert data.descriptors.shape == (1, transform.num_descriptors)
    by_name = Descriptors.CalcMolDescriptors(Chem.MolFromSmiles(SMILES))
    expected = [value for name, value in by_name.items() if name not in ("Ipc", "AvgIpc")]
    torch.testing.assert_close(data.descriptors, torch.tensor([expected], dtype=torch.float))


def test_a_descriptor_that_rdkit_cannot_compute_is_nan_and_none_is_infinite() -> None:
    data = MoleculeDescriptors()(Data(smiles="[Na+]"))
    assert data.descriptors.isnan().any()
    assert not data.descriptors.isinf().any()


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"'kind' to be one of .* \(got 'ecfp'\)"):
        Fingerprint("ecfp")
    with pytest.raises(ValueError, match=r"'data.smiles' to be a valid SMILES \(got 'nonsense'\)"):
        Fingerprint("morgan")(Data(smiles="nonsense"))


def test_repr() -> None:
    assert repr(Fingerprint("torsion", num_bits=16)) == "Fingerprint('torsion', num_bits=16)"
