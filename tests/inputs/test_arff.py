import json
import time

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tg_mlc
from tests.arff_texts import SPARSE, SPARSE_TEST, TRAIN, XML
from tg_mlc import cli, graphs
from tg_mlc.data import from_arff, from_arrays, read_label_xml
from tg_mlc.inference.features import Features
from tg_mlc.inputs._arff_table import meka_count
from tg_mlc.inputs.arff import parse_label_xml
from tg_mlc.inputs.schema import Schema
from tg_mlc.inputs.tables import read_table
from tg_mlc.inputs.vectors import Vectors
from tg_mlc.nn import CoherentHead


def arff(attributes, rows, relation="r"):
    header = [f"@relation '{relation}'", *(f"@attribute {text}" for text in attributes), "@data"]
    return "\n".join([*header, *rows, ""])


def test_arff_files_and_label_xml_are_read(write):
    files = {"a.arff": SPARSE, "b.arff": SPARSE_TEST, "l.xml": XML.format("B", "A")}
    paths = [write(name, text) for name, text in files.items()]
    dataset = from_arff(*paths)
    assert (dataset.kind, dataset.label_names) == ("bag", ["B", "A"])
    assert dataset.feature_names == ["u", "v"]
    assert [data.x.tolist() for data in dataset] == [[0], [], [1], [1]]
    assert dataset.y.tolist() == [[0, 1], [0, 0], [1, 1], [1, 0]]
    assert dataset.official_split(val_fraction=0.4).test.tolist() == [3]
    assert from_arff(*paths, kind="vector").x.tolist() == [[1, 0], [0, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("relation", "labels", "names"),
    [
        ("r", ["v"], ["v"]),
        ("r", 2, ["u", "v"]),
        ("r", -1, ["B"]),
        ("r", ("B", "u"), ["B", "u"]),
        ("x: -C 2", None, ["u", "v"]),
        ("x: -C -2", None, ["A", "B"]),
        ("my data: -c 3 -C 1 -V", None, ["u"]),
        ("x: -C 2", -1, ["B"]),
    ],
)
def test_labels_can_be_named_in_several_ways(write, relation, labels, names):
    text = SPARSE.replace("@relation r", f"@relation '{relation}'")
    dataset = from_arff(write("a.arff", text), labels=labels)
    assert dataset.label_names == names
    with pytest.raises(ValueError, match="published with a split"):
        dataset.official_split()


def test_a_long_relation_takes_no_quadratic_time():
    start = time.process_time()
    assert meka_count(":" * 200_000) is meka_count(":-C" * 200_000) is None
    assert meka_count(":" * 200_000 + " -C 6") == 6
    assert time.process_time() - start < 5


def test_the_kind_is_inferred_from_values_and_printed(write, capsys):
    dense = TRAIN + "1,0,1,0\n0,1,0,1\n"
    assert from_arff(write("a.arff", dense), labels=-2).kind == "bag"
    assert "kind='bag' because the rows are sparse, or all" in capsys.readouterr().out
    dense = dense.replace("u {0,1}", "u numeric").replace("1,0,1,0", "1.5,0,1,0")
    path = write("b.arff", dense)
    assert from_arff(path, labels=-2).kind == "vector"
    assert "kind='vector' because values are unknown, or" in capsys.readouterr().out
    assert from_arff(path, labels=-2, kind="bag").kind == "bag"
    assert capsys.readouterr().out == ""


def test_test_files_may_have_another_order(write):
    reordered = arff(["B {0,1}", "v {0,1}", "u {0,1}", "A {0,1}"], ["1,0,1,0"])
    dataset = from_arff(write("a.arff", SPARSE), write("b.arff", reordered), ["A", "B"])
    assert (dataset[3].x.tolist(), dataset[3].y.tolist()) == ([0], [[0, 1]])
    hue, size = "hue {red,green,blue}", "size {s,m,l}"
    train = write("c.arff", arff([hue, size, "n numeric"], ["red,l,1", "blue,s,2"], "r: -C 1"))
    reordered = arff(["size {l,s,m}", "hue {blue,red,green}", "n numeric"], ["l,red,3"], "r: -C 1")
    dataset = from_arff(train, write("d.arff", reordered), kind="vector")
    assert dataset.label_names == ["hue=red", "hue=green", "hue=blue"]
    assert (dataset.y[2].tolist(), dataset.x[2].tolist()) == ([1, 0, 0], [0, 0, 1, 3])


def nominal_arff(input_values, label_values, *rows):
    return arff([f"x {{{input_values}}}", f"A {{{label_values}}}"], rows)


def test_values_of_known_meaning_may_have_another_order_in_the_test_file(write):
    train = write("a.arff", nominal_arff("NO,YES", "pos,neg", "YES,pos", "NO,neg"))
    reordered_texts = (
        nominal_arff("YES,NO", "neg,pos", "YES,neg", "NO,pos"),
        nominal_arff("no,yes", "0,1", "yes,0", "no,1"),
    )
    for text in reordered_texts:
        dataset = from_arff(train, write("b.arff", text), -1, "vector")
        assert dataset.x.tolist() == [[1], [0], [1], [0]]
        assert dataset.y.tolist() == [[1], [0], [0], [1]]


@pytest.mark.parametrize(
    ("values", "row", "message"),
    [("blue,red", "red,1", "blue"), ("red,green", "red,1", "green"), ("0,1", "0,1", "known")],
)
def test_values_of_unknown_meaning_in_another_order_are_refused(write, values, row, message):
    train = write("a.arff", nominal_arff("red,blue", "0,1", "red,0", "blue,1"))
    test = write("b.arff", nominal_arff(values, "0,1", row))
    for files in ((train, test), (test, train)):
        with pytest.raises(ValueError, match=rf"attribute 'x' in the same order.*got.*{message}"):
            from_arff(*files, -1)


@pytest.mark.parametrize("values", ["red,blue", "1,2", "0,-1", "high"])
def test_labels_of_unknown_meaning_are_refused(write, values):
    path = write("a.arff", nominal_arff("red,blue", values, f"red,{values.split(',')[0]}"))
    with pytest.raises(ValueError, match=rf"\{{{values}\}} for 'A'\); write \{{0,1\}}"):
        from_arff(path, labels=-1)


def test_unknown_entries_are_nan(write):
    dataset = from_arff(write("a.arff", TRAIN + "0,?,1,1\n"), labels=-2)
    assert dataset.kind == "vector"
    assert dataset[len(dataset) - 1].x.isnan().tolist() == [[False, True]]
    dataset = from_arff(write("a.arff", SPARSE + "{2 ?}\n"), labels=-2)
    assert dataset.y.isnan().nonzero().tolist() == [[3, 0]]
    # Sparse rows omit cells with the first value of their attribute.
    text = arff(["calm {1,0}", "n numeric"], ["{0 0,1 1.5}", "{1 2}", "{0 0}", "{}"])
    assert from_arff(write("a.arff", text), labels=1).y.tolist() == [[0], [1], [0], [1]]


LABEL_IS_7 = SPARSE.replace("A {0,1}", "A numeric") + "{2 7}\n"
LABEL_IS_MINUS_1 = TRAIN.replace("B {0,1}", "B real") + "1,1,1,-1\n"


def hue_table(kind):
    return arff([f"hue {kind}", "round {0,1}", "n numeric"], ["?,0,1", "1,1,2"])


PATHS, ORPHAN = hue_table("hierarchical a,a/b"), hue_table("hierarchical root/a,b/c")
CYCLE = hue_table("hierarchical root/a,a/b,b/c,c/b")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SPARSE, {}, "'labels'.* relation 'r' has no '-C'"),
        (SPARSE, {"labels": ["A", "C"]}, r"unlike 1, such as \['C'\].*columns \['u', 'v', 'A'"),
        (SPARSE, {"labels": ["A", "A"]}, "distinct"),
        (SPARSE, {"labels": []}, "at least one"),
        (SPARSE, {"labels": 4}, "between 1 and 3.*got 4"),
        (SPARSE, {"labels": 0}, "between 1 and 3"),
        (SPARSE, {"labels": ["u", "v", "A", "B"]}, "got 4 labels alone"),
        (SPARSE, {"labels": -2, "kind": "sequence"}, "'kind' to be one of bag, vector"),
        (SPARSE + "{0 ?}\n", {"labels": -2, "kind": "bag"}, "inputs.*nan in row 3, column 0"),
        (LABEL_IS_7, {"labels": -2}, r"got 7 in row 3, column 0: label 'A'"),
        (LABEL_IS_MINUS_1, {"labels": -2}, r"got -1 in row \d, column 1: label 'B'"),
        (hue_table("string"), {"labels": 1, "drop": "text"}, "line 2: .*string"),
        (hue_table("{0,1}"), {"labels": 1, "drop": ["hue"]}, "'hue', .* drop"),
        (PATHS, {"labels": ["round"]}, r"'hue' to be a label.*labels=\['hue'\]"),
        (PATHS, {"labels": ["hue"]}, "line 7: Expected a path of attribute 'hue'.*got '1'"),
        (ORPHAN, {}, "line 2: .*'b' above 'c'"),
        (CYCLE, {}, r"line 2: .*without cycles \(got (b -> c -> b|c -> b -> c)\)"),
    ],
)
def test_wrong_files_and_options_are_refused(write, text, options, message):
    with pytest.raises(ValueError, match=message):
        from_arff(write("a.arff", text), **options)


