"""Models of the family, as any data set's recipe trains them: ``RECIPES["bibtex"].as_member(FAMILY["lamp"])``."""

from __future__ import annotations

from tg_mlc.models import graph2graph, graph2graph_autoregressive, mped, mped_autoregressive, seq2seq
from tg_mlc.recipes.recipe import Member
from tg_mlc.training import SequenceObjective

#: The losses of the papers have no terms of intermediate readouts. Of the learning rates, this one was seen to learn
#: within half an epoch of Bibtex; the papers' 2e-4 is for four times the width.
_ENCODER_DECODERS = {
    name: Member(build, {"objective": {"intermediate_weight": 0.0}, "module": {"lr": 5e-4}})
    for name, build in {"mped": mped, "graph2graph": graph2graph}.items()
}
_SEQUENCES = {
    name: Member(build, replaced={"objective_class": SequenceObjective, "objective": {}})
    for name, build in {
        "mped-ar": mped_autoregressive,
        "graph2graph-ar": graph2graph_autoregressive,
    }.items()
}
_RECURRENT = {
    "seq2seq": Member(seq2seq, replaced={"objective_class": SequenceObjective, "objective": {"label_smoothing": 0.1}}),
}

#: By the names under which benchmarks and the command line know them.
FAMILY: dict[str, Member] = {
    "lamp": Member(),
    # The share of C-Tran (arXiv:2011.14027).
    "lamp-known": Member(changes={"model": {"known_labels": True}, "objective": {"max_known": 0.75}}),
    **_ENCODER_DECODERS,
    **_SEQUENCES,
    **_RECURRENT,
}
