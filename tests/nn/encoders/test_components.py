import re

import pytest
import scipy.sparse as sp
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tests.models.samples import molecules
from tg_mlc.nn import FeatureMessagePassing
from tg_mlc.nn.encoders import (
    BagEncoder,
    DNAEncoder,
    GivenComponents,
    JointEncoder,
    MessageEncoder,
    MoleculeEncoder,
    NodeEncoder,
    SequenceEncoder,
    VectorEncoder,
)
from tg_mlc.nn.encoders.components import RecurrentEncoder, ptr_of
from tg_mlc.nn.encoders.graphs import CategoricalEmbedding

NAN = float("nan")


def documents(*words):
    samples = [Data(x=torch.tensor(x, dtype=torch.long), num_nodes=len(x)) for x in words]
    return Batch.from_data_list(samples)


def test_ptr_of_gives_the_pointers_of_samples():
    data = [Data(x=torch.zeros(n, 2)) for n in (3, 0, 2, 0)]
    assert ptr_of(data[0]).tolist() == [0, 3]
    batch = Batch.from_data_list(data)
    assert ptr_of(batch).tolist() == [0, 3, 3, 5, 5]
    del batch.ptr
    assert ptr_of(batch).tolist() == [0, 3, 3, 5, 5]
    assert ptr_of(Data(x=torch.zeros(3, 2), batch=torch.tensor([0, 0, 1]))).tolist() == [0, 2, 3]


def test_each_known_label_is_a_component_of_its_sample():
    batch, encoder = documents([0, 2], []), GivenComponents(BagEncoder(3, 4), num_labels=2)
    plain = encoder(batch)
    for given, ptr, rows in (
        ([[NAN, 1.0], [0.0, 1.0]], [0, 3, 5], [3, 0, 3]),
        ([[NAN, NAN], [NAN, NAN]], [0, 2, 2], []),
    ):
        batch.given = torch.tensor(given)
        out = encoder(batch)
        assert out.ptr.tolist() == ptr
        assert torch.equal(out.x, torch.cat([plain.x, encoder.embedding.weight[rows]]))


def test_a_message_encoder_equals_feature_message_passing_along_the_bonds():
    encoder = MessageEncoder(MoleculeEncoder(16), 2, heads=2).eval()
    batch = Batch.from_data_list(molecules(4))
    assert isinstance(encoder.features, FeatureMessagePassing)
    x, ptr, edge_index, edge_attr, _ = encoder.encoder(batch)
    out = encoder(batch)
    assert_close(out.x, encoder.features(x, ptr=ptr, edge_index=edge_index, edge_attr=edge_attr))
    assert torch.equal(out.ptr, batch.ptr)
    assert encoder.channels == 16


@pytest.mark.parametrize("num_layers", [1, 3])
def test_a_recurrent_encoder_reads_every_sample_on_its_own_in_both_directions(num_layers):
    encoder = RecurrentEncoder(BagEncoder(9, 8), num_layers).eval()
    words = [[1, 5, 2], [], [7], [3, 3, 8, 0]]
    x, ptr, *_ = encoder(documents(*words))
    assert ptr.tolist() == [0, 3, 3, 4, 8]
    for i, sample in enumerate(words):
        if sample:
            embedded = encoder.encoder.embedding.weight[sample]
            assert_close(x[ptr[i] : ptr[i + 1]], encoder.gru(embedded)[0])
    changed, *_ = encoder(documents([1, 5, 4], *words[1:]))
    assert not torch.isclose(x[:3], changed[:3]).all(dim=1).any()
    assert_close(changed[3:], x[3:])


def test_a_recurrent_encoder_takes_a_document_without_words():
    assert RecurrentEncoder(BagEncoder(9, 8)).eval()(documents([])).x.shape == (0, 8)


SYMBOLS = torch.tensor([0, 3])
GIVEN = Data(x=SYMBOLS, given=torch.zeros(1, 3))
BAG, LAZY = BagEncoder(9, 4), VectorEncoder(-1, 8)
ZEROS = sp.csr_array((40, 9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: encode(BAG, torch.ones(2, 3).long()), "words 'x' of shape [N] or [N, 1], those"),
        (lambda: encode(BAG, torch.tensor([0, 9])), "words 'x' from 0 to 8 (got 0 to 9)"),
        (lambda: encode(BAG, torch.tensor([-1, 2])), "words 'x' from 0 to 8 (got -1 to 2)"),
        (lambda: encode(BAG, torch.rand(3)), "torch.int64 or torch.int32 (got torch.float32); vec"),
        (lambda: encode(SequenceEncoder(9, 4), SYMBOLS.byte()), "or torch.int32 (got torch.uint8)"),
        (lambda: encode(SequenceEncoder(9, 4, torch.ones(1, 4)), SYMBOLS), "at most 1 words"),
        (lambda: BagEncoder(2, 8, kept=SYMBOLS), "'kept' to be a mask of shape [2] (got torch.int"),
        (lambda: BAG.start_from_documents(ZEROS[:, :8]), "'documents' of shape [N, 9] with at"),
        (lambda: BAG.start_from_documents(ZEROS), "'documents' with words (got zeros only)"),
        (lambda: DNAEncoder(4, kernel_size=0), "'kernel_size' to be a whole number"),
        (lambda: DNAEncoder(4, pool=0), "'pool' to be a whole number"),
        (lambda: encode(DNAEncoder(4), torch.zeros(3, 4)), "[N] or [N, 1], those of all samples"),
        (lambda: encode(DNAEncoder(4), torch.tensor([0, 5])), "(got 0 to 5); words are for Seq"),
        (
            lambda: encode(DNAEncoder(4), torch.zeros(3)),
            "whole numbers, torch.uint8 or torch.int64",
        ),
        (lambda: encode(VectorEncoder(3, 8), torch.ones(2, 4)), "'x' of shape [N, 3] (got [2, 4])"),
        (lambda: encode(VectorEncoder(3, 8), torch.ones(3)), "'x' of shape [N, 3] (got [3])"),
        (lambda: encode(LAZY, torch.ones(2, 3), torch.ones(2, 4)), "of shape [N, 3] (got [2, 4])"),
        (lambda: encode(LAZY, SYMBOLS.view(1, 2)), "'x' of floating-point numbers (got torch.int"),
        (lambda: encode(NodeEncoder(4, 6), torch.ones(5, 3)), "'x' of shape [N, 4] (got [5, 3])"),
        (
            lambda: CategoricalEmbedding([3, 2], 8)(torch.zeros(4, 1)),
            "of shape [N, 2] (got [4, 1])",
        ),
        (lambda: GivenComponents(BAG, 2)(GIVEN), "'given' of shape [1, 2] (got [1, 3])"),
        (lambda: JointEncoder([BAG, LAZY]), "to share their 'channels' (got [4, 8])"),
        (lambda: RecurrentEncoder(BagEncoder(9, 7)), "half for each direction (got 7)"),
    ],
)
def test_encoders_refuse_invalid_inputs(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def encode(encoder, *inputs):
    for x in inputs:
        encoder(Data(x=x))
