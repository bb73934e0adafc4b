"""The same rows are read alike as a file, a frame, a list of dictionaries, and a request."""

from __future__ import annotations

import csv
import json
import re
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from examples.score_with_ray import Scores, csv_options
from tests.serving.conftest import TRAINING, as_csv, post, post_csv
from tg_mlc.inputs.tables import read_blocks

ODD = ["", " ", "NA", "?", "-", "fast", "100", "1E2", "1067", "True", "1e39", "2024-01-31", "1,5"]
ODD += ["\n", "fast\n", "two\nlines", 'a "quoted" word']
FORMATS = [(",", "utf-8"), (";", "cp1252"), ("\t", "utf-16"), ("|", "utf-8-sig"), (";", "utf-8")]
cells = {
    name: st.sampled_from([*values, *ODD, f" {values[0]} "]) for name, values in TRAINING.items()
}
TRAINING_ROWS = [{name: values[row] for name, values in TRAINING.items()} for row in range(4)]
rows_of_texts = st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=4)


def answer_of(prediction):
    """Returns the results and warnings of a prediction, in the format of the server."""
    results = []
    for row in range(len(prediction)):
        if row in prediction.reasons:
            results.append({"error": prediction.reasons[row]})
            continue
        probabilities, decisions = prediction.probabilities[row], prediction.decisions[row]
        results.append({"probability": probabilities.tolist(), "decision": decisions.tolist()})
    return results, list(prediction.warnings)


def answer_of_server(answer):
    content = answer.json()
    plain = lambda value: [*value.values()] if isinstance(value, dict) else value  # noqa: E731
    results = [{key: plain(result[key]) for key in result} for result in content["results"]]
    return results, content["warnings"]


def check_same(answer, expected):
    assert answer[1] == expected[1]
    for result, reference in zip(answer[0], expected[0], strict=True):
        assert result.get("error") == reference.get("error")
        assert result.get("decision") == reference.get("decision")
        pair = result.get("probability", []), reference.get("probability", [])
        np.testing.assert_allclose(*pair, atol=1e-6)


def check_ray(path, model, expected):
    """Checks that a worker of the example of Ray reads the rows of a file alike."""
    read_csv = pytest.importorskip("pyarrow.csv").read_csv
    rows = read_csv(path, **csv_options([*TRAINING])).to_pandas()
    worker = object.__new__(Scores)  # Its constructor would load a saved model.
    worker.model, worker.columns = model, [*TRAINING]
    scored = worker(rows)
    assert scored["error"].tolist() == [result.get("error", "") for result in expected]
    for row, result in zip(scored[model.label_names].to_numpy(), expected, strict=True):
        np.testing.assert_allclose(row, result.get("probability", np.nan), atol=1e-6)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(rows=TRAINING_ROWS, written=(";", "utf-16"), quoting=csv.QUOTE_ALL)
