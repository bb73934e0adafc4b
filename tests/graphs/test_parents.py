import gzip
import lzma
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.helpers import error_of
from tests.mutations import mutated
from tg_mlc.graphs import read_parents, tree

RCV1 = """\
parent: None                 child: Root                 child-description: Root
parent: Root                 child: CCAT                 child-description: CORPORATE/INDUSTRIAL
parent: CCAT                 child: C11                  child-description: STRATEGY/PLANS
"""
TOPICS = [("Root", None), ("CCAT", "Root"), ("C11", "CCAT")]
BALLS = [("golf", "sport"), ("judo", "sport"), ("law", None)]
LUNGS = [("lungs, chest and heart", "organs"), ('the "lungs"', "lungs, chest and heart")]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (RCV1, TOPICS),
        ("child,parent\nRoot,\nCCAT,Root\nC11,CCAT\n", TOPICS),
        ("parent\tsize\tchild\n\t1\tRoot\nRoot\t2\tCCAT\nCCAT\t3\tC11\n", TOPICS),
        ('"child","parent"\r\n"Root","None"\r\n"CCAT","Root"\r\n"C11","CCAT"\r\n', TOPICS),
        ("Root,None\n\nCCAT,Root\nC11,CCAT", TOPICS),
        ('"lungs, chest and heart",organs\n"the ""lungs""", "lungs, chest and heart"\n', LUNGS),
        (
            'size,parent,child\n1,organs,"lungs, chest and heart"\n'
            '2,"lungs, chest and heart","the ""lungs"""\n',
            LUNGS,
        ),
        ('"lungs, chest and heart"\torgans\n"the ""lungs"""\tlungs, chest and heart\n', LUNGS),
        ("parent_name,child_name\nsport,golf\nsport,judo\n,law\n", BALLS),
        ("ParentLabel;weight;ChildLabel\nsport;1;golf\nsport;1;judo\nNA;1;law\n", BALLS),
        ("superclass|subclass\nsport|golf\nsport|judo\nnull|law\n", BALLS),
        ("name\tparent\ngolf\tsport\njudo\tsport\nlaw\t-\n", BALLS),
        ("# of a club\n#child,parent\ngolf,sport\n# more, and more\njudo,sport\nlaw,?\n", BALLS),
        # R writes row names without a column name.
        ('"child","parent"\n"1","golf","sport"\n"2","judo","sport"\n"3","law",NA\n', BALLS),
        ("child,child_id,parent\ngolf,7,sport\njudo,8,sport\nlaw,9,none\n", BALLS),
        ("child\trelation\tparent\ngolf\tis_a\tsport\njudo\tpart of\tsport\nlaw\tis_a\t\n", BALLS),
        ("term,is_a\ngolf,sport\njudo,sport\nlaw,\n", BALLS),
        ("golf,is_a,sport\nsport,has_part,judo\nlaw,subClassOf,None\n", BALLS),
        ("is_a\tgolf\tsport\nrdfs:subClassOf\tjudo\tsport\nis_a\tlaw\tNone\n", BALLS),
        ("golf|sport|skos:broader\njudo|sport|isA\nlaw|-|is_a\n", BALLS),
    ],
)
def test_tables_and_taxonomies_give_pairs(text, pairs):
    assert read_parents(text, "pairs" if pairs is LUNGS else "auto") == pairs


def test_tab_separated_families_give_pairs():
    assert read_parents("r\ta\tb\na\tc\n") == [("a", "r"), ("b", "r"), ("c", "a")]
    assert read_parents("r\ta\na\tc\n", format="pairs") == [("r", "a"), ("a", "c")]


def test_two_tab_separated_columns_need_a_format():
    text = "football\tsport\ntennis\tsport\n"
    with pytest.raises(ValueError, match=r"'format' to be specified .*'pairs' .* 'taxonomy'"):
        read_parents(text)
    assert read_parents(text, "pairs") == [("football", "sport"), ("tennis", "sport")]
    assert read_parents(text, "taxonomy") == [("sport", "football"), ("sport", "tennis")]
    with pytest.raises(ValueError, match=r"'format'.*'tree'"):
        read_parents(text, "tree")
    assert read_parents(text.replace("\t", ",")) == [("football", "sport"), ("tennis", "sport")]


