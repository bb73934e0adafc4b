from __future__ import annotations

import math
import warnings
from functools import cache
from itertools import permutations
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from tg_mlc.papers.decoders import AttentionDecoder, RecurrentDecoder, beam_search

NUM_LABELS = 5


class ToyState(NamedTuple):
    sample: Tensor
    history: Tensor


class ToyDecoder:
    """Decoder whose probabilities depend on the labels so far, in order. A sample is one vector."""

    num_labels = NUM_LABELS

    def __init__(self, seed=0, sharpness=2.0):
        generator = torch.Generator().manual_seed(seed)
        self.embedding = torch.randn(NUM_LABELS + 1, 8, generator=generator)
        self.mix = torch.randn(8, 8, generator=generator) / 8**0.5
        self.readout = torch.randn(8, NUM_LABELS + 1, generator=generator) * sharpness
        self.num_rows = []

    def start(self, x, ptr):
        return ToyState(x, torch.zeros_like(x))

    def step(self, state, symbols):
        self.num_rows.append(symbols.numel())
        history = torch.tanh(state.history @ self.mix + self.embedding[symbols] + state.sample)
        return history @ self.readout, ToyState(state.sample, history)

    def select(self, state, rows):
        return ToyState(state.sample[rows], state.history[rows])


def samples(num_samples):
    x = torch.randn(num_samples, 8, generator=torch.Generator().manual_seed(1))
    return x, torch.arange(num_samples + 1)


def log_prob(decoder, x, sequence):
    """Returns the log-probability of a sequence. A stop ends it unless it has all labels."""
    state, last, total = decoder.start(x, None), NUM_LABELS, 0.0
    stops = [NUM_LABELS] if len(sequence) < NUM_LABELS else []
    for index, symbol in enumerate([*sequence, *stops]):
        logits, state = decoder.step(state, torch.tensor([last]))
        allowed = [s for s in range(NUM_LABELS + 1) if s not in sequence[:index]]
        total += (logits[0, symbol] - logits[0, allowed].logsumexp(dim=0)).item()
        last = symbol
    return total


def all_sequences(decoder, x):
    """Returns the log-probabilities of all sequences of one sample."""
    sequences = [s for n in range(NUM_LABELS + 1) for s in permutations(range(NUM_LABELS), n)]
    return {s: log_prob(decoder, x, s) for s in sequences}


NUM_SEQUENCES = 326  # Sequences of up to five labels, none of them twice.


def decoded(hypotheses, sample, rank=0):
    """Returns the labels of a sequence, without stops."""
    return tuple(s for s in hypotheses.sequences[sample, rank].tolist() if s < NUM_LABELS)


@cache
def expected_of(seed, sample):
    return all_sequences(ToyDecoder(seed), samples(3)[0][sample : sample + 1])


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_all_sequences_is_an_exhaustive_search(seed, length_penalty):
    decoder, (x, ptr) = ToyDecoder(seed), samples(3)
    beam = beam_search(decoder, x, ptr, beam_size=NUM_SEQUENCES, length_penalty=length_penalty)
    for sample in range(3):
        expected = expected_of(seed, sample)
        assert len(expected) == NUM_SEQUENCES
        cost = {s: -value / (len(s) + 1) ** length_penalty for s, value in expected.items()}
        ranked = sorted(expected, key=cost.__getitem__)
        assert [decoded(beam, sample, rank) for rank in range(5)] == ranked[:5]
        best = [expected[s] for s in ranked[:5]]
        assert beam.log_probs[sample, :5].tolist() == pytest.approx(best, abs=1e-4)
        assert beam.log_probs[sample].logsumexp(dim=0).item() == pytest.approx(0.0, abs=1e-4)


def test_a_length_penalty_prefers_longer_sequences():
    decoder, (x, ptr) = ToyDecoder(1), samples(20)
    beams = [beam_search(decoder, x, ptr, length_penalty=penalty) for penalty in (0.0, 1.0, 3.0)]
    short, medium, long = (beam.labels[:, 0].sum() for beam in beams)
    assert short < medium < long


