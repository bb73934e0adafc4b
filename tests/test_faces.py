"""One question, one answer: Python, a saved folder, the command line, the server, estimators, programs and explanations
give equal probabilities and decisions.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tg_mlc
from tests.requirements import needs_export
from tests.saved import MAKERS, TEXTS
from tg_mlc.exporting.program import Program, featurize
from tg_mlc.inference import Model, Query

KINDS = sorted(MAKERS)
RNG = np.random.default_rng(3)
RAW = {
    "vectors": RNG.normal(size=(4, 5)).round(3).tolist(),
    "given": RNG.normal(size=(4, 4)).round(3).tolist(),
    "dna": ["ACGTACGTAC", "TTTTTTTTTTTT", "ACACACGGGG", "GGGGACGCCC"],
    "hierarchy": RNG.normal(size=(4, 4)).round(3).tolist(),
    "molecules": ["CCO", "c1ccccc1", "CC(=O)O", "C"],
    "network": ["CCO", "c1ccccc1", "CC(=O)O", "C"],
    "texts": TEXTS[:4],
}


def queries(model):
    """Draws what may be asked of a model beside its inputs: the metric, and labels that are known of each sample."""
    known = st.lists(
        st.dictionaries(
            st.sampled_from(model.label_names),
            st.sampled_from([0, 1]),
            max_size=len(model.label_names) - 1,
        ),
        min_size=4,
        max_size=4,
    )
    options = {"metric": st.sampled_from(model.decision.metrics)}
    if model.takes_given:
        options["given"] = st.none() | known
    return st.fixed_dictionaries(options)


@pytest.fixture(scope="module", params=KINDS)
def case(request, saved):
    folder = saved(request.param)
    return tg_mlc.load(folder), folder, RAW[request.param]


def test_all_ways_to_a_model_give_one_class(saved):
    assert {type(tg_mlc.load(saved(kind))) for kind in ("vectors", "texts")} == {Model}


def draw(model, number=6):
    """Some questions, the same in every run."""
    drawn = []

    @settings(max_examples=number, derandomize=True, database=None)
    @given(queries(model))
    def collect(query):
        drawn.append(query)

    collect()
    return drawn


def test_a_loaded_model_streams_and_answers_alike(case):
    model, folder, raw = case
    again = tg_mlc.load(folder)
    for query in draw(model):
        frame = model.predict(raw, **query)
        pd.testing.assert_frame_equal(again.predict(raw, **query), frame)
        answer = model.answer(raw, Query(**query))
        np.testing.assert_array_equal(answer.probabilities, frame["probability"])
        np.testing.assert_array_equal(answer.decisions, frame["decision"])
        if query.get("given") is None:
            np.testing.assert_allclose(model.probabilities(raw), frame["probability"], atol=1e-6)
            parts = pd.concat(model.stream(raw, rows=3, **query))
            np.testing.assert_allclose(parts["probability"], frame["probability"], atol=1e-6)


def test_the_server_gives_the_same_answer(case):
    testclient = pytest.importorskip("fastapi.testclient")
    from tg_mlc.serving.app import make_app

    model, _, raw = case
    with testclient.TestClient(make_app({"model": model})) as client:
        for query in draw(model):
            response = client.post("/models/model/predict", json={"inputs": raw, **query})
            assert response.status_code == 200, response.text
            results = response.json()["results"]
            frame = model.predict(raw, **query)
            for part in ("probability", "decision"):
                found = pd.DataFrame([each[part] for each in results])[model.label_names]
                np.testing.assert_allclose(
                    found.astype(float), frame[part].astype(float), atol=1e-6
                )


@needs_export
def test_a_program_computes_the_same(case):
    model, _, raw = case
    for query in draw(model):
        tensors = featurize(model, raw, query.get("given"))
        program = Program(model, list(tensors)).eval()
        with torch.no_grad():
            found = program(*tensors.values()).numpy()
        np.testing.assert_allclose(found, model.predict(raw, **query)["probability"], atol=1e-5)


def test_an_explanation_is_of_the_same_prediction(case):
    model, _, raw = case
    for query in draw(model, 3):
        frame = model.predict(raw[:1], **{**query, "given": (query.get("given") or [None])[:1][0]})
        options = {"given": (query.get("given") or [None])[0], "metric": query["metric"]}
        [sample] = model.explain(raw[:1], method="occlusion", **options).samples
        np.testing.assert_allclose(
            sample.probability, frame["probability"].to_numpy()[0], atol=1e-6
        )
        np.testing.assert_array_equal(sample.decision, frame["decision"].to_numpy()[0])


def test_an_estimator_follows_its_model(tmp_path):
    pytest.importorskip("sklearn")
    from tg_mlc.sklearn import AutoClassifier

    x = np.random.default_rng(0).normal(size=(80, 3))
    y = (x[:, :2] + np.random.default_rng(1).normal(size=(80, 2)) > 0).astype(int)
    classifier = AutoClassifier(seconds=0, random_state=0).fit(x, y)
    loaded = tg_mlc.load(classifier.save(tmp_path / "model"))
    assert type(loaded) is type(classifier.model_) is Model
    for known in (None, {loaded.label_names[0]: 1}):
        frame = loaded.predict(x, given=known)
        np.testing.assert_array_equal(
            classifier.predict_proba(x, given=known), frame["probability"]
        )
        np.testing.assert_array_equal(
            classifier.predict(x, given=known), frame["decision"].astype(int)
        )


def test_the_command_line_writes_the_same(tmp_path):
    from tg_mlc.cli import main

    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"size": rng.normal(size=60).round(3), "shape": rng.choice(["round", "flat"], 60)}
    )
    table["big"], table["flat"] = (
        (table["size"] > 0).astype(int),
        (table["shape"] == "flat").astype(int),
    )
    table.to_csv(tmp_path / "train.csv", index=False)
    files = ["--csv", str(tmp_path / "train.csv")]
    model, out = tmp_path / "model", tmp_path / "out.csv"
    assert (
        main(["train", *files, "--labels", "big,flat", "--out", str(model), "--seconds", "0"]) == 0
    )
    loaded = tg_mlc.load(model)
    for given_columns in ([], ["--given", "big"]):
        assert (
            main(
                ["predict", str(model), *files, "--out", str(out), "--keep", "none", *given_columns]
            )
            == 0
        )
        known = table[["big"]] if given_columns else None
        frame = loaded.predict(table[["size", "shape"]], given=known)
        written = pd.read_csv(out)
        np.testing.assert_allclose(written[loaded.label_names], frame["probability"], atol=1e-6)
        names = [
            ";".join(np.array(loaded.label_names)[row]) for row in frame["decision"].to_numpy()
        ]
        assert written["predicted"].fillna("").tolist() == names
        out.unlink()
