"""Draws random molecules with the features of PyG's from_smiles, but without RDKit."""

from __future__ import annotations

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils.smiles import e_map, x_map


def molecule(num_atoms: int, seed: int) -> Data:
    """Returns a tree of atoms with bonds in both directions. A single atom has no bond."""
    generator = torch.Generator().manual_seed(seed)

    def draw(maps: dict[str, list[object]], num_rows: int) -> torch.Tensor:
        columns = [
            torch.randint(len(values), (num_rows,), generator=generator) for values in maps.values()
        ]
        return torch.stack(columns, dim=1)

    child = torch.arange(1, num_atoms)
    parent = (torch.rand(num_atoms - 1, generator=generator) * child).long()
    bonds = draw(e_map, num_atoms - 1)
    return Data(
        x=draw(x_map, num_atoms),
        edge_index=torch.stack([torch.cat([parent, child]), torch.cat([child, parent])]),
        edge_attr=bonds.repeat(2, 1),
        num_nodes=num_atoms,
    )


def molecules(num_samples: int, seed: int = 0, largest: int = 30) -> list[Data]:
    """Returns random molecules, the first of which is a single atom."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, largest + 1, (num_samples,), generator=generator).tolist()
    return [molecule(size, seed + i) for i, size in enumerate([1, *sizes[1:]])]


def batch(num_samples: int, seed: int = 0) -> Batch:
    return Batch.from_data_list(molecules(num_samples, seed))
