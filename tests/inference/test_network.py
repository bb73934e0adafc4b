import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import GATConv, Linear, MeanAggregation, SumAggregation

from tests.training.conftest import LABELS, LabelModel, ToyGraphs
from tg_mlc.data import random_split
from tg_mlc.graphs import fully_connected
from tg_mlc.inference import read_checkpoint
from tg_mlc.inference.network import check_settings, describe_settings
from tg_mlc.inputs.scalers import LogCounts
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import NodeEncoder, VectorEncoder
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit


def make_lamp(inputs=NodeEncoder, **options):
    return LaMP(inputs(4, 8), fully_connected(LABELS), **{"num_steps": 1, "heads": 2, **options})


@pytest.fixture(scope="module")
def data():
    dataset = ToyGraphs(30)
    return MultiLabelDataModule(dataset, random_split(len(dataset), seed=0), batch_size=8)


def train(model, data, folder):
    module = MultiLabelModule(model, LABELS)
    return fit(module, data, folder, max_epochs=1, logger=False).training


@pytest.fixture(scope="module")
def trained(tmp_path_factory, data):
    return train(make_lamp(), data, tmp_path_factory.mktemp("run"))


def load(result, model):
    path = result.checkpoint
    return MultiLabelModule.load_from_checkpoint(path, model=model, weights_only=True).eval()


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"heads": 4}, r"features\.convs\.0\.heads=4 instead of 2, .* and \d+ more\)"),
        ({"heads": 4}, r"scale=0\.70\d* instead of 0\.5"),
        ({"heads": 4}, r"model\.load_state_dict\(read_checkpoint\(path\)\.state_dict"),
        ({"label_kwargs": {"heads": 1}}, r"labels\.label_to_label\.0\.heads=1 instead of 2"),
        ({"scale": 1.0}, r"features\.convs\.0\.scale=1 instead of 0\.5"),
    ],
)
def test_other_settings_of_the_same_shapes_are_refused_by_name(trained, options, difference):
    model = make_lamp(**options)
    # The message suggests this call, because no shape differs.
    model.load_state_dict(read_checkpoint(trained.checkpoint).state_dict)
    with pytest.raises(ValueError, match=rf"settings that these weights .*{difference}"):
        load(trained, model)


def test_settings_without_effect_on_outputs_may_differ(trained, batch):
    options = {"dropout": 0.7, "attention_dropout": 0.1}
    options |= {"backend": "reference", "checkpointing": True}
    module = load(trained, make_lamp(**options).eval())
    torch.testing.assert_close(module(batch), trained.module(batch), rtol=1e-5, atol=1e-6)


class OwnEncoder(nn.Module):
    """A custom encoder with settings, other attributes, and a counter that training changes."""

    edge_dim = None

    def __init__(self, in_channels, channels, power=2):
        super().__init__()
        self.channels = channels
        self.power = np.float32(power)
        self.window = (1, 2.5, "same")
        self.words = {"a": 1}
        self.unknown = float("nan")
        self.num_calls = 0
        self.encode = NodeEncoder(in_channels, channels)

    def forward(self, data):
        self.num_calls += 1
        x, *others = self.encode(data)
        return x**self.power, *others


def test_settings_of_custom_encoders_are_checked(tmp_path, data, batch):
    result = train(make_lamp(OwnEncoder), data, tmp_path)
    assert result.module.model.encoder.num_calls > 0
    assert torch.equal(load(result, make_lamp(OwnEncoder))(batch), result.module(batch))
    with pytest.raises(ValueError, match=r"\(got encoder\.power=3 instead of 2\)"):
        load(result, make_lamp(lambda *sizes: OwnEncoder(*sizes, power=3)))
    assert describe_settings(result.module.model)["encoder"]["window"] == "(1, 2.5, 'same')"


def test_lazy_layers_load_into_lazy_and_sized_layers(tmp_path, data, batch):
    def lazy():
        model = LabelModel()
        model.lin_in = nn.Sequential(Linear(-1, 8), nn.LazyLinear(8))
        return model

    result = train(lazy(), data, tmp_path)
    sized = LabelModel()
    sized.lin_in = nn.Sequential(Linear(4, 8), nn.Linear(8, 8))
    for model in (lazy(), sized):
        assert torch.equal(load(result, model)(batch), result.module(batch))


def check(trained, present):
    check_settings(describe_settings(trained), describe_settings(present))


@pytest.mark.parametrize(
    ("trained", "present", "difference"),
    [
        (MeanAggregation(), SumAggregation(), "class=SumAggregation instead of MeanAggregation"),
        (nn.Sequential(nn.ReLU()), nn.Sequential(nn.GELU()), r"0\.class=GELU instead of ReLU"),
        (nn.Conv1d(2, 2, 3, padding=1), nn.Conv1d(2, 2, 3), r"padding=\(0\) instead of \(1\)"),
        (GATConv(2, 4, negative_slope=0.1), GATConv(2, 4), "negative_slope=0.2 instead of 0.1"),
        (nn.Embedding(3, 2), nn.Embedding(3, 2, max_norm=1.0), "max_norm=1 instead of None"),
        (VectorEncoder(2, 4, scaling=LogCounts()), VectorEncoder(2, 4), "class=nothing instead"),
    ],
)
def test_differences_between_settings_of_modules_are_named(trained, present, difference):
    with pytest.raises(ValueError, match=difference):
        check(trained, present)
    check(trained, copy.deepcopy(trained))


@pytest.mark.parametrize(
    ("trained", "present"),
    [
        (nn.Dropout(0.5), nn.Identity()),
        (nn.ReLU(), nn.ReLU(inplace=True)),
        (nn.Sequential(nn.BCEWithLogitsLoss(reduction="sum")), nn.Sequential(nn.Identity())),
        (nn.BatchNorm1d(3, momentum=0.1), nn.BatchNorm1d(3, momentum=0.2)),
        (Linear(2, 2, weight_initializer="glorot"), Linear(2, 2)),
    ],
)
def test_options_of_training_are_no_settings(trained, present):
    check(trained, present)


def test_rounding_nan_and_attributes_of_one_side_are_no_differences():
    models = [nn.ReLU(), nn.ReLU()]
    for model, number in zip(models, (0.1 + 0.2, 0.3), strict=True):
        model.scale, model.fill = number, float("nan")
    models[0].gate = True
    check(*models)
    check(*models[::-1])