@example(rows=TRAINING_ROWS, written=(",", "utf-8"), quoting=csv.QUOTE_MINIMAL)
@given(
    rows=rows_of_texts,
    written=st.sampled_from(FORMATS),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_texts_are_read_alike_by_all_readers(ask, models, tmp_path_factory, rows, written, quoting):
    delimiter, encoding = written
    content = as_csv(rows, delimiter, quoting).encode(encoding)
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    path.write_bytes(content)
    [table] = read_blocks(path, encoding=encoding if encoding == "cp1252" else None)
    frame = pd.DataFrame(rows)
    model = models["columns"]
    values = model.kind._read_rows(rows)
    for raw in (frame, table.inputs(), table.inputs([*TRAINING])):
        matrix, refused = model.kind._read_frame(raw)
        np.testing.assert_array_equal(matrix, values[0])
        assert refused == values[1]
    expected = answer_of(model.answer(rows))
    arrays = {name: np.array(frame[name], dtype=object) for name in frame}
    for raw in (frame, table.inputs([*TRAINING]), arrays):
        check_same(answer_of(model.answer(raw)), expected)
    if written == (",", "utf-8"):
        check_ray(path, model, expected[0])
    charset = "; charset=cp1252" if encoding == "cp1252" else ""
    request = post_csv("columns", content, charset=charset)
    for answer in ask(request, post("columns", inputs=rows)):
        check_same(answer_of_server(answer), expected)


#: Rows with typed cells, and the same rows as texts.
TYPED = [
    {"zip": 1067, "well": 100.0, "price": 1.5, "weight": 5, "member": True, "size": 1},
    {"zip": 80331, "well": 2000.0, "price": None, "weight": 7.5, "member": False, "size": 2.5},
]
TEXT_CELLS = (
    ["01067", "1E2", "1,5 €", "5 mg", "yes", "1"],
    ["80331", "2E3", "", "7.5 mg", "no", "2.5"],
)
TEXTS = [dict(zip(TYPED[0], cells, strict=True)) for cells in TEXT_CELLS]
OTHER_CELLS = {"day": "31.01.2024", "note": "été"}


def test_typed_cells_are_read_alike_by_all_readers(ask, models, tmp_path):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rows = [{**row, **OTHER_CELLS} for row in TYPED]
    model, frame = models["columns"], pd.DataFrame(rows)
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    frame.to_parquet(tmp_path / "rows.parquet")
    tables = [next(read_blocks(tmp_path / name)) for name in ("rows.json", "rows.parquet")]
    expected = answer_of(model.answer(rows))
    assert not any("error" in result for result in expected[0])
    assert len(expected[1]) == 2
    assert all(
        re.search("(zip|well).*write them as in training", message) for message in expected[1]
    )
    arrays = {name: frame[name].to_numpy() for name in frame}
    raws = [frame, polars.DataFrame(rows), pyarrow.Table.from_pylist(rows), arrays]
    for raw in [*raws, *(table.inputs([*TRAINING]) for table in tables)]:
        check_same(answer_of(model.answer(raw)), expected)
    [answer] = ask(post("columns", inputs=rows))
    check_same(answer_of_server(answer), expected)
    texts = answer_of(model.answer([{**row, **OTHER_CELLS} for row in TEXTS]))
    check_same((expected[0], []), texts)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ({"member": 2}, "'no' and 'yes'"),
        ({"day": 20240131}, "dates"),
        ({"size": date(2024, 1, 31)}, "numbers"),
        ({"size": "fast"}, "'fast', text"),
        ({"price": 1e39}, "32 bits"),
        ({"note": ["a"]}, "one value"),
    ],
)
def test_wrong_cells_are_refused_with_a_reason(models, cell, reason):
    rows = [{**row, **OTHER_CELLS, **cell} for row in TEXTS]
    model = models["columns"]
    for raw in (rows, pd.DataFrame(rows)):
        reasons = model.answer(raw).reasons
        assert [*reasons] == [0, 1]
        assert f"column '{next(iter(cell))}'" in reasons[0]
        assert reason in reasons[0]


@pytest.mark.parametrize(
    ("text", "query", "reason"),
    [
        ("a,b\n1,2,3\n", "", r"2 cells.* row 0 \(line 2\) of 'the body' \(got 3\)"),
        ("a,b\n1\n", "", r"2 cells.* row 0 \(line 2\) of 'the body' \(got 1\)"),
        ('a,b\n"x,1\n', "", "a quote not closed"),
        (b"a;b\n\xe9;1\n", "", "such as 'content-type: text/csv; charset=cp1252' for"),
        ("a,b\n", "", "at least one row"),
        (f"{';'.join([*TRAINING, 'zip'])}\n{'1;' * 8}1\n", "", r"used once \(got \['zip'\] more"),
        ("a,b\n1,2\n", "?charset", "in foo-8 .*knows: 'content-type: text/csv; charset=NAME'"),
        ("a,b\n1,2\n", "?delimiter=xx", "'delimiter' to be one character"),
        ('[{"a": 1}]', "", "got JSON"),
    ],
)
def test_malformed_csv_bodies_are_refused(ask, text, query, reason):
    charset = "; charset=foo-8" if query == "?charset" else ""
    [answer] = ask(post_csv("columns", text, query, charset))
    assert answer.status_code == 422
    assert re.search(reason, answer.json()["detail"]), answer.text


def test_a_csv_body_gives_the_warnings_of_a_file(ask):
    multiline = f'"x\n{";" * 7}\ny"'
    cells = [multiline if name == "note" else TRAINING[name][0] for name in TRAINING]
    [answer] = ask(post_csv("columns", f"{';'.join(TRAINING)}\n{';'.join(cells)}\n"))
    assert any("quoted cell that begins in line 2" in text for text in answer.json()["warnings"])


@pytest.mark.parametrize("text", ["", "NA", None, float("nan")])
def test_missing_texts_have_no_words(ask, models, text):
    model = models["texts"]
    expected = answer_of(model.answer(["", "a red apple"]))
    assert expected[1] == ["Missing texts become samples without words (1 of 2)"]
    texts = [text, "a red apple"]
    rows = [{"text": value} for value in texts]
    for raw in (texts, rows, pd.DataFrame(rows), pd.Series(texts), {"body": texts}):
        check_same(answer_of(model.answer(raw)), expected)
    cell = text if isinstance(text, str) else ""
    [answer] = ask(post_csv("texts", f"text,id\na red apple,1\n{cell},2\n".replace(",", "\t")))
    assert answer.status_code == 422
    [answer] = ask(post_csv("texts", f'text\n"{cell}"\na red apple\n'))
    check_same(answer_of_server(answer), expected)
