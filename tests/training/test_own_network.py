"""A user's own network is trained, saved, and loaded by a new process to predict."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from lightning.pytorch.callbacks import Callback, TQDMProgressBar
from lightning.pytorch.plugins.environments import LightningEnvironment
from torch import nn
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import RandomSampler, Subset, WeightedRandomSampler
from torch_geometric.data import Batch, Data, HeteroData, OnDiskDataset
from torch_geometric.loader import DataLoader, RandomNodeLoader
from torch_geometric.nn import global_mean_pool

import tg_mlc
from tests.fresh import run_python
from tests.training.conftest import GINE, LABELS, LabelModel, make_module
from tests.training.networks import Net
from tg_mlc.data import from_arrays, random_split
from tg_mlc.datasets import registry
from tg_mlc.graphs import LabelGraph, edgeless
from tg_mlc.inference import Model
from tg_mlc.inference.decisions import Calibration
from tg_mlc.inputs.tables import read_molecules
from tg_mlc.models import builder
from tg_mlc.sklearn import AutoClassifier, LaMPClassifier, LinearClassifier
from tg_mlc.training import BinaryObjective, MultiLabelDataModule, MultiLabelModule

NAMES = ["calm", "sad"]


class KeepsArguments(nn.Module):
    """A network whose arguments are plain data and are kept as attributes."""

    def __init__(self, sizes: list, options: dict, label_graph: LabelGraph, note: str = ""):
        super().__init__()
        self.sizes, self.options, self.note = sizes, options, note
        self.lin = nn.Linear(sizes[0], sizes[1])
        self.labels = tg_mlc.LabelMessagePassing(sizes[1], label_graph, num_steps=1, heads=2)
        self.head = tg_mlc.LabelHead(self.labels)

    def forward(self, batch: Data) -> torch.Tensor:
        x = self.lin(batch.x) * self.options["scale"]
        return self.head(self.labels(x, batch.batch))


class Hidden(nn.Module):
    """A network whose argument changes outputs but no shape, and is no public attribute."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self._scale = scale

    def forward(self, batch: Data) -> torch.Tensor:
        return self._scale * self.lin(global_mean_pool(batch.x, batch.batch))


class Required(Hidden):
    def __init__(self, factor: float) -> None:
        super().__init__(factor)


class Holder(Hidden):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer


@builder
class Recorded(Hidden):
    def __init__(self, factor: float, *, power: int = 1) -> None:
        super().__init__(factor**power)


def samples(num_samples: int = 40, shape: tuple[int, ...] = (2,)) -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    data_list = []
    for _ in range(num_samples):
        x = torch.randn(4, 3, generator=generator)
        y = (x.sum(dim=0)[:2] > 0).float()
        y[torch.rand(2, generator=generator) < 0.1] = torch.nan
        data_list.append(Data(x=x, y=y.view(shape)))
    return data_list


def fit(network: nn.Module, data: object, folder: Path, **options: object):
    options = {"max_epochs": 1, "logger": False, "monitor": "val/loss", **options}
    return tg_mlc.fit(network, data, folder, **options)


class OnDisk(OnDiskDataset):
    def __init__(self, root: str) -> None:
        sizes = {"x": (4, 3), "y": (2,)}
        schema = {name: {"dtype": torch.float, "size": size} for name, size in sizes.items()}
        super().__init__(root, schema=schema)

    def serialize(self, data: Data) -> dict[str, torch.Tensor]:
        return {"x": data.x, "y": data.y}

    def deserialize(self, data: dict[str, torch.Tensor]) -> Data:
        return Data(**data)


def on_disk(folder: Path) -> OnDisk:
    dataset = OnDisk(str(folder / "disk"))
    dataset.extend(samples())
    return dataset


DATA = {
    "list": lambda folder: samples(),
    "rows": lambda folder: samples(shape=(1, 2)),
    "subset": lambda folder: Subset(samples(), range(30)),
    "on disk": on_disk,
    "loader": lambda folder: DataLoader(samples(), batch_size=8, shuffle=True),
    "three loaders": lambda folder: [DataLoader(samples(n), 8, shuffle=True) for n in (24, 8, 8)],
    "three lists": lambda folder: [samples(n) for n in (24, 8, 8)],
    "two lists and a data set": lambda folder: [samples(24), on_disk(folder), samples(8)],
    "module": lambda folder: MultiLabelDataModule(samples(), random_split(40)),
}


