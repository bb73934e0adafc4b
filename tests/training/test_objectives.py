from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from tests.training.conftest import GINE, LABELS, LabelModel, make_module, train
from tg_mlc.data import from_arrays
from tg_mlc.data.bags import with_attribute
from tg_mlc.graphs import edgeless, fully_connected
from tg_mlc.inference.batches import scores_of
from tg_mlc.losses import focal_loss, lamp_loss
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import VectorEncoder
from tg_mlc.papers import (
    LabelSequenceObjective,
    UnrolledObjective,
    energy_network,
    gaml,
    pooled_mlp,
    seq2seq,
)
from tg_mlc.training import (
    BinaryObjective,
    MultiLabelDataModule,
    MultiLabelModule,
    Objective,
    seed_everything,
)
from tg_mlc.training.module import without_given
from tg_mlc.training.objectives import LOSSES, reveal


@dataclass(frozen=True)
class Ranks(Objective):
    """A margin loss between positive and negative labels, for models that return no logits."""

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


def test_models_without_logits_can_be_trained_saved_and_loaded(tmp_path, data, batch):
    module = make_module(Energies, objective=Ranks(0.5))
    result = train(module, data, tmp_path, max_epochs=30, patience=None)
    loader = data.test_dataloader()
    scores = result.scores(loader)
    torch.testing.assert_close(scores.sum(dim=1), torch.ones(len(scores)))
    assert macro_roc_auc(torch.cat([test_batch.y for test_batch in loader]), scores) > 0.6

    options = {"model": Energies(), "weights_only": True}
    loaded = MultiLabelModule.load_from_checkpoint(result.checkpoint, **options).eval()
    assert loaded.objective == Ranks(0.5)
    assert torch.equal(loaded.predict_step(batch), result.module.predict_step(batch))


def test_the_validation_loss_comes_from_the_objective(tmp_path, data):
    module = make_module(objective=LossOfHalf())
    assert train(module, data, tmp_path, max_epochs=1, monitor="val/loss").best_value == 0.5


def test_weights_of_another_objective_are_refused(tmp_path, data):
    train(make_module(), data, tmp_path, max_epochs=1)
    message, options = r"objective\.class=Ranks instead of BinaryObjective", {"model": GINE()}
    with pytest.raises(ValueError, match=message):
        train(make_module(objective=Ranks()), data, tmp_path, max_epochs=2, resume=True)
    with pytest.raises(ValueError, match=message):
        MultiLabelModule.load_from_checkpoint(tmp_path / "last.ckpt", objective=Ranks(), **options)


def test_options_of_objectives_are_plain_data():
    with pytest.raises(ValueError, match=r"'objective\['margin'\]' to be a tensor, number"):
        MultiLabelModule(GINE(), LABELS, Ranks(torch.device("cpu")))


def test_binary_loss_has_intermediate_terms_smoothing_and_other_losses(batch):
    model, options = LabelModel().eval(), {"gamma": 1.0, "alpha": None}
    output = model(batch, return_intermediate=True)
    terms = output.logits, batch.y, output.intermediate, 0.3
    expected = lamp_loss(*terms, label_smoothing=0.1)
    assert torch.equal(BinaryObjective(0.3, 0.1).loss(model, batch), expected)
    assert not torch.equal(expected, lamp_loss(output.logits, batch.y))
    objective = BinaryObjective(0.3, loss_name="focal", loss_options=options)
    assert torch.equal(objective.loss(model, batch), lamp_loss(*terms, loss=focal_loss, **options))


@pytest.mark.parametrize("name", LOSSES)
def test_losses_have_gradients_and_are_restored_from_hyperparameters(name, batch):
    options = {"pos_weight": [1.0, 2.0, 1.0]} if name == "bce" else {}
    objective = BinaryObjective(loss_name=name, loss_options=options)
    module = make_module(objective=objective)
    objective.loss(module.model, batch).backward()
    assert module.model.lin_out.weight.grad.norm() > 0
    assert make_module(objective=module.hparams["objective"]).objective == objective


