"""Tests programs of all kinds of input with any number of samples, components and edges."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import tg_mlc
from tests.models.samples import molecules
from tests.nn.samples import path_graph
from tests.requirements import needs_export
from tests.sequences.histories import histories
from tg_mlc.data import Split
from tg_mlc.exporting.program import Program, featurize, save_onnx, save_torch, trace
from tg_mlc.graphs import fully_connected
from tg_mlc.inference import Model
from tg_mlc.inference.decisions import Calibration
from tg_mlc.metrics.calibration import Calibration as LabelCalibration
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import (
    BagEncoder,
    DNAEncoder,
    GivenComponents,
    MoleculeEncoder,
    SequenceEncoder,
    VectorEncoder,
)
from tg_mlc.sequences import LANET, EventPreprocessor
from tg_mlc.sklearn import LaMPClassifier

LABELS = ["a", "b", "c", "d", "e"]
SIZES = (1, 2, 7, 64)


def words(num_samples, weighted=True):
    generator = torch.Generator().manual_seed(num_samples)
    samples = []
    for row in range(num_samples):
        x = torch.randint(20, (row % 9,), generator=generator)  # The first sample has no words.
        weight = {"weight": torch.rand(x.numel())} if weighted else {}
        samples.append(Data(x=x, num_nodes=x.numel(), **weight))
    return samples


def vectors(num_samples):
    seeds = map(torch.Generator().manual_seed, range(num_samples))
    return [Data(x=torch.randn(1, 6, generator=generator)) for generator in seeds]


def dna(num_samples):
    generator = torch.Generator().manual_seed(num_samples)
    sizes = [1 + 13 * row % 40 for row in range(num_samples)]
    return [Data(x=torch.randint(5, (size,), generator=generator)) for size in sizes]


def single_atoms(num_samples):
    return molecules(num_samples, largest=1 if num_samples < 3 else 9)


def events(num_samples):
    sequences = histories(num_entities=12, num_rows=400)
    rows = torch.arange(sequences.num_events)
    dataset = EventPreprocessor().fit_transform(sequences, Split(rows, rows[:0], rows[:0], "all"))
    return torch.utils.data.Subset(dataset, range(num_samples))


def lamp(encoder, **options):
    options = {"num_feature_layers": 1, "num_steps": 1, "heads": 2, **options}
    return LaMP(encoder, path_graph(5), **options)


def lanet():
    dataset = events(1).dataset
    options = {"channels": 4, "heads": 2, "num_layers": 1}
    options["window"] = {"gaps": dataset.gaps, "num_bins": dataset.num_bins}
    return LANET(fully_connected(5), dataset.num_entities, **options)


CASES = {
    "words": (lambda: lamp(BagEncoder(20, 8, normalized=True, kept=torch.arange(20) > 3)), words),
    "texts": (lambda: lamp(SequenceEncoder(20, 8)), lambda size: words(size + 1, False)[1:]),
    "vectors": (lambda: lamp(VectorEncoder(6, 8, 3)), vectors),
    "molecules": (lambda: lamp(MoleculeEncoder(8)), molecules),
    "single atoms": (lambda: lamp(MoleculeEncoder(8)), single_atoms),
    "DNA": (lambda: lamp(DNAEncoder(8, both_strands=True), num_feature_layers=0), dna),
    "given labels": (lambda: lamp(VectorEncoder(6, 8, 3), given_labels=True), vectors),
    "given components": (lambda: lamp(GivenComponents(VectorEncoder(6, 8, 3), 5)), vectors),
    "LANET": (lanet, events),
}


#: Programs with given labels, and of events. Other programs are slow tests.
FAST = {"given labels", "LANET"}


@needs_export
@pytest.mark.parametrize("target", ["torch-export", pytest.param("onnx", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (case not in FAST)) for case in CASES]
)
def test_program_equals_model(case, target, tmp_path):
    torch.manual_seed(0)
    make, sample = CASES[case]
    predictor = Model.of(make(), LABELS)
    tensors = featurize(predictor, sample(20))
    scorer = Program(predictor, list(tensors))
    program = trace(scorer, tensors)
    if target == "onnx":
        run = save_onnx(program, tmp_path / "n.onnx", scorer.names)
    else:
        run = save_torch(program, tmp_path / "n.pt2")
    for size in SIZES:
        samples, given = sample(size), None
        if "given" in scorer.names:
            given = torch.full((size, 5), torch.nan)
            given[:, 1], given[size // 2 :, 2] = 1.0, 0.0
            pairs = zip(samples, given, strict=True)
            samples = [Data(**sample.to_dict(), given=row[None]) for sample, row in pairs]
        expected = torch.from_numpy(predictor.probabilities(samples)).float()
        tensors = featurize(predictor, samples, given)
        probability = run(*(tensors[name] for name in scorer.names))
        torch.testing.assert_close(probability, expected, rtol=0, atol=1e-4)


@pytest.mark.slow
@needs_export
def test_an_estimator_of_a_network_takes_given_labels(tmp_path):
    """The estimator learns to use given labels beside its network."""
    x = np.random.default_rng(0).normal(size=(80, 3))
    y = (x[:, :2] + 2 * x[:, 2:] + np.random.default_rng(1).normal(size=(80, 2)) > 0).astype(int)
    options = {"max_epochs": 2, "random_state": 0, "train_options": {"calibrate": True}}
    classifier = LaMPClassifier(**options).fit(x, y, (x, y))
    predictor = tg_mlc.load(classifier.save(tmp_path / "model"))
    tensors = featurize(predictor, x[:20])
    scorer = Program(predictor, list(tensors))
    program = trace(scorer, tensors)
    assert "given" in scorer.names
    run = save_torch(program, tmp_path / "n.pt2")
    nan = np.nan
    for given in (np.full((3, 2), nan), np.array([[1.0, nan], [nan, 0.0], [nan, nan]])):
        inputs = featurize(predictor, x[:3], given)
        expected = predictor.probabilities(x[:3], given=given)
        scores = run(*(inputs[name] for name in scorer.names)).detach()
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    assert abs(expected - predictor.probabilities(x[:3]))[0, 1] > 1e-3


@needs_export
@pytest.mark.slow
def test_unused_tensors_are_no_inputs_of_a_program():
    predictor = Model.of(lamp(VectorEncoder(6, 8, 3)), LABELS)
    tensors = featurize(predictor, vectors(4))
    scorer = Program(predictor, list(tensors))
    trace(scorer, tensors)
    assert set(tensors) >= {"x", "batch", "ptr", "given"}
    assert scorer.names == ["x"]


class DependsOnValues(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(6, 5)

    def forward(self, data):
        return self.lin(data.x) if data.x.sum() > 0 else -self.lin(data.x)


def test_older_versions_of_pytorch_are_refused(monkeypatch):
    monkeypatch.delattr(torch.compiler, "is_exporting", raising=False)
    predictor = Model.of(lamp(VectorEncoder(6, 8, 3)), LABELS)
    with pytest.raises(ValueError, match=r"PyTorch 2\.7 or newer .*update it"):
        trace(Program(predictor, ["x"]), featurize(predictor, vectors(4)))


@needs_export
def test_control_flow_on_values_is_refused():
    predictor = Model.of(DependsOnValues(), LABELS)
    tensors = featurize(predictor, vectors(4))
    with pytest.raises(ValueError, match=r"Expected networks whose .*torch.export \(got: .*Eq"):
        trace(Program(predictor, list(tensors)), tensors)


@pytest.mark.parametrize("name", ["vectors", "texts"])
def test_calibration_is_a_part_of_the_program(name, saved):
    predictor = tg_mlc.load(saved(name))
    raw = predictor.kind.examples(20)
    uncalibrated = predictor.probabilities(raw)
    calibration = LabelCalibration(["isotonic"] * len(predictor.label_names), 1)
    for buffer, value in zip(calibration.buffers(), (0.4, 0.5, 0.0, 0.8), strict=True):
        buffer.fill_(value)
    predictor.stages.insert(-2, Calibration(calibration))
    tensors = featurize(predictor, raw)
    probabilities = Program(predictor, list(tensors)).eval()(*tensors.values()).detach().numpy()
    assert abs(probabilities - predictor.probabilities(raw)).max() < 1e-4
    assert abs(probabilities - uncalibrated).max() > 0.01