@pytest.mark.parametrize("data_format", DATA)
def test_data_of_every_format_can_be_trained_on(tmp_path, data_format):
    result = fit(Net(2), DATA[data_format](tmp_path), tmp_path / "run", label_names=NAMES).training
    assert result.evaluate().num_samples == result.data.split.sizes[2] > 0
    assert result.scores(samples(3)).shape == (3, 2)
    assert result.data.split.num_samples == len(result.data.dataset)
    assert (result.data.batch_size == 8) == ("loader" in data_format)
    loaded = tg_mlc.load(result.model.save(tmp_path / "model"), Net)
    frame = loaded.predict([Data(x=torch.zeros(2, 3))])
    assert [*frame["probability"]] == NAMES
    assert {*frame.columns.get_level_values(0)} == {"probability", "decision", "threshold"}
    expected = result.scores(samples(3)).numpy()
    assert loaded.probabilities(samples(3)) == pytest.approx(expected, abs=1e-6)
    assert loaded.facts["split"] == result.data.split.hash


def test_a_sample_may_be_heterogeneous(tmp_path):
    def hetero(sample: Data) -> HeteroData:
        data = HeteroData(y=sample.y)
        data["atom"].x = sample.x
        return data

    class Pooled(nn.Module):
        def __init__(self, num_labels: int) -> None:
            super().__init__()
            self.lin = nn.Linear(3, num_labels)

        def forward(self, batch):
            return self.lin(global_mean_pool(batch["atom"].x, batch["atom"].batch))

    result = fit(Pooled(2), [hetero(sample) for sample in samples()], tmp_path).training
    assert tg_mlc.load(result.folder, Pooled).probabilities([hetero(samples(1)[0])]).shape == (1, 2)
    assert result.module.label_names == ["label_0", "label_1"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (torch.zeros(3, 2), r"'y' of shape \[L\] or \[1, L\] .* \(got \[3, 2\] in sample 39\)"),
        (torch.tensor(1.0), r"\(got \[\] in sample 39\)"),
        (None, r"\(got NoneType in sample 39\)"),
        (torch.zeros(3), r"'y' of 2 labels in every sample, .* \(got 3 in sample 39\)"),
        (torch.tensor([2, 1]), r"'y' to hold 0, 1 and NaN \(got \[2.0, 1.0\] in sample 39\)"),
    ],
)
def test_targets_of_wrong_shapes_or_values_are_refused_by_the_data_module(target, message):
    data = samples()
    data[-1].y = target
    with pytest.raises(ValueError, match=message):
        MultiLabelDataModule(data, random_split(40))


def test_training_leaves_the_samples_of_a_list_unchanged(tmp_path):
    data = samples()
    originals = [sample.clone() for sample in data]
    MultiLabelDataModule(data, random_split(40))
    tg_mlc.fit(Net(2), data, tmp_path, max_epochs=1)
    for sample, original in zip(data, originals, strict=True):
        assert sample.keys() == original.keys()
        torch.testing.assert_close(sample.y, original.y, equal_nan=True)


def test_targets_default_to_those_of_the_samples_and_are_required(tmp_path):
    predictor, data = Model.of(Net(2), NAMES), samples()
    targets = torch.stack([sample.y for sample in data])
    assert predictor.evaluate(data).values == predictor.evaluate(data, targets).values
    unlabelled = [Data(x=sample.x) for sample in data]
    for method in (predictor.evaluate, predictor.tune):
        with pytest.raises(ValueError, match="their labels as 'y'"):
            method(unlabelled)
    with pytest.raises(ValueError, match=r"got one, not in a list\); pass a list of Data"):
        predictor.predict(unlabelled[0])


def of_labels(num_labels: int) -> list[Data]:
    return [Data(x=torch.zeros(2, 3), y=torch.zeros(num_labels)) for _ in range(4)]


