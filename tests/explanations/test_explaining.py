from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from scipy.special import expit, logit
from torch.nn.functional import binary_cross_entropy_with_logits
from torch_geometric.data import Batch, Data
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import global_add_pool, global_mean_pool

import tg_mlc
from tests.explanations.networks import NAMES, Net
from tests.explanations.node_networks import NodeNet, ego_graphs
from tests.inference.test_stage import Shift
from tests.models.samples import molecules
from tests.saved import TEXTS
from tg_mlc.data import from_arrays, random_split
from tg_mlc.datasets import Planted
from tg_mlc.explanations import network as network_module
from tg_mlc.explanations.methods import METHODS, Chunk, Method, group_occlusion
from tg_mlc.explanations.network import NetworkProbe
from tg_mlc.explanations.question import Question, as_plain
from tg_mlc.graphs import LabelGraph, fully_connected, tree
from tg_mlc.inference import Model, networks
from tg_mlc.inference.batches import batches_of
from tg_mlc.inference.decisions import Coherence
from tg_mlc.inputs import Vectors
from tg_mlc.inputs.smiles import molecule_from_smiles
from tg_mlc.models import LaMP, node_lamp, table_lamp
from tg_mlc.nn.encoders import BagEncoder
from tg_mlc.ops.patterns import to_list
from tg_mlc.stacking.given import GivenLabelStacking

#: Inputs of the models that ``saved`` makes.
RAW = {
    "texts": TEXTS[:2],
    "dna": ["ACGTACGTAC", "TTTTACGTTT"],
    "molecules": ["CCO", "CC(=O)O"],
    "network": ["CCO", "CC(=O)O"],
}


@pytest.fixture(scope="module")
def network() -> Net:
    torch.manual_seed(0)
    return Net()


@pytest.fixture(scope="module")
def samples() -> list[Data]:
    return molecules(4, seed=1, largest=8)[1:]


@pytest.fixture(scope="module")
def explained(network, samples):
    return tg_mlc.explain(network, samples)


def test_a_batch_equals_its_samples(network, samples, explained):
    assert {*explained.methods, "group occlusion"} == {*METHODS}
    [alone] = tg_mlc.explain(network, samples[1:2])
    for method, scores in alone.scores.items():
        np.testing.assert_allclose(explained[1].scores[method], scores, atol=1e-5)
    np.testing.assert_allclose(explained[1].label_effects, alone.label_effects, atol=1e-5)


