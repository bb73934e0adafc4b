import json
import re

import numpy as np
import pandas as pd
import pytest
import torch

import tg_mlc
from tests.inputs.test_kinds import digits  # noqa: F401 - a fixture
from tests.mixed import COLUMNS, LABELS, PLAIN, make_frame
from tg_mlc.data import from_arrays, from_csv, random_split
from tg_mlc.data.parts import part_of
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import Chain, Mixed, Vectors, Words, kind_of
from tg_mlc.inputs.kinds import infer_form
from tg_mlc.inputs.preprocessor import from_state, to_state
from tg_mlc.models import mixed_lamp
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit


@pytest.fixture(scope="module")
def plain():
    """Returns a frame of a text, numbers, a category and dates; its samples; and a model."""
    frame, y = make_frame()
    samples = from_arrays(frame, y, LABELS, kind=PLAIN)
    return frame, samples, tg_mlc.auto(samples, seconds=0)


def records(frame):
    """Returns the rows of a frame as JSON."""
    return json.loads(frame.to_json(orient="records", date_format="iso"))


def test_samples_have_the_parts_of_each_kind(plain):
    frame, samples, _ = plain
    assert (samples.kind, kind_of(samples)) == ("mixed", Mixed)
    assert list(samples.parts) == ["note", "features"]
    text, vector = part_of(samples, "note"), part_of(samples, "features")
    assert (kind_of(text), kind_of(vector)) == (Words, Vectors)
    assert len(text) == 59
    assert len(vector) == 60
    names = ["age", "city=Bonn", "city=Oslo", "city=Rome", "seen"]
    assert vector.feature_names == names
    np.testing.assert_allclose(vector.rows("x")[:, 0], frame.age, rtol=1e-6)
    assert samples.rows("part_sizes")[3:6].tolist() == [[-1, 1], [0, 1], [4, 1]]
    roles = {column.name: column.role for column in samples.schema.columns}
    assert roles["note"] == "text"
    assert roles["drug"] == "ignored"


def test_columns_are_inferred_and_announced(capsys):
    frame, y = make_frame()
    samples = from_arrays(frame.drop(columns="drug"), y, LABELS)
    assert list(samples.parts) == ["note", "features"]
    assert "kind='mixed' because columns seem to hold inputs of their own kinds: 'note' (text)" in (
        capsys.readouterr().out
    )
    assert infer_form(frame) == "mixed"
    assert infer_form(frame[["age", "city", "seen"]]) == "vectors"


def test_all_forms_of_rows_give_equal_probabilities(plain, tmp_path):
    frame, samples, model = plain
    expected = model.probabilities(frame)
    assert not np.isnan(expected).any()
    loaded = tg_mlc.load(model.save(tmp_path / "model"))
    shuffled = frame[frame.columns[::-1]].rename(columns={"note": " Note ", "age": "AGE"})
    for raw in (frame, shuffled, records(frame), frame.to_dict("list")):
        np.testing.assert_allclose(loaded.probabilities(raw), expected, atol=1e-12)
    np.testing.assert_allclose(model.probabilities(samples), expected, atol=1e-12)
    single = [loaded.probabilities([row])[0] for row in records(frame)[:6]]
    np.testing.assert_allclose(single, expected[:6], atol=1e-6)
    polars = pytest.importorskip("polars").DataFrame(records(frame))
    np.testing.assert_allclose(loaded.probabilities(polars), expected, atol=1e-12)


def test_a_missing_part_differs_from_an_empty_one(plain):
    _, _, model = plain
    row = {"age": 55.0, "city": "Rome", "seen": "2020-05-01"}
    texts = [None, "...", "", float("nan"), " NA "]
    missing, empty, *others = model.probabilities([{**row, "note": text} for text in texts])
    assert np.abs(missing - empty).max() > 1e-4
    for other in others:
        np.testing.assert_array_equal(other, missing)


def test_a_state_restores_the_samples(plain):
    frame, _, model = plain
    steps = [from_state(to_state(step)) for step in model.features.steps]
    for raw in (frame, frame.iloc[[3]]):
        transformed = steps[1].transform(steps[0].transform(raw))
        first = transformed[0]
        assert first["note.weight"].is_floating_point()
        assert {*first.keys()} == {"y", "part_sizes", "note.x", "note.weight", "features.x"}
    assert repr(steps[0]) == "Mixed(['note', 'features'])"


