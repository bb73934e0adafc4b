import csv
import gzip
import logging
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.helpers import both, edges_of, error_of, weights_of
from tests.mutations import mutated
from tg_mlc.graphs import LabelGraph
from tg_mlc.graphs.string_ppi import string_ppi

LINKS = """\
protein1 protein2 combined_score
9606.ENSP1 9606.ENSP2 900
9606.ENSP2 9606.ENSP1 900
9606.ENSP1 9606.ENSP3 399
9606.ENSP4 9606.ENSP5 999
"""
INFO = """\
#string_protein_id\tpreferred_name\tprotein_size\tannotation
9606.ENSP1\tCTCF\t727\tTranscriptional repressor
9606.ENSP2\tRAD21\t631\tDouble-strand-break repair
9606.ENSP3\tEP300\t2414\tHistone acetyltransferase
"""
ALIASES = """\
#string_protein_id\talias\tsource
9606.ENSP3\tp300\tBLAST_UniProt_DE Ensembl_Synonym
9606.ENSP9\tp300\tOld_Synonym
9606.ENSP9\tCTCF\tA B C D E
9606.ENSP2\tHR21\tA
"""


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


@pytest.fixture
def links(write):
    return write("9606.protein.links.txt.gz", LINKS)


def test_identifiers_match_with_and_without_the_organism(links):
    graph = string_ppi(links, ["9606.ENSP1", "ensp2", "9606.ENSP3"], self_loops=False)
    assert weights_of(graph) == pytest.approx({(0, 1): 0.9, (1, 0): 0.9, (2, 2): 1.0})
    assert (graph.kind, graph.unmatched) == ("string_ppi", [])
    assert graph.validate()


def test_the_info_file_maps_names_to_proteins(links, write):
    proteins = {"K562|CTCF": "CTCF", "K562|Rad21": "Rad21", "K562|p300": "EP300"}
    options = {"aliases": write("info.txt", INFO), "min_score": 300, "self_loops": False}
    graph = string_ppi(links, proteins, **options)
    assert graph.label_names == list(proteins)
    a, b, c = proteins
    expected = {(a, b): 0.9, (b, a): 0.9, (a, c): 0.399, (c, a): 0.399}
    assert weights_of(graph) == pytest.approx(expected)


def test_aliases_map_names_to_proteins(links, write):
    files = [write("aliases.txt.gz", ALIASES), write("info.txt", INFO)]
    names = ["CTCF", "HR21", "P300"]
    graph = string_ppi(links, names, names, files, min_score=0, self_loops=False)
    assert edges_of(graph) == both(("CTCF", "HR21"), ("CTCF", "P300"))
    only_aliases = string_ppi(links, names, names, files[:1], min_score=0)
    assert only_aliases.unmatched == ["CTCF"]  # Five sources map CTCF to a protein without links.
    aliases = {"a": "9606.ENSP1", "B": "ENSP2"}
    graph = string_ppi(links, ["A", "B"], aliases=aliases, self_loops=False)
    assert edges_of(graph) == {(0, 1), (1, 0)}


def test_labels_of_one_protein_attend_to_each_other_by_default(links):
    proteins = ["ENSP1", "ENSP1", "ENSP2", None, ""]
    graph = string_ppi(links, proteins, self_loops=False)
    assert weights_of(graph)[0, 1] == weights_of(graph)[1, 0] == 1.0
    assert {(0, 2), (1, 2), (2, 0), (2, 1), (3, 3), (4, 4)} < edges_of(graph)
    assert graph.num_edges == 8
    separate = string_ppi(links, proteins, self_loops=False, same_protein=False)
    assert edges_of(graph) - edges_of(separate) == {(0, 1), (1, 0)}


def test_unmatched_names_are_reported_and_kept(links, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        graph = string_ppi(links, ["ENSP1", "ENSP2", "Mystery", None])
    assert "1 of 3 proteins" in caplog.text
    assert "Mystery" in caplog.text
    assert graph.unmatched == ["Mystery"]
    assert string_ppi(links, ["ENSP1", "ENSP3"]).unmatched == []  # The link of ENSP3 is weak.
    graph.save(tmp_path / "graph.safetensors")
    assert LabelGraph.load(tmp_path / "graph.safetensors").unmatched == ["Mystery"]


@pytest.mark.parametrize("text", ["gene_a\tgene_b\nA\tB\nC\tA\n", "A,B\nA,C\n", "A B\nB A\nA C\n"])
def test_tables_without_scores_give_no_weights(text, write):
    graph = string_ppi(write("edges.tsv", text), list("abc"), self_loops=False)
    assert weights_of(graph) == dict.fromkeys([(0, 1), (1, 0), (0, 2), (2, 0)])


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a\tb\tscore\nA\tB\t700\n", {"score": "mine"}, 0.7),
        ("A\tB\t700\n", {"score": "mine"}, 0.7),
        ("a,b,x,mine\nA,B,9,700\n", {"score": "mine"}, 0.7),
        ("A\tB\t0.9\nB\tC\t0.2\n", {"min_score": 0.5}, 0.9),
        ("p q mine x\n9606.a 9606.b 150 900\n", {"score": "mine", "min_score": 0}, 0.15),
        # In three columns, the score may have any name.
        (LINKS.replace("9606.ENSP1", "A").replace("9606.ENSP2", "B"), {"score": "textmining"}, 0.9),
    ],
)
def test_scores_of_tables_become_weights(text, options, expected, write):
    graph = string_ppi(write("edges.tsv", text), ["A", "B"], self_loops=False, **options)
    assert weights_of(graph) == pytest.approx({(0, 1): expected, (1, 0): expected})