def test_integrated_gradients_sum_to_the_difference_of_logits(network, samples, explained):
    batch, probe = Batch.from_data_list(samples), NetworkProbe(network)
    with torch.no_grad():
        difference = probe.logits(batch) - probe.logits(batch, torch.zeros_like)
    sums = [sample.scores["integrated gradients"].sum(axis=0) for sample in explained]
    np.testing.assert_allclose(sums, difference, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("std", [0.7, pytest.param(2.0, marks=pytest.mark.slow)])
def test_integrated_gradients_add_points_until_they_sum_or_warn(samples, monkeypatch, std):
    torch.manual_seed(0)
    network = Net()
    torch.nn.init.normal_(network.conv.nn[0].weight, std=std)
    batch, probe = Batch.from_data_list(samples[:1]), NetworkProbe(network)
    monkeypatch.setattr(network_module, "NUM_POINTS", 1)
    scores, _, difference = probe.integrated(batch, [0, 1, 2])
    torch.testing.assert_close(scores.sum(dim=0)[None], difference, rtol=0.01, atol=0.01)
    monkeypatch.setattr(network_module, "MAX_POINTS", 1)
    with pytest.warns(UserWarning, match="after 1 points"):
        probe.integrated(batch, [0, 1, 2])


def test_effects_of_labels_are_changes_of_logits_when_edges_are_cut(network, samples):
    [sample] = tg_mlc.explain(network, samples[:1], method="attention")
    graph = network.labels.label_graph
    source, target = graph.edge_index
    batch = Batch.from_data_list(samples[:1])
    with torch.no_grad():
        whole = network.eval()(batch)
        other_edges = graph.edge_index[:, (source != 1) | (target == 1)]
        network.labels.label_graph = LabelGraph(other_edges, label_names=NAMES)
        cut = network(batch)
        network.labels.label_graph = graph
    np.testing.assert_allclose(sample.label_effects[1], (whole - cut)[0], atol=1e-5)
    assert np.abs(sample.label_effects[1, [0, 2]]).min() > 0


def test_an_explanation_can_be_saved_and_loaded(network, samples, tmp_path):
    explanation = tg_mlc.explain(network, samples, ["b", "a"], "attention", y=np.eye(3))
    loaded = tg_mlc.explanations.Explanation.load(explanation.save(tmp_path / "why"))
    assert loaded.labels == ["b", "a"]
    assert loaded.to_frame().equals(explanation.to_frame())
    assert loaded[0].truth.tolist() == [0.0, 1.0]


class Pooled(torch.nn.Module):
    """A GNN without label messages."""

    def __init__(self):
        super().__init__()
        self.layer, self.readout = torch.nn.Linear(9, 4), torch.nn.Linear(4, 3)

    def forward(self, data):
        x = self.layer(data.x / 10).relu()
        return self.readout(global_mean_pool(x, data.batch, data.num_graphs))


def test_gradients_of_a_pooled_layer_are_class_activation(samples):
    torch.manual_seed(0)
    network, method = Pooled(), "integrated gradients"
    [sample] = tg_mlc.explain(network, samples[:1], method=method, at="layer", label_names=NAMES)
    states = network.layer(samples[0].x / 10).relu()
    expected = (states @ network.readout.weight.T / len(states)).detach()
    np.testing.assert_allclose(sample.scores[method], expected, atol=1e-6)


def test_a_network_without_messages_is_explained_by_occlusion(samples):
    explanation = tg_mlc.explain(Pooled(), samples, label_names=NAMES)
    assert explanation.methods == ["occlusion"]
    assert explanation.state_names == []
    assert explanation[0].label_effects.shape == (0, 3)


def test_a_given_label_changes_the_logits_of_other_labels(saved):
    """The effect of a given label is the difference of logits with and without this label."""
    model, raw = tg_mlc.load(saved("given")), np.random.default_rng(1).normal(size=(1, 4))
    [sample] = tg_mlc.explain(model, raw, method="occlusion")
    name = model.label_names[1]
    free, clamped = (logit(model.probabilities(raw, given=given)) for given in (None, {name: 1}))
    np.testing.assert_allclose(sample.clamped[1, 1, [0, 2]], (clamped - free)[0, [0, 2]], atol=1e-3)
    assert np.isnan(sample.clamped[1, :, 1]).all()


class Bypassed(Net):
    """A network whose logits are also read out of the pooled nodes."""

    def __init__(self):
        super().__init__()
        self.path = torch.nn.Linear(8, 3)

    def forward(self, data):
        x = self.conv(self.atoms(data.x / 10), data.edge_index, self.bonds(data.edge_attr.float()))
        return self.readout(self.labels(x, data.batch)) + self.path(global_mean_pool(x, data.batch))


def test_a_path_that_bypasses_labels_is_a_part_of_the_logits(samples):
    torch.manual_seed(0)
    network = Bypassed().eval()
    [sample] = explained = tg_mlc.explain(network, samples[:1])
    methods = [name for name in explained.methods if not name.endswith(" of messages")]
    assert methods == ["occlusion"]
    [logits] = network(Batch.from_data_list(samples[:1])).detach()
    assert [*sample.parts] == ["messages", "beside messages"]
    np.testing.assert_allclose(sum(sample.parts.values()), logits, atol=1e-5)
    # The last state is read out by the head alone.
    np.testing.assert_allclose(logit(sample.states[-1]), sample.parts["messages"], atol=1e-4)
    assert np.abs(sample.parts["beside messages"]).min() > 1e-3


@pytest.mark.parametrize("name", RAW)
def test_saved_models_of_every_kind_are_explained(name, saved):
    pytest.importorskip("rdkit")
    model, raw = tg_mlc.load(saved(name)), RAW[name]
    probabilities = model.probabilities(raw)
    for sample, text, expected in zip(model.explain(raw), raw, probabilities, strict=True):
        np.testing.assert_allclose(sample.probability, expected, atol=1e-5)
        assert sample.raw == text
        shape = (len(sample.components), len(expected))
        assert {scores.shape for scores in sample.scores.values()} == {shape}
        if sample.parts:
            np.testing.assert_allclose(expit(sum(sample.parts.values())), expected, atol=1e-5)
            suffixes = " of LaMP", " of messages"
            methods = [method for method in sample.scores if not method.endswith(suffixes)]
            assert methods == ["occlusion", "group occlusion"][: 1 + (sample.smiles is not None)]


def test_atoms_of_a_group_are_masked_together_and_atoms_that_are_alike_score_alike(saved):
    pytest.importorskip("rdkit")
    model = tg_mlc.load(saved("network"))
    question = Question(model, ["Cc1ccccc1"])
    [sample] = question.samples
    chunk = Chunk(question, [sample], [0])
    [by_atom], [by_group] = chunk.occlusion, group_occlusion(chunk)
    ring = np.arange(7) > 0
    masks = [~ring, *~np.eye(7, dtype=bool)]
    hidden = [question.hide(sample, mask) for mask in masks]
    whole, without_ring, *without = question.logits([sample, *hidden])[:, 0]
    np.testing.assert_allclose(by_group[ring, 0], whole - without_ring, atol=1e-5)
    np.testing.assert_allclose(by_atom[:, 0], whole - without, atol=1e-5)
    assert by_group[0, 0] == by_atom[0, 0]
    assert by_atom[2, 0] == by_atom[6, 0] != by_atom[4, 0]


def test_a_bond_scores_by_how_much_its_messages_raise_the_logit(network):
    """Messages are cut by a mask of edges, as in PyG's explainers."""
    pytest.importorskip("rdkit")
    # For a custom network, a sample that has a SMILES is a molecule.
    toluene = [molecule_from_smiles("Cc1ccccc1")]
    [sample] = explanation = tg_mlc.explain(network, toluene, method="occlusion")
    assert sample.bonds == ["C0-C1", "C1:C2", "C2:C3", "C3:C4", "C4:C5", "C5:C6", "C6:C1"]
    bond_scores = sample.bond_scores["occlusion"]
    batch, net = Batch.from_data_list(toluene), network.eval()
    source, target = batch.edge_index
    with torch.no_grad():
        whole = net(batch)
        for (start, end), scores in zip(sample.bond_atoms, bond_scores, strict=True):
            is_bond = (source == start) & (target == end) | (source == end) & (target == start)
            assert is_bond.sum() == 2
            set_masks(net.conv, (~is_bond).float(), batch.edge_index, apply_sigmoid=False)
            np.testing.assert_allclose(scores, (whole - net(batch))[0], atol=1e-5)
            clear_masks(net.conv)
    assert np.abs(bond_scores).max() > 1e-3
    np.testing.assert_array_equal(bond_scores[1], bond_scores[6])  # Both bonds are alike.
    frame = explanation.to_frame()
    assert frame.component.tolist() == [*sample.components, *sample.bonds] * 3
    np.testing.assert_array_equal(frame.score[-7:], bond_scores[:, 2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": []}, r"'labels' of the model \(got none\)"),
        ({"labels": ["bb"]}, r"'labels' of the model .*'bb'.*did you mean 'b'"),
        ({"labels": ["a", "b", "a"]}, r"each of 'labels' once \(got \['a'\] more than once"),
        ({"method": "shap"}, "'method' to be one of"),
        ({"max_labels": 2}, r"at most 2 labels at once .*GB.*'labels'.*'max_labels'"),
        ({"y": np.eye(2), "method": "attention"}, r"'y' of shape \[3, 3\]"),
        ({"given": {"a": 1}}, "no given labels for this model"),
        ({"at": "atom"}, r"'at' to name a module .*'atom'.*did you mean 'atoms'"),
        ({"names": ["one"]}, r"'names' for each of 3 samples \(got 1\)"),
    ],
)
def test_bad_options_are_refused(network, samples, options, message):
    with pytest.raises(ValueError, match=message):
        tg_mlc.explain(network, samples, **options)


@pytest.mark.parametrize(
    ("make", "raw", "message"),
    [
        (lambda _: Net(), ["CCO"], "without a preprocessor"),
        (lambda _: torch.nn.ModuleList([Net(), Net()]), molecules(1), "LabelMessagePassing.*got 2"),
        (lambda saved: tg_mlc.load(saved("texts")), ["a red apple", "???"], r"in sample 1\)"),
        (lambda saved: tg_mlc.load(saved("texts")), [], "at least one sample to explain"),
    ],
)
def test_models_and_samples_that_cannot_be_explained_are_refused(make, raw, message, saved):
    with pytest.raises(ValueError, match=message):
        tg_mlc.explain(make(saved), raw, label_names=NAMES)


def test_methods_are_judged_by_ten_curves_if_there_are_as_many(network, monkeypatch):
    monkeypatch.setattr(Question, "max_hidden", 1)
    explanation = tg_mlc.explain(network, molecules(8, seed=1, largest=6)[1:], method="alone")
    assert explanation.faithfulness["alone"].number == 10


def explain_given(model, raw, given):
    """Explains predictions with given labels. Checks that parts sum to logits of other labels."""
    explanation = model.explain(raw, method="occlusion", given=given)
    probabilities = model.probabilities(raw, given=given)
    for sample, expected in zip(explanation, probabilities, strict=True):
        assert np.abs(sample.parts["given labels"][1:]).max() > 0
        np.testing.assert_allclose(sample.probability, expected, atol=1e-5)
        logits = sum(sample.parts.values())
        np.testing.assert_allclose(expit(logits)[1:], expected[1:], atol=1e-5)
    return explanation


def test_given_labels_are_a_part_of_the_logit_of_all_classifiers(saved):
    model = tg_mlc.load(saved("vectors"))
    raw = np.random.default_rng(0).normal(size=(2, 5))
    [first, _] = explain_given(model, raw, {model.label_names[0]: 1})
    assert first.probability[0] == 1


def test_labels_given_to_a_network_that_takes_none_are_a_part_of_the_logit():
    """Estimators learn from given labels beside such a network."""
    x = np.random.default_rng(0).normal(size=(80, 3))
    y = (x[:, :2] + 0.5 * x[:, 2:] > 0).astype(int)
    dataset = from_arrays(x, y, ["a", "b"])
    network = table_lamp(dataset, fully_connected(["a", "b"]), channels=8)
    engine = GivenLabelStacking().fit(np.zeros((80, 2)), y.astype(float))
    kind = Vectors().fit(dataset, random_split(80))
    model, given = Model.of(network, preprocessor=kind, given=engine), {"a": 1}
    assert [len(sample.clamped) for sample in explain_given(model, x[:2], given)] == [2, 2]
    [sample] = model.explain(x[:1], method="integrated gradients", given=given)
    assert [*sample.scores] == ["integrated gradients of the network"]
    with pytest.raises(ValueError, match="all 2 labels given"):
        model.explain(x[:2], given={"a": 1, "b": 1})


@pytest.fixture(scope="module")
def bags():
    words = ([1, 2, 3, 4], [5, 6, 7], [8])
    return [Data(x=torch.tensor(indices), num_nodes=len(indices)) for indices in words]


def lamp_of_bags():
    torch.manual_seed(0)
    options = {"num_feature_layers": 0, "given_labels": True}
    return LaMP(BagEncoder(12, 8), fully_connected(NAMES), **options).eval()


def test_labels_that_samples_carry_are_given_labels(bags):
    network, nan = lamp_of_bags(), torch.nan
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.5 * torch.randn_like(weight))
    given = torch.tensor([[1.0, nan, nan], [nan, 0.0, nan], [0.0, nan, 1.0]])
    pairs = zip(bags, given, strict=True)
    given_bags = [Data(**bag.to_dict(), given=row[None]) for bag, row in pairs]

    def explain(samples, **options):
        return tg_mlc.explain(network, samples, method="occlusion", label_names=NAMES, **options)

    without, passed, carried = explain(bags), explain(bags, given=given), explain(given_bags)
    for sample in explain(given_bags, given={NAMES[1]: 1}):
        np.testing.assert_array_equal(sample.given, [nan, 1, nan])
    assert "given" in given_bags[0]
    assert without.samples[0].given is None
    assert passed.faithfulness == carried.faithfulness != without.faithfulness
    for actual, expected, row in zip(passed, carried, given, strict=True):
        np.testing.assert_array_equal(actual.given, row)
        np.testing.assert_array_equal(actual.given, expected.given)
        np.testing.assert_array_equal(actual.probability, expected.probability)
        np.testing.assert_array_equal(actual.scores["occlusion"], expected.scores["occlusion"])


