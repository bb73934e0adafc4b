import numpy as np
import pytest
import torch

from tg_mlc.data import from_arrays, from_csv, with_hierarchy
from tg_mlc.graphs import tree
from tg_mlc.inputs.kind import FileOptions
from tg_mlc.inputs.molecules import Molecules
from tg_mlc.inputs.tables import read_table
from tg_mlc.inputs.vectors import Vectors

NAN = float("nan")
PAIRS = [("poodle", "dog"), ("dog", "animal"), ("cat", "animal")]
NAMES = ["animal", "dog", "poodle", "cat"]


def samples(rows):
    return from_arrays(np.arange(2.0 * len(rows)).reshape(-1, 2) + 0.5, np.array(rows), NAMES)


@pytest.mark.parametrize(
    "parents", [PAIRS, tree(PAIRS, NAMES), tree(PAIRS, NAMES[::-1], undirected=False)]
)
def test_ones_reach_ancestors_and_zeros_descendants(parents):
    dataset = with_hierarchy(samples([[NAN, NAN, 1, 0], [0, NAN, NAN, 0], [1, 1, 0, 1]]), parents)
    assert dataset.y.tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 0, 1]]
    assert dataset.label_graph.kind == "hierarchy"
    assert dataset[1:].label_graph is dataset.label_graph


def test_listed_labels_add_their_ancestors():
    dataset = samples([[0, 0, 1, 0], [NAN, NAN, NAN, NAN], [0, 0, 0, 1]])
    dataset = with_hierarchy(dataset, PAIRS, listed=True)
    assert dataset.y[[0, 2]].tolist() == [[1, 1, 1, 0], [1, 0, 0, 1]]
    assert dataset.y[1].isnan().all()


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([*PAIRS, ("animal", "poodle")], "without cycles .*animal"),
        ([("a", "b"), ("c", "b")], "'parents' to join labels .*'animal'"),
        (PAIRS, "'labels' to agree .*row 1, in which 'dog' applies and 'animal' above it does not"),
    ],
)
def test_wrong_hierarchies_are_refused(parents, message):
    with pytest.raises(ValueError, match=message):
        with_hierarchy(samples([[1, 1, 1, 0], [0, 1, 0, 0]]), parents)


TABLE = "size,kind\n1.5,animal/dog/poodle\n2.5,animal/cat;plant\n3.5,\n4.5,animal/dog\n"


