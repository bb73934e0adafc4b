import pytest

from benchmarks.accuracy.hierarchies import DEFAULT, PUBLISHED, files_of, graph_of
from benchmarks.files import describe_environment
from benchmarks.report.hierarchies import draw, page
from tg_mlc.graphs import tree

SIZES = {"num_pairs": 1, "train_ms": 1.5, "inference_ms": 1.0, "shortlist_ms": 1.0, "head_ms": 1.0}
GROWTH = [{"num_labels": 100 * n, **SIZES, "megabytes": 250.0 * n} for n in (1, 10)]
GROWTH[0]["dense_head_ms"] = 2.0
MESSAGES = {"none, mean of classifiers": 0.25, "edgeless": 0.3, "up": 0.31}
MESSAGES = {f"messages: {graph}": value for graph, value in MESSAGES.items()}


def result(**values):
    runs = [
        {"dataset": name, "part": "default", "seed": seed, "model": model}
        | {"average_precision": value + 0.01 * seed}
        for name in ("cellcycle_FUN", "Diatoms")
        for model, value in values.items()
        for seed in range(2)
    ]
    return {"seconds": 400.0, "runs": runs, "environment": describe_environment()}


def test_the_default_is_compared_with_the_published_figure_and_its_best_part():
    parts = {"part: trees": 0.2, "part: network, coherent": 0.25}
    text = page(result(**{DEFAULT: 0.3, **parts, **MESSAGES}))
    assert "| the default | **0.305** ± 0.007 | **0.305** ± 0.007 |" in text
    assert f"| C-HMCNN(h), published | 0.255 | {PUBLISHED['Diatoms']:.3f} |" in text
    single = "its best single part, network, coherent, has 0.255."
    assert f"- cellcycle_FUN: 0.305, above the published 0.255; {single}" in text
    assert "- Diatoms: 0.305, not above the published 0.758" in text
    assert "| up | **0.315** ± 0.007 | **0.315** ± 0.007 |" in text
    best = "the best label graph, up, adds +0.010 to that, "
    assert f"LaMP adds +0.050 to the classifiers; {best}" in text
    assert "the best along the hierarchy, up, +0.010 (2 seeds)." in text
    assert "Seeds: cellcycle_FUN 2, Diatoms 2" in text


def test_gains_by_messages_on_topics_stand_below_their_table():
    content = result(**MESSAGES)
    text = page({**content, "runs": [{**run, "dataset": "rcv1-sample"} for run in content["runs"]]})
    assert "What the label graph adds" not in text
    assert "| messages: up | 0.315 ± " in text
    gain = "without messages between labels, LaMP adds +0.050 to the classifiers; the best"
    assert f"- rcv1-sample: {gain}" in text


def test_rows_of_few_data_sets_stand_below_the_table():
    content = result(**{DEFAULT: 0.3})
    run = content["runs"][0]
    content["runs"] += [{**run, "dataset": name} for name in ("derisi_FUN", "gasch2_FUN")]
    content["runs"] += [{**run, "model": "network, coherent", "average_precision": 0.25}]
    text = page(content)
    assert "- On cellcycle_FUN alone: network, coherent 0.250." in text
    assert "| network" not in text


def test_growth_has_a_table_and_a_picture():
    text = page(result(**{DEFAULT: 0.3}), {"growth": GROWTH, "environment": describe_environment()})
    assert "| 1,000 | 1 | 1.5 |  | 1 | 1 | 1 |  | 2,500 |" in text
    assert len(draw(GROWTH).axes) == 2


UP, DOWN = (1, 0), (0, 1)


@pytest.mark.parametrize(
    ("kind", "edges"),
    [
        ("up", [UP]),
        ("down", [DOWN]),
        ("both", [DOWN, UP]),
        ("edgeless", []),
        ("complete", [DOWN, UP]),
    ],
)
def test_edges_follow_the_kind_of_messages(kind, edges):
    graph = graph_of(kind, tree([("b", "a")], ["a", "b"])).remove_self_loops()
    assert sorted(map(tuple, graph.edge_index.t().tolist())) == edges


def test_files_are_found_by_their_published_names(tmp_path):
    for name in ("a_FUN.train.arff.xz", "a_FUN.valid.arff", "b_Train.arff", "b_Test.arff.gz"):
        (tmp_path / name).touch()
    names = [path and path.name for path in files_of(tmp_path, "a_FUN")]
    assert names == ["a_FUN.train.arff.xz", "a_FUN.valid.arff", None]
    names = [path and path.name for path in files_of(tmp_path, "b")]
    assert names == ["b_Train.arff", "b_Test.arff.gz"]
