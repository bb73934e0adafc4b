from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import tg_mlc
from tests.sequences.batches import (
    FREQUENCY,
    NUM_BINS,
    NUM_ENTITIES,
    NUM_FEATURES,
    NUM_LABELS,
    PROFILES,
    WINDOW_SIZE,
    batch,
)
from tg_mlc.graphs import LabelGraph, fully_connected, learned
from tg_mlc.inference import Model
from tg_mlc.sequences.lanet import LANET
from tg_mlc.sequences.memory import PersonalMemory
from tg_mlc.training import MultiLabelModule

LOOSE = {"atol": 1e-5, "rtol": 1e-5}
PATH = LabelGraph(torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]), num_nodes=NUM_LABELS)


def lanet(graph=None, **options):
    torch.manual_seed(0)
    window = {"window_size": WINDOW_SIZE, "num_bins": NUM_BINS, "gaps": range(31)}
    window |= options.pop("window", {})
    model = LANET(graph or fully_connected(NUM_LABELS), NUM_ENTITIES, 8, window=window, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def memory(neighbours=True):
    return PersonalMemory(FREQUENCY, NUM_FEATURES, 8, profiles=PROFILES if neighbours else None)


def as_the_paper_writes_it(model, data):
    """Computes the paper's equations over dense arrays, one sample at a time, with all pairs."""
    w, logits = model.state_dict(), []
    for b in range(data.num_graphs):
        nodes = [w["entity.weight"][data.entity[b]]]
        for k in range(NUM_LABELS):
            time, amount = torch.zeros(8), torch.zeros(8)
            for o in ((data.sample == b) & (data.label == k)).nonzero().flatten().tolist():
                time += w["views.time.days.weight"][min(int(data.dt[o]), 30)]
                time += w["views.time.position.weight"][data.position[o] - 1]
                amount += w["views.bin.weight"][data.bin[o]]
            nodes.append(torch.cat([w["views.label.weight"][k], time, amount]))
        x = torch.stack(nodes)[None]  # [1, L + 1, d]
        for layer in range(2):
            x = encoder_layer(model, layer)(x)
        logits.append(x[0, 1:] @ w["readout.weight"][0] + w["readout.bias"])
    return torch.stack(logits)


#: For each parameter of PyTorch's layer, the parameters of a block that are joined to it.
PARTS = {
    "self_attn.in_proj_": ("lin_query", "lin_key", "lin_value"),
    "self_attn.out_proj.": ("lin_out",),
    "linear1.": ("mlp.0",),
    "linear2.": ("mlp.2",),
    "norm1.": ("attention_norm",),
    "norm2.": ("mlp_norm",),
}


def encoder_layer(model, number):
    """Returns PyTorch's layer with the weights of a block."""
    w = model.labels.convs[number].state_dict()
    state = {
        name + kind: torch.cat([w[f"{part}.{kind}"] for part in parts])
        for name, parts in PARTS.items()
        for kind in ("weight", "bias")
    }
    layer = torch.nn.TransformerEncoderLayer(24, 4, 24, batch_first=True).eval()
    layer.load_state_dict(state)
    return layer


def test_logits_equal_the_equations_of_the_paper():
    model, data = lanet(), batch()
    torch.testing.assert_close(model(data), as_the_paper_writes_it(model, data), **LOOSE)


VARIANTS = {
    "as published": dict,
    "without entity": lambda: {"entity": False},
    "without time": lambda: {"window": {"time": False}},
    "without amount": lambda: {"window": {"amount": False}},
    "absence": lambda: {"window": {"absence": True}},
    "tied": lambda: {"tied": True},
    "along a path": lambda: {"graph": PATH},
    "memory": lambda: {"memory": memory()},
    "memory without neighbours": lambda: {"memory": memory(neighbours=False)},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_part_learns_and_samples_do_not_mix(name):
    model, data = lanet(**VARIANTS[name]()), batch(7)
    logits = model(data)
    assert logits.shape == (7, NUM_LABELS)
    F.binary_cross_entropy_with_logits(logits, data.y).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any() or "lin_key.bias" in parameter_name
    subset = batch(7)
    mask, memory_mask = subset.sample < 3, subset.memory_sample < 3
    for key in ("label", "sample", "position", "dt", "bin", "amount"):
        subset[key] = subset[key][mask]
    for key in ("memory_label", "memory_sample", "memory"):
        subset[key] = subset[key][memory_mask]
    subset.entity, subset.trend, subset._num_graphs = subset.entity[:3], subset.trend[:3], 3
    torch.testing.assert_close(model(subset), logits[:3], **LOOSE)


@pytest.mark.parametrize("graph", [None, PATH], ids=["complete", "path"])
def test_attention_follows_the_edges_of_the_label_graph(graph):
    model, data = lanet(graph), batch()
    states = model.views.by_label(data)
    x = torch.cat([model.entity(data.entity).unsqueeze(1), states], dim=1)
    output = model(data, return_attention_weights=True)
    pattern, weights = output.attention[0].label_to_label
    source, target = pattern.graph.edge_index
    mask = torch.ones(NUM_LABELS + 1, NUM_LABELS + 1, dtype=torch.bool)
    mask[0] = mask[:, 0] = mask[target + 1, source + 1] = False
    options = {"attn_mask": mask, "average_attn_weights": False}
    _, expected = encoder_layer(model, 0).self_attn(x, x, x, **options)  # [B, heads, L + 1, L + 1]
    expected = expected[:, :, target + 1, source + 1].mT
    torch.testing.assert_close(weights, expected, **LOOSE)
    torch.testing.assert_close(output.logits, model(data), **LOOSE)


def test_label_graphs_are_learned_from_attention_and_checked_on_loading():
    graph = learned(lanet(), [batch(7), batch(3, seed=1)])
    assert graph.num_labels == NUM_LABELS
    assert 0.0 < float(graph.edge_weight.sum()) < NUM_LABELS  # The entity has the rest.
    model = lanet()
    with pytest.raises(ValueError, match="weights of a model with the same label graph"):
        model.load_state_dict(lanet(PATH).state_dict())
    model.load_state_dict(lanet().state_dict())


def test_ten_thousand_labels_are_trained_along_a_sparse_graph():
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(10_000, (2, 50_000), generator=generator)
    graph = LabelGraph(edges, num_nodes=10_000)
    window = {"window_size": WINDOW_SIZE, "num_bins": NUM_BINS}
    memory = PersonalMemory(torch.full((10_000,), 0.01), NUM_FEATURES, 4)
    model = LANET(graph, NUM_ENTITIES, 4, heads=2, memory=memory, window=window)
    torch.nn.init.ones_(model.readout.weight)  # A readout beside a memory starts at zero.
    data = batch(3, num_labels=10_000)
    F.binary_cross_entropy_with_logits(model(data), data.y).backward()
    assert data.label.unique().numel() > 9_000
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert (model.views.label.weight.grad.abs().sum(dim=1) > 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"entity": False, "num_layers": 1, "heads": 2, "norm": "pre", "mlp_channels": 16},
        {"tied": True, "memory": memory(), "window": {"amount": False}},
        {"memory": memory(neighbours=False), "window": {"absence": True}},
    ],
)
def test_a_saved_model_is_restored(options, tmp_path):
    model, data = lanet(PATH, **options), batch()
    names = [f"label_{label}" for label in range(NUM_LABELS)]
    Model.of(MultiLabelModule(model, names)).save(tmp_path)
    restored = tg_mlc.load(tmp_path).networks[0]
    assert torch.equal(restored(data), model(data))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_entities": 0}, "'num_entities' to be a whole number"),
        ({"readout_dropout": 1.5}, "'readout_dropout' to be a number in"),
        ({"num_layers": 0}, "'num_layers' to be a whole number"),
        ({"head": 2}, "options of a block"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LANET(PATH, **{"num_entities": 3, "channels": 8, **options})