def test_lamp_learns_from_all_parts(plain, tmp_path):
    frame, samples, _ = plain
    split, inputs = random_split(len(samples)), Chain(*Mixed.steps(scaled=True))
    prepared = inputs.fit_transform(samples, split)
    network = mixed_lamp(prepared[split.train], fully_connected(LABELS), channels=8, heads=2)
    assert network.encoder.part_names == ["note", "features"]
    module = MultiLabelModule(network, LABELS, preprocessor=inputs)
    options = {"monitor": "val/loss", "logger": False, "accelerator": "cpu", "max_epochs": 1}
    model = fit(module, MultiLabelDataModule(prepared, split), tmp_path / "run", **options)
    loaded = tg_mlc.load(model.save(tmp_path / "model"))
    expected = model.probabilities(frame)
    np.testing.assert_allclose(loaded.probabilities(frame), expected, atol=1e-6)
    np.testing.assert_allclose(loaded.probabilities(frame.iloc[[3]]), expected[[3]], atol=1e-6)
    explanation = loaded.explain(frame.iloc[:2], ["old"], "integrated gradients")
    for sample in explanation.samples:
        [scores] = sample.scores.values()
        assert scores.shape == (len(sample.components), 1)
        # The five columns share the rows of the vector equally.
        assert np.ptp(scores[-5:], axis=0).max() < 1e-6 < np.abs(scores[-5:]).max()
    with pytest.raises(ValueError, match="no MixedEncoder, whose parts may be missing; serve"):
        model.export(tmp_path / "program")


def test_explanations_rank_the_components_of_all_parts(plain):
    frame, _, model = plain
    explanation = model.explain(frame.iloc[[0, 3]], labels=["old"], method="occlusion")
    first, second = explanation.samples
    words = frame.note[0].split()
    names = ["age", "city=Bonn", "city=Oslo", "city=Rome", "seen"]
    assert first.components == [*(f"note: {word}" for word in words), *names]
    assert second.components == names
    shares = first.shares("occlusion")
    assert list(shares) == ["note", "features"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["features"] > 0.5  # The label depends on the age alone.
    pytest.importorskip("jinja2")
    page = explanation.to_html()
    assert page.count("<h4>note</h4>") == 1
    assert page.count("<h4>features</h4>") == 2


def test_explanations_are_saved_with_their_parts(plain, tmp_path):
    from tg_mlc.explanations import Explanation

    frame, _, model = plain
    explanation = model.explain(frame.iloc[:1], labels=["old"], method="occlusion")
    explanation.save(tmp_path / "explanation")
    loaded = Explanation.load(tmp_path / "explanation")
    assert loaded.samples[0].sections == explanation.samples[0].sections


def test_given_labels_suggestions_and_audits_take_rows(plain):
    frame, samples, model = plain
    known = model.predict(frame[:3], given={"old": 1})
    assert (known["probability"]["old"] == 1).all()
    assert len(model.suggest(frame[:3], k=1)) == 3
    assert len(model.audit(frame, samples.y.numpy()).rows) == 60


def test_a_file_gives_the_samples_of_its_frame(plain, tmp_path):
    frame, samples, _ = plain
    table = pd.concat([frame, pd.DataFrame(samples.y.numpy().astype(int), columns=LABELS)], axis=1)
    path = tmp_path / "rows.csv"
    table.to_csv(path, index=False)
    features = {"text_column": "note", "feature_columns": PLAIN["features"]}
    for options in (features, {"kind": PLAIN}):
        read = from_csv(path, LABELS, **options)
        for name in samples.parts:
            own, expected = part_of(read, name), part_of(samples, name)
            torch.testing.assert_close(own._data.x, expected._data.x)
    with pytest.raises(ValueError, match=r"columns of inputs that .*ignore.* \(got \['age'\]\)"):
        from_csv(path, LABELS, kind=PLAIN, ignore=["age"])
    again = from_csv(path, like=read)
    torch.testing.assert_close(again.y, samples.y)
    assert len(again) == 60


def test_rows_that_cannot_be_read_are_blank_with_their_reason(plain):
    frame, _, model = plain
    bad = frame[:4].copy().astype({"age": object})
    bad.loc[1, "age"] = "old"
    bad.loc[2, ["note", "age", "city", "seen"]] = None
    answer = model.answer(bad)
    assert list(answer.reasons) == [1, 2]
    assert "in column 'age' (got 'old', text)" in answer.reasons[1]
    columns = "['note', 'age', 'city', 'seen']"
    assert answer.reasons[2] == f"Expected a value in one of the columns {columns} (got none)"
    assert np.isnan(answer.probabilities[1:3]).all()
    expected = model.probabilities(frame)
    np.testing.assert_allclose(answer.probabilities[[0, 3]], expected[[0, 3]])
    rows = [{"note": "red"}, "red", *records(frame[:1])]
    reasons = model.answer(rows).reasons
    assert reasons[0].startswith("Expected the columns ['age', 'city', 'seen'] (got the columns")
    assert reasons[1] == "Expected a row, as a dictionary of its columns (got a str)"
    assert 2 not in reasons


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="note"), r"Expected the columns \['note'\] .*got the columns"),
        (
            lambda f: pd.concat([f, f[["note"]]], axis=1),
            r"used once \(got \['note'\] more than once",
        ),
        (lambda f: f[:0], "Expected at least one raw input|got none"),
    ],
)
def test_frames_unlike_the_training_frame_are_refused(plain, change, message):
    frame, _, model = plain
    with pytest.raises(ValueError, match=message):
        model.features.read(change(frame))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            {"text": "age"},
            r"Expected texts in column 'age' \(got numbers, such as '[0-9.]+'\); take",
        ),
        ({"text": ["note", "note"]}, r"used once \(got \['note'\] more than once\)"),
        ({"text": "note", "features": ["note"]}, r"used once \(got \['note'\] more than once\)"),
        ({"text": "nothing"}, r"Expected the columns \['nothing'\] \(got the columns"),
        ({"picture": "note"}, "Expected 'kind' to be one of .*text.* \\(got 'picture'\\)"),
        ({}, "Expected columns of at least one kind"),
        ({"features": ["blank"]}, r"Expected a column of inputs among \['blank'\]"),
    ],
)
def test_wrong_columns_are_refused(kind, message):
    frame, y = make_frame(20)
    with pytest.raises(ValueError, match=message):
        from_arrays(frame.assign(blank=None), y, LABELS, kind=kind)


