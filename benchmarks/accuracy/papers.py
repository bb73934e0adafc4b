"""The papers' tables: their rows, what the papers call them, and the figures that they report.

A member of the family that no paper reports, such as a rival of one's own, has rows in all tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmarks.accuracy.runs import FREQUENCY, Row
from tg_mlc.papers.recipes.family import FAMILY

#: Figures that the papers report. Subset accuracy on Delicious in Table 7 of LaMP is left out,
#: because it has the same entries as macro-F1 in Table 3.
FIGURES = Path(__file__).parent / "papers.csv"
PAPERS = {"lamp2019": "arXiv:1904.08049", "mped2019": "MPED 2019"}
#: Metrics of comparisons that the papers report.
METRICS = ("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro")
#: The row with the best figure of each metric.
BEST = "best of the papers' message passing"
#: Data sets that differ from the papers' in samples or labels, with the difference.
DIFFERENT = {
    "bookmarks": "other split",
    "nuswide": "four more labels",
    "rcv1": "34 times the training samples",
}

#: The papers' names by row, none for our own. Only networks have node_messages that are not None.
Rows = Mapping[Row, tuple[str, ...]]
GRAPHS = ("edgeless", "complete", "prior", "learned")
#: The papers' letters for label graphs, and for components without and with messages.
LETTERS = {"edgeless": "el", "complete": "fc", "prior": "pr"}
ENCODERS = {False: "emb", True: "fmp"}
#: The prior of MPED: similar meanings of label names.
WORDNET = "wordnet"
#: Titles of models.
NAMES = {
    "emb-mlp": "Emb + MLP",
    "gaml": "GAML",
    "graph2graph": "Graph2Graph",
    "graph2graph-ar": "Graph2Graph, autoregressive",
    "graph2mlp": "Graph2MLP",
    "infnet": "InfNet SPEN",
    "lamp": "LaMP",
    "lamp-given": "LaMP with known labels",
    "linear-br": "BR, linear",
    "mlp-br": "BR, MLP",
    "mp-br": "MP BR",
    "mped": "MPED",
    "mped-ar": "MPED, autoregressive",
    "seq2seq": "RNN Seq2Seq",
    "spen": "SPEN",
}


def title(row: Row) -> str:
    """The title of a row as in the papers' tables."""
    # The rows of other models in the papers do not differ in whether there are node messages.
    has_both = row.model == "lamp" or (row.model in FAMILY and row.model not in NAMES)
    encoder = ENCODERS[bool(row.node_messages)] if has_both else None
    parts = (NAMES.get(row.model, row.model), encoder, LETTERS.get(row.graph or "", row.graph))
    return ", ".join([" ".join(filter(None, parts)), *row.remarks])


class Table(NamedTuple):
    """A table of a paper."""

    paper: str
    title: str
    metrics: tuple[str, ...]
    papers_rows: Rows  #: the rows without those of :func:`own_rows`
    note: str = ""

    @property
    def rows(self) -> Rows:
        """The papers' names by row."""
        return {**self.papers_rows, **dict.fromkeys(own_rows(), ())}


_CLASSIFIERS = (
    *("linear SVM", "random forest", "classifier chain"),
    *("ensemble of chains", "ML-kNN", "label trees"),
)
_BASELINES: Rows = {Row(name): () for name in (FREQUENCY, *_CLASSIFIERS)}
_LAMP: Rows = {
    **_BASELINES,
    Row("linear SVM"): ("SVM",),
    Row("emb-mlp", False): ("Emb + MLP",),
    Row("spen", False): ("SPEN",),
    Row("gaml", True): ("GAML",),
    Row("seq2seq", True): ("RNN Seq2Seq",),
    **{
        Row("lamp", messages, graph): (f"{name} + LaMP_{LETTERS[graph]}",)
        if graph in LETTERS
        else ()
        for messages, name in {False: "Emb", True: "FMP"}.items()
        for graph in GRAPHS
    },
    Row("lamp", False, WORDNET): (),
    Row("lamp-given", False, "complete"): (),
}
_MPED: Rows = {
    **_BASELINES,
    Row("linear-br", False): ("BR (Nam et al.)", "BR (Belanger and McCallum)"),
    Row("mlp-br", False): ("MLP BR (Nam et al.)",),
    Row("mp-br", True): ("MP BR",),
    Row("spen", False): ("SPEN",),
    Row("infnet", False): ("InfNet SPEN",),
    Row("seq2seq", True): ("RNN Seq2Seq",),
    Row("mped-ar", True): ("MPED Autoregressive",),
    Row("mped", True, "edgeless"): ("MPED Edgeless",),
    Row("mped", True, "complete"): ("MPED",),
    Row("mped", True, WORDNET): ("MPED Prior",),
    Row("mped", True, "prior"): (),
    Row("mped", True, "learned"): (),
    Row("graph2mlp", True): (),
    Row("graph2graph-ar", True): (),
    **{Row("graph2graph", True, graph): () for graph in GRAPHS},
}
TABLES = {
    "lamp-1": Table("lamp2019", "Table 1 of LaMP: example-based F1", ("f1_samples",), _LAMP),
    "lamp-2": Table("lamp2019", "Table 2 of LaMP: micro F1", ("f1_micro",), _LAMP),
    "lamp-3": Table("lamp2019", "Table 3 of LaMP: macro F1", ("f1_macro",), _LAMP),
    "lamp-7": Table("lamp2019", "Table 7 of LaMP: subset accuracy", ("subset_accuracy",), _LAMP),
    "lamp-8": Table("lamp2019", "Table 8 of LaMP: Hamming accuracy", ("hamming_accuracy",), _LAMP),
    "mped-2": Table(
        "mped2019",
        "Table 2 of MPED",
        METRICS,
        _MPED,
        "the paper's prior is the similarity of label names in WordNet, on rcv1 the tree of "
        "topics; prior joins labels that occur together, on sider those of highest correlation, "
        "and on rcv1 is that tree",
    ),
}


def own_rows() -> list[Row]:
    """The rows of all members of the family that no table of a paper has."""
    models = {row.model for table in TABLES.values() for row in table.papers_rows}
    own = {name: member for name, member in FAMILY.items() if name not in models}
    return [
        Row(name, node_messages, graph)
        for name, member in own.items()
        for node_messages, graph in product(ENCODERS, GRAPHS if member.uses_graph else (None,))
    ]


@cache
def reported(path: Path = FIGURES) -> dict[tuple[str, str, str, str], float]:
    """All figures by paper (LANET: table), data set, model (LANET: row) and metric."""
    figures = pd.read_csv(path, dtype={"table": str})
    keys = figures[["paper" if "paper" in figures else "table", "dataset", "model", "metric"]]
    return dict(zip(keys.itertuples(index=False, name=None), figures["value"], strict=True))


def figures(dataset: str) -> dict[str, dict[str, float]]:
    """The papers' figures of message passing by paper and model, and the best of each metric."""
    remark = f" ({DIFFERENT[dataset]})" if dataset in DIFFERENT else ""
    rows: dict[str, dict[str, float]] = {}
    for (paper, name, model, metric), value in reported().items():
        if name == dataset and metric in METRICS and ("LaMP_" in model or "MPED" in model):
            rows.setdefault(f"{PAPERS[paper]}, {model}{remark}", {})[metric] = value
    best = pd.DataFrame(rows).T.max().dropna().to_dict() if rows else {}
    return {**rows, **({f"{BEST}{remark}": best} if best else {})}
