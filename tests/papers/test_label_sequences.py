from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch, Data

from tests.training.conftest import GINE
from tg_mlc.data import ArrayDataset, Split
from tg_mlc.data.records import Records
from tg_mlc.losses import sequence_loss
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.nn.encoders import BagEncoder
from tg_mlc.papers import (
    LabelSequenceObjective,
    graph2graph_autoregressive,
    mped_autoregressive,
    seq2seq,
)
from tg_mlc.papers import label_sequences as module
from tg_mlc.papers.decoders import AttentionDecoder, beam_search
from tg_mlc.papers.label_sequences import LabelSequenceModel, label_ranks
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit, seed_everything

NAN = torch.nan
TARGETS = torch.tensor([[1, 0, 1.0], [0, NAN, 1], [NAN, NAN, NAN]])
SETS = torch.tensor([[1, 0, 1, 1], [NAN, 0, 1, 1], [1, 0, 0, 1.0]])
SENTENCES = [[0, 3], [1, 2, 4], [2]]


@pytest.fixture
def batch():
    samples = zip(map(torch.tensor, SENTENCES), TARGETS[:, None], strict=True)
    return Batch.from_data_list([Data(x=x, y=y, num_nodes=len(x)) for x, y in samples])


def make_model(max_length=None, ranks=(2, 1, 0)):
    torch.manual_seed(0)
    decoder = AttentionDecoder(8, 3, 1, heads=2)
    return LabelSequenceModel(BagEncoder(5, 8), decoder, torch.tensor(ranks), max_length).eval()


def test_teacher_forcing_follows_the_order(batch):
    model = make_model()
    log_probs, symbols = model(batch)
    assert symbols.tolist() == [[2, 0, 3], [2, 3, 3], [3, 3, 3]]
    x, ptr, *_ = model.encoder(batch)
    logits = model.decoder(x, ptr, torch.tensor([[3, 2, 0], [3, 2, 3], [3, 3, 3]]))[0]
    torch.testing.assert_close(log_probs[0, 0], logits[0].log_softmax(dim=0))
    allowed = [0, 1, 3]
    torch.testing.assert_close(log_probs[0, 1, allowed], logits[1, allowed].log_softmax(dim=0))


def test_unknown_labels_have_probability_zero(batch):
    probs = make_model()(batch)[0].exp()
    assert (probs[1, 0] > 0).tolist() == [True, False, True, True]
    assert probs[2, 0].tolist() == [0, 0, 0, 1]


def test_a_search_is_that_of_the_decoder_up_to_the_longest_set(batch):
    model = make_model(max_length=1)
    with torch.no_grad():
        model.decoder.readout.bias[3] = -10.0  # Otherwise the decoder would stop.
    options = {"beam_size": 2, "length_penalty": 0.5}
    with pytest.warns(UserWarning, match="max_length=1"):
        hypotheses = model.search(batch, **options)
    x, ptr, *_ = model.encoder(batch)
    with pytest.warns(UserWarning, match="max_length=1"):
        expected = beam_search(model.decoder, x, ptr, max_length=1, **options)
    for actual, reference in zip(hypotheses, expected, strict=True):
        torch.testing.assert_close(actual, reference)


def test_a_state_dict_includes_the_order_and_the_longest_set(batch):
    model, restored = make_model(2), make_model(ranks=(0, 1, 2))
    restored.load_state_dict(model.state_dict())
    torch.testing.assert_close(restored(batch)[0], model(batch)[0])
    assert int(restored.max_length) == 2


BUILDERS = [mped_autoregressive, graph2graph_autoregressive, seq2seq]


@pytest.mark.parametrize("node_messages", [True, False])
@pytest.mark.parametrize("build", BUILDERS)
def test_steps_depend_on_their_own_sample_alone(train, build, node_messages):
    model = build(train, None, node_messages, channels=16).eval()
    batch = Batch.from_data_list(train[:8])
    log_probs, symbols = model(batch)
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(symbols.shape))
    alone = [model(Batch.from_data_list([data]))[0][0] for data in train[:8]]
    for together, single in zip(log_probs, alone, strict=True):
        torch.testing.assert_close(together[: len(single)], single)
    assert log_probs[:, 0].std(dim=0).max() > 1e-3


