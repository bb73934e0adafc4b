from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR

from tests.training.conftest import GINE, LABELS, LabelModel, make_module, train
from tg_mlc.graphs import edgeless, fully_connected
from tg_mlc.inputs import DNA, Chain, Molecules, Scale, TfIdf, Words
from tg_mlc.nn import LabelMessagePassing
from tg_mlc.stacking import StackingFeatures
from tg_mlc.training import BinaryObjective, MultiLabelModule
from tg_mlc.training.module import lr_factor


@pytest.mark.filterwarnings("ignore:.*self.trainer.*")
def test_steps_give_the_loss_of_the_objective_and_probabilities(batch):
    objective = BinaryObjective(intermediate_weight=0.3)
    module = make_module(LabelModel, objective=objective).eval()
    assert torch.equal(module.training_step(batch, 0), objective.loss(module.model, batch))
    assert torch.equal(module.predict_step(batch), module.model(batch).sigmoid())


def test_numbers_of_numpy_are_stored_as_plain_numbers():
    module = make_module(lr=np.float64(0.5), weight_decay=np.float32(0.25))
    assert {type(module.hparams[name]) for name in ("lr", "weight_decay", "eps")} == {float}


def test_weight_decay_applies_to_matrices_only():
    module = make_module(weight_decay=0.1, betas=(0.8, 0.9), eps=1e-6, lr=0.5)
    matrices, others = module.configure_optimizers().param_groups
    assert {parameter.dim() for parameter in matrices["params"]} == {2}
    assert {parameter.dim() for parameter in others["params"]} == {1}
    assert (matrices["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
    assert (matrices["betas"], matrices["eps"], matrices["lr"]) == ((0.8, 0.9), 1e-6, 0.5)
    assert len(matrices["params"]) + len(others["params"]) == len(list(module.parameters()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr_schedule": "step"}, "'lr_schedule' to be one of"),
        ({"lr_schedule": "plateau", "warmup": 0.1}, r"no 'warmup' with .*'plateau' \(got 0\.1\)"),
        ({"warmup": 1.0}, r"'warmup' to be a number in \[0, 1\)"),
        ({"objective": BinaryObjective(0.1)}, "forward takes 'return_intermediate'"),
        ({"objective": "binary"}, r"'objective' to be an Objective, .* \(got 'binary'\)"),
        ({"objective": {"class": "Gone"}}, r"'BinaryObjective', .*\(got 'Gone'\); import"),
        ({"objective": BinaryObjective(max_given=0.5)}, r"max_given > 0 \(got GINE\); .*=0.0"),
        ({"lr": -1.0}, r"'lr' to be a finite number of at least 0 \(got -1\.0\)"),
        ({"lr": float("inf")}, r"'lr' .* \(got inf\)"),
        ({"lr": "2e-4"}, r"'lr' .* \(got '2e-4'\)"),
        ({"weight_decay": -0.1}, r"'weight_decay' .* \(got -0\.1\)"),
        ({"eps": float("nan")}, r"'eps' .* \(got nan\)"),
        ({"betas": (0.9, 1.0)}, r"'betas\[1\]' to be a number in \[0, 1\) \(got 1\.0\)"),
        ({"preprocessor": "nonsense"}, r"'preprocessor' to be a Preprocessor \(got str\)"),
        ({"config": {"a": torch.device("cpu")}}, r"'config\['a'\]' to be a tensor, number"),
        ({"config": {"a": np.float64(1.0)}}, r"'config\['a'\]' to be a tensor, number"),
        ({"config": {"a": [1, {2, 3}]}}, r"'config\['a'\]\[1\]' to be a tensor, number"),
        ({"config": {"a": {1.5: 2}}}, r"the keys of 'config\['a'\]' to be strings or integers"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MultiLabelModule(GINE(), LABELS, **options)


class OwnLabels(nn.Module):
    """A user's own layer with a label graph, which does not come from this package."""

    def __init__(self, label_graph):
        super().__init__()
        self.label_graph, self.num_labels = label_graph, label_graph.num_nodes


def with_labels(labels):
    return nn.Sequential(LabelMessagePassing(8, fully_connected(labels), num_steps=1))


@pytest.mark.parametrize(
    ("model", "names", "message"),
    [
        (None, LABELS, r"'model' to be a torch.nn.Module \(got NoneType\)"),
        (with_labels(LABELS), LABELS[:2], r"'label_names' to hold 3 names, .*\(got 2\)"),
        (with_labels(3), LABELS[:2], r"'label_names' to hold 3 names, .*\(got 2\)"),
        (nn.Sequential(OwnLabels(fully_connected(3))), LABELS[:2], "'label_names' to hold 3 names"),
        (with_labels(LABELS[::-1]), LABELS, "the label graph to have the 3 labels"),
        (with_labels(["x", "y", "z"]), LABELS, "the label graph to have the 3 labels"),
    ],
)
def test_models_of_other_labels_are_refused(model, names, message):
    with pytest.raises(ValueError, match=message):
        MultiLabelModule(model, names)


def test_scores_have_a_column_for_each_label(batch):
    message = r"scores of shape \[\d+, 2\], one per sample and label name"
    with pytest.raises(ValueError, match=message):
        MultiLabelModule(GINE(), LABELS[:2]).validation_step(batch, 0)
    MultiLabelModule(with_labels(3), LABELS)


@pytest.mark.parametrize(
    "preprocessor",
    [TfIdf(), Scale(), Words(), Molecules(), Chain(TfIdf()), StackingFeatures(["svm"])],
)
def test_a_preprocessor_has_to_be_fitted(preprocessor):
    with pytest.raises(ValueError, match=r"'preprocessor' to be fitted .*; call its 'fit'"):
        MultiLabelModule(GINE(), LABELS, preprocessor=preprocessor)


def inputs_of(label_names):
    preprocessor = DNA()
    preprocessor.label_names = list(label_names)
    return preprocessor


def test_weights_of_another_preprocessor_are_refused():
    trained = make_module(preprocessor=inputs_of(LABELS))
    checkpoint = {"hyper_parameters": dict(trained.hparams)}
    trained.on_save_checkpoint(checkpoint)
    make_module(preprocessor=inputs_of(LABELS)).on_load_checkpoint(checkpoint)
    for other in (inputs_of("abc"), Chain(inputs_of(LABELS))):
        with pytest.raises(ValueError, match=r"preprocessor of the checkpoint \(got a (DNA|Chain)"):
            make_module(preprocessor=other).on_load_checkpoint(checkpoint)


def test_weights_of_a_user_layer_with_another_label_graph_are_refused():
    trained, same, other = (
        MultiLabelModule(nn.Sequential(OwnLabels(graph)), LABELS)
        for graph in (fully_connected(3), fully_connected(3), edgeless(3))
    )
    checkpoint = {"hyper_parameters": dict(trained.hparams)}
    trained.on_save_checkpoint(checkpoint)
    same.on_load_checkpoint(checkpoint)
    with pytest.raises(ValueError, match=r"the same label graph, .*\(got .*read_checkpoint"):
        other.on_load_checkpoint(checkpoint)


SCHEDULERS = {
    "cosine": lambda optimizer: CosineAnnealingLR(optimizer, 20),
    "linear": lambda optimizer: LinearLR(optimizer, 1.0, 0.0, total_iters=20),
}


@pytest.mark.parametrize("lr_schedule", SCHEDULERS)
def test_the_schedule_equals_that_of_pytorch(lr_schedule):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, factor = SCHEDULERS[lr_schedule](optimizer), lr_factor(lr_schedule, 0.0, 20)
    for step in range(20):
        assert factor(step) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-6)
        optimizer.step()
        scheduler.step()


def test_warmup_rises_to_one_and_decay_falls_to_zero():
    factor = lr_factor("linear", 0.25, 20)
    assert [factor(step) for step in range(6)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])
    assert factor(19) == pytest.approx(1 / 15)
    assert factor(20) == factor(21) == 0.0
    assert lr_factor("none", 0.5, 4)(100) == 1.0


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [("64-true", torch.float64), ("bf16-true", torch.bfloat16), ("bf16-mixed", torch.float32)],
)
def test_precision_sets_the_dtype_of_weights_not_of_scores(precision, dtype, data, split, tmp_path):
    module = MultiLabelModule(GINE(), LABELS)
    result = train(module, data, tmp_path, max_epochs=1, monitor="val/loss", precision=precision)
    assert {weight.dtype for weight in module.parameters()} == {dtype}
    scores = result.scores(data.test_dataloader())
    assert (scores.dtype, scores.shape) == (torch.float32, (len(split.test), len(LABELS)))
    assert scores.isfinite().all()
    assert data.dataset[0].x.dtype == torch.float32
