from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from tests.training.conftest import GINE, LABELS, LabelModel, make_module
from tg_mlc.losses import focal_loss, lamp_loss
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.training import BinaryObjective, MultiLabelModule, Objective, fit


@dataclass(frozen=True)
class Ranks(Objective):
    """A margin between labels that apply and labels that do not; what the model returns are no logits."""

    margin: float = 1.0

    def loss(self, model, batch):
        z = model(batch)["energy"]
        gap = z.unsqueeze(1) - z.unsqueeze(2) + self.margin
        pairs = (batch.y.unsqueeze(2) == 1) & (batch.y.unsqueeze(1) == 0)
        return (gap.relu() * pairs).sum() / pairs.sum().clamp(min=1)

    def scores(self, model, batch):
        return model(batch)["energy"].softmax(dim=-1)


class LossOfHalf(BinaryObjective):
    def validate(self, model, batch):
        return self.scores(model, batch), torch.tensor(0.5)


class Energies(nn.Module):
    def __init__(self):
        super().__init__()
        self.gnn = GINE()

    def forward(self, batch):
        return {"energy": self.gnn(batch)}


def test_models_of_another_family_train_are_stored_and_predict(tmp_path, data, batch):
    module = make_module(Energies, objective=Ranks(0.5))
    result = fit(module, data, tmp_path, max_epochs=30, patience=None, logger=False)
    loader = data.test_dataloader()
    scores = result.predict(loader)
    torch.testing.assert_close(scores.sum(dim=1), torch.ones(len(scores)))
    assert macro_roc_auc(torch.cat([part.y for part in loader]), scores) > 0.6

    loaded = MultiLabelModule.load_from_checkpoint(result.checkpoint, model=Energies(), weights_only=True).eval()
    assert loaded.objective == Ranks(0.5)
    assert torch.equal(loaded.predict_step(batch), result.module.predict_step(batch))


def test_the_loss_of_validation_is_that_of_the_objective(tmp_path, data):
    result = fit(make_module(objective=LossOfHalf()), data, tmp_path, max_epochs=1, monitor="val/loss", logger=False)
    assert result.best_value == 0.5


def test_weights_of_another_objective_are_refused(tmp_path, data):
    fit(make_module(), data, tmp_path, max_epochs=1, logger=False)
    with pytest.raises(ValueError, match=r"objective\.class=Ranks instead of BinaryObjective"):
        fit(make_module(objective=Ranks()), data, tmp_path, max_epochs=2, resume=True, logger=False)
    with pytest.raises(ValueError, match=r"objective\.class=Ranks instead of BinaryObjective"):
        MultiLabelModule.load_from_checkpoint(
            tmp_path / "last.ckpt", model=GINE(), objective=Ranks(), weights_only=True
        )


def test_an_objective_that_nobody_has_imported_is_named():
    with pytest.raises(ValueError, match=r"among \['BinaryObjective', .*\(got 'Gone'\); import"):
        MultiLabelModule(GINE(), LABELS, {"class": "Gone"})


def test_options_of_objectives_are_plain_data():
    with pytest.raises(ValueError, match=r"'objective\['margin'\]' to be a tensor, number"):
        MultiLabelModule(GINE(), LABELS, Ranks(torch.device("cpu")))


def test_binary_loss_has_intermediate_terms_and_smoothing(batch):
    model = LabelModel().eval()
    output = model(batch, return_intermediate=True)
    expected = lamp_loss(output.logits, batch.y, output.intermediate, 0.3, label_smoothing=0.1)
    assert torch.equal(BinaryObjective(0.3, 0.1).loss(model, batch), expected)
    assert not torch.equal(expected, lamp_loss(output.logits, batch.y))


def test_binary_loss_may_be_another_one(batch):
    model = LabelModel().eval()
    output = model(batch, return_intermediate=True)
    options = {"gamma": 1.0, "alpha": None}
    expected = lamp_loss(output.logits, batch.y, output.intermediate, 0.3, loss=focal_loss, **options)
    assert torch.equal(BinaryObjective(0.3, loss_name="focal", loss_options=options).loss(model, batch), expected)


@pytest.mark.parametrize("name", ["bce", "focal", "asymmetric", "soft_f1", "listwise"])
def test_losses_are_stored_and_made_again(name, tmp_path, data):
    options = {"pos_weight": [1.0, 2.0, *[1.0] * (len(LABELS) - 2)]} if name == "bce" else {}
    objective = BinaryObjective(loss_name=name, loss_options=options)
    result = fit(make_module(objective=objective), data, tmp_path, max_epochs=1, logger=False)
    loaded = MultiLabelModule.load_from_checkpoint(result.checkpoint, model=GINE(), weights_only=True)
    assert loaded.objective == objective


def test_binary_validation_has_neither(batch):
    model = LabelModel().eval()
    scores, loss = BinaryObjective(0.3, 0.1).validate(model, batch)
    assert torch.equal(scores, BinaryObjective().scores(model, batch))
    assert torch.equal(loss, BinaryObjective().loss(model, batch))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"intermediate_weight": -1.0}, r"'intermediate_weight' .* at least 0 \(got -1\.0\)"),
        ({"label_smoothing": 3}, r"'label_smoothing' to be a number in \[0, 1\) \(got 3\)"),
        ({"label_smoothing": -1.0}, r"'label_smoothing' .* \(got -1\.0\)"),
        ({"loss_name": "hinge"}, r"'loss_name' to be one of \['bce', .*\(got 'hinge'\)"),
        ({"loss_options": {"gamma": 2.0}}, r"of 'bce' among \['pos_weight'\] \(got \['gamma'\]\)"),
        ({"loss_options": {"pos_weight": -5.0}}, r"'pos_weight' .* at least 0 \(got -5\.0\)"),
        ({"loss_options": {"pos_weight": [1.0, -5.0]}}, r"'pos_weight' .* at least 0 \(got -5\.0\)"),
        ({"loss_name": "focal", "loss_options": {"gamma": -1}}, r"'gamma' .* at least 0 \(got -1\)"),
        ({"loss_name": "soft_f1", "loss_options": {"average": "x"}}, r"'average' .*\(got 'x'\)"),
    ],
)
def test_binary_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        BinaryObjective(**options)


def test_the_name_of_an_objective_of_another_module_is_refused():
    with pytest.raises(ValueError, match=r"a name of its own.*objectives\.BinaryObjective"):
        type("BinaryObjective", (Ranks,), {})
    assert type(make_module().objective) is BinaryObjective
