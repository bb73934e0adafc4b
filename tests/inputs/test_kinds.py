from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.loader import DataLoader

import tg_mlc
from tg_mlc._names import find
from tg_mlc.data import MoleculeDataset, MultiLabelDataset, from_arrays, random_split
from tg_mlc.datasets import Planted
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import DNA, InputKind, Molecules, Vectors, Words, kind_of
from tg_mlc.inputs.kind import Form, View
from tg_mlc.inputs.kinds import KINDS, infer_form
from tg_mlc.inputs.preprocessor import from_state, to_state
from tg_mlc.models import table_lamp
from tg_mlc.sklearn import LaMPClassifier
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit

Y = np.eye(4, 2)
TEXTS = from_arrays([["red"], ["pear"], ["red"], ["pear"]], Y, ["a", "b"], kind="sequence")
ROWS = from_arrays(np.arange(8.0).reshape(4, 2), Y, ["a", "b"], kind="vector")
LETTERS = DNA.samples(["A", "C", "G", "T"], Y, ["a", "b"])


def fitted(kind: InputKind, dataset: MultiLabelDataset) -> InputKind:
    """Fits a kind of input, and returns a copy that is restored from the fitted state."""
    split = random_split(len(dataset), (0.5, 0.25, 0.25), seed=0)
    return from_state(to_state(kind.fit(dataset, split)))


FITTED = [fitted(Words(), TEXTS), fitted(Vectors(), ROWS), fitted(DNA(), LETTERS)]


def test_samples_are_of_one_kind():
    assert [kind_of(dataset) for dataset in (TEXTS, ROWS, LETTERS)] == [Words, Vectors, DNA]
    pytest.importorskip("rdkit")
    assert kind_of(MoleculeDataset.from_smiles(["C"], [[1]])) is Molecules
    with pytest.raises(ValueError, match=r"of the kinds \['Mixed', 'Embeddings', .* \(got Planted"):
        kind_of(Planted())


@pytest.mark.parametrize(
    ("raw", "form"),
    [
        (["a red pear", "plums"], "texts"),
        ([["red"], ["pear"]], "texts"),
        (["CCO", "c1ccccc1"], "smiles"),
        (["CCO", "red pear"], "texts"),
        (np.eye(2), "vectors"),
    ],
)
def test_forms_of_raw_inputs_are_inferred(raw, form):
    pytest.importorskip("rdkit")
    frame = pd.DataFrame({"x": raw}) if isinstance(raw, list) else raw
    assert infer_form(raw) == infer_form(frame) == form
    with pytest.raises(ValueError, match=r"alone \(got 1 others, the first 'red pear' in row 2\)"):
        infer_form(["CCO", "C", "red pear"])


@pytest.mark.parametrize("kind", [*FITTED, Molecules()], ids=lambda kind: type(kind).__name__)
@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("CCO", r"a list of raw inputs \(got the string .*\[input\]"),
        (b"ACGT", r"a list of raw inputs \(got the string .*\[input\]"),
        ([], r"at least one raw input \(got none\)"),
        (np.zeros((0, 3)), r"at least one raw input \(got none\)"),
        (pd.Series([], dtype=object), r"at least one raw input \(got none\)"),
    ],
    ids=["string", "bytes", "list", "matrix", "series"],
)
def test_empty_or_unlisted_raw_inputs_are_refused(kind, raw, message):
    with pytest.raises(ValueError, match=message):
        kind.transform(raw)


@pytest.mark.parametrize(
    "make_column",
    [
        *(list, tuple, np.array, pd.Series, lambda texts: np.array(texts, dtype=object)),
        lambda x: pd.DataFrame({"x": x}),
    ],
)
def test_raw_inputs_may_be_a_column(make_column):
    (words, _, dna), expected = FITTED, [[2, 1], [1]]
    samples = words.transform(make_column(["Red pear", "pear"]))
    assert [data.x.tolist() for data in samples] == expected
    assert [data.x.tolist() for data in dna.transform(make_column(["AC", "T"]))] == [[0, 1], [3]]
    with pytest.raises(ValueError, match=r"choose one, as in frame\['id'\]"):
        dna.transform(pd.DataFrame({"id": [1], "site": ["AC"]}))


@pytest.mark.parametrize(
    ("kind", "dataset"),
    list(zip(FITTED, (TEXTS, ROWS, LETTERS), strict=True)),
    ids=lambda value: type(value).__name__,
)
def test_new_samples_have_the_labels_and_kind_of_old_samples(kind, dataset):
    assert kind.transform(dataset) is dataset
    samples = kind.transform([[1.5, 2.0]] if isinstance(kind, Vectors) else ["ACG"])
    assert samples.y.isnan().all()
    for name in ("kind", "num_inputs", "feature_names", "label_names"):
        assert getattr(samples, name) == getattr(dataset, name)
    assert repr(kind) == f"{type(kind).__name__}(2 labels)"
    with pytest.raises(RuntimeError, match="'fit' to be called"):
        type(kind)().state_dict()


