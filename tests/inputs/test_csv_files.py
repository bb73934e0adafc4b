import warnings

import pytest

from tg_mlc.inputs.csv_files import from_csv
from tg_mlc.inputs.notations import Number

NUMBERS = "age,size,calm,sad\n1.5,2,1,0\n,3,0,\n2,1e3,1,1\n"
TEXTS = 'body,topics,calm\n"Red, red apples",fruit;red,1\nGreen pears,fruit,0\nnothing,,\n'
AB = "a,b\n1,1\n"
ASSAYS, SIZE_ALONE = "size,NR-AR,NR-ER\n1,0,1\n2,1,0\n", {"feature_columns": ["size"]}


def test_numeric_columns_become_vectors_or_bags(save):
    dataset = from_csv(save(NUMBERS), ["sad", "calm"])
    assert (dataset.kind, dataset.feature_names) == ("vector", ["age", "size"])
    assert dataset.label_names == ["sad", "calm"]
    assert dataset.rows("x").nan_to_num(-1).tolist() == [[1.5, 2], [-1, 3], [2, 1000]]
    assert dataset.y.nan_to_num(-1).tolist() == [[0, 1], [-1, 0], [1, 1]]
    bags = from_csv(save(NUMBERS), ["calm"], ["size"], kind="bag")
    assert (bags.kind, bags.feature_names, bags[0].weight.tolist()) == ("bag", ["size"], [2])


def test_a_text_column_and_a_column_of_label_names_are_read(save):
    dataset = from_csv(save(TEXTS), "topics", text_column="body", label_separator=";")
    assert (dataset.kind, dataset.label_names) == ("sequence", ["fruit", "red"])
    words = [" ".join(dataset.feature_names[i] for i in data.x) for data in dataset]
    assert words == ["red red apples", "green pears", "nothing"]
    assert dataset.y.tolist() == [[1, 1], [1, 0], [0, 0]]


def test_error_suggests_a_similar_label_column(save):
    path = save("size,topics\n1,red;calm\n2,red\n")
    old = from_csv(path, "topics", label_separator=";")
    with pytest.raises(ValueError, match=r"the columns \['topic'\] in .*is 'topics' meant"):
        from_csv(path, "topic", label_separator=";", like=old)


def test_a_text_column_and_binary_label_columns_are_read(save):
    options = {"text_column": "body", "kind": "bag", "tokenizer": str.split, "train": [0, 1]}
    dataset = from_csv(save(TEXTS), ["calm"], **options)
    assert dataset.feature_names == ["<unk>", "Green", "Red,", "apples", "pears", "red"]
    assert dataset.y.isnan().tolist() == [[False], [False], [True]]


def test_other_delimiters_and_encodings_can_be_specified(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("größe;ruhig\n1;0\n2;1\n".encode("latin-1"))
    dataset = from_csv(path, ["ruhig"], delimiter=";", encoding="latin-1")
    assert dataset.feature_names == ["größe"]
    wrong_byte = "the byte 0xf6 in line 1.*encoding='cp1252'"
    for encoding, reason in (("utf-8", wrong_byte), ("none", "LookupError")):
        with pytest.raises(ValueError, match=rf"file in {encoding} \(got {reason}"):
            from_csv(path, ["ruhig"], delimiter=";", encoding=encoding)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("a,b\n1,2\n", {}, r"to be 0, 1 or blank .* row 0 \(line 2\), column 'b' of .*got '2'"),
        ("a,b\n1,1\n\nx,1\n", {}, r"numbers, .*row 1 \(line 4\), column 'a' of .*got 'x'"),
        ("a,b\n1_000,1\n", {}, "numbers, .*'a'.*'1_000'"),
        ("a,b\n\u0663,1\n", {}, "numbers, .*'a'.*'\u0663'"),
        ("a,b\ninf,1\n", {}, "numbers, .*'a'.*'inf'"),
        ("a,b\n1,1,1\n", {}, r"2 cells.*row 0 \(line 2\).*got 3"),
        ("a,b\n", {}, r"at least one row in .*got 2 columns and no row"),
        ("", {}, r"got 0 columns and no row"),
        ("a,c\n1,1\n", {}, r"columns \['b'\] in .*got the columns \['a', 'c'\]"),
        ("a,b,b\n1,1,1\n", {}, r"\['b'\] more than once"),
        ("b\n1\n", {}, r"one column of labels and one of inputs .*labels=\['b'\], inputs=\[\]"),
        (AB, {"label_columns": None}, "Expected 'label_columns', or 'like'"),
        (AB, {"label_columns": "b"}, r"lists of, or 'label_separator' .*label_separator=';'"),
        (AB, {"label_separator": ";"}, r"one column with 'label_separator'"),
        (AB, {"text_column": "a", "feature_columns": ["a"]}, r"used once \(got \['a'\] more than"),
        (AB, {"text_column": "c"}, r"columns \['c'\]"),
        ("a;b\n1,5;1;2\n", {}, r"2 cells.*quote cells that contain ';'"),
        ("a,b,c\n1,1\n", {}, r"3 cells.*got 2\); add the missing cells"),
        # A pattern has to be in a list.
        (ASSAYS, {"label_columns": "NR-*", **SIZE_ALONE}, r"label_columns=\['NR-\*'\]"),
        (ASSAYS, {"label_columns": "rest", **SIZE_ALONE}, r"label_columns=\['rest'\]"),
    ],
)
def test_malformed_tables_are_refused(save, text, arguments, message):
    with pytest.raises(ValueError, match=message):
        from_csv(save(text), **{"label_columns": ["b"], **arguments})