def test_a_beam_of_one_is_greedy():
    decoder, (x, ptr) = ToyDecoder(sharpness=1.0), samples(10)
    beam = beam_search(decoder, x, ptr, beam_size=1)
    for sample in range(10):
        state, last, labels = decoder.start(x[sample : sample + 1], None), NUM_LABELS, []
        while len(labels) < NUM_LABELS:
            logits, state = decoder.step(state, torch.tensor([last]))
            logits[0, labels] = -math.inf
            last = int(logits.argmax())
            if last == NUM_LABELS:
                break
            labels.append(last)
        assert decoded(beam, sample) == tuple(labels)
        expected = log_prob(decoder, x[sample : sample + 1], labels)
        assert beam.log_probs[sample].item() == pytest.approx(expected, abs=1e-4)
    # A penalty compares the likeliest label with a stop by the length of both.
    penalised = beam_search(decoder, x, ptr, beam_size=1, length_penalty=1.0)
    assert not torch.equal(beam.labels, penalised.labels)


def test_a_wider_beam_finds_sequences_that_are_no_less_likely():
    decoder, (x, ptr) = ToyDecoder(sharpness=1.0), samples(50)
    beams = (beam_search(decoder, x, ptr, beam_size=k) for k in (1, 5, NUM_SEQUENCES))
    greedy, five, all_of_them = (beam.log_probs[:, 0] for beam in beams)
    assert (greedy <= all_of_them + 1e-5).all()
    assert (greedy < all_of_them - 1e-3).any()
    assert (five - all_of_them).abs().mean() < (greedy - all_of_them).abs().mean()


def test_a_batch_gives_the_sequences_of_its_single_samples():
    decoder, (x, ptr) = ToyDecoder(sharpness=1.0), samples(12)
    together = beam_search(decoder, x, ptr)
    for sample in range(12):
        alone = beam_search(decoder, x[sample : sample + 1], torch.tensor([0, 1]))
        pairs = ((together, sample), (alone, 0))
        batch_labels, alone_labels = ([decoded(beam, i, k) for k in range(5)] for beam, i in pairs)
        assert batch_labels == alone_labels
        torch.testing.assert_close(together.scores()[sample], alone.scores()[0])


def test_no_label_comes_twice_and_sets_are_those_of_the_sequences():
    beam = beam_search(ToyDecoder(sharpness=0.1), *samples(20))
    for sample in range(20):
        for rank in range(5):
            labels = decoded(beam, sample, rank)
            assert len(set(labels)) == len(labels)
            assert beam.labels[sample, rank].nonzero().flatten().tolist() == sorted(labels)


class NeverStops(ToyDecoder):
    def step(self, state, symbols):
        logits, state = super().step(state, symbols)
        logits[:, NUM_LABELS] = -30.0
        return logits, state


def test_a_model_that_never_stops_is_cut():
    decoder, (x, ptr) = NeverStops(), samples(4)
    with pytest.warns(UserWarning, match="cut at max_length=3"):
        beam = beam_search(decoder, x, ptr, max_length=3)
    assert (beam.labels[:, 0].sum(dim=-1) == 3).all()
    assert len(decoder.num_rows) == 4  # Three labels and a stop are decoded.
    assert (beam.sequences[:, 0, -1] == NUM_LABELS).all()
    assert (beam.log_probs[:, 0] < -20).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert beam_search(decoder, x, ptr).labels[:, 0].all()  # Nothing can follow all labels.
        beam_search(ToyDecoder(sharpness=5.0), x, ptr, max_length=4)


def test_a_search_ends_with_its_longest_sequence():
    decoder = ToyDecoder(sharpness=0.0)
    decoder.readout[:, NUM_LABELS] = 0.0
    beam = beam_search(decoder, *samples(4), beam_size=1)
    assert beam.sequences.shape[-1] == len(decoder.num_rows)
    assert decoder.num_rows[0] == 4  # The search starts with one row per sample.


