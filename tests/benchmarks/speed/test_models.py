import json
from dataclasses import asdict
from functools import partial

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from torch_geometric.data import Batch, Data

from benchmarks.files import describe_environment
from benchmarks.report import speed
from benchmarks.speed import models
from benchmarks.speed.layouts import (
    CHECKPOINTED,
    INFERENCE,
    LITERAL,
    OURS,
    PRODUCTS,
    RELEASED,
    TRAINING,
    Sizes,
    forward_flop,
    layouts,
    literal_bytes,
    products,
    products_job,
)
from benchmarks.speed.measure import Limits, relative_rms
from benchmarks.speed.released_layout import ReleasedLayout
from tg_mlc.papers.convert import load_lamp_checkpoint

NAMES = [OURS, CHECKPOINTED, LITERAL, RELEASED]
SIZES = {graph: Sizes.tiny(12, graph) for graph in ("complete", "prior")}
SETTINGS = {"repeats": 1, "device": "cpu", "precision": "fp32", "matmul_precision": "highest"}
SETTINGS |= {"threads": 1, "quick": True}
LIMITS = Limits(1e9, 1e9, 1e9, 1e9, {"highest": 1e9, "high": 1e9})


@pytest.fixture
def fast(own_runs, monkeypatch):
    """Skips measurements of limits and memory. Returns the folder of results."""
    monkeypatch.setattr(models, "measure_limits", lambda *args, **kwargs: LIMITS)
    monkeypatch.setattr(models, "peaks_of", lambda *args, **kwargs: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    return own_runs


def compare(sizes, limits=LIMITS):
    return models.compare(sizes, SETTINGS, limits, checkpoint=False)


def written(row):
    result = {"environment": describe_environment(), "settings": {**SETTINGS, "seed": 0}}
    return speed.models({**result, "limits": asdict(LIMITS), "models": [row]})


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_layouts_agree_in_logits_and_gradients(sizes):
    compared = layouts(sizes, NAMES)
    for model in compared.models.values():
        model.double().eval()
    expected = compared.logits(RELEASED)
    gradients = torch.autograd.grad(compared.loss(RELEASED).double(), compared.embeddings(RELEASED))
    for name in NAMES[:-1]:
        assert relative_rms(compared.logits(name), expected) < 1e-9
        actual = torch.autograd.grad(compared.loss(name).double(), compared.embeddings(name))
        for value, reference in zip(actual, gradients, strict=True):
            assert relative_rms(value, reference) < 1e-5  # The loss has single precision.


@pytest.mark.parametrize("discard", [False, True])
@pytest.mark.parametrize("graph", SIZES)
def test_released_layout_equals_the_model_of_its_checkpoint(graph, discard):
    torch.manual_seed(0)
    adjacency = SIZES[graph].adjacency()
    mask = None if adjacency is None else ~adjacency
    options = {"discard_feature_attention": discard}
    released = ReleasedLayout(20, 12, 16, 4, mask, **options).double().eval()
    model = load_lamp_checkpoint(released.state_dict(), label_adj=adjacency, heads=4)
    assert model.features is not None
    for conv in model.features.convs:
        assert conv.discards  # The released code discards feature attention.
        conv.discards = discard
    tokens = torch.randint(1, 20, (3, 6))
    tokens[1, 4:] = tokens[2, 1:] = 0
    batch = Batch.from_data_list([Data(x=row[row != 0]) for row in tokens])
    torch.testing.assert_close(model(batch), released(tokens))


def test_flop_equal_those_of_the_dense_layout_without_repeated_products():
    sizes = SIZES["complete"]
    compared = layouts(sizes, [RELEASED])
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        compared.logits(RELEASED)
    labels, channels = sizes.num_samples * sizes.num_labels, sizes.channels
    readout = 2 * labels * channels * (sizes.num_labels - 1)
    repeated = 2 * channels**2 * sizes.num_labels * (sizes.num_samples - 1)
    assert counter.get_total_flops() - readout - repeated == forward_flop(sizes)
    assert forward_flop(SIZES["prior"]) < forward_flop(sizes)


@pytest.mark.parametrize(("mode", "factor"), [(INFERENCE, 1), (TRAINING, 3)])
def test_the_products_job_multiplies_forward_and_backward(mode, factor):
    sizes = SIZES["complete"]
    with FlopCounterMode(display=False) as counter:
        products_job(sizes, mode, torch.float32, "cpu")()
    assert counter.get_total_flops() == factor * sum(product.flop for product in products(sizes))


@pytest.mark.slow
def test_too_large_literal_layouts_are_left_out(monkeypatch):
    sizes = SIZES["complete"]
    assert literal_bytes(sizes, TRAINING) > literal_bytes(sizes, INFERENCE)
    monkeypatch.setattr(models.lamp, "MAX_LITERAL_BYTES", literal_bytes(sizes, INFERENCE))
    literal = compare(sizes)["layouts"][LITERAL]
    assert INFERENCE in literal
    assert TRAINING not in literal
    assert "training would need" in literal["why"]
    monkeypatch.setattr(models.lamp, "MAX_LITERAL_BYTES", 0)
    row = compare(sizes)
    assert row["layouts"][LITERAL]["state"] == "left out"
    reason = f"{LITERAL} on 12 labels, d=16 along complete: {INFERENCE} would need"
    assert reason in written(row)[-2]


def test_a_layout_that_disagrees_gets_no_ratio(monkeypatch):
    compared = layouts(SIZES["complete"], [OURS, RELEASED])
    model = compared.models[OURS]
    monkeypatch.setattr(model, "forward", lambda batch: type(model).forward(model, batch) * 1.001)
    monkeypatch.setattr(models.lamp, "layouts", lambda *args: compared)
    monkeypatch.setattr(models.lamp, "MAX_LITERAL_BYTES", 0)
    row = compare(SIZES["complete"])
    assert row["layouts"][OURS]["state"] == "disagrees"
    assert TRAINING not in row["layouts"][OURS]
    assert "ours_is_faster" not in row["layouts"][RELEASED][TRAINING]
    assert f"{OURS} on 12 labels, d=16 along complete: disagrees" in written(row)[-2]


def test_the_floor_follows_from_the_current_precision():
    limits = Limits(9e9, 1e9, 1e9, 1e9, {"highest": 3e9, "medium": 9e9})
    row = compare(SIZES["complete"], limits)
    assert row["floor_ms"][TRAINING] == pytest.approx(1e3 * row["flop"][TRAINING] / 3e9)
    with pytest.raises(ValueError, match="with exact products on this machine"):
        limits.flops_under("high")


def test_the_precision_and_machine_are_part_of_the_file_name(fast, monkeypatch):
    precisions = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", precisions.append)
    options = {"graphs": "complete", "matmul_precision": "high", "machine": "m"}
    assert models.main(quick=True, threads=1, **options) == 0
    result = json.loads((fast / "models-cpu-high-m.json").read_text())
    assert result["settings"]["matmul_precision"] == "high"
    assert precisions == ["high"]


def test_quick_run_agrees_and_writes_a_file(fast):
    assert models.main(quick=True, threads=1, checkpoint=True) == 0
    result = json.loads((fast / "models-cpu.json").read_text())
    assert [row["sizes"]["graph"] for row in result["models"]] == ["complete", "prior"]
    for row in result["models"]:
        states = {name: layout["state"] for name, layout in row["layouts"].items()}
        assert states == {**dict.fromkeys(NAMES, "agrees"), PRODUCTS: "no model"}
        for layout in row["layouts"].values():
            assert layout[TRAINING]["samples_per_second"] > 0
            assert layout[TRAINING]["ours_is_faster"] > 0


@pytest.mark.slow
def test_models_of_several_widths_get_a_separate_file_and_rows(fast, monkeypatch):
    small = partial(Sizes, heads=2, num_samples=2, num_components=3, num_tokens=20)
    monkeypatch.setattr(models, "Sizes", small)
    options = {"labels": "5", "graphs": "complete", "channels": "8,16", "repeats": 1}
    assert models.main(**options) == 0
    result = json.loads((fast / "models-cpu-narrow.json").read_text())
    assert [row["sizes"]["channels"] for row in result["models"]] == [8, 16]
    start = "| 5, d=16 | complete | ours | training |"
    assert any(line.startswith(start) for line in speed.models(result))
