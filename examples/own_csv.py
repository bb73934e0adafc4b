"""Your own file: python examples/own_csv.py drugs.csv smiles liver,skin

The second argument names the column of SMILES, the third the columns of labels. Without arguments
the script writes a small file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tg_mlc
from tg_mlc.data import MoleculeDataset, random_split


def main(path: str | None = None, smiles: str = "smiles", labels: str = "liver,skin") -> None:
    """Trains on a file, evaluates the model, saves it, and predicts."""
    drugs = MoleculeDataset.from_csv(path or write_example(), smiles, labels.split(","))
    split = random_split(len(drugs), (0.8, 0.0, 0.2), seed=0)

    model = tg_mlc.auto(drugs[split.train], seconds=30)
    print(model.evaluate(drugs[split.test]))

    model.save("model")
    print(tg_mlc.load("model").predict(["CCO", "CCCCl"])["probability"])


def write_example() -> str:
    """A file to try: molecules that end in one of four groups."""
    ends = ("O", "N", "C(=O)O", "Cl")
    rows = [f"{'C' * (1 + i % 9)}{ends[i % 4]},{int(i % 4 in (0, 2))},{i % 2}" for i in range(80)]
    Path("drugs.csv").write_text("\n".join(["smiles,liver,skin", *rows]))
    return "drugs.csv"


if __name__ == "__main__":
    main(*sys.argv[1:])
