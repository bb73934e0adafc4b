from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from tg_mlc.nn.encoders import MoleculeEncoder

pytest.importorskip("rdkit", reason="molecules need RDKit")


def test_molecules() -> None:
    from torch_geometric.utils import from_smiles

    encoder = MoleculeEncoder(8)
    assert (encoder.channels, encoder.edge_dim) == (8, 8)
    data = [from_smiles(smiles) for smiles in ("CCO", "C", "[Na+].[Cl-]")]
    batch = Batch.from_data_list(data)
    x, ptr, edge_index, edge_attr, _ = encoder(batch)
    assert x.size() == (6, 8)
    assert ptr.tolist() == [0, 3, 4, 6]
    assert edge_index is batch.edge_index
    assert edge_attr is not None
    assert edge_attr.size() == (4, 8)
    torch.testing.assert_close(encoder(data[0]).x, x[:3])
    assert encoder(data[1]).ptr.tolist() == [0, 1]