def test_files_that_do_not_belong_together_are_refused(write):
    with pytest.raises(ValueError, match=r"same attributes \(got \['v', 'w'\] in one alone\)"):
        from_arff(write("a.arff", SPARSE), write("b.arff", SPARSE_TEST.replace(" v ", " w ")), -2)
    with pytest.raises(ValueError, match=r"l\.xml': Expected <labels>"):
        from_arff(write("a.arff", SPARSE), labels=write("l.xml", "\n<other/>"))
    with pytest.raises(FileNotFoundError):
        from_arff("none.arff", labels=1)


def test_a_hierarchy_of_labels_makes_a_label_graph(write):
    text = '<labels><label name="a"><label name="b"><label name="c"/></label></label>'
    names, parents = read_label_xml(write("l.xml", f'{text}<label name="d"/></labels>'))
    assert (names, parents) == (["a", "b", "c", "d"], [("b", "a"), ("c", "b")])
    assert graphs.tree(parents, names, self_loops=False).num_labels == 4


BOMB = '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<labels><label name="&b;"/></labels>'
TWICE = "<labels><label name='a'/>\n<label name='a'/></labels>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no element found: line 1"),
        ("<labels>", "no element found: line 1"),
        ("<labels/>", r"<labels> of <label name=...> \(got"),
        ("<labels><label/></labels>", "Expected <labels> of <label name=...>"),
        ("<labels>\n<label name=''/></labels>", "Expected <labels> of <label name=...>"),
        (TWICE, r"Expected distinct labels \(got 'a' twice\)"),
        ("<labels><tag name='a'/></labels>", r"<labels> of <label .*\(got \['labels', 'tag'\]"),
        ("<labels><label name='a'></labels>", "mismatched tag: line 1"),
        ("a,b\n1,2", "syntax error: line 1"),
        (BOMB, "Expected no document type"),
        ('<!DOCTYPE l SYSTEM "file:///etc/passwd"><labels/>', "Expected no document type"),
        ('<?xml version="1.0" encoding="nonsense"?><labels/>', "unknown encoding"),
    ],
)
def test_malformed_label_files_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_label_xml(text.encode())