@pytest.mark.parametrize("delimiter", [",", ";", "|"])
def test_pairs_that_look_swapped_need_a_format(delimiter, caplog):
    swapped = "sport,golf\nsport,judo\nart,film\n".replace(",", delimiter)
    with pytest.raises(ValueError, match=r"first column of the text to hold children.*'pairs'"):
        read_parents(swapped)
    children_first = [("sport", "golf"), ("sport", "judo"), ("art", "film")]
    assert read_parents(swapped, "pairs") == children_first
    assert read_parents(swapped, "taxonomy") == [pair[::-1] for pair in children_first]
    assert not caplog.text
    assert read_parents("golf,sport\nfilm,art\n") == [("golf", "sport"), ("film", "art")]
    assert "Either column of the text may hold the parents" in caplog.text


@pytest.mark.parametrize(
    ("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
def test_files_may_be_compressed(suffix, compress, tmp_path):
    path = tmp_path / f"hierarchy{suffix}"
    path.write_bytes(compress(RCV1.encode()))
    assert read_parents(path) == read_parents(str(path)) == TOPICS


OBO = """\
format-version: 1.2
! of a zoo

[Typedef]
id: part_of
name: part of

[Term]
id: Z:1
name: animal
alt_id: Z:7

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
PAW_IS_A = "is_a: Z:1\n"
ZOO = [("Z:1", None), ("Z:2", "Z:1"), ("Z:3", "Z:1"), ("Z:3", "Z:2")]
NAMED_ZOO = [("animal", None), ("wolf", "animal"), ("paw", "animal"), ("paw", "wolf")]


@pytest.mark.parametrize(
    "text",
    [
        OBO,
        OBO.replace("\n", "\r\n"),
        OBO.replace("\n\n", "\n"),
        OBO[OBO.index("[Term]") :],
        OBO.replace(PAW_IS_A, "is_a: Z:7\n"),  # This parent is an alternative identifier.
    ],
)
def test_obo_terms_give_pairs(text, caplog):
    assert read_parents(text) == read_parents(text, "obo") == ZOO
    assert read_parents(text, names=True) == NAMED_ZOO
    assert not caplog.text
    assert read_parents("[Term]\nid: a\n[Term]\nid: b\nis_a: a\n") == [("a", None), ("b", "a")]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (PAW_IS_A, "is_a: Z:4\n", "each parent .*'Z:4' of 'Z:3', which is missing or obsolete"),
        (PAW_IS_A, "is_a: Z:8\n", "'Z:8' of 'Z:3'"),
        (PAW_IS_A, "is_a:\n", "'' of 'Z:3'"),
        ("alt_id: Z:7", "is_a: Z:3", "without cycles .*Z:"),
        ("id: Z:3\n", "", "OBO file .*without 'id:'"),
        ("part_of Z:2 ! wolf", "part_of", "OBO file .*values to unpack"),
        ("name: paw", "paw", "OBO file .*paw"),
        ("[Term]", "[Instance]", r"'\[Term\]' and its 'id:'"),
    ],
)
def test_wrong_ontologies_are_named(old, new, message):
    with pytest.raises(ValueError, match=message):
        tree(read_parents(OBO.replace(old, new)))


def test_ontologies_need_obonet(monkeypatch):
    monkeypatch.setitem(sys.modules, "obonet", None)
    with pytest.raises(ImportError, match=r"obonet.*tg_mlc\[data\]"):
        read_parents(OBO)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RCV1 + "parent: A\n", "line 4 of the text to read 'parent: ..."),
        ("r\ta\nb\n", "line 2 of the text to hold a parent and its children"),
        ("r\ta\t\tb\n\n", "line 1"),
        ("child,parent\nonly\n", "line 2 of the text to hold a child and its parent"),
        ("lungs, chest and heart,organs\nlungs,organs\n", r"line 1 .*\['child', 'parent'\]"),
        ("a,b\n\nlungs, chest,organs\n", "line 3 .*double quotes"),
        ("child,parent,size\na,b,1\na,b\n", r"line 3 .*'size'\] \(got \['a', 'b'\]\)"),
        ('a,"b\nc",d\n', "line 1 of the text to have double quotes around whole cells"),
        ("a,b\nc\td\n", "line 2"),
        ("\n \n", "no line of text"),
        ("golf\teats\tsport\n" * 2 + "law\teats\tart\n", "line 1 .*whose middle column repeats"),
        ("golf\tis_a\tsport\njudo\teats\tsport\n", "line 2 of the text to relate a child"),
        ("r\ta\tb\tc\na\tis_a\tr\n", "line 2 of the text .*without a relation"),
        ("source,target\na,b\n", r"line 1 .*'child' and one 'parent' \(got \['source', 'target'\]"),
        ("name,label\na,b\n", "line 1 .*'child' and one 'parent'"),
        ("id,name,parent\n1,a,\n", "line 1 .*'child' and one 'parent'"),
        ("child_id,child_name,parent_id\n1,a,2\n", "line 1 .*'child' and one 'parent'"),
        ("golf\tsport\t1\njudo\tsport\t.5\n", "line 1 .*a number in the last column"),
        ("golf,is_a\njudo,sport\n", "line 1 of the text .*no relation"),
        ("child,parents\nc,a;b\nd,a\ne,b\n", "one parent in each line of the text .*'a;b'"),
        ("a, b;c\n", "one delimiter in line 1"),
        ("a,b\n#c,b\n", "line 2 of the text to be a comment or a row"),
        ("# a\n# b\n", "no line of text"),
        ("<?xml version='1.0'?>\n<x/>\n", "the text to hold concepts of SKOS .*OWL"),
        ("<?xml version='1.0'?>\n<x>\n", "a thesaurus in RDF/XML"),
        ("@prefix skos: <a> .\n<b> a skos:Concept .\n", "a table or an OBO file .*to RDF/XML"),
    ],
)
def test_wrong_lines_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        read_parents(text)


def test_damaged_files_are_named(tmp_path):
    compressed = gzip.compress(RCV1.encode() * 50)
    for name, content, message in [
        ("a.gz", compressed[:-20], r"a.gz' to be whole"),
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
def test_mutated_files_give_pairs_or_a_clear_error(data, tmp_path_factory):
    text = data.draw(st.sampled_from([RCV1, OBO])).encode()
    content = gzip.compress(text, mtime=0) if data.draw(st.booleans()) else text
    path = tmp_path_factory.mktemp("mutated") / ("x.gz" if content[:2] == b"\x1f\x8b" else "x.txt")
    path.write_bytes(mutated(data, content, 6))
    message = error_of(lambda: read_parents(path))
    assert message is None or "Expected" in message


SKOS = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="x/1"><skos:prefLabel xml:lang="de">Tier</skos:prefLabel>
  <skos:prefLabel xml:lang="en">animal</skos:prefLabel><skos:narrower rdf:resource="x/2"/>
</skos:Concept>
<rdf:Description rdf:about="x/2">
  <rdf:type rdf:resource="http://www.w3.org/2004/02/skos/core#Concept"/>
  <skos:broader rdf:resource="x/1"/><skos:prefLabel>dog</skos:prefLabel></rdf:Description>
<skos:Concept rdf:about="x/3"><skos:broader><skos:Concept rdf:about="x/2"/></skos:broader>
</skos:Concept>
<skos:Collection rdf:about="x/4"/>
</rdf:RDF>
"""


@pytest.mark.parametrize(
    ("format", "names", "expected"),
    [
        ("auto", False, [("x/1", None), ("x/2", "x/1"), ("x/3", "x/2")]),
        ("skos", True, [("animal", None), ("dog", "animal"), ("x/3", "dog")]),
    ],
)
def test_skos_concepts_give_pairs(format, names, expected):  # noqa: A002
    assert sorted(read_parents(SKOS, format, names), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('broader rdf:resource="x/1"', 'broader rdf:resource="x/9"', r"holds \(got 'x/9'\)"),
        ('narrower rdf:resource="x/2"', 'broader rdf:resource="x/3"', "without cycles .*x/1"),
        ("<rdf:RDF", "<!DOCTYPE r [<!ENTITY a 'b'>]>\n<rdf:RDF", "without entities"),
    ],
)
def test_wrong_thesauri_are_named(old, new, message):
    with pytest.raises(ValueError, match=message):
        tree(read_parents(SKOS.replace(old, new)))
