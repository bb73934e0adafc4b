import json

import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch

from benchmarks.accuracy import learning_curve
from benchmarks.accuracy.learning_curve import DEFAULT, POOLED, RELEASED, TIED, contenders
from benchmarks.report.learning_curves import draw, section
from tests.papers.recipes.conftest import WORDS, Y
from tg_mlc.data import ArrayDataset
from tg_mlc.data.records import Records


@pytest.fixture
def bags():
    return ArrayDataset(Records(sp.csr_array(WORDS), Y, list("abcd")).to_samples())


def test_all_models_of_words_take_the_same_batches(bags):
    models = {name: make() for name, make in contenders(bags, channels=16).items()}
    assert list(models) == [DEFAULT, TIED, RELEASED]
    batch = Batch.from_data_list(list(bags[:5]))
    assert all(model(batch).shape == (5, 4) for model in models.values())
    assert models[TIED].readout.weight is models[TIED].labels.embedding.weight
    # Padding does not change logits.
    alone = Batch.from_data_list([bags[0]])
    released = models[RELEASED].eval()
    torch.testing.assert_close(released(batch)[:1], released(alone))


@pytest.mark.usefixtures("few_molecules")
def test_losses_decrease_and_curves_are_drawn(own_runs, tmp_path):
    learning_curve.main(dataset="nci", epochs=3, seeds=1, root=tmp_path)
    result = json.loads((own_runs / "learning_curve-nci.json").read_text())
    points = {(point["model"], point["epoch"]): point for point in result["runs"]}
    assert {model for model, _ in points} == {DEFAULT, TIED, POOLED}
    for model in (DEFAULT, POOLED):
        assert points[model, 3]["loss"] < points[model, 1]["loss"]
        assert points[model, 3]["seconds"] > points[model, 1]["seconds"] > 0
    assert draw(result).axes[0].get_legend_handles_labels()[1] == [DEFAULT, TIED, POOLED]
    lines = section(result)
    assert "| epoch 1 | epoch 2 |" in lines[0]
    assert sum(line.startswith(f"| {DEFAULT} | ") for line in lines) == 2
    assert f"| {points[DEFAULT, 2]['validation']['average_precision_macro']:.3f} |" in lines[2]
    assert "batches of 32" in lines[-2]