@pytest.mark.parametrize(
    "text",
    [
        "combined_score,protein2,protein1\n700,9606.A,9606.B\n20,A,C\n",
        '"","Protein1","Protein2","combined_score"\n'
        '"1","9606.A","9606.B","700"\n"2","A","C","20"\n',
        # R writes row names without a column name.
        '"protein1" "protein2" "combined_score"\n"1" "9606.A" "9606.B" 700\n"2" "A" "C" 20\n',
        "Unnamed: 0;gene_a;gene_b;score\n0;A;B;700\n1;A;C;20\n",
        "#node1\tnode2\tnode1_string_id\tnode2_string_id\tfusion\tcombined_score\n"
        "A\tB\tx\ty\t0\t700\nA\tC\tx\tz\t0\t20\n",
        "# links of a day\nprotein1|species|protein2|combined_score\nA|9606|B|700\nA|9606|C|20\n",
        "source,target,weight\nA,B,700\n# A, C\nA,C,20\n",
        "index,x,y,combined_score\n0,A,B,700\n1,A,C,20\n",
    ],
)
def test_columns_are_found_by_name(text, write):
    graph = string_ppi(write("links.csv", text), ["A", "B", "C"], self_loops=False)
    assert weights_of(graph) == pytest.approx({(0, 1): 0.7, (1, 0): 0.7, (2, 2): 1.0})


@pytest.mark.parametrize(
    "text", ["kinase A\tkinase B\t700\n", "a\tb\tscore\n 'kinase A'\t\"kinase B\"\t700\n"]
)
def test_names_between_tabs_may_have_spaces(text, write):
    path = write("links.tsv", text.replace("'", '"'))
    assert string_ppi(path, ["kinase A", "kinase B"], self_loops=False).num_edges == 2


@pytest.mark.parametrize("score", [0.9, 1])
def test_a_probability_as_min_score_is_refused(links, score):
    with pytest.raises(ValueError, match=rf"'min_score' .*got {score}\); choose {score * 1000:g}"):
        string_ppi(links, ["ENSP1", "ENSP2"], min_score=score)
    assert string_ppi(links, ["ENSP1", "ENSP2"], min_score=0, self_loops=False).num_edges == 2


def test_tables_without_scores_refuse_min_score(write):
    path = write("edges.tsv", "A\tB\n")
    for min_score in (None, 0):
        graph = string_ppi(path, ["A", "B"], min_score=min_score, self_loops=False)
        assert graph.num_edges == 2
        assert graph.source == "2 proteins of 2 labels, 1 interactions without scores"
    for min_score in (0.9, 800):
        with pytest.raises(ValueError, match=f"'min_score' .*min_score={min_score}, and two"):
            string_ppi(path, ["A", "B"], min_score=min_score)


