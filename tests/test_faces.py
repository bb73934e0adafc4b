"""Python, a saved folder, the command line, the server, estimators, programs and explanations give
equal probabilities and decisions.
"""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tg_mlc
from tests.mixed import COLUMNS, LABELS, make_frame
from tests.quick import train_little
from tests.requirements import needs_export
from tests.saved import MAKERS, TEXTS
from tg_mlc.exporting.program import Program, featurize
from tg_mlc.inference import Model, Query

#: Other kinds are tested in each run: networks alone read molecules, and texts have given labels.
SLOW = {"molecules", "given"}
KINDS = [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW)) for kind in sorted(MAKERS)]
RNG = np.random.default_rng(3)
RAW = {
    "vectors": RNG.normal(size=(4, 5)).round(3).tolist(),
    "given": RNG.normal(size=(4, 4)).round(3).tolist(),
    "dna": ["ACGTACGTAC", "TTTTTTTTTTTT", "ACACACGGGG", "GGGGACGCCC"],
    "hierarchy": RNG.normal(size=(4, 4)).round(3).tolist(),
    "mixed": json.loads(make_frame(6)[0][2:6].to_json(orient="records", date_format="iso")),
    "molecules": ["CCO", "c1ccccc1", "CC(=O)O", "C"],
    "network": ["CCO", "c1ccccc1", "CC(=O)O", "C"],
    "texts": TEXTS[:4],
}


def queries(model):
    """Draws the options of a query: the metric, and the known labels of each sample."""
    names, values = st.sampled_from(model.label_names), st.sampled_from([0, 1])
    row = st.dictionaries(names, values, max_size=len(model.label_names) - 1)
    known = st.lists(row, min_size=4, max_size=4)
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
    """Returns some queries, the same in every run."""
    drawn = []

    @settings(max_examples=number, derandomize=True, database=None)
    @given(queries(model))
    def collect(query):
        drawn.append(query)

    collect()
    return drawn


def test_a_loaded_model_streams_and_answers_alike(case):
    model, folder, raw = case
    loaded = tg_mlc.load(folder)
    for query in draw(model):
        frame = model.predict(raw, **query)
        pd.testing.assert_frame_equal(loaded.predict(raw, **query), frame)
        answer = model.answer(raw, Query(**query))
        np.testing.assert_array_equal(answer.probabilities, frame["probability"])
        np.testing.assert_array_equal(answer.decisions, frame["decision"])
        if query.get("given") is None:
            np.testing.assert_allclose(model.probabilities(raw), frame["probability"], atol=1e-6)
            streamed = pd.concat(model.stream(raw, rows=3, **query))
            np.testing.assert_allclose(streamed["probability"], frame["probability"], atol=1e-6)


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
            for column in ("probability", "decision"):
                answer = pd.DataFrame([row[column] for row in results])[model.label_names]
                pair = answer.astype(float), frame[column].astype(float)
                np.testing.assert_allclose(*pair, atol=1e-6)


@needs_export
def test_a_program_computes_the_same_probabilities(case):
    model, _, raw = case
    for query in draw(model):
        tensors = featurize(model, raw, query.get("given"))
        program = Program(model, list(tensors)).eval()
        with torch.no_grad():
            probability = program(*tensors.values()).numpy()
        expected = model.predict(raw, **query)["probability"]
        np.testing.assert_allclose(probability, expected, atol=1e-5)


def test_an_explanation_is_of_the_same_prediction(case):
    model, _, raw = case
    for query in draw(model, 3):
        options = {**query, "given": (query.get("given") or [None])[0]}
        frame = model.predict(raw[:1], **options)
        [sample] = model.explain(raw[:1], method="occlusion", **options).samples
        expected = frame["probability"].to_numpy()[0]
        np.testing.assert_allclose(sample.probability, expected, atol=1e-6)
        np.testing.assert_array_equal(sample.decision, frame["decision"].to_numpy()[0])