def divided(batch: list[Data]) -> Batch:
    joined = Batch.from_data_list(batch)
    joined.x = joined.x / 1000
    return joined


def test_further_samples_validate_and_test(tmp_path):
    first, second, third = samples(24), of_labels(2), of_labels(2)[:3]
    parts = {"val": second, "test": DataLoader(third, 2)}
    data = fit(Net(2), first, tmp_path, **parts).training.data
    assert data.split.sizes == (24, 4, 3)
    assert [sample.num_nodes for sample in data.part(data.split.val)] == [2] * 4
    assert next(iter(data.train_dataloader())).num_nodes == 24 * 4
    # Only what is missing is taken out of the samples.
    for options, sizes in (
        ({"val": second}, (24, 4, 0)),
        ({"val": second, "test": 0.25}, (18, 4, 6)),
        ({"test": third}, (22, 2, 3)),
    ):
        assert fit(Net(2), first, tmp_path, **options).training.data.split.sizes == sizes


def test_parts_keep_the_label_names_that_they_share(tmp_path):
    x, y = torch.randn(12, 3), torch.eye(2)[torch.arange(12) % 2]
    first, second = (
        from_arrays(x, y, label_names=names, kind="vector") for names in (NAMES, NAMES[::-1])
    )
    assert fit(Net(2), first, tmp_path, val=first).label_names == NAMES
    with pytest.raises(ValueError, match="'val' and 'test' to have the 2 labels of the training"):
        fit(Net(2), first, tmp_path, val=second)


def test_a_loader_keeps_its_order_and_drops_its_last_batch(tmp_path):
    class Pooled(nn.Module):
        def __init__(self, num_labels: int) -> None:
            super().__init__()
            self.norm, self.lin = nn.BatchNorm1d(3), nn.Linear(3, num_labels)

        def forward(self, batch):
            return self.lin(self.norm(global_mean_pool(batch.x, batch.batch)))

    parts = {"val": samples(4), "max_epochs": 2}
    with pytest.raises(ValueError, match=r"more than 1 value per channel .*; pass drop_last"):
        fit(Pooled(2), DataLoader(samples(17), 8, shuffle=True), tmp_path, **parts)
    loader = DataLoader(samples(17), 8, drop_last=True)
    with pytest.warns(UserWarning, match="does not shuffle, .* pass shuffle=True"):
        data = fit(Pooled(2), loader, tmp_path, **parts).training.data
    epochs = [torch.cat([batch.x for batch in data.train_dataloader()]) for _ in range(2)]
    assert torch.equal(*epochs)
    assert torch.equal(epochs[0], torch.cat([batch.x for batch in loader]))


def test_samples_with_and_without_targets_are_predicted_together():
    model, data = Model.of(Net(2), NAMES), samples(4)
    new = [Data(x=data[0].x, edge_index=data[0].edge_index)]
    expected = model.probabilities(data)
    for mixed, rows in ((data + new, [0, 1, 2, 3, 0]), (new + data, [0, 0, 1, 2, 3])):
        np.testing.assert_allclose(model.probabilities(mixed), expected[rows], atol=1e-6)
    assert all("y" in sample for sample in data)


def test_options_of_the_loss_are_taken_by_name(tmp_path):
    weights = torch.tensor([1.0, 3.0])
    trained = fit(Net(2), samples(), tmp_path, pos_weight=weights, label_smoothing=0.1).training
    module = MultiLabelModule.load_from_checkpoint(trained.checkpoint, model=Net(2))
    options = {"pos_weight": [1.0, 3.0]}
    assert module.objective == BinaryObjective(label_smoothing=0.1, loss_options=options)
    module = fit(Net(2), samples(), tmp_path, loss_name="focal", gamma=1.0).training.module
    assert module.objective == BinaryObjective(loss_name="focal", loss_options={"gamma": 1.0})
    with pytest.raises(ValueError, match=r"\['gamma'\] to be arguments of the MultiLabelModule"):
        fit(module, samples(), tmp_path, gamma=1.0)


