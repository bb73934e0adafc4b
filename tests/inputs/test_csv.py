from __future__ import annotations

import csv
import gzip
import lzma
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tg_mlc.inputs import tables
from tg_mlc.inputs.csv_files import from_csv

NUMBERS = "age,size,calm,sad\n1.5,2,1,0\n,3,0,\n2,1e3,1,1\n"
TEXTS = 'body,topics,calm\n"Red, red apples",fruit;red,1\nGreen pears,fruit,0\nnothing,,\n'


@pytest.fixture
def write(tmp_path):
    def write_csv(text, name="table.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_csv


def test_columns_of_numbers(write):
    dataset = from_csv(write(NUMBERS), ["sad", "calm"])
    assert (dataset.kind, dataset.feature_names, dataset.label_names) == ("vector", ["age", "size"], ["sad", "calm"])
    assert dataset[2].x.tolist() == [[2, 1000]]
    assert dataset[1].x.isnan().tolist() == [[True, False]]
    assert dataset.y[[0, 2]].tolist() == [[0, 1], [1, 1]]
    assert dataset.y[1].isnan().tolist() == [True, False]


def test_chosen_columns(write):
    dataset = from_csv(write(NUMBERS), ["calm"], ["size"], kind="bag")
    assert (dataset.kind, dataset.feature_names, dataset[0].weight.tolist()) == ("bag", ["size"], [2])


def test_a_column_of_texts_and_one_of_names(write):
    dataset = from_csv(write(TEXTS), "topics", text_column="body", label_separator=";")
    assert (dataset.kind, dataset.label_names) == ("sequence", ["fruit", "red"])
    assert [[dataset.feature_names[i] for i in data.x] for data in dataset] == [
        ["red", "red", "apples"],
        ["green", "pears"],
        ["nothing"],
    ]
    assert dataset.y.tolist() == [[1, 1], [1, 0], [0, 0]]


def test_a_column_of_texts_and_columns_of_labels(write):
    dataset = from_csv(write(TEXTS), ["calm"], text_column="body", kind="bag", tokenizer=str.split, train=[0, 1])
    assert dataset.feature_names == ["<unk>", "Green", "Red,", "apples", "pears", "red"]
    assert dataset.y.isnan().tolist() == [[False], [False], [True]]


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".GZ", gzip.open), (".xz", lzma.open)])
def test_compressed_files(tmp_path, suffix, opener):
    path = tmp_path / f"table.csv{suffix}"
    with opener(path, "wt") as file:
        file.write(NUMBERS)
    assert from_csv(path, ["calm", "sad"]).num_inputs == 2


def test_other_delimiters_and_encodings(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("größe;ruhig\n1;0\n2;1\n".encode("latin-1"))
    dataset = from_csv(path, ["ruhig"], delimiter=";", encoding="latin-1")
    assert dataset.feature_names == ["größe"]
    with pytest.raises(ValueError, match=r"CSV file in utf-8-sig \(got UnicodeDecodeError"):
        from_csv(path, ["ruhig"], delimiter=";")


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("a,b\n1,2\n", {}, r"label to be 0, 1 or blank \(unknown\) in row 0 \(line 2\), column 'b' of .*got '2'"),
        ("a,b\n1,1\n\nx,1\n", {}, r"number, or blank \(missing\) in row 1 \(line 4\), column 'a' of .*got 'x'"),
        ("a,b\n1,1,1\n", {}, r"2 cells.*row 0 \(line 2\).*got 3"),
        ("a,b\n", {}, r"at least one row in .*got 2 columns and no row"),
        ("", {}, r"got 0 columns and no row"),
        ("a,c\n1,1\n", {}, r"columns \['b'\] in .*got the columns \['a', 'c'\]"),
        ("a,b,b\n1,1,1\n", {}, r"\['b'\] more than once"),
        ("b\n1\n", {}, r"one column of labels and one of inputs \(got labels=\['b'\], inputs=\[\]\)"),
        ("a,b\n1,1\n", {"label_columns": "b"}, r"one column with 'label_separator'"),
        ("a,b\n1,1\n", {"label_separator": ";"}, r"one column with 'label_separator'"),
        ("a,b\n1,1\n", {"text_column": "a", "feature_columns": ["a"]}, r"got both"),
        ("a,b\n1,1\n", {"text_column": "c"}, r"columns \['c'\]"),
    ],
)
def test_malformed_tables_are_refused(write, text, arguments, message):
    with pytest.raises(ValueError, match=message):
        from_csv(write(text), **{"label_columns": ["b"], **arguments})


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="Expected the CSV file"):
        from_csv(tmp_path / "none.csv", ["a"])


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_give_one_clear_error(tmp_path, data):
    suffix = data.draw(st.sampled_from([".csv", ".csv.gz", ".csv.xz"]))
    content = {".csv": bytes, ".csv.gz": gzip.compress, ".csv.xz": lzma.compress}[suffix](NUMBERS.encode())
    mutated = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / f"table{suffix}"
    path.write_bytes(mutated[: data.draw(st.integers(0, len(mutated)))])
    try:
        dataset = from_csv(path, ["calm", "sad"], kind="vector")
    except ValueError:  # any other error fails the test
        return
    assert dataset.y.shape == (len(dataset), 2)