SMALL_XML = XML.format("a", "b").replace("/></l", '><label name="c"/></label></l').encode()
MARKUP = st.sampled_from([b"<label", b"&amp;", b"<!DOCTYPE x [", b"<!ENTITY", b"&b;"])


@settings(max_examples=100)
@given(st.integers(0, len(SMALL_XML)), st.integers(0, 3), st.one_of(st.binary(max_size=5), MARKUP))
def test_mutated_label_files_are_read_or_refused(start, length, inserted):
    try:
        names, _ = parse_label_xml(SMALL_XML[:start] + inserted + SMALL_XML[start + length :])
    except ValueError:
        return
    assert names


@settings(max_examples=50)
@given(st.integers(0, len(SPARSE)), st.integers(0, 3), st.binary(max_size=4))
def test_mutated_tables_are_read_or_refused(tmp_path_factory, start, length, inserted):
    path = tmp_path_factory.mktemp("mutated") / "a.arff"
    path.write_bytes(SPARSE.encode()[:start] + inserted + SPARSE.encode()[start + length :])
    try:
        dataset = from_arff(path, labels=-2, drop="text")
    except ValueError:
        return
    assert dataset.num_labels == 2


GO = "GO0003674"  # The root of molecular functions.
GO_PATHS = f"root/{GO},root/GO0005575,{GO}/a,GO0005575/b,a/c"
HUE, ROUND, HUES = "hue {red,green,blue}", "round {0,1}", ["hue=red", "hue=green", "hue=blue"]


