import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.helpers import edges_of, error_of
from tg_mlc.graphs import read_parents, tree

RCV1 = """\
parent: None                 child: Root                 child-description: Root
parent: Root                 child: CCAT                 child-description: CORPORATE/INDUSTRIAL
parent: CCAT                 child: C11                  child-description: STRATEGY/PLANS
"""
PAIRS = [("Root", None), ("CCAT", "Root"), ("C11", "CCAT")]


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
    assert read_parents(text) == PAIRS


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
    assert read_parents(path) == read_parents(str(path)) == PAIRS


def test_ancestors_go_all_the_way_up():
    graph = tree(read_parents(RCV1), ancestors=True, self_loops=False, undirected=False)
    assert edges_of(graph) == {("Root", "Root"), ("Root", "CCAT"), ("Root", "C11"), ("CCAT", "C11")}
    assert "3 ancestor-descendant pairs" in graph.source


def test_the_topics_of_rcv1(real_file):
    pairs = read_parents(real_file("rcv1v2/raw/rcv1.taxonomy"))
    assert (len(pairs), len({child for child, _ in pairs})) == (103, 103)
    everything = tree(pairs, root="Root", ancestors=True, self_loops=False)
    by_hand = 0
    parent_of = dict(pairs)
    for parent in parent_of.values():
        above = parent
        while above != "Root":
            above, by_hand = parent_of[above], by_hand + 1
    assert everything.num_edges == 2 * by_hand > 2 * 99


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
