from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from tg_mlc.data import ArrayDataset
from tg_mlc.data.records import Records, Tokens
from tg_mlc.graphs import fully_connected, string_ppi
from tg_mlc.models import dna_lamp
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.graphs import INTERACTIONS

FACTORS = ["CTCF", "EP300", "JUND", "RAD21", "SIN3A"]


@pytest.fixture(scope="module")
def dataset():
    generator = torch.Generator().manual_seed(0)
    letters = torch.randint(4, (40, 30), generator=generator)
    y = torch.full((40, 5), torch.nan)
    y[torch.arange(40), torch.arange(40) % 5] = (letters[:, 0] > 1).float()
    records = Records(Tokens.of(letters.tolist()), y.numpy(), FACTORS, list("ACGTN"))
    return ArrayDataset(records.to_samples())


def test_interactions_are_those_of_string(real_file):
    links = real_file("string_tf/derived/string_human_symbols_edges.tsv.xz")
    edges = string_ppi(links, FACTORS, FACTORS, self_loops=False).edge_index.t().tolist()
    assert sorted((FACTORS[a], FACTORS[b]) for a, b in edges if a < b) == sorted(INTERACTIONS)


def test_the_graph_of_interactions_joins_interacting_factors(dataset):
    graph = RECIPES["binding-sites"].label_graph("string", dataset, None)
    assert graph.num_edges == 2 * len(INTERACTIONS) + 5
    assert graph.label_names == FACTORS
    pairs = {(FACTORS[a], FACTORS[b]) for a, b in graph.edge_index.t().tolist()}
    assert ("RAD21", "CTCF") in pairs
    assert ("RAD21", "SIN3A") not in pairs


@pytest.mark.parametrize("node_messages", [False, True])
def test_a_model_reads_both_strands(dataset, node_messages):
    model = dna_lamp(dataset, fully_connected(FACTORS), node_messages, channels=8, pool=2).eval()
    torch.testing.assert_close(model.readout.bias.sigmoid(), dataset.y.nanmean(dim=0))
    logits = model(Batch.from_data_list(dataset))
    assert logits.shape == (40, 5)
    if not node_messages:  # Messages among components ignore order.
        other = [data.clone() for data in dataset]
        for data in other:
            data.x = 3 - data.x.flip(0)
        # Another strand begins half a window later, which moves what is pooled together.
        model.encoder.pool = 1
        on_one, on_other = model(Batch.from_data_list(dataset)), model(Batch.from_data_list(other))
        torch.testing.assert_close(on_one, on_other, atol=1e-4, rtol=1e-4)