def test_binary_validation_has_no_intermediate_terms_and_no_smoothing(batch):
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
        ({"max_given": 1.0}, r"'max_given' to be a number in \[0, 1\)"),
        ({"loss_name": "hinge"}, r"'loss_name' to be one of bce, .*\(got 'hinge'\)"),
        ({"loss_options": {"gamma": 2.0}}, r"of 'bce' among \['pos_weight'\] \(got \['gamma'\]\)"),
        ({"loss_options": {"pos_weight": -5.0}}, r"'pos_weight' .* at least 0 \(got -5\.0\)"),
        ({"loss_options": {"pos_weight": [1.0, -5.0]}}, r"'pos_weight' .* \(got -5\.0\)"),
        ({"loss_name": "focal", "loss_options": {"gamma": -1}}, r"'gamma' .* \(got -1\)"),
        ({"loss_name": "soft_f1", "loss_options": {"average": "x"}}, r"'average' .*\(got 'x'\)"),
    ],
)
def test_binary_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BinaryObjective(**options)


def test_two_objectives_cannot_have_the_same_name():
    with pytest.raises(ValueError, match=r"a name of its own.*objectives\.BinaryObjective"):
        type("BinaryObjective", (Ranks,), {})
    assert type(make_module().objective) is BinaryObjective


NAN = float("nan")


def batch_of(y: torch.Tensor) -> Batch:
    return Batch.from_data_list([Data(x=torch.randn(1, 4), y=row) for row in y.split(1)])


def lamp(graph=fully_connected, **options) -> LaMP:
    return LaMP(VectorEncoder(4, 8), graph(LABELS), num_feature_layers=0, heads=2, **options)


def test_random_labels_are_revealed_up_to_a_fraction():
    torch.manual_seed(0)
    y = torch.randint(2, (2000, 20)).float()
    y[:, 0] = NAN
    batch = batch_of(y)
    revealed = reveal(batch, 0.6)
    is_given, is_target = ~revealed.given.isnan(), ~revealed.y.isnan()
    assert torch.equal(is_given ^ is_target, ~y.isnan())  # Known labels are given or targets.
    assert torch.equal(revealed.given[is_given], y[is_given])
    assert torch.equal(revealed.y[is_target], y[is_target])
    fractions = is_given[:, 1:].float().mean(dim=1)
    assert abs(fractions.mean() - 0.3) < 0.02
    assert fractions.min() == 0.0
    assert 0.6 < fractions.max() < 1.0
    assert torch.equal(batch.y.isnan(), y.isnan())
    assert "given" not in batch


def test_labels_that_are_given_stay_given():
    torch.manual_seed(0)
    batch = batch_of(torch.tensor([[1.0, 0.0, 1.0]]).repeat(200, 1))
    batch.given = torch.tensor([[NAN, NAN, 1.0]]).repeat(200, 1)
    masked = without_given(lamp(given_labels=True), batch)  # Modules do this in training.
    torch.testing.assert_close(reveal(masked, 0.0).given, batch.given, equal_nan=True)
    revealed = reveal(masked, 0.9)
    assert revealed.given[:, 2].eq(1.0).all()
    assert revealed.y[:, 2].isnan().all()
    assert not revealed.given[:, :2].isnan().all()


def test_masks_follow_the_seed():
    batch = batch_of(torch.randint(2, (8, 3)).float())
    masks = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        masks.append(reveal(batch, 0.9).given.isnan())
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_given_labels_are_no_targets_and_no_predictions():
    model, y = lamp(given_labels=True), torch.tensor([[1.0, 0.0, NAN], [1.0, 1.0, 0.0]])
    batch = batch_of(y)
    assert without_given(model, batch) is batch
    batch.given = torch.tensor([[1.0, NAN, NAN], [NAN, 0.0, NAN]])
    targets = without_given(model, batch).y
    expected = torch.tensor([[NAN, 0.0, NAN], [1.0, NAN, 0.0]])
    torch.testing.assert_close(targets, expected, equal_nan=True)

    class Half(BinaryObjective):
        def scores(self, model, batch):
            return torch.full((2, 3), 0.5)

    assert scores_of(Half(), model, batch).tolist() == [[1.0, 0.5, 0.5], [0.5, 0.0, 0.5]]