def test_missing_files_and_folders_are_refused(tmp_path):
    for path, reason in ((tmp_path / "none.csv", "no such file"), (tmp_path, r"\(got a folder\)")):
        with pytest.raises(FileNotFoundError, match=f"Expected the file.*{reason}"):
            from_csv(path, ["a"])


def test_unusual_blank_cells_do_not_change_other_cells(save, monkeypatch):
    path = save("x,y,calm\n1.5,,1\nNuLl,-nan,0\n-nan, na ,0\n2,3,1\n")
    x = from_csv(path, ["calm"]).rows("x").nan_to_num(9)
    assert x.tolist() == [[1.5, 9], [9, 9], [9, 9], [2, 3]]
    monkeypatch.setattr(Number, "parse", lambda self, cell: pytest.fail(f"{cell!r} was parsed"))
    path = save("x,y,calm\n1.5,,1\n -2e3 ,NA,0\nNaN,.25,\n")  # Columns are parsed as a whole.
    x = from_csv(path, ["calm"]).rows("x").nan_to_num(9)
    assert x.tolist() == [[1.5, 9], [-2000, 9], [9, 0.25]]


def test_numbers_are_parsed_as_in_python(save):
    texts = ["0.1", "1e-320", "123456789.123456789", "9007199254740993", "2.2250738585072011e-308"]
    path = save("x,calm\n" + "".join(f"{text},1\n" for text in [*texts, "+.5E+3"]))
    x = from_csv(path, ["calm"], kind="vector").rows("x").flatten().tolist()
    assert x == pytest.approx([*map(float, texts), 500], rel=1e-7)


def test_missing_texts_have_no_words_and_a_warning_counts_them(save):
    path = save("body,calm\na red apple,1\nNA,0\n,1\na pear,0\n")
    with pytest.warns(UserWarning, match="2 cells of column 'body' have no text"):
        dataset = from_csv(path, ["calm"], text_column="body", kind="bag")
    assert [len(sample.x) for sample in dataset] == [3, 0, 0, 2]


def test_new_files_have_the_columns_of_the_old_ones(save):
    old = from_csv(save("tempo,loudness,calm,sad\n61.5,0.2,1,0\n140,0.9,0,\n"), ["calm", "sad"])
    path = save("sad,mood,loudness,tempo\n1,low,.5,100\n", "new.csv")
    new = from_csv(path, like=old)
    assert (new.feature_names, new.label_names) == (["tempo", "loudness"], ["calm", "sad"])
    assert (new[0].x.tolist(), new.y.nan_to_num(-1).tolist()) == ([[100, 0.5]], [[-1, 1]])
    with pytest.raises(ValueError, match="'like' names the columns of labels"):
        from_csv(path, ["sad"], like=old)


def test_new_texts_have_the_words_of_the_old_ones(save):
    options = {"label_columns": "topics", "label_separator": ";", "text_column": "body"}
    path = save('body,topics\n"Wheat, and corn!",grain;trade\nGold fell,metal\n')
    old = from_csv(path, **options)
    path = save("topics,body\nmetal,Gold rose\n,Wheat\n", "new.csv")
    unknown = from_csv(path, text_column="body", like=old)
    assert [old.feature_names[i] for i in unknown[0].x] == ["gold", "<unk>"]
    assert unknown.y.isnan().all()
    known = from_csv(path, **options, like=old)
    assert known.label_names == ["grain", "metal", "trade"]
    assert known.y.tolist() == [[0, 1, 0], [0, 0, 0]]


def test_categories_become_indicator_columns(save):
    path = save("tempo,mood,calm\n60,slow,1\n140,fast,0\n90,NA,0\n80, slow,1\n")
    dataset = from_csv(path, ["calm"])
    assert dataset.feature_names == ["tempo", "mood=fast", "mood=slow"]
    assert dataset.rows("x").tolist() == [[60, 0, 1], [140, 1, 0], [90, 0, 0], [80, 0, 1]]
    with pytest.warns(UserWarning, match="values that did not occur in training.*'wild'"):
        new = from_csv(save("mood,tempo\nslow,70\nwild,\n"), like=dataset)
    assert new.rows("x").nan_to_num(-1).tolist() == [[70, 0, 1], [-1, 0, 0]]
    with pytest.raises(ValueError, match=r"Expected the columns \['mood'\] in"):
        from_csv(save("tempo\n70\n"), like=dataset)


def test_id_columns_are_skipped_unless_specified(save):
    path = save("name,size,calm\n" + "\n".join(f"song{i},{i % 3},{i % 2}" for i in range(20)))
    dataset = from_csv(path, ["calm"])
    assert (dataset.feature_names, dataset.schema.columns[0].role) == (["size"], "id")
    assert from_csv(path, ["calm"], ["name"]).num_inputs == 20


def test_warns_if_a_skipped_column_may_be_text_input(save):
    rows = (f"a song of number {i},{i % 3},{i % 2}\n" for i in range(20))
    path = save("note,size,calm\n" + "".join(rows))
    message = r"'note' is left out, but .* pass text_column='note'; if .* ignore=\['note'\]"
    with pytest.warns(UserWarning, match=message):
        from_csv(path, ["calm"])
    for options in ({"ignore": ["note"]}, {"feature_columns": ["size"]}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            from_csv(path, ["calm"], **options)
