from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from scipy.special import expit, logit
from torch_geometric.data import Batch, Data
from torch_geometric.explain import CaptumExplainer, Explainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GraphConv, global_add_pool, global_mean_pool

import tg_mlc
from tests.explanations.networks import NAMES, Net
from tests.models.samples import molecules
from tests.saved import TEXTS
from tg_mlc.data import from_arrays, random_split
from tg_mlc.datasets import Planted
from tg_mlc.explanations import OneLabel
from tg_mlc.explanations.explaining import METHODS
from tg_mlc.explanations.methods import Chunk, Method, group_occlusion, link_occlusion
from tg_mlc.explanations.network import NetworkProbe
from tg_mlc.explanations.question import Question, as_plain
from tg_mlc.graphs import LabelGraph, fully_connected, tree
from tg_mlc.inference import Model, networks
from tg_mlc.inference.batches import batches_of
from tg_mlc.inference.decisions import Coherence
from tg_mlc.inference.stage import Stage
from tg_mlc.inputs import Vectors
from tg_mlc.inputs.smiles import molecule_from_smiles
from tg_mlc.models import LaMP, node_lamp, table_lamp
from tg_mlc.nn.encoders import BagEncoder
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


def test_a_batch_equals_its_samples(network, samples):
    together = tg_mlc.explain(network, samples)
    assert {*together.methods, "group occlusion"} == {*METHODS}
    for row, sample in enumerate(samples):
        [alone] = tg_mlc.explain(network, [sample])
        for method in together.methods:
            np.testing.assert_allclose(
                together[row].scores[method], alone.scores[method], atol=1e-5
            )
        np.testing.assert_allclose(together[row].label_effects, alone.label_effects, atol=1e-5)


def test_integrated_gradients_sum_to_the_difference_of_logits(network, samples):
    explanation = tg_mlc.explain(network, samples, ["b"], "integrated gradients")
    zeros = network.labels.register_forward_pre_hook(
        lambda module, args: (torch.zeros_like(args[0]), *args[1:])
    )
    without = torch.logit(
        torch.tensor(tg_mlc.explain(network, samples, ["b"], "occlusion")[0].probability)
    )
    zeros.remove()
    for sample in explanation:
        assert sample.scores["integrated gradients"].shape == (len(sample.components), 1)
        difference = torch.logit(torch.tensor(sample.probability)) - without
        torch.testing.assert_close(
            torch.tensor(sample.scores["integrated gradients"].sum(axis=0)),
            difference,
            rtol=0.01,
            atol=0.01,
        )


def test_integrated_gradients_take_points_until_they_sum_or_say_so(samples):
    torch.manual_seed(0)
    network = Net()
    torch.nn.init.normal_(network.conv.nn[0].weight, std=2.0)
    batch, probe = Batch.from_data_list(samples), NetworkProbe(network)
    scores, ptr, difference = probe.integrated(batch, [0, 1, 2], num_points=1)
    sums = torch.stack([each.sum(dim=0) for each in scores.split(ptr.diff().tolist())])
    torch.testing.assert_close(sums, difference, rtol=0.01, atol=0.01)
    with pytest.warns(UserWarning, match="after 1 points"):
        probe.integrated(batch, [0, 1, 2], num_points=1, max_points=1)


def test_effects_of_labels_are_what_cut_edges_change(network, samples):
    [sample] = tg_mlc.explain(network, samples[:1], method="attention")
    graph = network.labels.label_graph
    source, target = graph.edge_index
    batch = Batch.from_data_list(samples[:1])
    with torch.no_grad():
        whole = network.eval()(batch)
        network.labels.label_graph = LabelGraph(
            graph.edge_index[:, (source != 1) | (target == 1)], label_names=NAMES
        )
        cut = network(batch)
        network.labels.label_graph = graph
    np.testing.assert_allclose(sample.label_effects[1], (whole - cut)[0], atol=1e-5)
    assert np.abs(sample.label_effects[1, [0, 2]]).min() > 0