def test_the_loss_covers_only_labels_that_are_not_revealed():
    model = lamp(given_labels=True).eval()
    batch = batch_of(torch.randint(2, (16, 3)).float())
    torch.manual_seed(0)
    revealed = BinaryObjective(0.3, max_given=0.7).training_batch(batch)
    loss = BinaryObjective(0.3).loss(model, revealed)
    torch.manual_seed(0)
    assert torch.equal(loss, BinaryObjective(0.3).loss(model, reveal(batch, 0.7)))
    assert not torch.equal(loss, BinaryObjective(0.3).loss(model, batch))


def test_validation_reveals_the_same_labels_in_every_epoch():
    objective, batch = BinaryObjective(max_given=0.75), batch_of(torch.randint(2, (64, 3)).float())
    first = objective.validation_batch(batch, 0)
    rng_state = torch.random.get_rng_state()
    second = objective.validation_batch(batch, 0)
    # Validation does not change the random numbers of training.
    assert torch.equal(torch.random.get_rng_state(), rng_state)
    torch.testing.assert_close(second.given, first.given, equal_nan=True)
    assert not first.given.isnan().all()
    assert not torch.equal(objective.validation_batch(batch, 1).given.isnan(), first.given.isnan())
    assert BinaryObjective().validation_batch(batch, 0) is batch
    batch.given = torch.full_like(batch.y, NAN)
    assert objective.validation_batch(batch, 0) is batch


def test_validation_scores_labels_that_are_not_given():
    objective = BinaryObjective(max_given=0.75)
    module = MultiLabelModule(lamp(given_labels=True), LABELS, objective).eval()
    batch = batch_of(torch.randint(2, (64, 3)).float())
    module.validation_step(batch, 0)
    y, scores, _, num_targets = module._validated[0]
    revealed = module.objective.validation_batch(batch, 0)
    torch.testing.assert_close(y, revealed.y, equal_nan=True)
    assert num_targets.item() == (~revealed.y.isnan()).sum() < y.numel()
    torch.testing.assert_close(scores, module.objective.scores(module.model, revealed))


def twins(num_samples: int = 64) -> Batch:
    """Returns samples with two equal random labels that do not depend on the inputs."""
    coin = torch.randint(2, (num_samples, 1)).float().expand(-1, 2)
    return Batch.from_data_list([Data(x=torch.ones(1, 1), y=y) for y in coin.split(1)])


def trained_on(batch: Batch, model: nn.Module, objective: Objective, num_steps: int):
    """Returns a module that was trained for some steps on one batch."""
    module = MultiLabelModule(model, ["a", "b"], objective)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(num_steps):
        optimizer.zero_grad()
        objective.loss(model, objective.training_batch(batch)).backward()
        optimizer.step()
    return module.eval()


@pytest.mark.filterwarnings("ignore:.*changes no other prediction")
@pytest.mark.parametrize("graph", [fully_connected, edgeless])
def test_messages_carry_given_labels(graph):
    torch.manual_seed(0)
    options = {"num_feature_layers": 0, "num_steps": 1, "heads": 1, "dropout": 0.0}
    model = LaMP(VectorEncoder(1, 8), graph(2), given_labels=True, **options)
    batch = twins()
    module = trained_on(batch, model, BinaryObjective(max_given=0.75), 60)
    unconditional = module.predict_step(batch)
    batch.given = torch.where(torch.tensor([True, False]), batch.y, NAN)
    scores = module.predict_step(batch)
    assert torch.equal(scores[:, 0], batch.y[:, 0])
    if graph is edgeless:
        assert torch.equal(scores[:, 1], unconditional[:, 1])
    else:
        assert ((unconditional[:, 1] > 0.2) & (unconditional[:, 1] < 0.8)).all()
        assert torch.equal(scores[:, 1] > 0.5, batch.y[:, 1] > 0)


