import gzip
import lzma
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.helpers import both, edges_of, error_of, loops
from tg_mlc.graphs import read_parents, tree

#     r
#    / \
#   a   b
#   |
#   c
PAIRS = [("a", "r"), ("b", "r"), ("c", "a")]


def test_parents_and_children_attend_to_each_other():
    graph = tree(PAIRS)
    assert edges_of(graph) == both(("r", "a"), ("r", "b"), ("a", "c")) | loops("rabc")
    assert graph.label_names == ["a", "r", "b", "c"]  # as they appear
    assert (graph.kind, graph.edge_weight) == ("tree", None)


@pytest.mark.parametrize(
    "parents", [dict(PAIRS), {"a": ["r"], "b": {"r"}, "c": ("a",)}, iter(PAIRS), {**dict(PAIRS), "r": None}]
)
def test_parents_in_other_forms(parents):
    assert edges_of(tree(parents)) == edges_of(tree(PAIRS))


def test_directed_goes_from_parent_to_child():
    assert edges_of(tree(PAIRS, undirected=False, self_loops=False)) == {
        ("r", "r"), ("r", "a"), ("r", "b"), ("a", "c"),
    }  # fmt: skip


def test_label_names_set_the_order_and_add_lone_labels():
    graph = tree(PAIRS, label_names=["c", "b", "a", "z"])
    assert graph.label_names == ["c", "b", "a", "z"]
    assert edges_of(graph) == both(("a", "c")) | loops("abcz")


def test_root_is_dropped_unless_asked_for():
    assert edges_of(tree(PAIRS, root="r")) == both(("a", "c")) | loops("abc")
    assert edges_of(tree(PAIRS, root="r", self_loops=False)) == both(("a", "c")) | loops("b")
    graph = tree(PAIRS, label_names=["c", "b", "a"], include_root=True)
    assert graph.label_names == ["c", "b", "a", "r"]
    assert edges_of(graph) == edges_of(tree(PAIRS))
    assert tree(PAIRS, root="r", include_root=True).num_labels == 4
    graph = tree(PAIRS, label_names=list("rabc"), root="r", include_root=True)  # one that is a label
    assert edges_of(graph) == edges_of(tree(PAIRS))


def test_a_misspelt_parent_is_named_where_it_leaves_no_pair(caplog):
    pairs = [("a", "R"), ("b", "R")]
    graph = tree(pairs, ["r", "a", "b"])
    assert edges_of(graph) == loops("rab")
    assert graph.source == "hierarchy of 0 parent-child pairs, without the root 'R'"
    assert "joins no two labels, as 'R' is no label and was taken for its root" in caplog.text
    assert "(r, a, b)" in caplog.text
    caplog.clear()
    assert tree(PAIRS, ["a", "b", "c"]).source == "hierarchy of 1 parent-child pairs, without the root 'r'"
    assert tree(PAIRS, ["a", "b", "c"], include_root=True).source == "hierarchy of 3 parent-child pairs"
    tree(pairs, ["a", "b"], root="R")
    tree(pairs, ["a", "b"], include_root=True)
    tree([], ["a", "b"])
    assert not caplog.text


#     r    q
#    / \\   |
#   a   b  |
#    \\ / \\ |
#     c   d
#     |
#     e
TERMS = [("a", "r"), ("b", "r"), ("c", "a"), ("c", "b"), ("d", "b"), ("d", "q"), ("e", "c")]


