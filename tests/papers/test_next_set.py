from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.sequences.batches import NUM_BINS, NUM_ENTITIES, NUM_LABELS, WINDOW_SIZE, batch
from tg_mlc.graphs import fully_connected
from tg_mlc.papers.next_set import (
    C2AE,
    C2AEObjective,
    LSTMBaseline,
    TimeAttention,
    TransformerBase,
    TwoAttentions,
    pairwise_loss,
)
from tg_mlc.sequences.lanet import LANET

SIZES = (NUM_LABELS, NUM_ENTITIES, 8)
WINDOW = {"window_size": WINDOW_SIZE, "num_bins": NUM_BINS}
MODELS = {
    "LSTM": lambda: LSTMBaseline(*SIZES, events={"window_size": WINDOW_SIZE}),
    "TransformerBase": lambda: TransformerBase(*SIZES, events={"window_size": WINDOW_SIZE}),
    "C2AE": lambda: C2AE(*SIZES, events={"window_size": WINDOW_SIZE}),
    "time-attention": lambda: TimeAttention(*SIZES, window=WINDOW),
    "concat-attention": lambda: two_attentions(gated=False),
    "gated-attention": lambda: two_attentions(gated=True),
}


def two_attentions(gated):
    label = LANET(fully_connected(NUM_LABELS), *SIZES[1:], window=WINDOW)
    return TwoAttentions(label, TimeAttention(*SIZES, window=WINDOW), gated)


def one_sample(data, sample):
    """Returns one sample of a batch."""
    alone = batch(1)
    is_of_sample = data.sample == sample
    for name in ("label", "position", "dt", "bin", "amount"):
        alone[name] = data[name][is_of_sample]
    alone.sample = torch.zeros(int(is_of_sample.sum()), dtype=torch.long)
    alone.entity, alone.y = data.entity[[sample]], data.y[[sample]]
    return alone


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_gives_the_logits_of_its_single_samples(name):
    model, data = MODELS[name]().eval(), batch()
    one_by_one = torch.cat([model(one_sample(data, sample)) for sample in range(5)])
    torch.testing.assert_close(model(data), one_by_one, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "C2AE"])
def test_every_parameter_learns(name):
    model, data = MODELS[name]().eval(), batch()
    F.binary_cross_entropy_with_logits(model(data), data.y).backward()
    unused = ("lin_key.bias",)  # This bias moves all scores of a query alike.
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert all(p.grad.any() for name, p in model.named_parameters() if not name.endswith(unused))


@pytest.mark.parametrize("name", ["LSTM", "TransformerBase", "C2AE"])
def test_the_order_of_events_matters_and_that_of_labels_within_does_not(name):
    model, data = MODELS[name]().eval(), batch()
    expected = model(data)
    order = torch.randperm(data.label.numel(), generator=torch.Generator().manual_seed(0))
    for key in ("label", "sample", "position", "dt", "bin", "amount"):
        data[key] = data[key][order]
    torch.testing.assert_close(model(data), expected, atol=1e-5, rtol=1e-5)
    data.position = WINDOW_SIZE + 1 - data.position
    assert (model(data) - expected).abs().max() > 1e-3


@pytest.mark.parametrize("name", [*MODELS, "LANET"])
def test_the_embedding_of_unseen_entities_stays_zero(name):
    model, data = {**MODELS, "LANET": lambda: two_attentions(gated=False).label}[name](), batch()
    state = model.state_dict().items()
    initial = {key: value.clone() for key, value in state if key.endswith("entity.weight")}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(data).square().sum().backward()  # The second sample has an unseen entity.
    optimizer.step()
    assert initial
    for key, value in initial.items():
        trained = model.state_dict()[key]
        assert not trained[NUM_ENTITIES].any()
        assert not torch.equal(trained[data.entity[2]], value[data.entity[2]])


def test_a_missing_amount_counts_as_one():
    model, data = MODELS["LSTM"]().eval(), batch()
    data.bin[::2], data.amount[::2] = 0, 0.0
    expected = model(data)
    data.amount[::2], data.bin[::2] = 1.0, 1
    torch.testing.assert_close(model(data), expected)


@pytest.mark.parametrize("kind", [LSTMBaseline, TransformerBase, C2AE])
def test_without_entities_all_samples_have_the_scores_of_a_new_entity(kind):
    known = kind(*SIZES, events={"window_size": WINDOW_SIZE}).eval()
    unknown = kind(*SIZES, events={"window_size": WINDOW_SIZE, "entity": False}).eval()
    state = known.state_dict()
    unknown.load_state_dict({key: state[key] for key in state if key != "entity.weight"})
    data = batch()
    logits = unknown(data)
    data.entity = torch.full_like(data.entity, NUM_ENTITIES)
    torch.testing.assert_close(logits, known(data))


def test_the_pairwise_loss_equals_its_terms_one_by_one():
    logits = torch.randn(5, 6, generator=torch.Generator().manual_seed(0)).double()
    rows = [
        [1, 0, 0, 1, 0, torch.nan],
        [1] * 6,
        [0] * 6,
        [torch.nan, 1, torch.nan, 0, torch.nan, torch.nan],
        [1, 0] * 3,
    ]
    y = torch.tensor(rows).double()
    means = []
    for row, target in zip(logits, y, strict=True):
        positive, negative = (row[target == value] for value in (1, 0))
        pairs = (negative[:, None] - positive).exp()
        means += [pairs.mean()] if pairs.numel() else []
    torch.testing.assert_close(pairwise_loss(logits, y), torch.stack(means).mean())


def test_without_any_pair_loss_and_gradients_are_zero():
    logits = torch.randn(2, 3, requires_grad=True)
    loss = pairwise_loss(logits, torch.tensor([[1.0, 1.0, torch.nan], [0.0, 0.0, 0.0]]))
    loss.backward()
    assert loss == 0
    assert not logits.grad.any()


def test_both_encoders_and_the_decoder_learn():
    model = MODELS["C2AE"]()
    data, objective = batch(32), C2AEObjective()
    objective.check_model(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        losses.append(objective.loss(model, data))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.7 * losses[0]
    assert all(parameter.grad.any() for parameter in model.parameters())
    assert torch.equal(objective.scores(model, data), model(data).sigmoid())
    with pytest.raises(ValueError, match=r"'model' to be a C2AE \(got LSTMBaseline\)"):
        objective.check_model(LSTMBaseline(3, 2))