@pytest.mark.parametrize("names", ["", {}, "ab", [1], {"a": "b"}])
def test_wrong_names_in_a_state_are_refused(names):
    state = FITTED[0].state_dict()
    for name in ("label_names", "feature_names"):
        with pytest.raises(ValueError, match=f"Expected '{name}' to list strings"):
            Words().load_state_dict({**state, name: names})


def test_samples_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="of kind 'bag' or 'sequence'"):
        Words().fit(Planted(), None)
    with pytest.raises(ValueError, match=r"of kind 'vector' .*kind 'sequence'"):
        Vectors().fit(TEXTS, None)


class Digits(InputKind):
    """Represents a string of digits by how often each digit occurs."""

    forms = {"digits": Form("digits")}
    option = "digits"
    are_columns = True

    class Counts(View):
        def matrix(self, dataset):
            return dataset.rows("x").numpy()

    views = {"digits": Counts}

    @classmethod
    def read(cls, X, kind, **options):
        counts = np.array([[text.count(digit) for digit in "0123456789"] for text in X])
        return counts / 10, list("0123456789")

    @classmethod
    def encoder(cls, train, channels, **options):
        from tg_mlc.nn.encoders import VectorEncoder

        return VectorEncoder(10, channels, 2)

    def components(self, sample):
        return list("0123456789")


@pytest.fixture
def digits():
    """Registers :class:`Digits` as another kind of input, and yields strings of digits."""
    KINDS.append(Digits)
    yield [f"{number:06d}" for number in range(0, 40_000, 997)]
    KINDS.remove(Digits)


def test_a_new_kind_works_in_every_interface(digits, tmp_path):
    y = np.array([["9" in text, text.count("0") > 2] for text in digits], dtype=np.float32)
    dataset = from_arrays(digits, y, ["nine", "zeros"], kind="digits")
    split = random_split(len(digits))
    assert (dataset.kind, dataset.num_inputs, kind_of(dataset)) == ("digits", 10, Digits)
    # A network can be trained on the new kind.
    inputs = Digits()
    samples = inputs.fit_transform(dataset, split)
    sizes = {"channels": 8, "num_steps": 1, "heads": 2}
    model = table_lamp(samples[split.train], fully_connected(dataset.label_names), **sizes)
    module = MultiLabelModule(model, dataset.label_names, preprocessor=inputs)
    options = {"monitor": "val/loss", "logger": False, "accelerator": "cpu", "max_epochs": 1}
    result = fit(module, MultiLabelDataModule(samples, split), tmp_path / "run", **options)
    predictor = tg_mlc.load(result.training.folder)
    scores = predictor.probabilities(digits[:3])
    expected = result.training.scores(DataLoader(samples, 64))[:3]
    assert torch.from_numpy(scores).float().allclose(expected)
    # The default model can be trained on a file of the new kind.
    lines = [f"{text},{int(row[0])},{int(row[1])}" for text, row in zip(digits, y, strict=True)]
    (tmp_path / "digits.csv").write_text("code,nine,zeros\n" + "\n".join(lines))
    table = Digits.from_csv(tmp_path / "digits.csv", ["code"], ["nine", "zeros"])
    assert torch.equal(table.rows("x"), dataset.rows("x"))
    auto = tg_mlc.auto(table, seconds=0)
    auto.save(tmp_path / "auto")
    models = tg_mlc.load(tmp_path / "auto"), auto
    np.testing.assert_allclose(*(trained.probabilities(digits[:3]) for trained in models))
    # Components of the new kind are explained.
    explanation = auto.explain(digits[:2], method="occlusion")
    assert [len(sample.components) for sample in explanation.samples] == [10, 10]
    # The estimator takes the new kind.
    classifier = LaMPClassifier(inputs="digits", base_scores=None, max_epochs=1, random_state=0)
    assert classifier.fit(digits, y).predict(digits[:3]).shape == (3, 2)


def test_views_are_found_by_unique_names():
    for kind in KINDS:
        for name, view_class in kind.views.items():
            assert isinstance(find("view", name)(), type(view_class()))
    with pytest.raises(ValueError, match=r"Expected a view among .*words.* \(got 'pixels'\)"):
        find("view", "pixels")
    with pytest.raises(ValueError, match=r"to have a name of its own.*vectors\.Scaled"):
        type("Other", (Digits,), {"views": {"standard": Digits.Counts}})