def test_it_can_be_saved(network, samples, tmp_path):
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
        return self.readout(
            global_mean_pool(self.layer(data.x / 10).relu(), data.batch, data.num_graphs)
        )


def test_gradients_of_a_pooled_layer_are_class_activation(samples):
    torch.manual_seed(0)
    network = Pooled()
    [sample] = tg_mlc.explain(
        network, samples[:1], method="gradient", at="layer", label_names=NAMES
    )
    states = network.layer(samples[0].x / 10).relu()
    np.testing.assert_allclose(
        sample.scores["gradient"],
        (states @ network.readout.weight.T / len(states)).detach(),
        atol=1e-6,
    )


def test_a_network_without_messages_is_explained_by_occlusion(samples):
    explanation = tg_mlc.explain(Pooled(), samples, label_names=NAMES)
    assert explanation.methods == ["occlusion"]
    assert explanation.state_names == []
    assert explanation[0].label_effects.shape == (0, 3)


def test_known_labels_clamp_others(saved):
    """The effect of a given label on another is the difference of predictions with and without it."""
    model, raw = tg_mlc.load(saved("given")), np.random.default_rng(1).normal(size=(1, 4))
    [sample] = tg_mlc.explain(model, raw, method="gradient")
    name = model.label_names[1]
    before, after = (logit(model.probabilities(raw, given=given)) for given in (None, {name: 1}))
    np.testing.assert_allclose(sample.clamped[1, 1, [0, 2]], (after - before)[0, [0, 2]], atol=1e-3)
    assert np.isnan(sample.clamped[1, :, 1]).all()


class Bypassed(Net):
    """Logits that are also read out of the pooled nodes."""

    def __init__(self):
        super().__init__()
        self.path = torch.nn.Linear(8, 3)

    def forward(self, data):
        x = self.conv(self.atoms(data.x / 10), data.edge_index, self.bonds(data.edge_attr.float()))
        return self.readout(self.labels(x, data.batch)) + self.path(global_mean_pool(x, data.batch))


def test_what_bypasses_labels_is_a_part_of_its_own(samples):
    torch.manual_seed(0)
    network = Bypassed().eval()
    explanation = tg_mlc.explain(network, samples)
    assert [each for each in explanation.methods if not each.endswith(" of messages")] == [
        "occlusion"
    ]
    logits = network(Batch.from_data_list(samples)).detach()
    for row, sample in enumerate(explanation):
        assert [*sample.parts] == ["messages", "beside messages"]
        np.testing.assert_allclose(sum(sample.parts.values()), logits[row], atol=1e-5)
        # The last state is read out by the head alone.
        np.testing.assert_allclose(logit(sample.states[-1]), sample.parts["messages"], atol=1e-4)
        assert np.abs(sample.parts["beside messages"]).min() > 1e-3


@pytest.mark.parametrize("name", ["texts", "molecules", "dna", "network"])
def test_saved_models_of_every_kind(name, saved):
    pytest.importorskip("rdkit")
    model, raw = tg_mlc.load(saved(name)), RAW[name]
    explanation = tg_mlc.explain(model, raw)
    scores = model.probabilities(raw)
    for row, sample in enumerate(explanation):
        np.testing.assert_allclose(sample.probability, scores[row], atol=1e-5)
        assert sample.raw == raw[row]
        assert all(
            each.shape == (len(sample.components), len(scores[row]))
            for each in sample.scores.values()
        )
        if sample.parts:
            np.testing.assert_allclose(expit(sum(sample.parts.values())), scores[row], atol=1e-5)
            of_whole = [
                each for each in sample.scores if not each.endswith((" of LaMP", " of messages"))
            ]
            assert of_whole == ["occlusion", "group occlusion"][: 1 + (sample.smiles is not None)]


