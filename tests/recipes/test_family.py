from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch

from tg_mlc.data import ArrayDataset, Split
from tg_mlc.data.records import Records
from tg_mlc.recipes import RECIPES
from tg_mlc.recipes.family import FAMILY

rng = np.random.default_rng(0)
WORDS = (rng.random((40, 12)) < 0.4).astype(np.float32)
Y = (WORDS @ rng.standard_normal((12, 4)) > 0.3).astype(np.float32)
SPLIT = Split(torch.arange(24), torch.arange(24, 32), torch.arange(32, 40), "by hand")


@pytest.fixture
def dataset():
    return ArrayDataset(Records(sp.csr_array(WORDS), Y, list("abcd")).to_samples())


@pytest.mark.parametrize("name", FAMILY)
def test_members_train_on_the_inputs_of_a_recipe(name, dataset, tmp_path):
    recipe = RECIPES["bibtex"].as_member(FAMILY[name])
    prepared = recipe.prepare(dataset, SPLIT, tmp_path)
    graph = recipe.label_graph("pr", prepared, SPLIT)
    options = {"model_options": {"channels": 8}, "max_epochs": 1, "logger": False}
    result, _ = recipe.train(prepared, SPLIT, graph, tmp_path / "run", **options)
    scores = result.module.eval().predict_step(Batch.from_data_list(prepared[SPLIT.test]))
    assert scores.shape == (8, 4)
    assert scores.isfinite().all()