def test_samples_of_other_parts_are_refused(plain):
    frame, samples, model = plain
    others = from_arrays(frame[6:], samples.y[6:], LABELS, kind={"text": "note"})
    with pytest.raises(ValueError, match=r"parts \['note', 'features'\] \(got those of \['note'\]"):
        model.probabilities(others)
    with pytest.raises(ValueError, match="Expected samples of several parts"):
        Mixed().fit(part_of(samples, "note"), random_split(59))


def test_training_rows_without_any_part_are_refused():
    frame, y = make_frame(20)
    frame.loc[7, ["note", "age", "city", "seen"]] = None
    with pytest.raises(ValueError, match=r"Expected a value in one of the columns .* in row 7"):
        from_arrays(frame, y, LABELS, kind=PLAIN)
    renamed = frame.rename(columns={"note": "features"}).drop(7)
    columns = {"text": "features", "features": ["age"]}
    with pytest.raises(ValueError, match=re.escape("another name for the column (got 'features'")):
        from_arrays(renamed, np.delete(y, 7, 0), LABELS, kind=columns)


def test_a_new_kind_mixes_by_its_registration_alone(digits, tmp_path):  # noqa: F811
    size = len(digits)
    frame = pd.DataFrame(
        {"code": digits, "note": ["a red one", "a green one"] * (size // 2) + ["red"] * (size % 2)}
    )
    frame.loc[2, "code"] = None
    is_red, has_nine = frame.note.str.contains("red"), frame.code.fillna("").str.contains("9")
    y = np.stack([is_red & has_nine, ~is_red & ~has_nine], axis=1).astype(np.float32)
    samples = from_arrays(frame, y, ["both", "none"], kind={"digits": "code", "text": "note"})
    assert list(samples.parts) == ["code", "note"]
    model = tg_mlc.auto(samples, seconds=0)
    loaded = tg_mlc.load(model.save(tmp_path / "model"))
    expected = model.probabilities(frame)
    np.testing.assert_allclose(loaded.probabilities(frame), expected)
    # All rows of a batch may lack the part.
    np.testing.assert_allclose(loaded.probabilities(frame.iloc[[2]]), expected[[2]], atol=1e-6)
    [sample] = model.explain(frame.iloc[:1], method="occlusion").samples
    assert sample.components[:2] == ["code: 0", "code: 1"]
    assert sorted(sample.components[-3:]) == ["note: a", "note: one", "note: red"]


def test_molecules_mix_with_texts_and_numbers(tmp_path):
    pytest.importorskip("rdkit")
    frame, y = make_frame(40)
    samples = from_arrays(frame, y, LABELS, kind=COLUMNS)
    model = tg_mlc.auto(samples, seconds=0)
    expected = model.probabilities(frame)
    loaded = tg_mlc.load(model.save(tmp_path / "model"))
    np.testing.assert_allclose(loaded.probabilities(frame), expected, atol=1e-6)
    bad = frame.copy()
    bad.loc[1, "drug"] = "no molecule"
    answer = loaded.answer(bad)
    assert {row: reason.endswith("in column 'drug'") for row, reason in answer.reasons.items()} == {
        1: True
    }
    np.testing.assert_allclose(
        np.delete(answer.probabilities, 1, 0), np.delete(expected, 1, 0), atol=1e-6
    )
    with pytest.raises(ValueError, match=r"in row 1, column 'drug'"):
        from_arrays(bad, y, LABELS, kind=COLUMNS)
    [sample] = model.explain(frame.iloc[:1], labels=["amine"], method="occlusion").samples
    assert sample.smiles == frame.drug[0]
    is_atom = [name.startswith("drug: ") for name in sample.components]
    assert (sample.atoms >= 0).tolist() == is_atom
    assert sample.bonds[0].startswith("drug: ")
    # Rows are split by the scaffolds of the molecules.
    with pytest.warns(UserWarning, match="scaffolds of column 'drug'; 1 of 40 rows lack one"):
        smiles = Mixed.smiles_of(samples)
    assert smiles == frame.drug.fillna("").tolist()
    with pytest.raises(ValueError, match="Expected samples with molecules"):
        Mixed.smiles_of(from_arrays(frame, y, LABELS, kind=PLAIN))


def test_columns_of_dna_and_of_embeddings_mix():
    rng, size = np.random.default_rng(0), 40
    sites = ["".join(rng.choice(list("ACGT"), 20 + row % 3)) for row in range(size)]
    tokens = [rng.normal(size=(1 + row % 3, 4)).tolist() for row in range(size)]
    frame = pd.DataFrame({"site": sites, "tokens": tokens})
    y = np.stack([frame.site.str.count("A") > 5, [row[0][0] > 0 for row in tokens]], axis=1)
    frame.loc[2, "site"], frame.at[3, "tokens"] = None, None
    kind = {"dna": "site", "embeddings": "tokens"}
    model = tg_mlc.auto(from_arrays(frame, y.astype(float), ["a", "b"], kind=kind), seconds=0)
    expected = model.probabilities(frame)
    for row in (0, 2, 3):
        single = model.probabilities(frame.iloc[[row]])
        np.testing.assert_allclose(single, expected[[row]], atol=1e-6)


def test_labels_that_need_both_parts_need_both():
    rng = np.random.default_rng(1)
    size = 240
    is_red, is_old = rng.random((2, size)) < 0.5
    frame = pd.DataFrame(
        {
            "note": np.where(is_red, "a red pear", "a green plum"),
            "age": rng.normal(40, 3, size) + 20 * is_old,
        }
    )
    y = np.stack([is_red & is_old, ~is_red & ~is_old], axis=1).astype(np.float32)
    train, test = slice(0, 160), slice(160, size)
    errors = []
    for kind in ({"text": "note", "features": ["age"]}, {"text": "note"}, {"features": ["age"]}):
        samples = from_arrays(frame[train], y[train], kind=kind)
        model = tg_mlc.auto(samples, seconds=0)
        probabilities = model.probabilities(frame[test])
        errors.append(((probabilities - y[test]) ** 2).mean())
    both, *single = errors
    assert both < 0.5 * min(single)
