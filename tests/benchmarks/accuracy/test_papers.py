from __future__ import annotations

import csv

from benchmarks.accuracy.papers import DIFFERENT, FIGURES, figures
from tg_mlc.papers.recipes import RECIPES


def test_figures_of_the_papers() -> None:
    bibtex = figures("bibtex")
    assert bibtex["arXiv:1904.08049, FMP + LaMP_fc"]["f1_samples"] == 0.445
    best = bibtex["best of the papers' message passing"]
    assert (best["f1_samples"], best["f1_micro"], best["f1_macro"], best["subset_accuracy"]) == (
        0.447,
        0.473,
        0.376,
        0.197,
    )
    assert (
        figures("delicious")["best of the papers' message passing"]["subset_accuracy"] < 0.02
    )  # not those of the misprint
    assert figures("emotions") == {}
    assert (
        figures("rcv1")["best of the papers' message passing (34 times the training samples)"]["subset_accuracy"] > 0.5
    )


def test_every_data_set_of_the_papers_has_a_recipe_or_no_files() -> None:
    with FIGURES.open(newline="") as file:
        names = {row["dataset"] for row in csv.DictReader(file)}
    assert names - set(RECIPES) == {"tfbs"}
    assert set(DIFFERENT) < names
    assert figures("nuswide")
