"""A saved model of raw inputs gives the same scores, to the last bit, in another process."""

from functools import partial

import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Compose

from tests.fresh import run_python
from tg_mlc import inputs
from tg_mlc.data import ArrayDataset, MoleculeDataset, from_arrays, random_split
from tg_mlc.data.records import Records, Tokens
from tg_mlc.graphs import fully_connected
from tg_mlc.inference import read_checkpoint
from tg_mlc.models import dna_lamp, molecule_lamp, table_lamp
from tg_mlc.papers.base_scores import published_features, table_preprocessor
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit

NAN = float("nan")
LABELS = ["a", "b", "c"]
OPTIONS = {"channels": 8, "num_steps": 1, "heads": 2}
WORDS = ["red", "green", "blue", "apple", "pear", "plum", "old", "new"]
rng = np.random.default_rng(0)
PRESENT = rng.random((40, 8)) < 0.5
TEXTS = [[WORDS[i] for i in np.flatnonzero(row)] or ["red"] for row in PRESENT]
Y = np.stack([PRESENT[:, 0], PRESENT[:, 1] | PRESENT[:, 2], PRESENT[:, 3]], axis=1) * np.float32(1)
NEW_TEXTS = ["The old, red apple!", "Green pears are PLUM", ["blue", "pear", "unheard"]]

IN_ANOTHER_PROCESS = """
import sys, torch
from pathlib import Path
from torch_geometric.loader import DataLoader
import tg_mlc
import tg_mlc.models
from tg_mlc.inference import read_checkpoint

for folder in map(Path, sys.argv[1:]):
    checkpoint = read_checkpoint(folder / "best.ckpt")
    factory, options = checkpoint.config.values()
    samples = checkpoint.preprocessor.transform(torch.load(folder / "raw.pt", weights_only=True))
    model = getattr(tg_mlc.models, factory)(samples, checkpoint.label_graph, **options)
    model.load_state_dict(checkpoint.state_dict)
    with torch.no_grad():
        torch.save(model.eval()(next(iter(DataLoader(samples, 8)))).sigmoid(), folder / "scores.pt")
    raw = torch.load(folder / "raw.pt", weights_only=True)
    probabilities = tg_mlc.load(folder / "model").probabilities(raw, batch_size=8)
    torch.save(torch.from_numpy(probabilities).float(), folder / "loaded.pt")
"""


def bags():
    return from_arrays(PRESENT.astype(float), Y, LABELS, WORDS, kind="bag")


def words():
    return from_arrays(TEXTS, Y, LABELS, kind="sequence")


def vectors(missing=False):
    x = rng.standard_normal((40, 5)) + 3 * Y @ rng.standard_normal((3, 5))
    x[::7, 2] = np.nan if missing else 1.0
    return from_arrays(x, Y, LABELS, kind="vector")


def molecules():
    smiles = ["C" * (1 + i % 10) + ("O", "N", "C(=O)O", "Cl")[i % 4] for i in range(40)]
    y = torch.stack([torch.arange(40) % 4 == i for i in range(3)], dim=1).float()
    fingerprints = [inputs.Fingerprint("morgan", 64), inputs.Fingerprint("maccs")]
    features = Compose([*fingerprints, inputs.MoleculeDescriptors()])
    return MoleculeDataset.from_smiles(smiles, y, LABELS, pre_transform=features)


def dna():
    tokens = Tokens.of(rng.integers(0, 5, (40, 12)).tolist())
    return ArrayDataset(Records(tokens, Y, LABELS, list("ACGTN")).to_samples())


SCALED = inputs.Chain(inputs.Vectors(), inputs.Scale("quantile"))
FEATURES = published_features(["forest", "molecule_ridge"])
WITH_SCORES = inputs.Chain(inputs.Molecules(), FEATURES)
VECTORS = [[0.1, 0.2, 0.3, 0.4, 0.5], [1.0, -2, 3, -4, 5]]
GAPS = [[0.1, 2.0, NAN, 0.4, 0.5]]
#: Samples, the preprocessor, the model, and new raw inputs.
CASES = {
    "bags": (bags, table_preprocessor("bag"), table_lamp, NEW_TEXTS),
    "sequences": (words, inputs.Words(), table_lamp, NEW_TEXTS),
    "weights": (words, table_preprocessor("sequence", ["exact"]), table_lamp, NEW_TEXTS),
    "vectors": (vectors, table_preprocessor("vector"), table_lamp, VECTORS),
    "gaps": (partial(vectors, True), SCALED, table_lamp, GAPS),
    "dna": (dna, inputs.DNA(), dna_lamp, ["ACGTACGTACGT", "nacguu"]),
    "molecules": (molecules, inputs.Molecules(), molecule_lamp, ["CCO"]),
    "scores": (molecules, WITH_SCORES, molecule_lamp, ["CCO", "c1ccccc1"]),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Returns trained models and their folders, into which another process wrote scores."""
    pytest.importorskip("rdkit")
    results = {}
    for name, (make, preprocessor, factory, raw) in CASES.items():
        dataset, folder = make(), tmp_path_factory.mktemp(name)
        split = random_split(len(dataset), (0.6, 0.2, 0.2), seed=0)
        prepared = preprocessor.fit_transform(dataset, split)
        model = factory(prepared[split.train], fully_connected(LABELS), **OPTIONS)
        config = {"factory": factory.__name__, "options": OPTIONS}
        module = MultiLabelModule(model, LABELS, lr=0.01, config=config, preprocessor=preprocessor)
        data = MultiLabelDataModule(prepared, split)
        fitted = fit(module, data, folder, max_epochs=2, monitor="val/loss", logger=False)
        results[name] = (fitted.training, folder)
        torch.save(raw, folder / "raw.pt")
    folders = [str(folder) for _, folder in results.values()]
    run_python(IN_ANOTHER_PROCESS, folders)
    return results


@pytest.mark.parametrize("name", CASES)
def test_a_saved_model_takes_raw_inputs(name, trained):
    training, folder = trained[name]
    _, preprocessor, _, raw = CASES[name]
    samples = preprocessor.transform(raw)
    assert samples.y.isnan().all()
    expected = training.scores(DataLoader(samples, 8))
    assert expected.isfinite().all()
    for scores in ("scores.pt", "loaded.pt"):
        assert torch.equal(torch.load(folder / scores, weights_only=True), expected)
    # Single raw inputs have the scores of the batch.
    alone = [training.scores(DataLoader(preprocessor.transform([row]), 1)) for row in raw]
    torch.testing.assert_close(torch.cat(alone), expected, atol=1e-5, rtol=1e-5)


def test_a_saved_preprocessor_is_restored_on_loading(tmp_path):
    dataset, preprocessor = words(), inputs.Words()
    split = random_split(len(dataset), (0.6, 0.2, 0.2), seed=0)
    prepared = preprocessor.fit_transform(dataset, split)

    def train(folder, **options):
        model = table_lamp(prepared, fully_connected(LABELS), **OPTIONS)
        module = MultiLabelModule(model, LABELS, **options)
        data = MultiLabelDataModule(prepared, split)
        return model, fit(module, data, folder, max_epochs=1, logger=False).training.checkpoint

    model, path = train(tmp_path, preprocessor=preprocessor)
    loaded = MultiLabelModule.load_from_checkpoint(path, model=model, weights_only=True)
    assert loaded.preprocessor.feature_names == dataset.feature_names
    assert read_checkpoint(train(tmp_path / "plain")[1]).preprocessor is None