def test_long_documents(write):
    before = csv.field_size_limit()
    path = write(f'body,calm\n"{"long words " * 20_000}",1\nshort,0\n')
    assert [len(data.x) for data in from_csv(path, ["calm"], text_column="body")] == [40_000, 1]
    assert csv.field_size_limit() == before


def test_cells_and_lines_without_end(write, monkeypatch):
    before = csv.field_size_limit()
    monkeypatch.setattr(tables, "MAX_CELL", 100)
    with pytest.raises(ValueError, match=r"got Error after line 0: field larger than .*a quote not closed"):
        from_csv(write(f'body,calm\n"{"words " * 20},1\nshort,0\n'), ["calm"], text_column="body")
    assert csv.field_size_limit() == before


def test_columns_of_plain_numbers_are_read_at_once(write, monkeypatch):
    monkeypatch.setattr(tables, "parse_number", lambda text: pytest.fail(f"{text!r} was looked at"))
    path = write("x,y,calm\n1.5,,1\n -2e3 ,NA,0\nNaN,.25,\n")
    assert from_csv(path, ["calm"]).rows("x").nan_to_num(9).tolist() == [[1.5, 9], [-2000, 9], [9, 0.25]]


def test_one_cell_tells_a_column_of_numbers(write, monkeypatch):
    looked_at = []
    monkeypatch.setattr(tables, "_like_a_number", lambda text: looked_at.append(text) or True)
    from_csv(write("x,y,calm\n1.5,,1\n -2e3 ,NA,0\nNaN,.25,\n3,4,1\n"), ["calm"])
    assert looked_at == ["1.5", ".25"]
    cells = iter(["", "1.5", "the rest"])
    assert tables.value_names("x", cells) is None
    assert list(cells) == ["the rest"]


def test_one_cell_that_is_spelled_otherwise_changes_no_other(write):
    path = write("x,y,calm\n1.5,,1\nNuLl,-nan,0\n-nan, na ,0\n2,3,1\n")
    assert from_csv(path, ["calm"]).rows("x").nan_to_num(9).tolist() == [[1.5, 9], [9, 9], [9, 9], [2, 3]]


@pytest.mark.parametrize("number", ["1_000", "\u0663", "inf"])
def test_numbers_are_spelled_in_digits_from_0_to_9(write, number):
    with pytest.raises(ValueError, match=rf"a number, or blank .*column 'x'.*\(got '{number}'\)"):
        from_csv(write(f"x,calm\n{number},1\n"), ["calm"])


def test_a_folder_and_other_delimiters_are_told(write, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"\(got a folder\)"):
        from_csv(tmp_path, ["calm"])
    for cell in ("1", "1,5"):  # a comma of a decimal is one cell too many
        with pytest.raises(ValueError, match="if ';' stands between cells, pass it as 'delimiter'"):
            from_csv(write(f"x;calm\n{cell};1\n"), ["calm"])
    assert from_csv(write("x;calm\n2;1\n"), ["calm"], delimiter=";").y.tolist() == [[1]]


def test_a_column_of_ids_named_as_labels_takes_no_memory(write):
    path = write("x,id\n" + "".join(f"0.5,{i}\n" for i in range(50_000)))
    with pytest.raises(
        ValueError, match=r"50,000 labels of 50,000 samples, which take 9.3 GiB\).*choose another column if"
    ):
        from_csv(path, "id", label_separator=";")