def test_atoms_of_a_group_are_masked_together_and_atoms_that_are_alike_score_alike(saved):
    pytest.importorskip("rdkit")
    model = tg_mlc.load(saved("network"))
    question = Question(model, ["Cc1ccccc1"])
    [sample] = question.samples
    chunk = Chunk(question, [sample], [0])
    [alone], [of_groups] = chunk.occlusion, group_occlusion(chunk)
    ring = np.arange(7) > 0
    whole, without = question.logits([sample, question.hide(sample, ~ring)])[:, 0]
    np.testing.assert_allclose(of_groups[ring, 0], whole - without, atol=1e-5)
    assert of_groups[0, 0] == alone[0, 0]
    assert alone[2, 0] == alone[6, 0] != alone[4, 0]
    for atom in range(7):
        hidden = question.hide(sample, np.arange(7) != atom)
        np.testing.assert_allclose(
            alone[atom, 0], whole - question.logits([hidden])[0, 0], atol=1e-5
        )


@pytest.fixture(scope="module")
def toluene():
    """As samples of one's own network, which its SMILES make molecules."""
    pytest.importorskip("rdkit")
    return [molecule_from_smiles("Cc1ccccc1")]


def test_a_bond_scores_by_how_much_its_messages_raise_the_logit(network, toluene):
    """They are cut as PyG's explainers do it, by a mask of edges."""
    explanation = tg_mlc.explain(network, toluene, method="occlusion", label_names=NAMES)
    [sample] = explanation
    assert sample.bonds == ["C0-C1", "C1:C2", "C2:C3", "C3:C4", "C4:C5", "C5:C6", "C6:C1"]
    batch, net = Batch.from_data_list(toluene), network.eval()
    source, target = batch.edge_index
    with torch.no_grad():
        whole = net(batch)
        for (start, end), scores in zip(
            sample.bond_atoms, sample.bond_scores["occlusion"], strict=True
        ):
            is_bond = (source == start) & (target == end) | (source == end) & (target == start)
            assert is_bond.sum() == 2
            set_masks(net.conv, (~is_bond).float(), batch.edge_index, apply_sigmoid=False)
            np.testing.assert_allclose(scores, (whole - net(batch))[0], atol=1e-5)
            clear_masks(net.conv)
    assert np.abs(sample.bond_scores["occlusion"]).max() > 1e-3
    # alike
    np.testing.assert_array_equal(
        sample.bond_scores["occlusion"][1], sample.bond_scores["occlusion"][6]
    )
    frame = explanation.to_frame()
    assert frame.component.tolist() == [*sample.components, *sample.bonds] * 3
    np.testing.assert_array_equal(frame.score[-7:], sample.bond_scores["occlusion"][:, 2])


class Straight(torch.nn.Module):
    """A GNN without nonlinearities, so that each bond has its exact share."""

    def __init__(self):
        super().__init__()
        self.layer, self.readout = GraphConv(9, 4), torch.nn.Linear(4, 3)

    def forward(self, data):
        return self.readout(
            global_add_pool(self.layer(data.x / 10, data.edge_index), data.batch, data.num_graphs)
        )


@pytest.mark.parametrize("label", [0, 2])
def test_bonds_of_a_linear_network_score_as_by_integrated_gradients_of_pyg(toluene, label):
    pytest.importorskip("captum")
    torch.manual_seed(0)
    network, batch = Straight(), Batch.from_data_list(toluene)
    [sample] = tg_mlc.explain(network, toluene, method="occlusion", label_names=NAMES)
    made = Explainer(
        OneLabel(network, label, NAMES),
        CaptumExplainer("IntegratedGradients"),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "regression", "task_level": "graph", "return_type": "raw"},
    )
    found = (
        made(batch.x, batch.edge_index, edge_attr=batch.edge_attr, batch=batch.batch)
        .edge_mask.detach()
        .numpy()
    )
    both = [found[np.isin(batch.edge_index, pair).all(axis=0)].sum() for pair in sample.bond_atoms]
    np.testing.assert_allclose(sample.bond_scores["occlusion"][:, label], both, atol=1e-5)
    assert np.ptp(both) > 1e-3