def test_a_plot_leaves_no_figure_open(explained, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    open_figures = pyplot.get_fignums()
    figure = explained.plot(label="b", path=tmp_path / "plot.svg")
    assert [axis.get_title() for axis in figure.axes][1:] == ["other labels"]
    assert pyplot.get_fignums() == open_figures
    assert (tmp_path / "plot.svg").stat().st_size > 0


def test_sparse_rows_become_lists():
    assert as_plain(csr_matrix(np.eye(2))[:1]) == [[1.0, 0.0]]


def test_probabilities_of_a_hierarchy_are_those_of_predictions(saved):
    model, raw = tg_mlc.load(saved("given")), np.random.default_rng(1).normal(size=(3, 4))
    first, second, third = model.label_names
    for parents in ({first: [second]}, {second: [first]}):
        coherence = model.stage(Coherence)
        coherence.hierarchy = tree({third: [], **parents}, model.label_names)
        coherence.hierarchy["kind"] = "hierarchy"
        for given in (None, {first: 1}):
            explanation = model.explain(raw, method="occlusion", given=given)
            probabilities = [sample.probability for sample in explanation]
            expected = model.probabilities(raw, given=given)
            np.testing.assert_allclose(probabilities, expected, atol=1e-5)


def test_integrated_gradients_are_those_of_captum(network, samples, explained):
    captum = pytest.importorskip("captum.attr")
    batch, net = Batch.from_data_list(samples[:1]), network.eval()
    bonds = net.bonds(batch.edge_attr.float())
    states = net.conv(net.atoms(batch.x / 10), batch.edge_index, bonds).detach()
    # Captum sees all states as one sample.
    explainer = captum.IntegratedGradients(lambda x: net.readout(net.labels(x[0])))
    options = {"n_steps": 256, "internal_batch_size": 1}
    for label, scores in enumerate(explained[0].scores["integrated gradients"].T):
        expected = explainer.attribute(states[None], target=label, **options)[0].sum(dim=1).detach()
        np.testing.assert_allclose(scores, expected, atol=0.01)
        assert expected.abs().max() > 0.02


def test_a_component_alone_is_the_only_one_with_edges_to_labels():
    samples = Planted(8, num_labels=4, degree=2, num_channels=3)
    torch.manual_seed(0)
    network = node_lamp(samples, samples.true_graph, channels=8, heads=2)
    torch.nn.init.normal_(network.readout.weight)
    probe = NetworkProbe(network)
    probe.logits(Batch.from_data_list([*samples[:3]]))
    (x,), kwargs = probe._call
    edges, first = torch.stack([*to_list(kwargs["edge_index"])]), int(probe.ptr[1])

    def logits(component):
        component_edges = edges[:, edges[0] == component]
        with torch.no_grad():
            return probe.head(probe.labels(x, **{**kwargs, "edge_index": component_edges}))[1]

    scores = probe.alone(1)
    for component, effects in enumerate(scores, first):
        np.testing.assert_allclose(effects, logits(component) - logits(-1), atol=1e-5)
    assert np.abs(scores).max() > 0.01


def test_the_only_component_of_a_model_with_base_scores_counts_alone(saved):
    model = tg_mlc.load(saved("texts"))
    scores = []
    for method in ("alone", "integrated gradients"):
        [sample] = model.explain(["red"], method=method)
        scores += sample.scores.values()
    assert scores[0].shape == (1, 2)
    np.testing.assert_allclose(*scores, rtol=0.011, atol=0.011)
    assert np.abs(scores[0]).max() > 0


def test_a_method_is_one_entry_of_a_table(network, samples, monkeypatch):
    def size(chunk):
        return [np.full((sample.num_nodes, len(chunk.labels)), 7.0) for sample in chunk.samples]

    monkeypatch.delitem(METHODS, "integrated gradients")
    monkeypatch.setitem(METHODS, "size", Method(size, is_of_network=False))
    explanation = tg_mlc.explain(network, samples)
    assert explanation.methods[-1] == "size"
    assert {"size", "occlusion"} < {*explanation.faithfulness}
    assert tg_mlc.explain(network, samples, "a", "size")[0].scores["size"].max() == 7


def test_a_custom_stage_is_a_part_of_the_logit(network, samples):
    model = Model.of(network)
    model.stages.insert(2, Shift(1.0))
    [sample] = model.explain(samples[:1], method="occlusion")
    assert [*sample.parts] == ["without shift", "shift"]
    np.testing.assert_allclose(sample.parts["shift"], 1, atol=1e-6)
    np.testing.assert_allclose(expit(sum(sample.parts.values())), sample.probability, atol=1e-6)


class Counting(torch.nn.Module):
    """Infers the number of samples from the batch indices of nodes."""

    def __init__(self):
        super().__init__()
        self.readout = torch.nn.Linear(9, 3)

    def forward(self, data):
        return global_add_pool(self.readout(data.x / 10), data.batch)


def test_networks_may_count_samples_by_their_components(samples):
    question = Question(Counting(), samples, NAMES)
    nothing = question.hide(samples[0], np.zeros(samples[0].num_nodes, bool))
    logits = question.logits([nothing, samples[1], nothing])
    np.testing.assert_array_equal(logits[[0, 2]], 0)
    assert np.abs(logits[1]).max() > 0


def test_batches_are_made_once_for_all_given_labels(bags, monkeypatch):
    question, calls = Question(lamp_of_bags(), bags, NAMES), []
    monkeypatch.setattr(networks, "batches_of", lambda *args: calls.append(1) or batches_of(*args))
    assert question.clamped(question.samples, None, [0, 1]).shape == (3, 3, 2, 2)
    assert len(calls) == 1


def test_the_neighbour_that_decides_ranks_first_in_a_network_on_nodes():
    torch.manual_seed(0)
    network, samples = NodeNet(), ego_graphs()
    optimizer, batch = (
        torch.optim.Adam(network.parameters(), lr=0.02),
        Batch.from_data_list(samples),
    )
    for _ in range(30):
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(network(batch), batch.y).backward()
        optimizer.step()
    seeds = samples[1:4:2]  # Their only labels are the first and the second.
    explanation = tg_mlc.explain(network, seeds)
    assert {*explanation.methods} == {*METHODS} - {"group occlusion"}
    for label, (sample, explained) in enumerate(zip(seeds, explanation, strict=True)):
        deciding = int(sample.known.nansum(dim=1).argmax())
        for method, scores in explained.scores.items():
            assert scores[:, label].argmax() == deciding, method
        # The states and known labels of all nodes are those of named components.
        np.testing.assert_allclose(explained.scores["attention"].sum(axis=0), 1, atol=1e-5)
        other_seed = 1 - int(sample.seed_index)
        assert explained.components[1 - other_seed] == f"node {1 - other_seed} (seed)"
        # Two hops away, no label attends to it.
        assert all((scores[other_seed] == 0).all() for scores in explained.scores.values())


def test_a_network_on_nodes_needs_to_know_the_seeds():
    [sample] = ego_graphs()[:1]
    del sample.seed_index
    with pytest.raises(ValueError, match=r"'seed_index' \(got none in sample 0\); make each"):
        tg_mlc.explain(NodeNet(), [sample])
