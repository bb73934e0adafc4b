from __future__ import annotations

import time

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.arff_texts import SPARSE, SPARSE_TEST, TRAIN, XML
from tg_mlc import graphs
from tg_mlc.data import from_arff, from_arrays, read_label_xml
from tg_mlc.inputs._arff_table import meka_count
from tg_mlc.inputs.arff import parse_label_xml
from tg_mlc.nn import CoherentHead


def test_own_files(write):
    paths = (
        write("a.arff", SPARSE),
        write("b.arff", SPARSE_TEST),
        write("l.xml", XML.format("B", "A")),
    )
    dataset = from_arff(*paths)
    assert (dataset.kind, dataset.label_names, dataset.feature_names) == (
        "bag",
        ["B", "A"],
        ["u", "v"],
    )
    assert [data.x.tolist() for data in dataset] == [[0], [], [1], [1]]
    assert dataset.y.tolist() == [[0, 1], [0, 0], [1, 1], [1, 0]]
    assert dataset.official_split(val_fraction=0.4).test.tolist() == [3]
    assert from_arff(*paths, kind="vector").x.tolist() == [[1, 0], [0, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("labels", "names"),
    [(["v"], ["v"]), (2, ["u", "v"]), (-1, ["B"]), (-2, ["A", "B"]), (("B", "u"), ["B", "u"])],
)
def test_ways_to_name_labels(write, labels, names):
    dataset = from_arff(write("a.arff", SPARSE), labels=labels)
    assert dataset.label_names == names
    with pytest.raises(ValueError, match="published with a split"):
        dataset.official_split()


@pytest.mark.parametrize(
    ("relation", "names"),
    [("'x: -C 2'", ["u", "v"]), ("'x: -C -2'", ["A", "B"]), ("'my data: -c 3 -C 1 -V'", ["u"])],
)
def test_labels_as_meka_counts_them(write, relation, names):
    dataset = from_arff(write("a.arff", SPARSE.replace("@relation r", f"@relation {relation}")))
    assert dataset.label_names == names


def test_a_long_relation_takes_no_quadratic_time():
    start = time.process_time()
    assert meka_count(":" * 200_000) is meka_count(":-C" * 200_000) is None
    assert meka_count(":" * 200_000 + " -C 6") == 6
    assert time.process_time() - start < 5


def test_the_kind_is_told_by_the_values_and_printed(write, capsys):
    dense = TRAIN + "1,0,1,0\n0,1,0,1\n"
    assert from_arff(write("a.arff", dense), labels=-2).kind == "bag"
    assert capsys.readouterr().out == (
        "Taking the inputs as kind='bag' because the rows are sparse, or all values 0 and 1; "
        "pass kind=... for another.\n"
    )
    numeric = dense.replace("@attribute u {0,1}", "@attribute u numeric").replace(
        "1,0,1,0", "1.5,0,1,0"
    )
    assert from_arff(write("b.arff", numeric), labels=-2).kind == "vector"
    assert (
        "kind='vector' because values are unknown, or the rows are dense, with values other than 0 and 1"
        in capsys.readouterr().out
    )
    assert from_arff(write("b.arff", numeric), labels=-2, kind="bag").kind == "bag"
    assert capsys.readouterr().out == ""  # nothing was inferred


def test_attributes_of_the_test_file_may_have_another_order(write):
    other = "@relation r\n@attribute B {0,1}\n@attribute v {0,1}\n@attribute u {0,1}\n@attribute A {0,1}\n@data\n1,0,1,0\n"
    dataset = from_arff(write("a.arff", SPARSE), write("b.arff", other), ["A", "B"])
    assert (dataset[3].x.tolist(), dataset[3].y.tolist()) == ([0], [[0, 1]])


NOMINAL = "@relation r\n@attribute x {{{}}}\n@attribute A {{{}}}\n@data\n{}\n"


def test_values_of_known_meaning_may_have_another_order_in_the_test_file(write):
    train = write("a.arff", NOMINAL.format("NO,YES", "pos,neg", "YES,pos\nNO,neg"))
    for x, label, rows in (
        ("YES,NO", "neg,pos", "YES,neg\nNO,pos"),
        ("no,yes", "0,1", "yes,0\nno,1"),
    ):
        dataset = from_arff(train, write("b.arff", NOMINAL.format(x, label, rows)), -1, "vector")
        assert dataset.x.tolist() == [[1], [0], [1], [0]]
        assert dataset.y.tolist() == [[1], [0], [0], [1]]


@pytest.mark.parametrize(
    ("x", "rows", "got"),
    [
        (
            "{blue,red}",
            "red,1",
            r"\(got \{red,blue\} in the training and \{blue,red\} in the test file\)",
        ),
        ("{red,green}", "red,1", r"\(got \{red,blue\} .* \{red,green\} in the test file\)"),
        ("{0,1}", "0,1", r"\(got \{red,blue\} .* values of known meaning in the test file\)"),
    ],
)
def test_values_of_unknown_meaning_in_another_order_are_refused(write, x, rows, got):
    train = write("a.arff", NOMINAL.format("red,blue", "0,1", "red,0\nblue,1"))
    test = write("b.arff", NOMINAL.format(x[1:-1], "0,1", rows))
    with pytest.raises(
        ValueError, match=rf"values of attribute 'x' in the same order, which numbers them {got}"
    ):
        from_arff(train, test, -1)
    with pytest.raises(
        ValueError,
        match=r"\(got (\{blue,red\}|\{red,green\}|values of known meaning) in the training and \{red,blue\}",
    ):
        from_arff(test, train, -1)


@pytest.mark.parametrize("values", ["red,blue", "1,2", "0,-1", "high"])
def test_labels_of_unknown_meaning_are_refused(write, values):
    path = write("a.arff", NOMINAL.format("red,blue", values, f"red,{values.split(',')[0]}"))
    message = rf"that mean 0 and 1, such as \{{0,1\}} or \{{no,yes\}} \(got \{{{values}\}} for 'A'\); write \{{0,1\}}"
    with pytest.raises(ValueError, match=message):
        from_arff(path, labels=-1)


def test_unknown_entries_of_vectors_are_nan(write):
    dataset = from_arff(write("a.arff", TRAIN + "0,?,1,1\n"), labels=-2)
    assert dataset.kind == "vector"
    assert dataset[len(dataset) - 1].x.isnan().tolist() == [[False, True]]


def test_unknown_labels_are_nan(write):
    dataset = from_arff(write("a.arff", SPARSE + "{2 ?}\n"), labels=-2)
    assert dataset.y.isnan().nonzero().tolist() == [[3, 0]]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SPARSE, {}, "'labels'.* relation 'r' has no '-C'"),
        (
            SPARSE,
            {"labels": ["A", "C"]},
            r"1 that are none, such as \['C'\].*got the columns \['u', 'v', 'A', 'B'\]",
        ),
        (SPARSE, {"labels": ["A", "A"]}, "distinct"),
        (SPARSE, {"labels": []}, "at least one"),
        (SPARSE, {"labels": 4}, "between 1 and 3.*got 4"),
        (SPARSE, {"labels": 0}, "between 1 and 3"),
        (SPARSE, {"labels": ["u", "v", "A", "B"]}, "got 4 labels alone"),
        (SPARSE, {"labels": -2, "kind": "sequence"}, "Expected 'kind' to be one of bag, vector"),
        (
            SPARSE + "{0 ?}\n",
            {"labels": -2, "kind": "bag"},
            r"finite inputs .*\(got nan in row 3, column 0\)",
        ),
        (
            SPARSE.replace("A {0,1}", "A numeric") + "{2 7}\n",
            {"labels": -2},
            r"got 7 in row 3, column 0: label 'A'",
        ),
        (
            TRAIN.replace("B {0,1}", "B real") + "1,1,1,-1\n",
            {"labels": -2},
            r"got -1 in row \d, column 1: label 'B'",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(write, text, options, message):
    with pytest.raises(ValueError, match=message):
        from_arff(write("a.arff", text), **options)


def test_files_that_do_not_belong_together(write):
    with pytest.raises(ValueError, match=r"same attributes \(got \['v', 'w'\] in one alone\)"):
        from_arff(write("a.arff", SPARSE), write("b.arff", SPARSE_TEST.replace(" v ", " w ")), -2)
    with pytest.raises(ValueError, match=r"l\.xml': Expected <labels>"):
        from_arff(write("a.arff", SPARSE), labels=write("l.xml", "\n<other/>"))
    with pytest.raises(FileNotFoundError):
        from_arff("none.arff", labels=1)


def test_too_large_tables_are_refused_before_they_take_memory(write, monkeypatch):
    monkeypatch.setattr("tg_mlc.data._label_values.MAX_BYTES", 5)
    with pytest.raises(
        ValueError, match=r"labels whose matrix takes at most .*got 2 labels of 3 samples"
    ):
        from_arff(write("a.arff", SPARSE), labels=-2)


def test_a_hierarchy_of_labels_makes_a_label_graph(write):
    text = '<labels><label name="a"><label name="b"><label name="c"/></label></label><label name="d"/></labels>'
    names, parents = read_label_xml(write("l.xml", text))
    assert (names, parents) == (["a", "b", "c", "d"], [("b", "a"), ("c", "b")])
    assert graphs.tree(parents, names, self_loops=False).num_labels == 4


BOMB = '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<labels><label name="&b;"/></labels>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no element found: line 1"),
        ("<labels>", "no element found: line 1"),
        ("<labels/>", r"<labels> of <label name=...> \(got"),
        ("<labels><label/></labels>", "Expected <labels> of <label name=...>"),
        ("<labels>\n<label name=''/></labels>", "Expected <labels> of <label name=...>"),
        (
            "<labels><label name='a'/>\n<label name='a'/></labels>",
            r"Expected distinct labels \(got 'a' twice\)",
        ),
        (
            "<labels><tag name='a'/></labels>",
            r"Expected <labels> of <label .*\(got \['labels', 'tag'\]",
        ),
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


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SMALL_XML)),
            st.integers(0, 3),
            st.one_of(
                st.binary(max_size=5),
                st.sampled_from([b"<label", b"&amp;", b"<!DOCTYPE x [", b"<!ENTITY", b"&b;"]),
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_mutated_label_files_are_read_or_refused(changes):
    content = SMALL_XML
    for at, length, new in changes:
        content = content[:at] + new + content[at + length :]
    try:
        names, _ = parse_label_xml(content)
    except ValueError:
        return
    assert names


@settings(max_examples=100)
@given(st.integers(0, len(SPARSE)), st.integers(0, 3), st.binary(max_size=4))
def test_mutated_tables_are_read_or_refused(tmp_path_factory, at, length, new):
    path = tmp_path_factory.mktemp("mutated") / "a.arff"
    path.write_bytes(SPARSE.encode()[:at] + new + SPARSE.encode()[at + length :])
    try:
        dataset = from_arff(path, labels=-2, drop="text")
    except ValueError:
        return
    assert dataset.num_labels == 2


SHAPES = (
    "@relation 'shapes: -C {}'\n@attribute {}\n@attribute {}\n@attribute edge numeric\n@data\n{}\n"
)
SPREAD = ["hue=red", "hue=green", "hue=blue"]


@pytest.mark.parametrize(
    ("count", "first", "second", "rows", "labels", "inputs", "y"),
    [
        (
            2,
            "hue {red,green,blue}",
            "round {0,1}",
            "red,0,1\n?,1,2",
            [*SPREAD, "round"],
            ["edge"],
            [1, 0, 0, 0],
        ),
        (
            1,
            "round {0,1}",
            "hue {red,green,blue}",
            "1,red,1\n0,?,2",
            ["round"],
            [*SPREAD, "edge"],
            [1],
        ),
        (
            1,
            "hue {red,green,blue}",
            "round {0,1}",
            "{0 green,2 1}\n{0 ?}",
            SPREAD,
            ["round", "edge"],
            [0, 1, 0],
        ),
        (
            2,
            "hue {red,green,blue}",
            "round {0,1}",
            "{1 1}\n{0 ?}",
            [*SPREAD, "round"],
            ["edge"],
            [1, 0, 0, 1],
        ),
    ],
)
def test_labels_are_counted_among_attributes_before_values_become_columns(
    write, count, first, second, rows, labels, inputs, y
):
    dataset = from_arff(write("a.arff", SHAPES.format(count, first, second, rows)), kind="vector")
    assert (dataset.label_names, dataset.feature_names) == (labels, inputs)
    assert dataset.y[0].tolist() == y
    is_spread = [name.startswith("hue=") for name in labels]
    assert dataset.y[1].isnan().tolist() == is_spread
    # An input of unknown value has none of its columns.
    assert not dataset.x[1][[name.startswith("hue=") for name in inputs]].any()


def test_columns_of_a_test_file_are_matched_by_name(write):
    train = write(
        "a.arff", SHAPES.format(1, "hue {red,green,blue}", "size {s,m,l}", "red,l,1\nblue,s,2")
    )
    other = SHAPES.format(1, "size {l,s,m}", "hue {blue,red,green}", "l,red,3")
    dataset = from_arff(train, write("b.arff", other), kind="vector")
    assert dataset.label_names == ["hue=red", "hue=green", "hue=blue"]
    assert (dataset.y[2].tolist(), dataset.x[2].tolist()) == ([1, 0, 0], [0, 0, 1, 3])


def test_tables_are_checked_as_those_of_other_formats(write, caplog):
    rows = "".join(f"{i % 2},{i // 2 % 2},{i + 100},{i % 2},{i * i % 5}\n" for i in range(24))
    header = "@relation 'x: -C2'\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute id numeric\n"
    header += "@attribute leak numeric\n@attribute size numeric\n@data\n"
    path = write("a.arff", (header + rows).replace("\n", "\r"))
    with pytest.warns(UserWarning, match="'leak' alone tells label 'a'"), caplog.at_level("INFO"):
        assert from_arff(path, path).feature_names == ["leak", "size"]
    assert "Left out: 'id'" in caplog.text
    with pytest.raises(ValueError, match=r"such as \['bb'\].*is 'b' meant\?"):
        from_arff(path, labels=["bb"])
    with pytest.raises(ValueError, match=r"got ''\); write \? for"):
        from_arff(write("b.arff", header + "1,0,5,,2\n"))


@pytest.mark.parametrize(
    ("first", "options", "message"),
    [
        (
            "hue string",
            {"drop": "text"},
            r"line 2: Expected labels .*\(got 'hue' of type 'string'\)",
        ),
        ("hue {0,1}", {"drop": ["hue"]}, r"\(got 'hue', which is to be left out\)"),
        (
            "hue hierarchical a,a/b",
            {"labels": ["round"]},
            r"hierarchical attribute 'hue' to be a label.*labels=\['hue'\]",
        ),
        (
            "hue hierarchical a,a/b",
            {"labels": ["hue"]},
            r"line 7: Expected a path of attribute 'hue'.*got '1'",
        ),
    ],
)
def test_labels_that_cannot_be_read_are_refused_by_name(write, first, options, message):
    text = SHAPES.format(1, first, "round {0,1}", "?,0,1\n1,1,2")
    with pytest.raises(ValueError, match=message):
        from_arff(write("a.arff", text), **options)


@pytest.mark.parametrize(
    ("listed", "rows", "names", "y"),
    [
        (
            "x/y/z,u,u/v",
            ["x/y@u", "u/v", "n"],
            ["x", "x/y", "x/y/z", "u", "u/v"],
            [[1, 1, 0, 1, 0], [0, 0, 0, 1, 1], [0] * 5],
        ),
        (
            "root/p,root/q,p/c,q/c,c/d",
            ["d", "p@q", "root"],
            ["p", "q", "c", "d"],
            [[1, 1, 1, 1], [1, 1, 0, 0], [0] * 4],
        ),
    ],
)
def test_paths_of_clus_apply_with_all_above_them(write, listed, rows, names, y):
    text = f"@relation r\n@attribute size numeric\n@attribute class hierarchical {listed}\n@data\n"
    dataset = from_arff(
        write("a.arff", text + "".join(f"{i}.5,{row}\n" for i, row in enumerate([*rows, "?"])))
    )
    assert (dataset.label_names, dataset.feature_names) == (names, ["size"])
    assert dataset.y[:-1].tolist() == y
    assert dataset.y[-1].isnan().all()


@pytest.mark.parametrize(
    ("name", "num_labels", "positives"), [("cellcycle_FUN", 499, 8.8), ("cellcycle_GO", 4122, 33.4)]
)
def test_real_hierarchies(real_file, name, num_labels, positives):
    with pytest.warns(UserWarning, match="Labels with one value"):
        dataset = from_arff(real_file(f"hmc/raw/{name}.test.arff.xz"))
    assert dataset.num_labels == num_labels
    assert dataset.y.sum(dim=1).mean().item() == pytest.approx(positives, abs=0.5)
    assert (dataset.label_graph.kind, dataset.label_graph.label_names) == (
        "hierarchy",
        dataset.label_names,
    )
    scores = torch.rand(4, num_labels)
    assert torch.equal(CoherentHead(dataset.label_graph)(dataset.y), dataset.y)
    assert (CoherentHead(dataset.label_graph)(scores) >= scores).all()


@pytest.mark.parametrize(
    ("listed", "match"),
    [
        ("root/a,b/c", r"line 2: .*below 'root' \(got 'b' above 'c'"),
        ("root/a,a/b,b/c,c/b", r"line 2: .*without cycles \(got (b -> c -> b|c -> b -> c)\)"),
    ],
)
def test_a_hierarchy_that_is_wrong_is_named(write, listed, match):
    text = f"@relation r\n@attribute class hierarchical {listed}\n@attribute size numeric\n@data\na,1\n"
    with pytest.raises(ValueError, match=match):
        from_arff(write("a.arff", text))


def test_roots_of_an_ontology_are_no_labels(write):
    listed = "root/GO0003674,root/GO0005575,GO0003674/a,GO0005575/b,a/c"
    text = f"@relation r\n@attribute size numeric\n@attribute class hierarchical {listed}\n@data\n"
    dataset = from_arff(write("a.arff", text + "1.5,c@GO0005575\n2.5,b\n3.5,a\n"))
    assert dataset.label_names == ["a", "b", "c"]
    assert dataset.y.tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert dataset.label_graph.parent_index.tolist() == [[0], [2]]


def test_constant_labels_and_other_encodings(tmp_path):
    path = tmp_path / "a.arff"
    path.write_bytes(
        "@relation 'r: -C 1'\n@attribute größe {0}\n@attribute b real\n@data\n0,1\n0,2.5\n".encode(
            "latin1"
        )
    )
    with pytest.raises(
        ValueError, match=r"line 2: .* UTF-8 .*0xf6\); pass its encoding, such as encoding='latin1'"
    ):
        from_arff(path)
    with pytest.warns(UserWarning, match=r"Labels with one value in all rows.*'größe'"):
        assert from_arff(path, encoding="latin1").label_names == ["größe"]
    with pytest.raises(ValueError, match="in the encoding 'nonsense'"):
        from_arff(path, encoding="nonsense")


def test_the_schema_says_what_attributes_are(tmp_path):
    path = tmp_path / "a.arff"
    names = [
        "id numeric",
        "fold numeric",
        "size numeric",
        "hue {red,green,blue}",
        "loud {low,high}",
        "calm {0,1}",
    ]
    rows = [
        f"{9 * i + 1},{i % 3},{i * i},{('red', 'blue')[i % 2]},{('low', 'high')[i % 2]},{i // 6}"
        for i in range(12)
    ]
    path.write_text(
        "\n".join(
            ["@relation 'a: -C -1'", *(f"@attribute {name}" for name in names), "@data", *rows]
        )
    )
    with pytest.warns(UserWarning, match=r"'fold' has the name .*drop=\['fold'\]"):
        dataset = from_arff(path, kind="vector")
    roles = {column.name: column.role for column in dataset.schema.columns}
    assert list(roles.values()) == ["id", "number", "number", "category", "number", "label"]
    assert dataset.schema.feature_names == dataset.feature_names
    new = from_arrays(
        pd.DataFrame({"fold": [1], "size": [4], "hue": ["blue"], "loud": ["high"]}), like=dataset
    )
    assert new.rows("x").tolist() == [[1, 4, 0, 0, 1, 1]]