def test_a_bond_of_a_saved_model_scores_by_what_its_cut_changes(saved):
    pytest.importorskip("rdkit")
    model = tg_mlc.load(saved("network"))
    question = Question(model, ["CC(=O)C"])
    [sample] = question.samples
    [scores] = link_occlusion(Chunk(question, [sample], [0]))
    for bond in range(3):
        whole, without = question.logits([sample, question.kind.without_link(sample, bond)])[:, 0]
        np.testing.assert_allclose(scores[bond, 0], whole - without, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": []}, r"'labels' of the model \(got none\)"),
        ({"labels": ["bb"]}, r"'labels' of the model .*'bb'.*did you mean 'b'"),
        ({"method": "shap"}, "'method' to be one of"),
        ({"max_labels": 2}, r"at most 2 labels at once .*GB.*'labels'.*'max_labels'"),
        ({"y": np.eye(2), "method": "attention"}, r"'y' of shape \[3, 3\]"),
        ({"given": {"a": 1}}, "no given labels for this model"),
        ({"names": ["one"]}, r"'names' for each of 3 samples \(got 1\)"),
        ({"at": "atom"}, r"'at' to name a module .*'atom'.*did you mean 'atoms'"),
    ],
)
def test_bad_input(network, samples, options, message):
    with pytest.raises(ValueError, match=message):
        tg_mlc.explain(network, samples, **options)


def test_messages_of_two_modules_are_refused(network, samples):
    with pytest.raises(ValueError, match=r"at most one LabelMessagePassing.*got 2"):
        tg_mlc.explain(torch.nn.ModuleList([network, Net()]), samples, label_names=NAMES)


def test_methods_are_judged_by_ten_curves_if_there_are_as_many(network, monkeypatch):
    monkeypatch.setattr(Question, "max_hidden", 1)
    explanation = tg_mlc.explain(network, molecules(8, seed=1, largest=6)[1:], method="gradient")
    assert explanation.faithfulness["gradient"].number == 10


@pytest.mark.slow
def test_given_labels_are_a_part_of_the_logit_of_all_classifiers():
    x = np.random.default_rng(0).normal(size=(80, 3))
    y = (x[:, :2] + 0.5 * x[:, 2:] > 0).astype(int)
    model, raw, given = tg_mlc.auto(from_arrays(x, y, ["a", "b"]), seconds=1), x[:2], {"a": 1}
    for row, sample in enumerate(tg_mlc.explain(model, raw, method="occlusion", given=given)):
        assert sample.probability[0] == 1
        assert np.abs(sample.parts["given labels"][1:]).max() > 0
        np.testing.assert_allclose(
            expit(sum(sample.parts.values()))[1:],
            model.probabilities(raw, given=given)[row, 1:],
            atol=1e-5,
        )


def test_labels_given_to_a_network_that_takes_none_are_a_part_of_the_logit():
    """As an estimator learns from given labels beside its network."""
    x = np.random.default_rng(0).normal(size=(80, 3))
    y = (x[:, :2] + 0.5 * x[:, 2:] > 0).astype(int)
    dataset = from_arrays(x, y, ["a", "b"])
    kind, rows = Vectors().fit(dataset, random_split(80)), torch.arange(80)
    torch.manual_seed(0)
    network = table_lamp(dataset[rows], fully_connected(["a", "b"]), channels=8)
    engine = GivenLabelStacking().fit(np.zeros((80, 2)), y.astype(float), 1.0, 0)
    model = Model.of(network, preprocessor=kind, given=engine)
    name = model.label_names[0]
    raw, given = x[:2], {name: 1}
    for row, sample in enumerate(tg_mlc.explain(model, raw, method="occlusion", given=given)):
        assert np.abs(sample.parts["given labels"][1:]).max() > 0
        np.testing.assert_allclose(
            sample.probability, model.probabilities(raw, given=given)[row], atol=1e-5
        )
        np.testing.assert_allclose(
            sample.probability[1:], expit(sum(sample.parts.values()))[1:], atol=1e-5
        )
        assert sample.clamped.shape[0] == 2
    assert [*tg_mlc.explain(model, raw, method="gradient", given=given)[0].scores] == [
        "gradient of the network"
    ]
    with pytest.raises(ValueError, match="all 2 labels given"):
        tg_mlc.explain(model, raw, given=dict.fromkeys(model.label_names, 1))