def test_all_faces_agree_on_rows_of_several_kinds(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    testclient = pytest.importorskip("fastapi.testclient")
    from sklearn.model_selection import cross_val_score

    from tg_mlc.cli import main
    from tg_mlc.data import from_arrays
    from tg_mlc.serving.app import make_app
    from tg_mlc.sklearn import AutoClassifier

    train_little(monkeypatch)
    frame, y = make_frame(24)
    estimator = AutoClassifier(seconds=0, random_state=0)
    assert cross_val_score(estimator, frame, y, cv=2, scoring="roc_auc_ovr").shape == (2,)
    estimator = AutoClassifier(COLUMNS, seconds=0, random_state=0).fit(frame, y)
    expected = estimator.predict_proba(frame)
    # The same training in Python, and by the command line on nine tenths of the rows.
    in_python = tg_mlc.auto(from_arrays(frame, y, kind=COLUMNS), 0, seed_of(estimator))
    np.testing.assert_allclose(in_python.probabilities(frame), expected, atol=1e-6)
    path, folder, out = tmp_path / "rows.csv", tmp_path / "model", tmp_path / "out.csv"
    labels = pd.DataFrame(y.astype(int), columns=LABELS)
    pd.concat([frame, labels], axis=1).to_csv(path, index=False)
    features = ["--text", "note", "--features", "age,city,seen", "--smiles", "drug"]
    options = ["--csv", str(path), "--labels", ",".join(LABELS), "--seconds", "0"]
    assert main(["train", *options, *features, "--out", str(tmp_path / "trained")]) == 0
    for model in (in_python, tg_mlc.load(tmp_path / "trained")):
        expected = model.probabilities(frame)
        saved = model.save(folder)
        assert main(["predict", str(saved), "--csv", str(path), "--out", str(out)]) == 0
        written = pd.read_csv(out)[model.label_names].to_numpy()
        np.testing.assert_allclose(written, expected, atol=2e-6)
        with testclient.TestClient(make_app({"model": tg_mlc.load(saved)})) as client:
            rows = json.loads(frame.to_json(orient="records", date_format="iso"))
            header = {"content-type": "text/csv"}
            answers = [
                client.post("/models/model/predict", json={"inputs": rows}),
                client.post("/models/model/predict", content=path.read_bytes(), headers=header),
            ]
        for answer in answers:
            assert answer.status_code == 200, answer.text
            results = pd.DataFrame([row["probability"] for row in answer.json()["results"]])
            np.testing.assert_allclose(results[model.label_names], expected, atol=2e-6)


def seed_of(estimator):
    """Returns the seed of a fit."""
    from tg_mlc.sklearn.estimator import draw_seed

    return draw_seed(estimator.random_state)


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
        probability, decision = frame["probability"], frame["decision"].astype(int)
        np.testing.assert_array_equal(classifier.predict_proba(x, given=known), probability)
        np.testing.assert_array_equal(classifier.predict(x, given=known), decision)


def test_the_command_line_writes_the_predictions_of_python(tmp_path):
    from tg_mlc.cli import main

    rng = np.random.default_rng(0)
    columns = {"size": rng.normal(size=60).round(3), "shape": rng.choice(["round", "flat"], 60)}
    table = pd.DataFrame(columns)
    table["big"] = (table["size"] > 0).astype(int)
    table["flat"] = (table["shape"] == "flat").astype(int)
    table.to_csv(tmp_path / "train.csv", index=False)
    files, seconds = ["--csv", str(tmp_path / "train.csv")], ["--seconds", "0"]
    model, out = str(tmp_path / "model"), tmp_path / "out.csv"
    assert main(["train", *files, "--labels", "big,flat", "--out", model, *seconds]) == 0
    loaded = tg_mlc.load(model)
    for given_columns in ([], ["--given", "big"]):
        options = ["--out", str(out), "--keep", "none", *given_columns]
        assert main(["predict", model, *files, *options]) == 0
        known = table[["big"]] if given_columns else None
        frame = loaded.predict(table[["size", "shape"]], given=known)
        written = pd.read_csv(out)
        np.testing.assert_allclose(written[loaded.label_names], frame["probability"], atol=1e-6)
        all_names, decisions = np.array(loaded.label_names), frame["decision"].to_numpy()
        names = [";".join(all_names[row]) for row in decisions]
        assert written["predicted"].fillna("").tolist() == names
        out.unlink()


def test_the_most_probable_labels_are_alike_in_all_faces(saved, tmp_path, capsys):
    """Python, streams, the command line in CSV and JSON, and the server rank the same labels."""
    testclient = pytest.importorskip("fastapi.testclient")
    from tg_mlc.cli import main
    from tg_mlc.serving.app import make_app

    raw, columns = RAW["vectors"], ["label", "probability", "decision"]
    model = tg_mlc.load(saved("vectors"))
    frame = model.predict(raw, top=2)
    streamed = pd.concat(model.stream(raw, rows=3, top=2))
    pd.testing.assert_frame_equal(streamed, frame)
    wide = model.predict(raw)["probability"]
    for row, lines in frame.groupby(level=0):
        assert lines["label"].tolist() == wide.loc[row].nlargest(2).index.tolist()

    with testclient.TestClient(make_app({"model": model})) as client:
        response = client.post("/models/model/predict", json={"inputs": raw, "top": 2})
        content = response.json()
        wrong = client.post("/models/model/predict", json={"inputs": raw, "top": 0})
    assert "thresholds" not in content
    answered = pd.DataFrame([line for row in content["results"] for line in row["labels"]])
    pd.testing.assert_frame_equal(answered, frame[answered.columns].reset_index(drop=True))
    assert wrong.status_code == 422
    assert "'top' to be a whole number of at least 1" in wrong.json()["detail"]

    facts = {"kind": model.kind.option, "columns": [*"vwxyz"], "labels": model.label_names}
    model.facts["inputs"] = {**facts, "separator": None}
    folder, path = model.save(tmp_path / "model"), tmp_path / "new.csv"
    pd.DataFrame(raw, columns=[*"vwxyz"]).to_csv(path, index=False)
    command = ["predict", str(folder), "--csv", str(path), "--top", "2", "--keep", "none"]
    assert main([*command, "--out", str(tmp_path / "top.csv")]) == 0
    written = pd.read_csv(tmp_path / "top.csv")
    assert written["line"].tolist() == [2, 2, 3, 3, 4, 4, 5, 5]
    expected = frame[columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(written[columns], expected, atol=1e-5)
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    printed = pd.DataFrame(map(json.loads, capsys.readouterr().out.splitlines()))
    pd.testing.assert_frame_equal(printed[columns], expected, atol=1e-5, check_dtype=False)