def test_many_blocks_of_rows(write, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK", 2)
    dataset = from_csv(write(NUMBERS), ["sad", "calm"])
    assert dataset[2].x.tolist() == [[2, 1000]]
    with pytest.raises(ValueError, match=r"row 3 \(line 5\).*got 1"):
        from_csv(write(f"{NUMBERS}1\n"), ["sad", "calm"])


def test_many_rows_in_a_small_file_take_little_memory(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,0\n" * 50_000))
    tracemalloc.start()
    table = tables.read_csv_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(table.lines), table.texts("b")[-1]) == (50_000, "0")
    assert peak < 40 * 50_000 + 2**21


def test_new_files_have_the_columns_of_the_old_ones(tmp_path):
    (tmp_path / "old.csv").write_text("tempo,loudness,calm,sad\n61.5,0.2,1,0\n140,0.9,0,\n")
    (tmp_path / "new.csv").write_text("sad,mood,loudness,tempo\n1,low,.5,100\n")
    old = from_csv(tmp_path / "old.csv", ["calm", "sad"])
    new = from_csv(tmp_path / "new.csv", like=old)
    assert (new.feature_names, new.label_names) == (["tempo", "loudness"], ["calm", "sad"])
    assert new[0].x.tolist() == [[100, 0.5]]
    assert new.y.isnan().tolist() == [[True, False]]
    assert new.y[0, 1] == 1
    with pytest.raises(ValueError, match="'like' names the columns of labels"):
        from_csv(tmp_path / "new.csv", ["sad"], like=old)
    with pytest.raises(ValueError, match=r"Expected 'label_columns', or 'like'"):
        from_csv(tmp_path / "new.csv")


def test_new_texts_have_the_words_of_the_old_ones(tmp_path):
    (tmp_path / "old.csv").write_text('body,topics\n"Wheat, and corn!",grain;trade\nGold fell,metal\n')
    (tmp_path / "new.csv").write_text("topics,body\nmetal,Gold rose\n,Wheat\n")
    old = from_csv(tmp_path / "old.csv", "topics", label_separator=";", text_column="body")
    unknown = from_csv(tmp_path / "new.csv", text_column="body", like=old)
    assert [old.feature_names[i] for i in unknown[0].x] == ["gold", "<unk>"]
    assert unknown.y.isnan().all()
    known = from_csv(tmp_path / "new.csv", "topics", label_separator=";", text_column="body", like=old)
    assert known.label_names == ["grain", "metal", "trade"]
    assert known.y.tolist() == [[0, 1, 0], [0, 0, 0]]


def test_values_that_are_no_numbers_become_columns(tmp_path):
    songs = tmp_path / "songs.csv"
    songs.write_text("tempo,mood,calm\n60,slow,1\n140,fast,0\n90,NA,0\n80, slow,1\n")
    dataset = from_csv(songs, label_columns=["calm"])
    assert dataset.feature_names == ["tempo", "mood=fast", "mood=slow"]
    assert dataset.rows("x").tolist() == [[60, 0, 1], [140, 1, 0], [90, 0, 0], [80, 0, 1]]


def test_new_rows_have_the_columns_of_the_old_values(tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("mood,tempo,calm\nslow,60,1\nfast,140,0\n")
    new.write_text("tempo,mood\n70,slow\n80,wild\n")
    dataset = from_csv(new, like=from_csv(old, label_columns=["calm"]))
    assert dataset.rows("x").tolist() == [[0, 1, 70], [0, 0, 80]]
    new.write_text("tempo\n70\n")
    with pytest.raises(ValueError, match=r"Expected the columns \['mood'\] in"):
        from_csv(new, like=dataset)


def test_refuses_columns_that_name_samples_or_mix_numbers_and_words(tmp_path):
    file = tmp_path / "songs.csv"
    file.write_text("name,calm\n" + "\n".join(f"song{i},1" for i in range(101)))
    with pytest.raises(ValueError, match=r"at most 100 different values, in column 'name' \(got 101, such as 'song0'"):
        from_csv(file, label_columns=["calm"])
    file.write_text("name,calm\n" + "\n".join(f"song{i},1" for i in range(20)))
    with pytest.warns(UserWarning, match="Column 'name' has another value in each of 20 rows"):
        from_csv(file, label_columns=["calm"])
    file.write_text("tempo,calm\n60,1\nfast,0\n")
    with pytest.raises(ValueError, match=r"Expected a number, or blank \(missing\) in row 1"):
        from_csv(file, label_columns=["calm"])