def test_labels_that_samples_carry_are_given_labels():
    torch.manual_seed(0)
    network = LaMP(
        BagEncoder(12, 8), fully_connected(NAMES), num_feature_layers=0, given_labels=True
    ).eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.5 * torch.randn_like(weight))
    given = torch.tensor(
        [[1.0, torch.nan, torch.nan], [torch.nan, 0.0, torch.nan], [0.0, torch.nan, 1.0]]
    )
    bags = [
        Data(x=torch.tensor(words), num_nodes=len(words))
        for words in ([1, 2, 3, 4], [5, 6, 7], [8])
    ]
    carrying = [
        Data(**bag.to_dict(), given=row[None]) for bag, row in zip(bags, given, strict=True)
    ]
    none = tg_mlc.explain(network, bags, method="occlusion", label_names=NAMES)
    told = tg_mlc.explain(network, bags, method="occlusion", label_names=NAMES, given=given)
    carried = tg_mlc.explain(network, carrying, method="occlusion", label_names=NAMES)
    other = tg_mlc.explain(
        network, carrying, method="occlusion", label_names=NAMES, given={NAMES[1]: 1}
    )
    assert [sample.given.tolist() for sample in other] == [
        pytest.approx([np.nan, 1, np.nan], nan_ok=True)
    ] * 3
    assert "given" in carrying[0]
    assert none.samples[0].given is None
    assert told.faithfulness == carried.faithfulness != none.faithfulness
    for one, same, row in zip(told, carried, given, strict=True):
        np.testing.assert_array_equal(one.given, row)
        np.testing.assert_array_equal(one.given, same.given)
        np.testing.assert_array_equal(one.probability, same.probability)
        np.testing.assert_array_equal(one.scores["occlusion"], same.scores["occlusion"])


def test_given_labels_of_a_model_that_learned_nothing_of_them_are_refused():
    x = np.random.default_rng(0).normal(size=(80, 3))
    model = tg_mlc.auto(from_arrays(x, (x[:, :1] > 0).astype(int), ["a"]), seconds=0)
    with pytest.raises(ValueError, match="given"):
        tg_mlc.explain(model, x[:2], method="occlusion", given={"a": 1})