@pytest.mark.filterwarnings("ignore:Sequences were cut")
def test_rows_beyond_the_possible_sequences_are_empty():
    decoder, (x, ptr) = ToyDecoder(sharpness=1.0), samples(3)
    excluded = torch.ones(3, NUM_LABELS, dtype=torch.bool)
    excluded[1, 0] = excluded[2, :2] = False
    for max_length, num_possible in ((1, 3), (None, 5)):
        beam = beam_search(decoder, x, ptr, beam_size=8, excluded=excluded, max_length=max_length)
        impossible = beam.log_probs.isneginf()
        assert (~impossible).sum(dim=1).tolist() == [1, 2, num_possible]
        assert not (beam.labels & excluded.unsqueeze(1)).any()
        assert not beam.labels[impossible].any()
        assert (beam.sequences[impossible] == NUM_LABELS).all()


@pytest.mark.parametrize("beam_size", [1, 5])
def test_scores_are_those_of_their_equation_and_exceed_one_half_in_the_best_set(beam_size):
    beam = beam_search(ToyDecoder(sharpness=1.0), *samples(30), beam_size=beam_size)
    scores, ranks = beam.scores(), beam.log_probs.exp().unsqueeze(-1)
    expected = (ranks * beam.peaks).sum(dim=1) / ranks.sum(dim=1) + beam.labels[:, 0]
    torch.testing.assert_close(scores, 0.5 * expected, atol=1e-5, rtol=0.0)
    assert torch.equal(scores > 0.5, beam.labels[:, 0])
    assert torch.equal(scores >= 0.5, beam.labels[:, 0])
    assert scores.min() > 0.0
    assert scores.max() <= 1.0


def test_scores_of_labels_in_all_sequences_differ():
    decoder, (x, ptr) = ToyDecoder(sharpness=1.0), samples(200)
    beam = beam_search(decoder, x, ptr, beam_size=2)
    in_all = beam.labels.all(dim=1)
    assert (in_all.sum(dim=1) > 1).any()  # There are ties to break.
    scores = beam.scores()[in_all]
    assert len(scores.unique()) == len(scores)
    assert scores.max() < 1.0


# The contract of every decoder ---------------------------------------------------------------

SYMBOLS = torch.tensor([[5, 2, 0, 3], [5, 1, 3, 4], [5, 0, 1, 2]])
DECODERS = {
    "attention": lambda: AttentionDecoder(16, NUM_LABELS, 2, heads=4, mlp_channels=24),
    "recurrent": lambda: RecurrentDecoder(16, NUM_LABELS, 2),
}


@pytest.fixture(params=DECODERS)
def decoder(request):
    torch.manual_seed(0)
    return DECODERS[request.param]().eval()


@pytest.fixture
def components():
    x = torch.randn(9, 16, generator=torch.Generator().manual_seed(1))
    return x, torch.tensor([0, 4, 6, 9])


def stepwise(decoder, x, ptr, symbols):
    state, all_logits = decoder.start(x, ptr), []
    for column in symbols.t():
        logits, state = decoder.step(state, column)
        all_logits.append(logits)
    return torch.stack(all_logits, dim=1)


def test_stepwise_logits_equal_those_of_the_whole_sequence(decoder, components):
    logits = stepwise(decoder, *components, SYMBOLS)
    torch.testing.assert_close(logits, decoder(*components, SYMBOLS))


