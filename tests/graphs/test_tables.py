import pytest

from tg_mlc.graphs import read_parents
from tg_mlc.graphs.tables import find_pair, open_lines, read_edges, read_table, relation_of, role_of


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        (("child", "Children", "child_name", "childID", "CHILD LABEL", "subclass.uri"), "child"),
        (("parent", "ParentLabel", "parent-id", "broader concept"), "parent"),
        (("protein1", "node_a", "stringId_A", "Interactor A", "gene 1"), "first"),
        (("combined_score", "weight", "Score"), "weight"),
        (("name", "topic", "label_id"), ""),
        (("golf", "child care", "single parent family", "1", "a", "", "900", "Grün"), None),
        (("sport 1",), None),
    ],
)
def test_column_names_give_roles(cells, role):
    assert [role_of(cell) for cell in cells] == [role] * len(cells)


@pytest.mark.parametrize(
    ("cells", "direction"),
    [
        (("is_a", "isA", "is a", "rdfs:subClassOf", "PART_OF", "part-of"), "up"),
        (("<http://x.org/core#broader>",), "up"),
        (("has_part", "parentOf", "skos:narrower"), "down"),
        (("eats", "a", "", "is", "part", "island"), None),
    ],
)
def test_relations_give_directions(cells, direction):
    assert [relation_of(cell) for cell in cells] == [direction] * len(cells)


@pytest.mark.parametrize(
    ("line", "spaces", "cells"),
    [
        ("a b\tc, d\te;f", False, ["a b", "c, d", "e;f"]),
        ('"a, b";c; "d ""e"""', False, ["a, b", "c", 'd "e"']),
        ("a b|c", True, ["a b", "c"]),
        ("a  b c", True, ["a", "b", "c"]),
        ("a b", False, ["a b"]),
        ('5" disk,"",x', False, ['5" disk', "", "x"]),
    ],
)
def test_the_first_line_gives_the_delimiter(line, spaces, cells):
    table = read_table(*open_lines(f"{line}\n\n# no row\n{line}\n"), holds="rows", spaces=spaces)
    assert list(table.all_rows()) == [(1, cells), (4, cells)]


def test_headers_with_unknown_names_are_reported(caplog):
    for reader, header in ((read_parents, "child,parent\n"), (read_edges, "source,target\n")):
        reader("golf,sport\ntennis,sport\nsport,all\n")
        assert not caplog.text
        reader("kind,eltern\ngolf,sport\ntennis,sport\n")
        assert "Line 1 of the text has 'kind' and 'eltern', which no other line has" in caplog.text
        caplog.clear()
        with pytest.raises(ValueError, match="got only a header"):
            reader(header)


def test_column_names_give_the_ends_of_an_edge():
    assert find_pair(["weight", "to", "from"]) == (2, 1)
    assert find_pair(["child", "parent"]) == (1, 0)
    assert find_pair(["node1", "node2", "node1_id", "node2_id"]) == (0, 1)
    assert find_pair(["a", "b"]) is find_pair(["source", "label"]) is None