def test_a_label_that_no_training_sample_knows_is_refused(tmp_path):
    def unknown(num_samples: int) -> list[Data]:
        data = samples(num_samples)
        for sample in data:
            sample.y[1] = torch.nan
        return data

    message = r"a known value of each label among the training samples \(got none of sad\); drop"
    for training in (unknown(20), [unknown(20), samples(4), samples(4)]):
        with pytest.raises(ValueError, match=message):
            fit(Net(2), training, tmp_path, label_names=NAMES)
    dataset = from_arrays(np.eye(8), [[1.0, np.nan], [0.0, np.nan]] * 4, NAMES, kind="vector")
    with pytest.raises(ValueError, match=message):
        tg_mlc.auto(dataset, seconds=1)
    names = pd.DataFrame([[1.0, np.nan], [0.0, np.nan]] * 4, columns=NAMES)
    for estimator in (AutoClassifier(seconds=1), LaMPClassifier(), LinearClassifier()):
        with pytest.raises(ValueError, match=message):
            estimator.fit(np.eye(8), names)


def test_a_graph_without_nodes_is_predicted_or_refused(tmp_path):
    class Unsafe(Net):
        def forward(self, batch):
            return self.head(self.labels(self.lin(batch.x).relu(), batch.batch))

    data = [*samples(6), *[Data(x=torch.zeros(0, 3), y=torch.ones(2)) for _ in range(6)]]
    message = r"a row of outputs for each of \d+ samples .* 'batch' does not .* pass ptr=data.ptr"
    model = fit(Net(2), data, tmp_path, val=data)
    assert model.probabilities(data).shape == (12, 2)
    unsafe = Model.of(Unsafe(2), NAMES)
    for method in (unsafe.probabilities, unsafe.evaluate, unsafe.tune):
        with pytest.raises(ValueError, match=message):
            method(data)
    for training, validation in ((data, data[:6]), (data[:6], data)):
        with pytest.raises(ValueError, match=message):
            fit(Unsafe(2), training, tmp_path, val=validation, shuffle=False)


WEIGHTED = WeightedRandomSampler([1.0] * 40, 40)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (samples, {"val": 1.5}, r"'val' to be a number in \[0, 1\]"),
        (
            samples,
            {"val": [1]},
            r"'val' to be a data set of PyG, or a list of Data \(got list of in",
        ),
        (samples, {"test": None}, r"'test' to be a data set of PyG, .* \(got NoneType\)"),
        (samples, {"val": of_labels(3)}, r"2 labels in 'val' and 'test', as in .* \(got 3\)"),
        (samples, {"pos_weight": -1.0}, "'pos_weight' to be a finite number"),
        (samples, {"gamma": 2.0}, r"'loss_options' of 'bce' among .* \(got \['gamma'\]\)"),
        (samples, {"objective": BinaryObjective(), "pos_weight": 2.0}, "either 'objective' or"),
        (samples, {"gama": 2.0}, r"options that 'fit' knows \(got 'gama'\); is 'gamma' meant"),
        (samples, {"max_epoch": 2}, "got 'max_epoch'.; is 'max_epochs' meant"),
        (samples, {"batch_size": 64, "drop_last": True}, "at least 64 training samples for one"),
        (samples, {"shuffle": 1}, "'shuffle' to be True or False"),
        (samples, {"val": 0.6, "test": 0.5}, r"'val \+ test' to be a number .* \(got 1.1\)"),
        (samples, {"split": random_split(40), "val": 0.2}, "either 'split' or"),
        (samples, {"label_names": ["one"]}, "'label_names' to name each of the 2 labels"),
        (lambda: DATA["module"](None), {"val": 0.2}, "to be options of the MultiLabelDataModule"),
        (lambda: DATA["three loaders"](None)[:2], {}, "Expected three parts"),
        (lambda: DATA["three lists"](None), {"val": 0.2}, "Expected three parts"),
        (lambda: DataLoader(samples(), 4, sampler=WEIGHTED), {}, "Expected loaders with"),
        (lambda: DataLoader(samples(), 4, follow_batch=["x"]), {}, "Expected loaders with"),
        (lambda: TorchLoader(samples(), 4, collate_fn=divided), {}, "Loader with a 'collate_fn'"),
        (samples, {"val": TorchLoader(samples(), 4, collate_fn=divided)}, "with a 'collate_fn'"),
        (
            lambda: DataLoader(samples(), sampler=RandomSampler(range(40), replacement=True)),
            {},
            "with a sampler",
        ),
        (
            lambda: RandomNodeLoader(samples(1)[0], num_parts=2),
            {},
            "RandomNodeLoader .* on the nodes of one graph, see docs/node_labels.md",
        ),
        (lambda: samples(1)[0], {}, "on the nodes of one graph, see docs/node_labels.md"),
    ],
)
def test_options_that_contradict_data_are_refused(tmp_path, data, options, message):
    constructor = DataLoader.__init__
    with pytest.raises(ValueError, match=message):
        fit(Net(2), data(), tmp_path, **options)
    assert DataLoader.__init__ is constructor, "Lightning's changes of loaders outlive the error"