def test_presets_have_the_sizes_of_their_papers(train):
    model = mped_autoregressive(train)
    assert (len(model.encoder.features.convs), len(model.decoder.feature_to_label)) == (3, 3)
    assert [conv.mlp[0].out_channels for conv in model.decoder.label_to_label] == [128] * 3
    assert model.encoder.features.convs[0].mlp[0].out_channels == 128
    model = graph2graph_autoregressive(train, channels=16, encoder_steps=1, decoder_steps=2)
    assert [conv.mlp[0].out_channels for conv in model.decoder.label_to_label] == [16] * 2
    model = seq2seq(train)
    layers = model.encoder.gru.num_layers, model.decoder.gru.num_layers
    assert (*layers, model.encoder.channels) == (3, 3, 64)
    assert model.encoder.gru.bidirectional
    assert isinstance(seq2seq(train, None, False, channels=16).encoder, BagEncoder)


@pytest.mark.parametrize("build", BUILDERS)
def test_order_and_longest_set_come_from_training_samples(train, build):
    frequent_first = train.y.sum(dim=0).argsort(descending=True, stable=True).tolist()
    for order, expected in (("frequency", frequent_first), ("reverse", frequent_first[::-1])):
        model = build(train, channels=16, label_order=order)
        assert model.ranks.argsort().tolist() == expected
        assert model.max_length == train.y.sum(dim=1).max()
    assert build(train, channels=16).ranks.argsort().tolist() == frequent_first


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        *((build, {"node_messages": "emb"}, r"'node_messages' .*'emb'") for build in BUILDERS),
        *((build, {"label_order": "longest"}, "'label_order' to be one of") for build in BUILDERS),
        *((build, {"width": 2}, "width") for build in BUILDERS),
        (seq2seq, {"num_layers": 4}, "'num_layers' among 1, 2 and 3"),
    ],
)
def test_unknown_options_are_refused(train, build, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build(train, channels=16, **options)


@pytest.mark.parametrize("build", BUILDERS)
def test_a_saved_model_is_rebuilt_from_a_sample_with_unknown_labels(train, build):
    model = build(train, channels=16, latent=True).eval()
    unknown = ArrayDataset(train[:1].copy().samples())
    unknown._data.y = torch.full_like(unknown._data.y, torch.nan)
    rebuilt = build(unknown, channels=16, latent=True).eval()
    rebuilt.load_state_dict(model.state_dict())
    batch = Batch.from_data_list(train[:5])
    torch.testing.assert_close(rebuilt.search(batch).scores(), model.search(batch).scores())


# Every label has its own word.
draws = np.random.default_rng(0)
APPLIES = (draws.random((120, 3)) < 0.4).astype(np.float32)
TEXTS = np.hstack([APPLIES, draws.random((120, 4)) < 0.3, np.ones((120, 1))]).astype(np.float32)
OBSERVED = np.where(draws.random(APPLIES.shape) < 0.1, np.nan, APPLIES).astype(np.float32)
SPLIT = Split(torch.arange(80), torch.arange(80, 100), torch.arange(100, 120), "by hand")


@pytest.fixture
def dataset():
    return ArrayDataset(Records(sp.csr_array(TEXTS), OBSERVED, list("abc")).to_samples())


def train_model(dataset):
    seed_everything(0, verbose=False)
    return seq2seq(dataset[SPLIT.train], channels=16, num_layers=1, dropout=0.0)


def test_a_sequence_model_learns_is_stored_and_predicts(tmp_path, dataset):
    objective = LabelSequenceObjective(beam_size=2)
    module = MultiLabelModule(train_model(dataset), list("abc"), objective, lr=1e-2)
    data = MultiLabelDataModule(dataset, SPLIT, batch_size=16)
    result = fit(module, data, tmp_path, max_epochs=15, patience=None, logger=False).training
    scores = result.scores(data.test_dataloader())
    assert macro_roc_auc(torch.from_numpy(APPLIES[100:]), scores) > 0.9
    options = {"model": train_model(dataset), "weights_only": True}
    loaded = MultiLabelModule.load_from_checkpoint(result.checkpoint, **options)
    assert loaded.objective == objective
    batch = Batch.from_data_list(dataset[SPLIT.test])
    torch.testing.assert_close(loaded.eval().predict_step(batch), scores)


def test_loss_scores_and_validation_are_those_of_the_model_and_its_search(dataset):
    model, batch = train_model(dataset).eval(), Batch.from_data_list(dataset[:10])
    objective = LabelSequenceObjective(label_smoothing=0.2, beam_size=3, length_penalty=1.0)
    loss = sequence_loss(*model(batch), label_smoothing=0.2)
    assert torch.equal(objective.loss(model, batch), loss)
    hypotheses = model.search(batch, beam_size=3, length_penalty=1.0)
    assert torch.equal(objective.scores(model, batch), hypotheses.scores())
    scores, loss = objective.validate(model, batch)
    assert torch.equal(scores, hypotheses.scores())
    assert torch.equal(loss, sequence_loss(*model(batch)))


def test_the_validation_loss_does_not_depend_on_batches(dataset):
    module = MultiLabelModule(train_model(dataset), list("abc"), LabelSequenceObjective()).eval()
    # The first batch has shorter sequences than the second.
    order = dataset.y.nansum(dim=1).argsort()
    batches = [Batch.from_data_list(dataset[rows]) for rows in (order[:40], order[40:])]
    losses = torch.stack([module.objective.loss(module.model, batch) for batch in batches])
    terms = torch.stack([module.objective.num_terms(batch) for batch in batches])
    whole = module.objective.loss(module.model, Batch.from_data_list(dataset))
    torch.testing.assert_close((losses * terms).sum() / terms.sum(), whole)
    logged = []
    module.log_dict = logged.append
    for batch in batches:
        module.validation_step(batch, 0)
    module.on_validation_epoch_end()
    torch.testing.assert_close(logged[0]["val/loss"], whole)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LabelSequenceObjective(label_smoothing=1.0), "'label_smoothing'"),
        (lambda: LabelSequenceObjective(beam_size=0), "'beam_size'"),
        (lambda: LabelSequenceObjective(length_penalty=-1.0), "'length_penalty'"),
        (lambda: make_model(max_length=0), "'max_length'"),
        (lambda: make_model(ranks=(0, 1)), r"'ranks' of shape \[3\] \(got \[2\]\)"),
        (lambda: label_ranks(SETS, "alphabetical"), "'label_order' .*got 'alphabetical'"),
        (
            lambda: MultiLabelModule(GINE(), ["a", "b", "c"], LabelSequenceObjective()),
            r"a model with 'search'.*\(got GINE\)",
        ),
    ],
)
def test_options_and_models_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=f"Expected {message}"):
        call()


