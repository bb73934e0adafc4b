import pytest

from tg_mlc.datasets import SideEffectFrequencies
from tg_mlc.datasets.downloads import RawFile

pytest.importorskip("rdkit", reason="molecules need RDKit")

TEXTS = {
    "drugs.csv": "drug,stitch_id,smiles,fold\nethanol,CID1,CCO,1\n"
    "broken,CID2,c1ccccc,0\nmethane,CID3,C,0\n",
    "frequencies.csv": "drug,side_effect,level\nmethane,rash,2\nethanol,nausea,5\nethanol,rash,1\n",
    "side_effect_classes.csv": "side_effect,class\nnausea,7\nnausea,2\n"
    "vomiting,2\nvomiting,7\nrash,2\nfever,4\n",
}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Returns a folder with two valid drugs, one broken drug and four side effects."""
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    monkeypatch.setattr(SideEffectFrequencies, "files", tuple(map(RawFile, TEXTS)))
    (tmp_path / "raw").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "raw" / name).write_text(text)
    return tmp_path


def test_levels_folds_and_names_belong_to_their_drugs(small):
    for _ in range(2):
        dataset = SideEffectFrequencies(small)  # The second call reads the stored file.
        assert dataset.label_names == ["nausea", "vomiting", "rash", "fever"]
        assert dataset.y.tolist() == [[1, 0, 1, 0], [0, 0, 1, 0]]
        assert dataset.level.tolist() == [[5, 0, 1, 0], [0, 0, 2, 0]]
        assert dataset.fold.tolist() == [1, 0]
        names = [(data.drug, data.smiles) for data in dataset]
        assert names == [("ethanol", "CCO"), ("methane", "C")]
        assert [data.drug for data in dataset[dataset.fold == 0]] == ["methane"]


def test_side_effects_that_share_a_class_are_joined(small):
    dataset = SideEffectFrequencies(small)
    classes = [row.nonzero().flatten().tolist() for row in dataset.classes]
    assert classes == [[2, 7], [2, 7], [2], [4]]
    graph = dataset.label_graph
    assert graph.edge_index.T.tolist() == [[1, 0], [2, 0], [0, 1], [2, 1], [0, 2], [1, 2]]
    assert graph.edge_weight.tolist() == [2, 1, 2, 1, 1, 1]
    assert graph.label_names == ["nausea", "vomiting", "rash", "fever"]


def test_a_filter_skips_whole_drugs(small):
    dataset = SideEffectFrequencies(small, pre_filter=lambda data: data.num_nodes == 1)
    assert (dataset[0].drug, dataset.fold.tolist()) == ("methane", [0])
    assert dataset.level.tolist() == [[0, 0, 2, 0]]


def test_the_published_folds_and_graph_are_read(real_file, tmp_path_factory):
    real_file("side_effect_frequencies/derived/drugs.csv")
    dataset = SideEffectFrequencies(tmp_path_factory.getbasetemp() / "side-effects")
    assert dataset.fold.bincount().tolist() == [75] * 10
    graph = dataset.label_graph
    assert (graph.num_edges, graph.has_self_loops()) == (2 * 57_076, False)
    assert graph.is_undirected()