def test_scores_below_min_score_are_reported(write, caplog):
    path = write("edges.tsv", "A\tB\t5\nB\tC\t50\n")
    assert string_ppi(path, list("ABC")).num_edges == 3
    assert "has min_score=400, the highest score is 50" in caplog.text
    caplog.clear()
    assert string_ppi(path, list("ABC"), min_score=20, self_loops=False).num_edges == 3
    assert not caplog.records


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (LINKS, {"proteins": ["CTCF", "P300"]}, "the proteins.*9606.ENSP1.*CTCF.*'aliases'"),
        (LINKS + "9606.ENSP1\n", {}, r"line 6 of '.*' to hold two proteins"),
        (LINKS + "ENSP1 ENSP2 nan\n", {}, "line 6 .* a score of 0 to 1000"),
        (LINKS + "ENSP1 ENSP2 1001\n", {}, "line 6 .* a score of 0 to 1000"),
        (LINKS + "ENSP1 ENSP9 x\n", {}, "line 6 .* a score of 0 to 1000"),
        (LINKS + "ENSP1 ENSP2 9_00\n", {}, "line 6 .* a score of 0 to 1000"),
        ("ENSP1\tENSP2\tx\n", {}, "only the line .*read as a header"),
        (LINKS, {"label_names": "ab"}, "'label_names' to be a list of names"),
        ("a b c d\nENSP1 ENSP2 1 2\n", {}, "'score=combined_score'"),
        ("", {}, "no line of text"),
        ("protein1,protein2,fusion,neighborhood\nENSP1,ENSP2,1,2\n", {}, "'score=combined_score'"),
        ('protein1,protein2\n"ENSP1,ENSP2\n', {}, "line 2 of '.*' to have double quotes"),
        (LINKS, {"min_score": 1001}, "'min_score'"),
        ("ENSP1 ENSP2 0.9\nENSP2 ENSP3 700\n", {}, r"scores of 0 to 1000 \(got none above 0.9\)"),
        (LINKS, {"proteins": "ENSP1"}, "one name or None"),
        (LINKS, {"proteins": ["ENSP1", 3]}, "strings or None"),
        (LINKS, {"label_names": ["a"]}, "'label_names'"),
        (LINKS, {"proteins": {"a": "ENSP1"}, "label_names": ["b"]}, "keys of 'proteins'"),
    ],
)
def test_wrong_arguments_and_lines_are_named(text, arguments, message, write):
    arguments = {"proteins": ["ENSP1", "ENSP2"], **arguments}
    path = write("links.txt", text)
    with pytest.raises(ValueError, match=message):
        string_ppi(path, **arguments)


def test_a_wrong_line_of_the_aliases_is_named(links, write):
    with pytest.raises(ValueError, match=r"line 2 of '.*' to hold a protein and its name"):
        string_ppi(links, ["ENSP1"], aliases=write("a.txt", "9606.ENSP1\tx\n9606.ENSP2\n"))


@given(data=st.data())
def test_mutated_files_give_a_graph_or_a_clear_error(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("mutated") / "links.txt"
    path.write_bytes(mutated(data, LINKS.encode(), 8))
    message = error_of(lambda: string_ppi(path, ["ENSP1", "ENSP2", "ENSP3", "ENSP3"]))
    assert message is None or "Expected" in message


def test_memory_depends_on_the_requested_proteins_only(tmp_path):
    tracemalloc = pytest.importorskip("tracemalloc")
    rng = random.Random(0)
    path = tmp_path / "links.txt"
    with path.open("w") as file:
        file.write("protein1 protein2 combined_score\n")
        names = [f"9606.P{rng.randrange(999)}" for _ in range(100_000)]
        file.writelines(f"{a} {b} 500\n" for a, b in zip(names[::2], names[1::2], strict=True))
    tracemalloc.start()
    string_ppi(path, ["P1", "P2"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size  # The file is read in blocks of lines.


UNMATCHED = ["CHD2", "ELF1", "POLR2A", "SP2", "SP4", "TFAP2A", "ZEB1", "ZNF263"]


@pytest.fixture(scope="module")
def columns(real_file):
    with real_file("string_tf/derived/deepsea_tf_columns.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_the_transcription_factors_of_deepsea_are_matched(columns, real_file):
    links = real_file("string_tf/derived/string_human_symbols_edges.tsv.xz")
    graph = string_ppi(links, [row["gene_symbol"] or None for row in columns])
    assert graph.num_labels == 690
    assert sorted(graph.unmatched) == UNMATCHED
    assert graph.source == "145 proteins of 690 labels, 532 interactions without scores"
    for cell, genes, edges in [("GM12878", 71, 162), ("H1-hESC", 44, 118), ("K562", 93, 278)]:
        symbols = sorted({row["gene_symbol"] for row in columns if row["cell"] == cell} - {""})
        graph = string_ppi(links, symbols, symbols, self_loops=False)
        assert len(symbols) - len(graph.unmatched) == genes
        assert graph.remove_self_loops().num_edges == 2 * edges
    links = real_file("string_tf/derived/string_tf_edges.tsv")
    symbols = sorted({row["gene_symbol"] for row in columns} - {""})
    assert string_ppi(links, symbols, self_loops=False).remove_self_loops().num_edges == 2 * 532


def test_identifiers_of_a_published_network_are_matched(real_file):
    links = real_file("string_tf/raw/bionev_STRING_PPI.edgelist.xz")
    nodes = real_file("string_tf/raw/bionev_STRING_PPI_node_list.txt.xz")
    graph = string_ppi(links, ["9606.ENSP00000281821", "ENSP00000291598", "ENSP0"], aliases=nodes)
    assert graph.unmatched == ["ENSP0"]
