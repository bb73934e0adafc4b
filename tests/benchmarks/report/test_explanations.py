import pytest

from benchmarks.files import describe_environment
from benchmarks.report.explanations import page

GAINS = {"attention": 0.1, "occlusion": 0.3, "shuffled weights": 0.05, "random": 0.0}


@pytest.fixture
def result():
    areas = {"attention": {"a": 0.9, "b": 0.7}, "size of the group": {"a": 0.6, "b": 0.5}}
    areas["random"] = {"a": 0.5, "b": 0.5}
    common = {"seed": 0, "roc_auc": 0.99, "chosen": "attention"}
    logic = {"attention": {"benzene": 0.95, "logic7": 0.85}}
    logic["random"] = {"benzene": 0.4, "logic7": 0.6}
    shares = {"a": 0.2, "b": 0.4}, {"benzene": 0.5, "logic7": 0.1}
    precision = {"effects": 0.9, "attention": 0.6, "random": 0.2}
    return {
        "environment": describe_environment(),
        "datasets": {"nci": {"sha256": "abcdef0123456789"}},
        "seeds": [0],
        "settings": {"epochs": 3},
        "runs": [
            {"task": "nci", "areas": areas, "shares": shares[0], **common},
            {"task": "nci-size", "seed": 0, "areas": {"size of the group": {"a": 0.6, "b": 0.5}}},
            {"task": "logic", "areas": logic, "shares": shares[1], **common},
            {"task": "planted", "seed": 0, "average_precision": precision, "share": 0.2},
            {"task": "yeast", "seed": 0, "gains": GAINS, "chosen": "occlusion", "alike": 0.1},
            {"task": "bibtex", "seed": 0, "gains": GAINS, "chosen": "attention", "alike": -0.1},
        ],
    }


def test_the_page_has_all_tables(result):
    expected = {
        "| attention | **0.800** | **0.800** | **0.700** | **0.950** | **0.850** |",
        "- too few of these molecules fulfil logic8, logic10 to measure it",
        "| size of the group | 0.550 | 0.550 | 0.500 |  |  |",
        "| integrated gradients | 0.97 | 0.77 | 0.82 | 0.69 |",
        "- NCI, mean: the goal of 0.975 is missed by attention, the best method, with 0.800",
        "- logic7: the goal of 0.9 is missed by attention, the best method, with 0.850",
        "| effects | **0.900** |",
        "| attention | 0.100 | **0.100** |",
        "| occlusion | **0.300** | *0.300* |",
        "- the chosen method is ahead of random in 2 of 2 runs",
        "- the chosen method is ahead of attention in 1 of 2 runs",
        "- rank correlation of scores before and after weights were shuffled: yeast 0.10, "
        "bibtex -0.10",
    }
    text = page(result)
    assert expected <= {*text.splitlines()}
    assert "nci abcdef012345" in text


def test_the_page_shows_existing_figures(result, tmp_path):
    assert "papers' figures" not in page(result, folder=tmp_path)
    (tmp_path / "figures-mped-4.svg").touch()
    pictures = [line for line in page(result, folder=tmp_path).splitlines() if line[:2] == "!["]
    assert [line.split("(")[-1] for line in pictures] == ["figures-mped-4.svg)"]


@pytest.mark.parametrize(("seconds", "verdict"), [(41.26, "reached"), (60.0, "missed")])
def test_the_page_shows_the_time_of_a_report(result, seconds, verdict):
    assert "Time of a report" not in page(result)
    values = {"drugs": 20, "atoms": 512, "labels": 27, "methods": ["attention", "occlusion"]}
    values |= {"seconds": seconds, "seconds_of_explain": 40.0, "processor_seconds": 50.0}
    measured = {"environment": describe_environment(), "explained": values | {"bytes": 1_234_567}}
    text = page(result, measured)
    assert f"| 20 | 512 | 27 | 2 | {seconds:.1f} | 40.0 | 50.0 | 1.2 |" in text
    assert f"- the goal of 60 s for 20 drugs is {verdict}" in text.splitlines()
    measured["explained"]["drugs"] = 2
    assert "the goal of 60 s" not in page(result, measured)