@pytest.mark.parametrize(("end", "count"), [(torch.sigmoid, 1), (torch.tanh, 0), (lambda x: x, 0)])
def test_fit_warns_of_a_network_that_ends_in_a_sigmoid(tmp_path, end, count):
    class Ending(Net):
        def forward(self, batch):
            return end(super().forward(batch))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # PyG's own layers warn on Python 3.13 when they are made.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="torch_geometric")
        result = fit(Ending(2), samples(), tmp_path, batch_size=40).training
    message = "ends in 'sigmoid', but the loss takes logits"
    assert sum(message in str(warning.message) for warning in caught) >= count
    assert count or not caught
    assert len(repr(result)) < 200 + len(str(tmp_path))


def test_options_of_a_module_are_accepted_only_for_a_plain_network(tmp_path, data):
    with pytest.raises(ValueError, match=r"\['lr'\] to be arguments of the MultiLabelModule"):
        fit(make_module(), data, tmp_path, lr=1e-3)
    assert fit(GINE(), data, tmp_path, lr=0.5).training.module.hparams["lr"] == 0.5
    assert fit(LabelModel(), data, tmp_path).label_names == LABELS


GRAPH = LabelGraph(torch.tensor([[0, 1], [1, 1]]), label_names=NAMES)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Net(num_labels=2),
        lambda: KeepsArguments([3, 8], {"scale": 2.0}, GRAPH),
        lambda: KeepsArguments([3, 4], {"scale": 2.0}, edgeless(NAMES), note="ü"),
        lambda: Recorded(3.0, power=2),
        Hidden,
    ],
)
def test_loading_builds_the_network_with_its_saved_arguments(tmp_path, make):
    network = make()
    predictor = Model.of(network, NAMES).tune(samples())
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    loaded = tg_mlc.load(predictor.save(tmp_path), type(network))
    assert torch.equal(torch.rand(1), expected)
    expected = predictor.probabilities(samples())
    assert loaded.probabilities(samples()) == pytest.approx(expected, abs=1e-6)
    assert loaded.thresholds().tolist() == predictor.thresholds().tolist()
    assert loaded.evaluate(samples()).values == predictor.evaluate(samples()).values


@pytest.mark.parametrize(
    ("make", "message", "arguments"),
    [
        (lambda: Net(2, channels=16), "class 'Net' makes it .* 'arguments'", {"channels": 16}),
        (lambda: Hidden(3.0), "the same outputs of Hidden", {"scale": 3.0}),
        (lambda: Required(3.0), "of Required to be plain data .*'factor'", {"factor": 3.0}),
        (lambda: Holder(nn.Linear(1, 1)), "arguments of Holder .*'layer'", None),
        (lambda: Recorded(torch.tensor(2.0)), "got a Tensor as 'factor'", {"factor": 2.0}),
    ],
)
def test_saving_names_arguments_that_are_not_known(tmp_path, make, message, arguments):
    predictor = Model.of(make(), NAMES).tune(samples())
    with pytest.raises(ValueError, match=message):
        predictor.save(tmp_path)
    assert not [*tmp_path.iterdir()]
    if arguments is not None:
        predictor.save(tmp_path, arguments)
        loaded = tg_mlc.load(tmp_path, type(predictor.networks[0]))
        expected = predictor.probabilities(samples())
        assert loaded.probabilities(samples()) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match=r"'nonsense'|'layer'"):
        predictor.save(tmp_path, {**(arguments or {}), "nonsense": 1})