@pytest.mark.parametrize(
    ("order", "ranks"),
    [("frequency", [1, 3, 2, 0]), ("reverse", [1, 0, 2, 3]), ("given", [0, 1, 2, 3])],
)
def test_label_ranks_follow_the_order(order, ranks):
    assert label_ranks(SETS, order).tolist() == ranks


def test_a_random_order_follows_the_seed():
    first, second = (label_ranks(torch.zeros(1, 100), "random") for _ in range(2))
    torch.manual_seed(0)
    assert torch.equal(label_ranks(torch.zeros(1, 100), "random"), first)
    assert not torch.equal(first, second)
    assert first.sort().values.tolist() == list(range(100))


def test_sequences_hold_known_positives_in_order_and_then_stops():
    sequences = module.label_sequences
    ranks = torch.tensor([2, 0, 1, 3])
    assert sequences(SETS, ranks).tolist() == [[2, 0, 3, 4], [2, 3, 4, 4], [0, 3, 4, 4]]
    assert sequences(torch.zeros(2, 3), torch.arange(3)).tolist() == [[3], [3]]
    assert sequences(torch.ones(1, 3), torch.tensor([1, 2, 0])).tolist() == [[2, 0, 1, 3]]


def test_symbols_are_shifted_behind_a_stop():
    symbols = torch.tensor([[2, 0, 4], [1, 4, 4]])
    assert module.shifted(symbols, 4).tolist() == [[4, 2, 0], [4, 1, 4]]


def test_probabilities_skip_earlier_labels_and_unknown_labels():
    logits = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0))
    unknown = torch.tensor([[False, False, True]])
    probs = module.next_log_probs(logits, torch.tensor([[1, 0, 3]]), unknown).exp()
    assert [(row > 0).nonzero().flatten().tolist() for row in probs[0]] == [[0, 1, 3], [0, 3], [3]]
    torch.testing.assert_close(probs.sum(dim=-1), torch.ones(1, 3))
    torch.testing.assert_close(probs[0, 0, [0, 1, 3]], logits[0, 0, [0, 1, 3]].softmax(dim=0))