@pytest.mark.parametrize(
    ("count", "attributes", "rows", "labels", "inputs", "y"),
    [
        (2, [HUE, ROUND], ["red,0,1", "?,1,2"], [*HUES, "round"], ["edge"], [1, 0, 0, 0]),
        (1, [ROUND, HUE], ["1,red,1", "0,?,2"], ["round"], [*HUES, "edge"], [1]),
        (1, [HUE, ROUND], ["{0 green,2 1}", "{0 ?}"], HUES, ["round", "edge"], [0, 1, 0]),
        (2, [HUE, ROUND], ["{1 1}", "{0 ?}"], [*HUES, "round"], ["edge"], [1, 0, 0, 1]),
    ],
)
def test_labels_are_counted_among_attributes_before_values_become_columns(
    write, count, attributes, rows, labels, inputs, y
):
    text = arff([*attributes, "edge numeric"], rows, f"shapes: -C {count}")
    dataset = from_arff(write("a.arff", text), kind="vector")
    assert (dataset.label_names, dataset.feature_names) == (labels, inputs)
    assert dataset.y[0].tolist() == y
    assert dataset.y[1].isnan().tolist() == [name.startswith("hue=") for name in labels]
    # An unknown value is 0 in all columns of the attribute.
    assert not dataset.x[1][[name.startswith("hue=") for name in inputs]].any()


def test_arff_tables_are_checked_like_other_tables(write, caplog):
    rows = [f"{i % 2},{i // 2 % 2},{i + 100},{i % 2},{i * i % 5}" for i in range(24)]
    attributes = ["a {0,1}", "b {0,1}", "id numeric", "leak numeric", "size numeric"]
    path = write("a.arff", arff(attributes, rows, "x: -C2").replace("\n", "\r"))
    with (
        pytest.warns(UserWarning, match="'leak' alone predicts label 'a'"),
        caplog.at_level("INFO"),
    ):
        assert from_arff(path, path).feature_names == ["leak", "size"]
    assert "Left out: 'id'" in caplog.text
    with pytest.raises(ValueError, match=r"such as \['bb'\].*is 'b' meant\?"):
        from_arff(path, labels=["bb"])
    with pytest.raises(ValueError, match=r"got ''\); write \? for"):
        from_arff(write("b.arff", arff(attributes, ["1,0,5,,2"], "x: -C2")))


@pytest.mark.parametrize(
    ("declared", "rows", "names", "parents"),
    [
        ("x/y/z,u,u/v", "x/y@u:11010 u/v:00011 n:00000", "x x/y x/y/z u u/v", "01 12 34"),
        ("root/p,root/q,p/c,q/c,c/d", "d:1111 p@q:1100 root:0000", "p q c d", "02 12 23"),
        (GO_PATHS, f"c@{GO}:101 b:010 a:100", "a b c", "02"),
    ],
)
def test_clus_paths_add_all_ancestors_but_roots(write, declared, rows, names, parents):
    attributes = ["size numeric", f"class hierarchical {declared}"]
    cells, y = zip(*(row.split(":") for row in rows.split()), strict=True)
    table = [f"{i}.5,{cell}" for i, cell in enumerate([*cells, "?"])]
    dataset = from_arff(write("a.arff", arff(attributes, table)))
    assert (dataset.label_names, dataset.feature_names) == (names.split(), ["size"])
    assert dataset.label_graph.label_names == names.split()
    edges = sorted(dataset.label_graph.parent_index.t().tolist())
    assert edges == [list(map(int, edge)) for edge in parents.split()]
    assert dataset.y[:-1].tolist() == [list(map(int, row)) for row in y]
    assert dataset.y[-1].isnan().all()