def test_a_network_with_unknown_arguments_can_be_trained(tmp_path):
    result = fit(Required(1.0), samples(), tmp_path).training
    assert result.folder is None
    loaded = tg_mlc.load(result.model.save(tmp_path / "mine", {"factor": 1.0}), Required)
    assert loaded.probabilities(samples(2)).shape == (2, 2)


def test_saving_needs_samples_and_loading_needs_the_class(tmp_path):
    with pytest.raises(ValueError, match="Expected samples to compare Hidden"):
        Model.of(Hidden(), NAMES).save(tmp_path)
    Model.of(Hidden(), NAMES).tune(samples()).save(tmp_path)
    for network in (None, "cpu", Net, Hidden()):
        with pytest.raises(ValueError, match=r"'network' to be the class .*\.Hidden"):
            tg_mlc.load(tmp_path, network)


def test_label_names_are_required_for_networks_and_refused_for_modules():
    with pytest.raises(ValueError, match="'label_names' for a Hidden without a label graph"):
        Model.of(Hidden())
    with pytest.raises(ValueError, match="'label_names' beside a network, and only there"):
        Model.of(make_module(), LABELS)


# This package is imported before PyG, because it suppresses a warning of PyTorch 2.14 about PyG.
PREDICTION = """
import torch

import tg_mlc
from torch_geometric.data import Data
from tests.training.networks import Net

model = tg_mlc.load({folder!r}, Net)
frame = model.predict(torch.load({file!r}, weights_only=False))
print(*frame["probability"].columns, *frame["probability"].to_numpy().round(5).ravel(), sep="\\n")
"""


@pytest.mark.parametrize("name", ["synthetic", "tox21"])
def test_a_saved_network_predicts_in_a_new_process(tmp_path, name, monkeypatch):
    """Trains in this process and predicts in a new one."""
    data, names = samples(), NAMES
    if name == "tox21":
        if not (Path(os.environ.get("TG_MLC_DATA", "")) / "tox21").is_dir():
            pytest.skip("TG_MLC_DATA has no Tox21")

        def read_some(*args):
            smiles, y, label_names = read_molecules(*args)
            return smiles[:300], y[:300], label_names

        monkeypatch.setattr("tg_mlc.datasets.moleculenet.read_molecules", read_some)
        dataset = registry.load("tox21", tmp_path / "data")
        data, names = [Data(x=sample.x, y=sample.y[0]) for sample in dataset], dataset.label_names
        assert torch.cat([sample.y for sample in data]).isnan().any()

    options = {"val": 0.2, "test": 0.2, "label_names": names, "max_epochs": 2, "logger": False}
    result = tg_mlc.fit(Net(num_labels=len(names)), data, tmp_path / "run", **options).training
    result.model.save(tmp_path / "model")

    torch.save([Data(x=sample.x) for sample in data[:3]], tmp_path / "new.pt")
    code = PREDICTION.format(folder=str(tmp_path / "model"), file=str(tmp_path / "new.pt"))
    printed, errors = run_python(code)
    assert errors == ""
    lines = printed.splitlines()
    assert lines[: len(names)] == names
    expected = result.scores(data[:3]).flatten().tolist()
    assert [float(value) for value in lines[len(names) :]] == pytest.approx(expected, abs=1e-4)


class Steep(Hidden):
    """Logits that are many times too large."""

    def forward(self, batch: Data) -> torch.Tensor:
        return 9 * super().forward(batch)


