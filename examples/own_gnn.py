"""Label message passing in a GNN of your own: python examples/own_gnn.py"""

from __future__ import annotations

import torch
from rdkit import Chem, RDConfig
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv, Linear
from torch_geometric.utils import from_smiles

import tg_mlc
from tg_mlc import LabelHead, LabelMessagePassing
from tg_mlc.graphs import fully_connected

GROUPS = {
    "acid": "C(=O)[OH]",
    "amine": "[NX3;H2]",
    "halogen": "[F,Cl,Br,I]",
    "nitro": "[N+](=O)[O-]",
}


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
        return self.readout(self.labels(x, data.batch))


def main(num_molecules: int = 500, epochs: int = 10) -> None:
    """Trains on molecules that come with RDKit and the groups that they contain, and saves the network."""
    patterns = [Chem.MolFromSmarts(smarts) for smarts in GROUPS.values()]
    samples = []
    with open(f"{RDConfig.RDDataDir}/NCI/first_5K.smi") as file:  # noqa: PTH123
        for smiles in (
            line.split()[0] for _, line in zip(range(num_molecules), file, strict=False)
        ):
            if (molecule := Chem.MolFromSmiles(smiles)) is not None:
                samples.append(from_smiles(smiles))
                samples[-1].y = torch.tensor(
                    [float(molecule.HasSubstructMatch(each)) for each in patterns]
                )

    names = list(GROUPS)
    net = Net(num_labels=len(names))
    model = tg_mlc.fit(
        net, samples, "runs/gnn", val=0.1, test=0.2, label_names=names, max_epochs=epochs
    )
    print(model.training.evaluate())
    model.save("gnn")
    print(tg_mlc.load("gnn", Net).predict([from_smiles("NCC(=O)O")])["probability"])


if __name__ == "__main__":
    main()