@pytest.mark.parametrize(
    ("build", "objective"),
    [
        (pooled_mlp, BinaryObjective),
        (gaml, BinaryObjective),
        (seq2seq, LabelSequenceObjective),
        (energy_network, UnrolledObjective),
    ],
)
def test_models_without_label_graphs_use_given_labels(build, objective):
    torch.manual_seed(0)
    samples = from_arrays(torch.ones(64, 2), twins().y, label_names=["a", "b"], kind="vector")
    options = {"channels": 16, "dropout": 0.0, "input_dropout": 0.0, "num_components": 1}
    model = build(samples, edgeless(2), False, given_labels=True, **options)
    batch = Batch.from_data_list(list(samples))
    module = trained_on(batch, model, objective(max_given=0.75), 100)
    batch.given = torch.where(torch.tensor([True, False]), batch.y, NAN)
    assert torch.equal(module.predict_step(batch)[:, 1] > 0.5, batch.y[:, 1] > 0)


def test_given_labels_of_samples_are_used_in_training_and_prediction(tmp_path, dataset, split):
    y = torch.cat([data.y for data in dataset])
    given = torch.where(torch.arange(3) == 1, y, NAN)
    seed_everything(0, verbose=False)
    module = MultiLabelModule(lamp(given_labels=True), LABELS, BinaryObjective(max_given=0.5))
    vectors = from_arrays(torch.randn(len(y), 4), y, label_names=LABELS, kind="vector")
    data = MultiLabelDataModule(with_attribute(vectors, "given", given), split, batch_size=16)
    result = train(module, data, tmp_path, max_epochs=1, monitor="val/loss")
    scores = result.scores(data.test_dataloader())
    expected = given[split.test]
    assert torch.equal(scores[~expected.isnan()], expected[~expected.isnan()])
    assert ((scores[:, 0] > 0) & (scores[:, 0] < 1)).all()


def test_given_labels_are_not_scored_in_validation(batch):
    module = make_module(TakesGiven)
    batch.given = torch.where(torch.arange(3) == 1, batch.y, NAN)
    module.validation_step(batch, 0)
    y, _, _, num_targets = module._validated[0]
    assert y[:, 1].isnan().all()
    assert num_targets.item() == (~batch.y[:, [0, 2]].isnan()).sum()


class TakesGiven(GINE):
    """A model that declares that it takes given labels, but ignores them."""

    takes_given_labels = True


def test_masks_are_the_same_after_resuming(tmp_path, dataset, split):
    y = torch.cat([data.y for data in dataset])
    vectors = from_arrays(torch.randn(len(y), 4), y, label_names=LABELS, kind="vector")
    data = MultiLabelDataModule(vectors, split, batch_size=16)

    def weights(folder, epochs, **options):
        seed_everything(0, verbose=False)
        # Without dropout, only the masks are random.
        model = lamp(given_labels=True, dropout=0.0)
        module = MultiLabelModule(model, LABELS, BinaryObjective(max_given=0.75))
        options = {"max_epochs": epochs, "patience": None, **options}
        path = train(module, data, tmp_path / folder, **options).last_checkpoint
        return torch.load(path, weights_only=True)["state_dict"]

    uninterrupted = weights("straight", 3)
    weights("stopped", 2)
    resumed = weights("stopped", 3, resume=True)
    for name, weight in uninterrupted.items():
        assert torch.equal(torch.as_tensor(resumed[name]), torch.as_tensor(weight)), name
