"""Untrained models of all kinds of input, and functions that send requests to a server."""

from __future__ import annotations

import asyncio
import csv
import io

import httpx
import numpy as np
import pandas as pd
import pytest
import torch

import tg_mlc
from tg_mlc.data import MoleculeDataset, from_arrays, from_csv, random_split
from tg_mlc.graphs import fully_connected
from tg_mlc.inference import Model
from tg_mlc.inputs import Chain, Molecules, Scale, Vectors, Words
from tg_mlc.inputs.smiles import molecule_features
from tg_mlc.models import molecule_lamp, table_lamp
from tg_mlc.serving import make_app

LABELS = ["calm", "sad", "loud"]
COLOURS = ["red", "green", "blue"]
#: Training cells by column. The first cell of each column is also drawn for new rows.
TRAINING = {
    "zip": ["01067", "80331", "10115", "01067"],
    "well": ["1E2", "2E3", "a", "1E2"],
    "price": ["1,5 €", "1.200,25 €", "0,5 €", ""],
    "weight": ["5 mg", "7.5 mg", "12 mg", "1 mg"],
    "member": ["yes", "no", "yes", "no"],
    "day": ["31.01.2024", "01.02.2024", "15.03.2024", "31.12.2023"],
    "size": ["1", "2.5", "-3", "4e2"],
    "note": ['say "hi"', "a;b,c|d", "été", "two words"],
}


def as_csv(rows, delimiter, quoting=csv.QUOTE_MINIMAL):
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0]], delimiter=delimiter, quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def model_of(kind, dataset, build=table_lamp, steps=(), **options):
    """Returns a model with random weights and tuned thresholds."""
    split = random_split(len(dataset), (0.8, 0.1, 0.1), seed=0)
    steps = Chain(*(steps or kind.steps(scaled=True)))
    samples = steps.fit_transform(dataset, split)
    torch.manual_seed(0)
    network = build(samples[split.train], fully_connected(LABELS), channels=16, **options)
    return Model.of(network.eval(), LABELS, preprocessor=steps).tune(dataset)


def targets(size):
    return np.random.default_rng(1).integers(2, size=(size, len(LABELS)))


def joint(size, seed):
    """Returns inputs that tell something of the labels, of which "sad" repeats "calm"."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, 2)).round(3)
    y = (x[:, [0, 0, 1]] + rng.normal(size=(size, 3)) > 0).astype(int)
    y[:, 1] = y[:, 0]
    return x, y


def table(size=40):
    rng = np.random.default_rng(0)
    columns = {"age": rng.integers(10, 90, size), "height": rng.normal(70, 9, size).round(1)}
    return pd.DataFrame({**columns, "colour": rng.choice(COLOURS, size)})


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Returns the models by name. Networks of "table" and "rows" take given labels, and "joint",
    where "sad" repeats "calm", has residual messages.
    """
    pytest.importorskip("rdkit")
    frame = table()
    documents = [["a", "red", "apple"], ["an", "old", "doll"], ["red", "old"], ["apple"]] * 5
    smiles = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCl"] * 4
    vectors = {"pre_transform": molecule_features()}
    molecules = MoleculeDataset.from_smiles(smiles, targets(20), LABELS, **vectors)
    path = tmp_path_factory.mktemp("columns") / "train.csv"
    rows = [{name: cells[row % 4] for name, cells in TRAINING.items()} for row in range(12)]
    for row, labels in zip(rows, targets(12), strict=True):
        row.update(zip(LABELS, map(str, labels), strict=True))
    path.write_text(as_csv(rows, ";"), encoding="utf-8")
    columns, steps = from_csv(path, LABELS, categorical=["well"]), [Vectors(), Scale("quantile")]
    frames = [frame, np.random.default_rng(2).normal(size=(40, 5))]
    vectors = [from_arrays(x, targets(40), LABELS, kind="vector") for x in frames]
    return {
        "table": model_of(Vectors, vectors[0], given_labels=True),
        "joint": tg_mlc.auto(from_arrays(*joint(120, 0), LABELS, kind="vector"), seconds=0),
        "columns": model_of(Vectors, columns, steps=steps),
        "rows": model_of(Vectors, vectors[1], given_labels=True),
        "texts": model_of(Words, from_arrays(documents, targets(20), LABELS, kind="sequence")),
        "bags": model_of(Words, from_arrays(documents, targets(20), LABELS, kind="bag")),
        "molecules": model_of(Molecules, molecules, molecule_lamp),
    }


@pytest.fixture(scope="session")
def ask(models):
    """Returns a function that starts a server and sends several requests at the same time."""

    def ask(*requests, limits=None, tokens=(), after=(), **options):
        async def send_all():
            app = make_app(models, limits, tokens)
            async with app.router.lifespan_context(app):
                options["transport"] = httpx.ASGITransport(app, raise_app_exceptions=False)
                async with httpx.AsyncClient(base_url="http://test", **options) as client:
                    responses = (client.request(*request[:2], **request[2]) for request in requests)
                    answers = await asyncio.gather(*responses)
                    return [*answers, *[await client.get(path) for path in after]]

        return asyncio.run(send_all())

    return ask


def post(name, endpoint="predict", **body):
    """Returns a request for :func:`ask`."""
    return ("POST", f"/models/{name}/{endpoint}", {"json": body})


def post_csv(name, content, query="", charset="", endpoint="predict"):
    """Returns a request with the rows of a CSV file."""
    options = {"content": content, "headers": {"content-type": f"text/csv{charset}"}}
    return ("POST", f"/models/{name}/{endpoint}{query}", options)
