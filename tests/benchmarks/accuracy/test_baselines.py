from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader

from benchmarks.accuracy import baselines
from benchmarks.accuracy.baselines import PooledGNN
from benchmarks.accuracy.runs import Task
from tg_mlc.data import Split
from tg_mlc.inputs import Chain
from tg_mlc.papers.recipes import RECIPES


class Few(list[SimpleNamespace]):
    """Five samples with one label."""

    def __init__(self, **attributes):
        x = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
        super().__init__(SimpleNamespace(x=x) for _ in range(5))
        self.y = torch.zeros(5, 1)
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("name", "dataset", "suffix", "num_classifiers"),
    [
        ("binding-sites", Few(), " on words of DNA", 2),
        ("planted-50", Few(), " on all components", 2),
        ("sider", Few(smiles=["C", "CC", "CO", "N", "O"]), " on fingerprints", 2),
        ("bibtex", Few(preprocessor=Chain(SimpleNamespace(classifiers={}))), "", 1),
    ],
)
def test_linear_rows_minimise_the_loss_of_their_name(
    name, dataset, suffix, num_classifiers, monkeypatch
):
    def fit(x, y, split, loss="hinge"):
        raise RuntimeError(f"{loss} loss on {x.shape}")

    monkeypatch.setattr(baselines, "tuned_linear", fit)
    monkeypatch.setattr(baselines, "inputs_of", lambda dataset: np.zeros((5, 8)))
    split = Split(torch.arange(3), torch.tensor([3]), torch.tensor([4]), "official")
    losses = {f"linear SVM{suffix}": "hinge", f"logistic regression{suffix}": "logistic"}
    losses = {f"{row}, tuned": losses[row] for row in list(losses)[-num_classifiers:]}
    pairs = baselines._rows(Task(name, dataset), split, 0, {})
    rows = dict(islice(pairs, 1 + num_classifiers))
    assert list(rows) == ["label frequency", *losses]
    for row in losses:
        with pytest.raises(RuntimeError, match=rf"{losses[row]} loss on \(5, "):
            rows[row]()


@pytest.mark.usefixtures("few_molecules")
def test_the_network_on_atoms_returns_logits(tmp_path):
    molecules = RECIPES["nci"].load_dataset(tmp_path)
    batch = next(iter(DataLoader(molecules[:4], batch_size=4)))
    assert PooledGNN(molecules.num_labels)(batch).shape == (4, 52)