@pytest.mark.parametrize(
    ("name", "num_labels", "positives"), [("cellcycle_FUN", 499, 8.8), ("cellcycle_GO", 4122, 33.4)]
)
@pytest.mark.slow
def test_real_hierarchies_are_read(real_file, name, num_labels, positives):
    with pytest.warns(UserWarning, match="Labels with the same value"):
        dataset = from_arff(real_file(f"hmc/raw/{name}.test.arff.xz"))
    assert dataset.num_labels == num_labels
    assert dataset.y.sum(dim=1).mean().item() == pytest.approx(positives, abs=0.5)
    graph = dataset.label_graph
    assert (graph.kind, graph.label_names) == ("hierarchy", dataset.label_names)
    scores = torch.rand(4, num_labels)
    assert torch.equal(CoherentHead(graph)(dataset.y), dataset.y)
    assert (CoherentHead(graph)(scores) >= scores).all()


def test_encodings_can_be_given_and_constant_labels_warn(tmp_path):
    path = tmp_path / "a.arff"
    text = arff(["größe {0}", "b real"], ["0,1", "0,2.5"], "r: -C 1")
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(ValueError, match=r"line 2: .*0xf6.* pass its encoding.*latin1"):
        from_arff(path)
    with pytest.warns(UserWarning, match="Labels with the same value in all rows.*'größe'"):
        assert from_arff(path, encoding="latin1").label_names == ["größe"]
    assert read_table(path, encoding="latin1").header == ["größe", "b"]
    with pytest.raises(ValueError, match="in the encoding 'nonsense'"):
        from_arff(path, encoding="nonsense")


MIXED = ["id numeric", "fold numeric", "size {S,M,L}", "wet {NO,YES}", "loud {low,high}"]
MIXED += ["sign {1,-1}", "n numeric", "day date 'yyyy-MM-dd'", "hue {red,green,blue}", "calm {0,1}"]


