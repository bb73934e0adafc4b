import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.helpers import error_of
from tg_mlc.graphs import read_parents, tree

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
    with pytest.raises(
        ValueError, match=r"'form' for two columns .* 'pairs' if children come first, 'taxonomy' if"
    ):
        read_parents(text)
    assert read_parents(text, "pairs") == [("football", "sport"), ("tennis", "sport")]
    assert read_parents(text, "taxonomy") == [("sport", "football"), ("sport", "tennis")]
    assert read_parents(text.replace("\t", ",")) == [("football", "sport"), ("tennis", "sport")]


@pytest.mark.parametrize(
    ("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
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
        # as R writes it
        '"child","parent"\n"1","golf","sport"\n"2","judo","sport"\n"3","law",NA\n',
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
    with pytest.raises(
        ValueError, match=r"first column of the text to hold a child .*'form|form 'pairs'"
    ):
        read_parents(swapped)
    assert read_parents(swapped, "pairs") == [("sport", "golf"), ("sport", "judo"), ("art", "film")]
    assert read_parents(swapped, "taxonomy") == [
        ("golf", "sport"),
        ("judo", "sport"),
        ("film", "art"),
    ]
    assert not caplog.text
    assert read_parents("golf,sport\nfilm,art\n") == [("golf", "sport"), ("film", "art")]
    assert "Either column of the text may hold the parents" in caplog.text


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        (RCV1 + "parent: A\n", "auto", "line 4 of the text to read 'parent: ..."),
        ("r\ta\nb\n", "auto", "line 2 of the text to hold a parent and its children"),
        ("r\ta\t\tb\n\n", "auto", "line 1"),
        ("child,parent\nonly\n", "auto", "line 2 of the text to hold a child and its parent"),
        (
            "lungs, chest and heart,organs\nlungs,organs\n",
            "auto",
            r"line 1 .*\['child', 'parent'\]",
        ),
        ("a,b\n\nlungs, chest,organs\n", "auto", "line 3 .*double quotes"),
        (
            "child,parent,size\na,b,1\na,b\n",
            "auto",
            r"line 3 .* \['child', 'parent', 'size'\] \(got \['a', 'b'\]\)",
        ),
        ('a,"b\nc",d\n', "auto", "line 1 of the text to have double quotes around whole cells"),
        ("a,b\nc\td\n", "auto", "line 2"),
        ("\n \n", "auto", "no line of text"),
        (RCV1, "tree", "'form'.*'tree'"),
        (
            "golf\teats\tsport\njudo\teats\tsport\nlaw\teats\tart\n",
            "auto",
            "line 1 .*in whose middle",
        ),
        ("golf\tis_a\tsport\njudo\teats\tsport\n", "auto", "line 2 of the text to relate a child"),
        ("r\ta\tb\tc\na\tis_a\tr\n", "auto", "line 2 of the text .*without a relation"),
        (
            "source,target\na,b\n",
            "auto",
            r"line 1 .*'child' and one 'parent' \(got \['source', 'target'\]",
        ),
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
        (
            "@prefix skos: <a> .\n<b> a skos:Concept .\n",
            "auto",
            "a table or an OBO file .*Turtle to RDF/XML",
        ),
        ("<?xml version='1.0'?>\n<x>\n", "auto", "a thesaurus in RDF/XML"),
        (
            "[Term]\nid: a\nis_a: b\n",
            "auto",
            "the parent on line 3 of the text .*'b', which is none",
        ),
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
    content = bytearray(
        gzip.compress(RCV1.encode(), mtime=0) if data.draw(st.booleans()) else RCV1.encode()
    )
    path = tmp_path_factory.mktemp("mutated") / ("x.gz" if content[:2] == b"\x1f\x8b" else "x.txt")
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    message = error_of(lambda: read_parents(path))
    assert message is None or "Expected" in message


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