def test_rows_of_a_state_continue_on_their_own(decoder, components):
    x, ptr = components
    logits, state = decoder.step(decoder.start(x, ptr), SYMBOLS[:, 0])
    state = decoder.select(state, torch.tensor([0, 0, 1, 1, 2, 2]))
    logits, state = decoder.step(state, torch.tensor([2, 4, 0, 1, 3, 0]))
    # Both rows of each sample continue its second hypothesis.
    state = decoder.select(state, torch.tensor([1, 1, 3, 3, 5, 5]))
    logits, _ = decoder.step(state, torch.tensor([0, 1, 2, 3, 4, 5]))
    for offset, last in enumerate([(0, 2, 4), (1, 3, 5)]):
        symbols = torch.tensor([[5, 4, last[0]], [5, 1, last[1]], [5, 0, last[2]]])
        torch.testing.assert_close(logits[offset::2], decoder(x, ptr, symbols)[:, -1])


def test_logits_do_not_depend_on_later_symbols_or_other_samples(decoder, components):
    x, ptr = components
    logits = decoder(x, ptr, SYMBOLS)
    changed = SYMBOLS.clone()
    changed[:, 3] = 1
    torch.testing.assert_close(decoder(x, ptr, changed)[:, :3], logits[:, :3])
    torch.testing.assert_close(decoder(x[4:6], torch.tensor([0, 2]), SYMBOLS[1:2]), logits[1:2])
    assert not torch.allclose(decoder(x + 1, ptr, SYMBOLS), logits)


def test_a_search_gives_the_probabilities_of_the_whole_sequence(decoder, components):
    x, ptr = components
    beam = beam_search(decoder, x, ptr)
    for sample, (first, last) in enumerate(zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)):
        for rank in range(5):
            total, sequence = 0.0, beam.sequences[sample, rank].tolist()
            labels = [symbol for symbol in sequence if symbol < NUM_LABELS]
            symbols = torch.tensor([[NUM_LABELS, *labels]])
            logits = decoder(x[first:last], torch.tensor([0, last - first]), symbols)[0]
            for i, symbol in enumerate([*labels, NUM_LABELS]):
                logits[i, labels[:i]] = -torch.inf
                total += logits[i].log_softmax(dim=0)[symbol].item()
            assert beam.log_probs[sample, rank].item() == pytest.approx(total, abs=1e-4)


def test_samples_without_components_are_decoded(decoder, components):
    x, _ = components
    ptr = torch.tensor([0, 0, 9, 9])
    torch.testing.assert_close(stepwise(decoder, x, ptr, SYMBOLS), decoder(x, ptr, SYMBOLS))
    alone = stepwise(decoder, x[:0], torch.tensor([0, 0]), SYMBOLS[:1])
    torch.testing.assert_close(alone, decoder(x, ptr, SYMBOLS)[:1])


def test_every_parameter_is_used(decoder, components):
    decoder(*components, SYMBOLS).square().sum().backward()
    parameters = dict(decoder.named_parameters())
    assert not [name for name, parameter in parameters.items() if not parameter.grad.any()]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("num_labels", lambda: AttentionDecoder(16, 0)),
        ("num_labels", lambda: RecurrentDecoder(16, 0)),
        ("num_steps", lambda: AttentionDecoder(16, 3, 0)),
        ("num_layers", lambda: RecurrentDecoder(16, 3, 0)),
        ("beam_size", lambda: beam_search(ToyDecoder(), *samples(1), beam_size=0)),
        ("length_penalty", lambda: beam_search(ToyDecoder(), *samples(1), length_penalty=-1.0)),
        ("max_length", lambda: beam_search(ToyDecoder(), *samples(1), max_length=0)),
    ],
)
def test_options_out_of_range_are_refused(name, call):
    with pytest.raises(ValueError, match=f"Expected '{name}'"):
        call()


def test_a_step_projects_the_last_symbols_only(components):
    decoder, num_rows = AttentionDecoder(16, NUM_LABELS, 1).eval(), []
    for conv in (decoder.feature_to_label[0], decoder.label_to_label[0]):
        conv.lin_key.register_forward_pre_hook(lambda _, args: num_rows.append(args[0].size(0)))
    stepwise(decoder, *components, SYMBOLS)
    assert num_rows == [12, 3, 3, 3, 3]  # Components (3 samples of 4) are projected once.