def mixed_rows():
    for i in range(12):
        words = ("S", "M")[i % 2], ("NO", "YES")[i // 2 % 2], ("low", "high")[i // 3 % 2]
        numbers = f"{(1, -1)[i // 6]},{i * i / 4},{2001 + i}-05-06"
        labels = f"{('red', 'green', '?')[i % 3]},{(i * i // 3) % 2}"
        yield f"{9 * i + 1},{i % 3},{','.join(words)},{numbers},{labels}"


@pytest.mark.filterwarnings("ignore:Input|Labels")
def test_python_and_the_command_line_read_the_same_columns(write, tmp_path, capsys):
    path = write("a.arff", arff(MIXED, mixed_rows(), "toy: -C -2"))
    with pytest.warns(UserWarning, match=r"'fold' seems, by its name, .*drop=\['fold'\]"):
        dataset = from_arff(path, kind="vector")
    names = ["fold", "size=S", "size=M", "size=L", "wet", "loud", "sign", "n", "day"]
    assert dataset.feature_names == dataset.schema.feature_names == names
    assert dataset.label_names == ["hue=red", "hue=green", "hue=blue", "calm"]
    with pytest.warns(UserWarning, match="'fold' seems, by its name"):
        table = Vectors.from_csv(path, [], ["hue", "calm"])
    assert (table.schema, table.feature_names) == (dataset.schema, names)
    assert torch.equal(table.x, dataset.x)
    np.testing.assert_array_equal(table.y, dataset.y)

    schema, folder = tmp_path / "schema.yaml", str(tmp_path / "model")
    assert cli.main(["data", "check", "--csv", str(path), "--write", str(schema)]) == 0
    restored = Schema.from_dict(pytest.importorskip("yaml").safe_load(schema.read_text()))
    assert restored == dataset.schema
    assert cli.main(["train", "--arff", str(path), "--out", folder, "--seconds", "0"]) == 0
    preprocessor = tg_mlc.load(folder).stage(Features).kind
    assert Schema.from_dict(preprocessor.schema) == dataset.schema
    assert preprocessor.feature_names == names
    capsys.readouterr()
    assert cli.main(["evaluate", folder, "--arff", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["roc_auc_micro"] > 0.5
    out = tmp_path / "p.csv"
    assert cli.main(["predict", folder, "--arff", str(path), "--out", str(out)]) == 0
    frame = pd.read_csv(out)
    inputs = pd.DataFrame(table.schema.matrix(read_table(path).cells()))
    assert np.allclose(inputs, dataset.x)
    expected = tg_mlc.load(folder).probabilities(frame.rename(columns=str))
    assert np.allclose(frame[dataset.label_names], expected, atol=1e-5)
    row = {"fold": [1], "size": ["M"], "wet": ["yes"], "loud": ["high"], "sign": ["-1"], "n": [4]}
    new = from_arrays(pd.DataFrame({**row, "day": ["1970-01-03"]}), like=dataset)
    assert new.rows("x").tolist() == [[1, 0, 1, 0, 1, 1, 0, 4, 2]]


def test_attributes_that_share_a_name_are_numbered(write):
    attributes = ["a numeric", "a numeric", "b {0,1}", "a.1 numeric", "b {0,1}", "b {0,1}"]
    first = write("a.arff", arff(attributes, ["1,2,0,3,1,0", "4,5,1,6,0,1"], "r: -C -2"))
    second = write("b.arff", arff(attributes, ["7,8,0,9,1,0"]))
    with pytest.warns(UserWarning, match=r"share a name.*'b.1' \(line 7\), 'a.2' \(line 3\)"):
        dataset = from_arff(first, second, kind="vector")
    assert dataset.feature_names == ["a", "a.2", "b.2", "a.1"]
    assert dataset.label_names == ["b", "b.1"]
    assert dataset.x.tolist() == [[1, 2, 0, 3], [4, 5, 1, 6], [7, 8, 0, 9]]
    assert dataset.y.tolist() == [[1, 0], [0, 1], [1, 0]]
    with pytest.warns(UserWarning, match="share a name"):
        table = Vectors.from_csv(first, [], ["b", "b.1"])
    expected = dataset.feature_names, dataset.x[:2].tolist()
    assert (table.feature_names, table.x.tolist()) == expected


@pytest.mark.parametrize(
    ("train", "test", "sizes", "shared", "renamed"),
    [
        ("Enron_corr_trainvalid", "Enron_corr_test", (1648, 1001, 56), {"1", "2", "4"}, []),
        ("gasch1_FUN.train", None, (1634, 173, 499), set(), ["Heat_Shock_000_minutes__hs_2.1"]),
    ],
)
@pytest.mark.filterwarnings("ignore:Labels|Attributes")
@pytest.mark.slow
def test_published_files_may_repeat_names(real_file, train, test, sizes, shared, renamed, capsys):
    paths = [real_file(f"hmc/raw/{name}.arff.xz") for name in (train, test) if name]
    dataset = from_arff(*paths)
    assert (len(dataset), dataset.num_inputs, dataset.num_labels) == sizes
    assert set(dataset.label_names) & set(dataset.feature_names) == shared
    assert [name for name in dataset.feature_names if name.endswith("hs_2.1")] == renamed
    assert cli.main(["data", "check", "--csv", str(paths[-1])]) == 0
    assert f"{sizes[1] + 1:,} attributes" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Labels|Attributes|Input")
def test_models_take_files_with_repeated_names(write, tmp_path):
    # Two inputs and one label are named '1'.
    attributes = ["1 numeric", "1 numeric", "x numeric", "class hierarchical 1,1/2,3"]
    rows = [f"{i},{i * i % 7},{i % 5},{('1/2', '3', '1@3')[i % 3]}" for i in range(24)]
    path = write("a.arff", arff(attributes, rows))
    dataset = from_arff(path, kind="vector")
    assert (dataset.label_names, dataset.feature_names) == (["1", "1/2", "3"], ["1", "1.1", "x"])
    model = tg_mlc.auto(dataset, seconds=0)
    cells = pd.DataFrame(read_table(path).cells()).drop(columns="class").iloc[:5]
    predicted = model.probabilities(cells)
    assert np.allclose(predicted, model.probabilities(dataset[:5]), atol=1e-5)
    model.save(tmp_path / "model")
    assert np.allclose(tg_mlc.load(tmp_path / "model").probabilities(cells), predicted, atol=1e-5)