def test_a_plot_leaves_no_figure_open(network, samples, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    figure = tg_mlc.explain(network, samples).plot(label="b", path=tmp_path / "plot.svg")
    assert [axis.get_title() for axis in figure.axes][1:] == ["other labels"]
    assert pyplot.get_fignums() == before
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
            found = [
                each.probability
                for each in tg_mlc.explain(model, raw, method="gradient", given=given)
            ]
            np.testing.assert_allclose(found, model.probabilities(raw, given=given), atol=1e-5)


def test_raw_inputs_of_a_network_are_refused(network):
    with pytest.raises(ValueError, match="without a preprocessor"):
        tg_mlc.explain(network, ["CCO"])


def test_a_sample_without_components_says_so(saved):
    model = tg_mlc.load(saved("texts"))
    with pytest.raises(ValueError, match=r"components to explain .*in sample 1"):
        tg_mlc.explain(model, ["a red apple", "???"])


def test_random_weights_give_another_explanation(network, samples):
    torch.manual_seed(1)
    ours, other = (
        tg_mlc.explain(each, samples, method="integrated gradients")[1] for each in (network, Net())
    )
    ranks = [
        np.argsort(np.argsort(each.scores["integrated gradients"], axis=0), axis=0).ravel()
        for each in (ours, other)
    ]
    assert abs(np.corrcoef(*ranks)[0, 1]) < 0.7


@pytest.mark.parametrize("label", range(3))
def test_integrated_gradients_are_those_of_captum(network, samples, label):
    attr = pytest.importorskip("captum.attr")
    [ours] = tg_mlc.explain(network.eval(), samples[:1], method="integrated gradients")
    batch = Batch.from_data_list(samples[:1])
    with torch.no_grad():
        states = network.conv(
            network.atoms(batch.x / 10), batch.edge_index, network.bonds(batch.edge_attr.float())
        )
    # one sample of many states
    path = attr.IntegratedGradients(lambda x: network.readout(network.labels(x[0])))
    theirs = path.attribute(states[None], target=label, n_steps=256, internal_batch_size=1)[0].sum(
        dim=1
    )
    np.testing.assert_allclose(
        ours.scores["integrated gradients"][:, label], theirs.detach(), atol=0.01
    )
    assert theirs.abs().max() > 0.02


@pytest.mark.parametrize("name", ["network", "planted"])
def test_shapley_values_sum_to_what_integrated_gradients_do(name, saved):
    """Along edges of their own, and beside scores of other classifiers, too."""
    if name == "planted":
        samples = Planted(8, num_labels=4, degree=2, num_channels=3)
        torch.manual_seed(0)
        model, raw = node_lamp(samples, samples.true_graph, channels=8, heads=2), samples[:3]
        torch.nn.init.normal_(model.readout.weight)
    else:
        pytest.importorskip("rdkit")
        model, raw = tg_mlc.load(saved(name)), RAW[name]
    ours, other = (
        tg_mlc.explain(model, raw, method=method) for method in ("shapley", "integrated gradients")
    )
    for one, two in zip(ours, other, strict=True):
        # Without biases, components of zeros add as much as none.
        sums = [
            sample.scores[explanation.method].sum(axis=0)
            for sample, explanation in ((one, ours), (two, other))
        ]
        np.testing.assert_allclose(*sums, rtol=0.011, atol=0.011)
        assert np.abs(sums[0]).max() > 0


def test_a_method_is_one_entry_of_a_table(network, samples, monkeypatch):
    def size(chunk):
        return [np.full((sample.num_nodes, len(chunk.labels)), 7.0) for sample in chunk.samples]

    monkeypatch.setitem(METHODS, "size", Method(size, is_of_network=False))
    explanation = tg_mlc.explain(network, samples)
    assert explanation.methods[-1] == "size"
    assert {"size", "occlusion"} < {*explanation.faithfulness}
    assert tg_mlc.explain(network, samples, "a", "size")[0].scores["size"].max() == 7


class ShiftedLogits(Stage):
    """Adds 1 to all logits."""

    def apply(self, flow):
        flow.logits = flow.logits + 1

    def state_dict(self):
        return {}

    @classmethod
    def from_state(cls, state, label_names, network):
        return cls()


def test_a_stage_of_ones_own_is_a_part_of_the_logit(network, samples):
    model = Model.of(network)
    before = model.explain(samples, method="occlusion")
    model.stages.insert(2, ShiftedLogits())
    after = model.explain(samples, method="occlusion")
    for one, two in zip(before, after, strict=True):
        assert [*two.parts] == ["without shifted logits", "shifted logits"]
        np.testing.assert_allclose(two.parts["shifted logits"], 1, atol=1e-6)
        np.testing.assert_allclose(expit(sum(two.parts.values())), two.probability, atol=1e-6)
        np.testing.assert_allclose(logit(one.probability) + 1, logit(two.probability), atol=1e-5)


class Counting(torch.nn.Module):
    """Counts samples by their nodes."""

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


def test_batches_are_made_once_for_all_given_labels(monkeypatch):
    network = LaMP(
        BagEncoder(12, 8), fully_connected(NAMES), num_feature_layers=0, given_labels=True
    )
    bags = [
        Data(x=torch.tensor(words), num_nodes=len(words))
        for words in ([1, 2, 3, 4], [5, 6, 7], [8])
    ]
    question, made = Question(network, bags, NAMES), []
    monkeypatch.setattr(
        networks, "batches_of", lambda *args: made.append(args) or batches_of(*args)
    )
    assert question.clamped(question.samples, None, [0, 1]).shape == (3, 3, 2, 2)
    assert len(made) == 1