@pytest.mark.parametrize(
    ("labels", "options", "edges"),
    [
        ("rabcdeq", {}, {("r", "a"), ("r", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("q", "d"), ("c", "e")}),
        ("rde", {}, {("r", "d"), ("r", "e")}),
        ("rae", {}, {("a", "e"), ("r", "e"), ("r", "a")}),  # the way over b passes no label
        ("qe", {}, set()),
        ("abe", {}, {("a", "e"), ("b", "e")}),
        ("abe", {"root": "r"}, {("a", "e"), ("b", "e")}),
        ("rce", {"ancestors": True}, {("r", "c"), ("r", "e"), ("c", "e")}),
        ("ade", {"root": "r", "include_root": True}, {("a", "e"), ("r", "a"), ("r", "d"), ("r", "e")}),
    ],
)
def test_some_of_the_names_are_labels(labels, options, edges):
    graph = tree(TERMS, list(labels), undirected=False, **options).remove_self_loops()
    assert edges_of(graph) == edges
    assert ("no labels" in graph.source) == (len(labels) < 7)


def test_labels_beside_a_hierarchy_of_other_names_are_told(caplog):
    tree(TERMS, ["r", "a", "E"])
    assert "1 of 3 labels are not in the hierarchy and stay alone (E)" in caplog.text
    caplog.clear()
    tree(TERMS, ["r", "a", "e"])
    tree(PAIRS, ["r", "a", "b", "c", "z"])
    assert not caplog.text


def test_names_that_differ_in_case_or_space_are_told(caplog):
    tree([("golf", "Sport"), ("judo", "sport")])
    assert "'Sport' and 'sport'" in caplog.text


def test_indices():
    graph = tree([(1, 0), (2, 0)])
    assert graph.label_names is None
    assert edges_of(graph) == both((0, 1), (0, 2)) | loops(range(3))
    named = tree({1: 0, 2: 0}, label_names=["x", "y", "z", "w"])
    assert edges_of(named) == both(("x", "y"), ("x", "z")) | loops("xyzw")
    assert tree([(0, -1), (1, 0)], root=-1).num_labels == 2


@pytest.mark.parametrize("pairs", [[("a", "b"), ("b", "c"), ("c", "a")], [("x", "y"), ("a", "a")]])
def test_a_cycle_is_named(pairs):
    with pytest.raises(ValueError, match=r"without cycles \(got .*a.* -> .*\)"):
        tree(pairs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parents": [(3, 0)], "label_names": ["a", "b"]}, r"label or the root \(got \[3\]\)"),
        ({"parents": PAIRS, "root": "q"}, "'root' to be in 'parents'"),
        ({"parents": PAIRS, "include_root": True}, "include_root"),
        ({"parents": [("a", 0)]}, "names or indices"),
        ({"parents": ["ab"]}, "pairs"),
        ({"parents": [("a", "b", "c")]}, "pairs"),
        ({"parents": "h.csv"}, r"dict or pairs .* \(got 'h.csv'\); read them from a file with .*read_parents"),
        ({"parents": Path("h.csv")}, "read_parents"),
        ({"parents": 5}, r"dict or pairs .* \(got 5\)"),
        ({"parents": [(0, 1)], "label_names": 4}, r"'label_names' to be a list of names \(got 4\)"),
        ({"parents": [(-1, 0)]}, "-1"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        tree(**arguments)


def test_several_parents_and_no_pairs():
    assert edges_of(tree([("c", "a"), ("c", "b")], self_loops=False)) == both(("a", "c"), ("b", "c"))
    assert edges_of(tree([], label_names=["a"])) == {("a", "a")}
    assert tree([]).num_labels == 0


def test_the_topics_of_rcv1(real_file):
    pairs = read_parents(real_file("rcv1v2/raw/rcv1.taxonomy"))
    for include_root, sizes, components in ((False, (103, 2 * 99 + 103), 4), (True, (104, 2 * 103 + 104), 1)):
        topics = tree(pairs, root="Root", include_root=include_root)
        assert (topics.num_labels, topics.num_edges) == sizes
        assert nx.number_weakly_connected_components(topics.to_networkx()) == components
    assert (len(pairs), len({child for child, _ in pairs})) == (103, 103)
    parent_of, by_hand = dict(pairs), 0
    for above in parent_of.values():
        while above != "Root":
            above, by_hand = parent_of[above], by_hand + 1  # noqa: PLW2901
    assert tree(pairs, root="Root", ancestors=True, self_loops=False).num_edges == 2 * by_hand > 2 * 99


RCV1 = """\
parent: None                 child: Root                 child-description: Root
parent: Root                 child: CCAT                 child-description: CORPORATE/INDUSTRIAL
parent: CCAT                 child: C11                  child-description: STRATEGY/PLANS
"""
TOPICS = [("Root", None), ("CCAT", "Root"), ("C11", "CCAT")]


@pytest.mark.parametrize(
    "text",
    [
        RCV1,
        "child,parent\nRoot,\nCCAT,Root\nC11,CCAT\n",
        "parent\tsize\tchild\n\t1\tRoot\nRoot\t2\tCCAT\nCCAT\t3\tC11\n",
        '"child","parent"\r\n"Root","None"\r\n"CCAT","Root"\r\n"C11","CCAT"\r\n',
        "Root,None\n\nCCAT,Root\nC11,CCAT",
    ],
)
def test_pairs_in_every_form(text):
    assert read_parents(text) == TOPICS


@pytest.mark.parametrize(
    "text",
    [
        '"lungs, chest and heart",organs\n"the ""lungs""", "lungs, chest and heart"\n',
        'size,parent,child\n1,organs,"lungs, chest and heart"\n2,"lungs, chest and heart","the ""lungs"""\n',
        '"lungs, chest and heart"\torgans\n"the ""lungs"""\tlungs, chest and heart\n',
    ],
)
def test_names_in_quotes_may_have_commas(text):
    assert read_parents(text, "pairs") == [
        ("lungs, chest and heart", "organs"),
        ('the "lungs"', "lungs, chest and heart"),
    ]


def test_families_between_tabs():
    assert read_parents("r\ta\tb\na\tc\n") == [("a", "r"), ("b", "r"), ("c", "a")]
    assert read_parents("r\ta\na\tc\n", form="pairs") == [("r", "a"), ("a", "c")]


def test_two_columns_between_tabs_need_their_form():
    text = "football\tsport\ntennis\tsport\n"
    with pytest.raises(ValueError, match=r"'form' for two columns .* 'pairs' if children come first, 'taxonomy' if"):
        read_parents(text)
    assert read_parents(text, "pairs") == [("football", "sport"), ("tennis", "sport")]
    assert read_parents(text, "taxonomy") == [("sport", "football"), ("sport", "tennis")]
    assert read_parents(text.replace("\t", ",")) == [("football", "sport"), ("tennis", "sport")]


@pytest.mark.parametrize(("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_files_compressed_or_not(suffix, compress, tmp_path):
    path = tmp_path / f"hierarchy{suffix}"
    path.write_bytes(compress(RCV1.encode()))
    assert read_parents(path) == read_parents(str(path)) == TOPICS


BALLS = [("golf", "sport"), ("judo", "sport"), ("law", None)]


@pytest.mark.parametrize(
    "text",
    [
        "parent_name,child_name\nsport,golf\nsport,judo\n,law\n",
        "ParentLabel;weight;ChildLabel\nsport;1;golf\nsport;1;judo\nNA;1;law\n",
        "superclass|subclass\nsport|golf\nsport|judo\nnull|law\n",
        "name\tparent\ngolf\tsport\njudo\tsport\nlaw\t-\n",
        "# of a club\n#child,parent\ngolf,sport\n# more, and more\njudo,sport\nlaw,?\n",
        '"child","parent"\n"1","golf","sport"\n"2","judo","sport"\n"3","law",NA\n',  # as R writes it
        "child,child_id,parent\ngolf,7,sport\njudo,8,sport\nlaw,9,none\n",
        "child\trelation\tparent\ngolf\tis_a\tsport\njudo\tpart of\tsport\nlaw\tis_a\t\n",
        "term,is_a\ngolf,sport\njudo,sport\nlaw,\n",
        "golf,is_a,sport\nsport,has_part,judo\nlaw,subClassOf,None\n",
        "is_a\tgolf\tsport\nrdfs:subClassOf\tjudo\tsport\nis_a\tlaw\tNone\n",
        "golf|sport|skos:broader\njudo|sport|isA\nlaw|-|is_a\n",
    ],
)
def test_columns_go_by_names_and_relations(text):
    assert read_parents(text) == BALLS


OBO = """\
format-version: 1.2
! of a zoo

[Typedef]
id: part_of
name: part of

[Term]
id: Z:1
name: animal

[Term]
id: Z:2
name: wolf
def: "is_a: Z:9 ! no" []
is_a: Z:1 {source="x"} ! animal
relationship: eats Z:4 ! sheep

[Term]
id: Z:3
name: paw
relationship: part_of Z:2 ! wolf
is_a: Z:1

[Term]
id: Z:4
name: sheep
is_a: Z:1 ! animal
is_obsolete: true
"""
ZOO = [("Z:1", None), ("Z:2", "Z:1"), ("Z:3", "Z:1"), ("Z:3", "Z:2")]


@pytest.mark.parametrize("text", [OBO, OBO.replace("\n", "\r\n"), OBO[OBO.index("[Term]") :]])
def test_terms_of_an_ontology(text):
    assert read_parents(text) == read_parents(text, "obo") == ZOO
    assert read_parents(text, names=True) == [
        ("animal", None), ("wolf", "animal"), ("paw", "animal"), ("paw", "wolf"),
    ]  # fmt: skip


@pytest.mark.parametrize("delimiter", [",", ";", "|"])
def test_pairs_that_look_swapped_need_their_form(delimiter, caplog):
    swapped = "sport,golf\nsport,judo\nart,film\n".replace(",", delimiter)
    with pytest.raises(ValueError, match=r"first column of the text to hold a child .*'form|form 'pairs'"):
        read_parents(swapped)
    assert read_parents(swapped, "pairs") == [("sport", "golf"), ("sport", "judo"), ("art", "film")]
    assert read_parents(swapped, "taxonomy") == [("golf", "sport"), ("judo", "sport"), ("film", "art")]
    assert not caplog.text
    assert read_parents("golf,sport\nfilm,art\n") == [("golf", "sport"), ("film", "art")]
    assert "Either column of the text may hold the parents" in caplog.text


def test_ancestors_go_all_the_way_up():
    graph = tree(read_parents(RCV1), ancestors=True, self_loops=False, undirected=False)
    assert edges_of(graph) == {("Root", "Root"), ("Root", "CCAT"), ("Root", "C11"), ("CCAT", "C11")}
    assert "3 ancestor-descendant pairs" in graph.source


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        (RCV1 + "parent: A\n", "auto", "line 4 of the text to read 'parent: ..."),
        ("r\ta\nb\n", "auto", "line 2 of the text to hold a parent and its children"),
        ("r\ta\t\tb\n\n", "auto", "line 1"),
        ("child,parent\nonly\n", "auto", "line 2 of the text to hold a child and its parent"),
        ("lungs, chest and heart,organs\nlungs,organs\n", "auto", r"line 1 .*\['child', 'parent'\]"),
        ("a,b\n\nlungs, chest,organs\n", "auto", "line 3 .*double quotes"),
        ("child,parent,size\na,b,1\na,b\n", "auto", r"line 3 .* \['child', 'parent', 'size'\] \(got \['a', 'b'\]\)"),
        ('a,"b\nc",d\n', "auto", "line 1 of the text to have double quotes around whole cells"),
        ("a,b\nc\td\n", "auto", "line 2"),
        ("\n \n", "auto", "no line of text"),
        (RCV1, "tree", "'form'.*'tree'"),
        ("golf\teats\tsport\njudo\teats\tsport\nlaw\teats\tart\n", "auto", "line 1 .*in whose middle"),
        ("golf\tis_a\tsport\njudo\teats\tsport\n", "auto", "line 2 of the text to relate a child"),
        ("r\ta\tb\tc\na\tis_a\tr\n", "auto", "line 2 of the text .*without a relation"),
        ("source,target\na,b\n", "auto", r"line 1 .*'child' and one 'parent' \(got \['source', 'target'\]"),
        ("name,label\na,b\n", "auto", "line 1 .*'child' and one 'parent'"),
        ("id,name,parent\n1,a,\n", "auto", "line 1 .*'child' and one 'parent'"),
        ("child_id,child_name,parent_id\n1,a,2\n", "auto", "line 1 .*'child' and one 'parent'"),
        ("golf\tsport\t1\njudo\tsport\t.5\n", "auto", "line 1 .*a number in the last column"),
        ("golf,is_a\njudo,sport\n", "auto", "line 1 of the text .*no relation"),
        ("child,parents\nc,a;b\nd,a\ne,b\n", "auto", "one parent in each line of the text .*'a;b'"),
        ("a, b;c\n", "auto", "one delimiter in line 1"),
        ("a,b\n#c,b\n", "auto", "line 2 of the text to be a comment or a row"),
        ("# a\n# b\n", "auto", "no line of text"),
        ("[Term]\nname: a\n", "auto", "line 1 of the text.*'id:'"),
        ("[Term]\nid: a\nis_a:\n", "auto", "line 3 of the text to name a term"),
        ("format-version: 1.2\n\n", "auto", r"'\[Term\]'"),
        ("<?xml version='1.0'?>\n<x/>\n", "auto", "the text to hold concepts of SKOS .*OWL"),
        ("@prefix skos: <a> .\n<b> a skos:Concept .\n", "auto", "a table or an OBO file .*Turtle to RDF/XML"),
        ("<?xml version='1.0'?>\n<x>\n", "auto", "a thesaurus in RDF/XML"),
        ("[Term]\nid: a\nis_a: b\n", "auto", "the parent on line 3 of the text .*'b', which is none"),
    ],
)
def test_wrong_lines_are_named(text, form, message):
    with pytest.raises(ValueError, match=message):
        read_parents(text, form)


def test_damaged_files_are_named(tmp_path):
    whole = gzip.compress(RCV1.encode() * 50)
    for name, content, message in [
        ("a.gz", whole[:-20], r"a.gz' to be whole"),
        ("b.gz", b"text", "b.gz' to be whole"),
        ("c.xz", lzma.compress(RCV1.encode())[:-9], "c.xz' to be whole"),
        ("d.txt", RCV1.encode() + b"\xff", "UTF-8 in line 4 of .*byte 0xff"),
        ("e.txt", b"x" * 3_000_000, "at most 1,048,576 bytes in line 1"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_parents(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_parents(tmp_path / "absent")


@given(data=st.data())
def test_mutated_files_give_pairs_or_our_error(data, tmp_path_factory):
    content = bytearray(gzip.compress(RCV1.encode(), mtime=0) if data.draw(st.booleans()) else RCV1.encode())
    path = tmp_path_factory.mktemp("mutated") / ("x.gz" if content[:2] == b"\x1f\x8b" else "x.txt")
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    message = error_of(lambda: read_parents(path))
    assert message is None or "Expected" in message


@pytest.mark.parametrize("options", [{}, {"undirected": False}, {"self_loops": False}, {"root": "r"}])
def test_a_tree_keeps_its_parents_whatever_its_edges(options, tmp_path):
    graph = tree(PAIRS, list("abc"), **options)
    assert [[graph.label_names[i] for i in pair] for pair in graph.parent_index.t().tolist()] == [["a", "c"]]
    moved = graph.permute([2, 0, 1])
    assert moved.parent_index.tolist() == [[1], [0]]
    moved.remove_self_loops().to_undirected().save(tmp_path / "graph.safetensors")
    again = type(graph).load(tmp_path / "graph.safetensors")
    assert again.parent_index.tolist() == [[1], [0]]
    assert again.is_hierarchy


SKOS = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="x/1"><skos:prefLabel xml:lang="de">Tier</skos:prefLabel>
  <skos:prefLabel xml:lang="en">animal</skos:prefLabel><skos:narrower rdf:resource="x/2"/></skos:Concept>
<rdf:Description rdf:about="x/2"><rdf:type rdf:resource="http://www.w3.org/2004/02/skos/core#Concept"/>
  <skos:broader rdf:resource="x/1"/><skos:prefLabel>dog</skos:prefLabel></rdf:Description>
<skos:Concept rdf:about="x/3"><skos:broader><skos:Concept rdf:about="x/2"/></skos:broader></skos:Concept>
<skos:Collection rdf:about="x/4"/>
</rdf:RDF>
"""


@pytest.mark.parametrize(
    ("form", "names", "expected"),
    [
        ("auto", False, [("x/1", None), ("x/2", "x/1"), ("x/3", "x/2")]),
        ("skos", True, [("animal", None), ("dog", "animal"), ("x/3", "dog")]),
    ],
)
def test_a_thesaurus(form, names, expected):
    assert sorted(read_parents(SKOS, form, names), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('broader rdf:resource="x/1"', 'broader rdf:resource="x/9"', r"holds \(got 'x/9'\)"),
        ('narrower rdf:resource="x/2"', 'broader rdf:resource="x/3"', "without cycles .*x/1"),
        ("<rdf:RDF", "<!DOCTYPE r [<!ENTITY a 'b'>]>\n<rdf:RDF", "without entities"),
    ],
)
def test_a_thesaurus_that_is_wrong(old, new, match):
    with pytest.raises(ValueError, match=match):
        tree(read_parents(SKOS.replace(old, new)))
