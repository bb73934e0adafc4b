from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch

from tests.models.samples import molecules
from tests.papers.recipes.conftest import FEW
from tg_mlc.data import ArrayDataset, Split
from tg_mlc.data.records import Records
from tg_mlc.data.samples import Samples
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY, RIVALS
from tg_mlc.training import MultiLabelModule

SPLIT = Split(torch.arange(160), torch.arange(160, 200), torch.arange(200, 240), "by hand")


def words():
    """Returns bags of words in which each label equals the presence of one word."""
    x = (np.random.default_rng(0).random((240, 16)) < 0.4).astype(np.float32)
    y = x[:, :3].copy()
    y[:20, 0] = np.nan
    return ArrayDataset(Records(sp.csr_array(x), y, list("abc")).to_samples())


def atoms():
    """Returns molecules; labels apply if most atoms are aromatic, or in a ring."""
    samples = molecules(240, largest=12)
    for sample in samples:
        sample.y = (sample.x[:, 7:9].float().mean(dim=0, keepdim=True) > 0.5).float()
    return ArrayDataset(Samples.collate(samples, list("ab"), None))


@pytest.mark.parametrize(
    ("name", "data", "node_messages", "member"),
    [
        *(("bibtex", words, False, member) for member in RIVALS),
        ("sider", atoms, True, "mp-br"),
        *(
            pytest.param("sider", atoms, True, member, marks=pytest.mark.slow)
            for member in RIVALS
            if member != "mp-br"
        ),
    ],
)
def test_rivals_learn_by_any_recipe(member, name, data, node_messages, tmp_path):
    recipe = replace(RECIPES[name].as_member(FAMILY[member]), batch_size=16)
    recipe = replace(recipe, data=replace(recipe.data, preprocess=False))
    recipe.module["lr"] = max(recipe.module["lr"], 2e-2)
    options = {} if recipe.model.get("channels", 16) is None else {"channels": 16}
    dataset = data()
    graph = recipe.label_graph("edgeless", dataset, SPLIT)
    settings = {"node_messages": node_messages, "model_options": options, "logger": False}
    settings["max_epochs"] = 8 if member == "emb-mlp" else 5
    result, loaders = recipe.train(dataset, SPLIT, graph, tmp_path, **settings)
    scores = result.scores(loaders.test_dataloader())
    assert macro_roc_auc(dataset.y[SPLIT.test], scores) > 0.7


def test_graph2mlp_has_one_layer_more():
    changes = [FAMILY[name].changes["model"] for name in ("mp-br", "graph2mlp")]
    assert [change.get("num_feature_layers", 2) for change in changes] == [2, 3]


@pytest.mark.parametrize("name", FAMILY)
def test_members_train_on_the_inputs_of_a_recipe(name, dataset, tmp_path):
    recipe = RECIPES["bibtex"].as_member(FAMILY[name])
    prepared = recipe.prepare(dataset, FEW)
    graph = recipe.label_graph("prior", prepared, FEW)
    options = {"model_options": {"channels": 8}, "max_epochs": 1, "logger": False}
    result, _ = recipe.train(prepared, FEW, graph, tmp_path / "run", **options)
    scores = result.module.eval().predict_step(Batch.from_data_list(prepared[FEW.test]))
    assert scores.shape == (8, 4)
    assert scores.isfinite().all()


@pytest.mark.parametrize("name", FAMILY)
def test_members_take_known_labels(name, dataset):
    recipe = RECIPES["bibtex"].as_member(FAMILY[name])
    prepared = recipe.prepare(dataset, FEW)
    options = {**recipe.model, "channels": None if name == "linear-br" else 8, "given_labels": True}
    graph = recipe.label_graph("complete", prepared, FEW)
    model = recipe.build(prepared[FEW.train], graph, node_messages=False, **options)
    objective = recipe.objective_class(**{**recipe.objective, "max_given": 0.5})
    module = MultiLabelModule(model, dataset.label_names, objective)
    batch = Batch.from_data_list(prepared[FEW.test])
    module.objective.loss(model, module.objective.training_batch(batch)).backward()
    batch.given = torch.where(torch.arange(4) == 2, batch.y, torch.nan)
    scores = module.eval().predict_step(batch)
    assert torch.equal(scores[:, 2], batch.y[:, 2])
    assert scores.isfinite().all()
