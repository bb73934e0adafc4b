from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch_geometric.loader import DataLoader

from tg_mlc import papers
from tg_mlc.data import from_arrays
from tg_mlc.graphs import fully_connected
from tg_mlc.models import builder, table_lamp
from tg_mlc.models.builders import Blueprint, blueprint_of, describe_samples

rng = np.random.default_rng(0)
Y = rng.random((30, 3)) < 0.5
INPUTS = {
    "bag": from_arrays(rng.random((30, 6)) * (rng.random((30, 6)) < 0.7), Y, kind="bag"),
    "vector": from_arrays(rng.random((30, 6)), Y, kind="vector"),
    "sequence": from_arrays([["a", "b", "a"], ["c"]] * 15, Y, kind="sequence"),
}
NAMES = ("binary_relevance", "energy_network", "gaml", "graph2graph", "mped", "pooled_mlp")
BUILDERS = [table_lamp, *(getattr(papers, name) for name in NAMES)]


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("kind", INPUTS)
def test_a_model_is_built_again_without_samples(build, kind):
    dataset = INPUTS[kind]
    model = build(dataset, fully_connected(3), channels=8).eval()
    blueprint = blueprint_of(model)
    assert blueprint.builder == build.__name__
    assert blueprint.options == {"channels": 8}
    rebuilt = blueprint.build(fully_connected(3)).eval()
    rebuilt.load_state_dict(model.state_dict())
    assert blueprint_of(rebuilt) == blueprint
    batch = next(iter(DataLoader(dataset, 30)))
    assert_close(rebuilt(batch), model(batch), rtol=0, atol=0)


def test_a_model_of_sequences_of_labels_is_built_again():
    model = papers.mped_autoregressive(INPUTS["bag"], None, False, channels=8)
    blueprint = blueprint_of(model)
    assert blueprint.options == {"node_messages": False, "channels": 8}
    rebuilt = blueprint.build(None)
    rebuilt.load_state_dict(model.state_dict())
    batch = next(iter(DataLoader(INPUTS["bag"], 30)))
    expected = model.eval().search(batch)
    assert_close(rebuilt.eval().search(batch), expected, rtol=0, atol=0)
    without_graph = papers.mped_autoregressive(INPUTS["bag"], channels=8)
    assert blueprint_of(without_graph).options == {"channels": 8}


def test_skipped_words_and_numbers_of_numpy_are_stored():
    options = {"channels": 8, "min_df": 20, "frequency_strength": np.float64(0.5)}
    model = table_lamp(INPUTS["bag"], fully_connected(3), **options).eval()
    assert type(blueprint_of(model).options["frequency_strength"]) is float
    rebuilt = blueprint_of(model).build(fully_connected(3))
    rebuilt.load_state_dict(model.state_dict())
    assert_close(rebuilt.encoder.kept, model.encoder.kept)


def test_samples_are_described_by_sizes_alone():
    sizes = {"x": [1, 6], "y": [1, 3]}
    attributes = {name: {"shape": size, "dtype": "float32"} for name, size in sizes.items()}
    expected = {"kind": "vector", "num_inputs": 6, "attributes": attributes}
    assert describe_samples(INPUTS["vector"]) == expected


def test_names_of_builders_are_unique_and_known():
    def table_lamp(train, label_graph):
        return SimpleNamespace()

    with pytest.raises(ValueError, match=r"Expected 'tests.*' to have a name of its own"):
        builder(table_lamp)
    with pytest.raises(ValueError, match=r"Expected a builder among .* \(got 'system'\)"):
        Blueprint("system", {}, describe_samples(INPUTS["bag"])).build(None)


def test_a_network_may_inherit_its_constructor():
    class Net(torch.nn.Module):
        def __init__(self, hidden):
            super().__init__()
            self.linear = torch.nn.Linear(3, hidden)

    @builder
    class Other(Net):
        pass

    assert Other(hidden=4).linear.out_features == 4
