"""Label message passing in a GNN of your own: python examples/own_gnn.py"""

from __future__ import annotations

from itertools import islice

import torch
from rdkit import Chem, RDConfig
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv, Linear
from torch_geometric.utils import from_smiles

import tg_mlc
from tg_mlc import LabelHead, LabelMessagePassing
from tg_mlc.graphs import fully_connected

GROUPS = {"acid": "C(=O)[OH]", "amine": "[NX3;H2]", "halogen": "[F,Cl,Br,I]"}
GROUPS["nitro"] = "[N+](=O)[O-]"


class Net(torch.nn.Module):
    """Two layers of messages among atoms, then labels that attend to atoms and to each other."""

    def __init__(self, num_labels: int) -> None:
        super().__init__()
        self.atoms, self.bonds = Linear(9, 64), Linear(3, 64)
        self.conv1 = GINEConv(torch.nn.Sequential(Linear(64, 64), torch.nn.ReLU(), Linear(64, 64)))
        self.conv2 = GINEConv(torch.nn.Sequential(Linear(64, 64), torch.nn.ReLU(), Linear(64, 64)))
        self.labels = LabelMessagePassing(64, fully_connected(num_labels), num_steps=2, heads=4)
        self.readout = LabelHead(self.labels)

    def forward(self, data: Data) -> torch.Tensor:
        """Logits ``[B, L]``."""
        x, bonds = self.atoms(data.x.float()), self.bonds(data.edge_attr.float())
        x = self.conv1(x, data.edge_index, bonds).relu()
        x = self.conv2(x, data.edge_index, bonds).relu()
        return self.readout(self.labels(x, ptr=data.ptr))


def main(num_molecules: int = 500, epochs: int = 10) -> None:
    """Trains on RDKit's molecules and the groups that they contain, and saves the network."""
    patterns = [Chem.MolFromSmarts(smarts) for smarts in GROUPS.values()]
    samples = []
    with open(f"{RDConfig.RDDataDir}/NCI/first_5K.smi") as file:  # noqa: PTH123
        for smiles in (line.split()[0] for line in islice(file, num_molecules)):
            if (molecule := Chem.MolFromSmiles(smiles)) is not None:
                targets = [float(molecule.HasSubstructMatch(pattern)) for pattern in patterns]
                samples.append(from_smiles(smiles))
                samples[-1].y = torch.tensor(targets)

    options = {"label_names": list(GROUPS), "max_epochs": epochs}
    model = tg_mlc.fit(Net(len(GROUPS)), samples, "runs/gnn", val=0.1, test=0.2, **options)
    print(model.training.evaluate())
    model.save("gnn")
    print(tg_mlc.load("gnn", Net).predict([from_smiles("NCC(=O)O")])["probability"])


if __name__ == "__main__":
    main()
