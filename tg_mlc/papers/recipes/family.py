"""LaMP and its rivals for any recipe: ``RECIPES["bibtex"].as_member(FAMILY["lamp"])``."""

from __future__ import annotations

from typing import Any

from tg_mlc.papers.gaml import gaml
from tg_mlc.papers.label_sequences import (
    LabelSequenceObjective,
    graph2graph_autoregressive,
    mped_autoregressive,
    seq2seq,
)
from tg_mlc.papers.mlp import binary_relevance, pooled_mlp
from tg_mlc.papers.mped import graph2graph, mped
from tg_mlc.papers.recipes.recipe import Member
from tg_mlc.papers.spen import InferenceNetworkObjective, UnrolledObjective, energy_network

#: Models learn at this rate within half an epoch of Bibtex; with 2e-3, autoregressive models learn
#: half as much in four epochs (by validation samples). The papers use 2e-4 at four times the width.
_SLOWER = {"module": {"lr": 5e-4}}
#: No intermediate loss: a rival has no label states between steps, or its paper uses no such loss.
_PLAIN: dict[str, Any] = {"objective": {"intermediate_weight": 0.0}}
_SEQUENCES: dict[str, Any] = {"objective_class": LabelSequenceObjective}
_SEQUENCES |= {"objective": {"label_smoothing": 0.0}}
#: Rivals without a decoder.
RIVALS: dict[str, Member] = {
    "mp-br": Member(pooled_mlp, {**_PLAIN, "model": {"dropout": 0.2}}),
    # MP BR with the settings of Graph2Graph: one more layer.
    "graph2mlp": Member(pooled_mlp, {**_PLAIN, "model": {"num_feature_layers": 3, "dropout": 0.2}}),
    "emb-mlp": Member(pooled_mlp, {**_PLAIN, "model": {"num_feature_layers": 0, "num_layers": 4}}),
    "mlp-br": Member(binary_relevance, _PLAIN),
    "linear-br": Member(
        binary_relevance,
        {
            **_PLAIN,
            "model": {"channels": None, "latent": False},
            "module": {"lr": 2e-2, "weight_decay": 0.0},
        },
    ),
    "spen": Member(
        energy_network, replaced={"objective_class": UnrolledObjective, "objective": {}}
    ),
    "infnet": Member(
        energy_network,
        {"model": {"inference": "network"}},
        {"objective_class": InferenceNetworkObjective, "objective": {}},
    ),
    "gaml": Member(gaml, {**_PLAIN, "model": {"dropout": 0.1}}),
}

#: LaMP and its rivals, by the names of rows in benchmarks.
FAMILY: dict[str, Member] = {
    "lamp": Member(uses_graph=True),
    # The maximum fraction of given labels is that of C-Tran (arXiv:2011.14027).
    "lamp-given": Member(
        None,
        {"model": {"given_labels": True}, "objective": {"max_given": 0.75}},
        uses_graph=True,
    ),
    "mped": Member(mped, {**_PLAIN, **_SLOWER}, uses_graph=True),
    "graph2graph": Member(graph2graph, {**_PLAIN, **_SLOWER}, uses_graph=True),
    "mped-ar": Member(mped_autoregressive, _SLOWER, _SEQUENCES),
    "graph2graph-ar": Member(graph2graph_autoregressive, _SLOWER, _SEQUENCES),
    "seq2seq": Member(seq2seq, replaced={**_SEQUENCES, "objective": {"label_smoothing": 0.1}}),
    **RIVALS,
}