def test_calibration_and_label_sets_are_fitted_on_held_out_samples(tmp_path):
    inputs = [sample.x for sample in samples(400)]
    noisy = [Data(x=x, y=(x.mean(dim=0)[:2] + torch.randn(2) > 0).float()) for x in inputs]
    options = {"val": 0.4, "test": 0.2, "max_epochs": 2, "label_names": NAMES}
    calibrated = {**options, "calibrate": True, "coverage_share": 0.25}
    result = fit(Steep(), noisy, tmp_path / "run", **calibrated).training
    assert sum(result.data.split.sizes) == 300
    assert result.model.decision.conformal.row.max() < 100
    assert "identity" not in result.model.stage(Calibration).methods
    plain = fit(Steep(), noisy, tmp_path / "plain", **options).training
    assert result.evaluate("val")["ece_macro"] < 0.5 * plain.evaluate("val")["ece_macro"]

    loaded = tg_mlc.load(result.folder, Steep)
    frame = loaded.predict(noisy, coverage=0.8)
    assert frame.attrs["calibrated"]
    np.testing.assert_array_equal(frame["probability"], result.model.predict(noisy)["probability"])
    y = torch.stack([data.y for data in noisy]).numpy()
    assert frame["decision"].to_numpy()[y == 1].mean() == pytest.approx(0.8, abs=0.1)
    test = result.data.part(result.data.split.test)
    assert result.evaluate("test").values == loaded.evaluate(test).values
    rows = result.data.split.train.tolist()
    counts = torch.stack([result.data.dataset[row].y.view(-1) for row in rows]).sum(dim=0)
    assert loaded.facts["counts"]["positive"].tolist() == counts.tolist()
    assert "propensity_precision_at_1" in loaded.evaluate(test).values
    with pytest.raises(ValueError, match="'conformalize'"):
        tg_mlc.load(plain.folder, Steep).predict(noisy, coverage=0.8)


@pytest.mark.parametrize("options", [{"split": random_split(40)}, {}])
def test_data_that_are_already_split_leave_no_samples_for_label_sets(tmp_path, options):
    data = samples() if options else DataLoader(samples(), 8)
    with pytest.raises(ValueError, match=r"not divided yet for coverage_share.*'conformalize'"):
        fit(Recorded(1.0), data, tmp_path, **options, coverage_share=0.2)


#: Options of the trainer that work together.
ACCEPTED = [
    {"accumulate_grad_batches": 2, "benchmark": True, "detect_anomaly": True, "devices": "auto"},
    {"callbacks": [TQDMProgressBar(), Callback()], "enable_model_summary": True, "min_epochs": 1},
    {"check_val_every_n_epoch": 2, "enable_progress_bar": False, "num_sanity_val_steps": 2},
    {"gradient_clip_algorithm": "value", "gradient_clip_val": 1.0, "strategy": "auto"},
    {"limit_train_batches": 2, "limit_val_batches": 1, "limit_test_batches": 1, "logger": True},
    {"log_every_n_steps": 1, "inference_mode": False, "max_time": "00:00:10:00"},
    {"max_steps": 8, "plugins": [LightningEnvironment()], "profiler": "simple"},
    {"overfit_batches": 2, "reload_dataloaders_every_n_epochs": 1, "val_check_interval": 1.0},
    {"precision": "64-true", "use_distributed_sampler": False, "deterministic": True},
]
REFUSED = {"barebones": True, "enable_checkpointing": False, "fast_dev_run": True}
REFUSED |= {"limit_predict_batches": 1, "limit_train_batches": 0, "limit_val_batches": 0}
REFUSED |= {"overfit_batches": 0.01, "val_check_interval": 0.5}


@pytest.mark.filterwarnings("error:You requested to overfit")
@pytest.mark.parametrize("options", ACCEPTED)
def test_accepted_options_of_the_trainer_work(tmp_path, data, options):
    result = fit(make_module(), data, tmp_path, **{"max_epochs": 2, **options}).training
    assert result.scores(data.test_dataloader()).shape == (12, 3)
    assert result.module.tuners
    assert result.evaluate().num_samples == 12


@pytest.mark.parametrize("option", REFUSED)
def test_other_options_of_the_trainer_are_refused(tmp_path, data, option):
    with pytest.raises(ValueError, match=option):
        fit(make_module(), data, tmp_path, **{option: REFUSED[option]})


def test_default_root_dir_is_left_to_the_caller(tmp_path, data):
    options = {"default_root_dir": tmp_path / "other"}
    result = fit(make_module(), data, tmp_path / "run", **options).training
    assert result.trainer.default_root_dir == str(tmp_path / "other")
    assert result.checkpoint.parent == tmp_path / "run"
