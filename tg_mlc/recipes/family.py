"""Models of the family, as any data set's recipe trains them: ``RECIPES["bibtex"].as_member(FAMILY["lamp"])``."""

from __future__ import annotations

from functools import partial
from typing import Any

from tg_mlc.models import SPEN, InfNet, binary_relevance, energy_network, gaml, pooled_mlp
from tg_mlc.recipes.recipe import Member
from tg_mlc.training import InferenceNetworkObjective, UnrolledObjective

#: Models without label states have none to read out in between.
_PLAIN: dict[str, Any] = {"objective": {"intermediate_weight": 0.0}}

#: Rivals without a decoder.
RIVALS: dict[str, Member] = {
    "mp-br": Member(pooled_mlp, {**_PLAIN, "model": {"dropout": 0.2}}),
    # The same under Graph2Graph's settings, which have one layer more.
    "graph2mlp": Member(pooled_mlp, {**_PLAIN, "model": {"num_feature_layers": 3, "dropout": 0.2}}),
    "emb-mlp": Member(pooled_mlp, {**_PLAIN, "model": {"num_feature_layers": 0, "num_layers": 4}}),
    "mlp-br": Member(binary_relevance, _PLAIN),
    "linear-br": Member(
        binary_relevance,
        {**_PLAIN, "model": {"channels": None, "latent": False}, "module": {"lr": 2e-2, "weight_decay": 0.0}},
    ),
    "spen": Member(partial(energy_network, SPEN), replaced={"objective_class": UnrolledObjective, "objective": {}}),
    "infnet": Member(
        partial(energy_network, InfNet), replaced={"objective_class": InferenceNetworkObjective, "objective": {}}
    ),
    "gaml": Member(gaml, {**_PLAIN, "model": {"dropout": 0.1}}),
}

#: By the names under which benchmarks and the command line know them.
FAMILY: dict[str, Member] = {
    "lamp": Member(),
    # The share of C-Tran (arXiv:2011.14027).
    "lamp-known": Member(changes={"model": {"known_labels": True}, "objective": {"max_known": 0.75}}),
    **RIVALS,
}