def test_paths_in_a_table_make_a_hierarchy(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    dataset = from_csv(tmp_path / "a.csv", "kind", label_separator=";", label_paths="/")
    names = ["animal", "animal/cat", "animal/dog", "animal/dog/poodle", "plant"]
    assert dataset.label_names == names
    assert dataset.label_graph.parent_index.t().tolist() == [[0, 1], [0, 2], [2, 3]]


def test_molecules_may_have_a_hierarchy(tmp_path):
    pytest.importorskip("rdkit")
    path, parents = tmp_path / "a.csv", tmp_path / "parents.csv"
    path.write_text("smiles,animal,dog\nCCO,,1\nC1CC,0,0\nCC,0,\n")
    parents.write_text("child,parent\ndog,animal\n")
    options = FileOptions(hierarchy=parents)
    with pytest.warns(UserWarning, match="1 of 3 rows cannot be read"):
        dataset = Molecules.from_csv(path, ["smiles"], ["animal", "dog"], options)
    assert dataset.label_graph.kind == "hierarchy"
    assert dataset.y.tolist() == [[1, 1], [0, 0]]
    path.write_text("smiles,names\nCCO,['animal/dog']\nCC,['cat']\n")
    dataset = Molecules.from_csv(path, ["smiles"], ["names"], FileOptions(label_paths="/"))
    assert {*dataset.label_names} == {"animal", "animal/dog", "cat"}


def test_cells_of_an_arff_file_are_a_table(tmp_path):
    path = tmp_path / "a.arff"
    paths = "root/GO0003674,GO0003674/dog,dog/poodle,GO0003674/cat"
    text = "% a\n@relation r\n@attribute size numeric\n@attribute hue {red,'a b'}\n"
    text += f"@attribute c hierarchical {paths}\n"
    path.write_text(f"{text}@data\n1.5,'a b',poodle@cat\n% no row\n?,red,GO0003674\n2,red,?\n")
    table = read_table(path)
    assert table.header == ["size", "hue", "c"]
    assert table.texts("size") == ["1.5", "", "2.0"]
    assert table.texts("hue") == ["a b", "red", "red"]
    dataset = Vectors.from_csv(path, [], ["c"], FileOptions(label_separator="@"))
    assert dataset.label_names == ["dog", "poodle", "cat"]
    assert dataset.y[:2].tolist() == [[1, 1, 1], [0, 0, 0]]
    assert dataset.label_graph.label_names == dataset.label_names
    path.write_text(f"{text}@data\n{{0 1.5,2 cat}}\n{{1 'a b',2 pig}}\n")
    with pytest.raises(ValueError, match=r"line 8: .*'pig'"):
        Vectors.from_csv(path, [], ["c"], FileOptions(label_separator="@"))


def test_hierarchies_are_read_from_an_obo_file(tmp_path):
    (tmp_path / "a.csv").write_text("size,animal,dog,poodle\n1.5,,,1\n2.5,0,,\n3.5,1,0,\n")
    terms = "animal\n", "dog\nis_a: animal\n", "poodle\nis_a: dog\n"
    (tmp_path / "p.obo").write_text("".join(f"[Term]\nid: {term}\n" for term in terms))
    options = FileOptions(hierarchy=tmp_path / "p.obo")
    dataset = Vectors.from_csv(tmp_path / "a.csv", ["size"], ["animal", "dog", "poodle"], options)
    assert torch.equal(dataset.y, torch.tensor([[1.0, 1, 1], [0, 0, 0], [1, 0, 0]]))


GO = "".join(
    f"[Term]\nid: {term}\n\n"
    for term in ("GO:0008150", "GO:1\nis_a: GO:0008150", "GO:2\nis_a: GO:1", "GO:3\nis_a: GO:1")
)
LISTS = [
    (";", "1,GO:2;GO:3\n2,GO:3\n3,\n4,NA\n"),
    (None, "1,\"['GO:2', 'GO:3']\"\n2,['GO:3']\n3,[]\n4,NA\n"),
]


@pytest.mark.parametrize(("separator", "rows"), LISTS)
def test_ancestors_of_listed_labels_become_labels_but_roots(separator, rows, tmp_path):
    pytest.importorskip("obonet")
    (tmp_path / "go.obo").write_text(GO)
    (tmp_path / "a.csv").write_text(f"size,terms\n{rows}")
    options = FileOptions(hierarchy=tmp_path / "go.obo", label_separator=separator)
    dataset = Vectors.from_csv(tmp_path / "a.csv", ["size"], ["terms"], options)
    assert dataset.label_names == ["GO:2", "GO:3", "GO:1"]
    assert dataset.y[:3].tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 0]]
    assert dataset.y[3].isnan().all()
    assert dataset.copy().samples().label_names == dataset.label_names
    assert dataset.label_graph.parent_index.t().tolist() == [[2, 0], [2, 1]]


def test_ancestors_of_columns_apply_where_a_label_below_them_does():
    values = [[1, 0], [0, 0], [0, NAN], [1, NAN], [NAN, NAN]]
    dataset = from_arrays(np.arange(10.0).reshape(5, 2), np.array(values), ["poodle", "cat"])
    dataset = with_hierarchy(dataset, dict(PAIRS), ancestors=True)
    assert dataset.label_names == ["poodle", "cat", "dog", "animal"]
    expected = [[1, 0, 1, 1], [0, 0, 0, 0], [0, NAN, 0, NAN], [1, NAN, 1, 1], [NAN] * 4]
    np.testing.assert_array_equal(dataset.y.numpy(), expected)


def test_roots_of_the_gene_ontology_are_known_by_name():
    above = [("binding", "molecular_function"), ("DNA binding", "binding")]
    dataset = from_arrays(
        np.arange(6.0).reshape(3, 2), np.array([[0], [1], [NAN]]), ["DNA binding"]
    )
    dataset = with_hierarchy(dataset, above, ancestors=True)
    assert dataset.label_names == ["DNA binding", "binding"]
