"""The contract of every decoder."""

from __future__ import annotations

import pytest
import torch

from tg_mlc.papers.decoders import AttentionDecoder, RecurrentDecoder, beam_search

NUM_LABELS = 6
SYMBOLS = torch.tensor([[6, 2, 0, 5], [6, 1, 3, 4], [6, 0, 1, 2]])
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
    state, found = decoder.start(x, ptr), []
    for column in symbols.t():
        logits, state = decoder.step(state, column)
        found.append(logits)
    return torch.stack(found, dim=1)


def test_steps_with_a_kept_state_give_what_the_whole_sequence_gives(decoder, components):
    found = stepwise(decoder, *components, SYMBOLS)
    torch.testing.assert_close(found, decoder(*components, SYMBOLS))


def test_rows_of_a_state_continue_on_their_own(decoder, components):
    x, ptr = components
    logits, state = decoder.step(decoder.start(x, ptr), SYMBOLS[:, 0])
    state = decoder.select(state, torch.tensor([0, 0, 1, 1, 2, 2]))
    logits, state = decoder.step(state, torch.tensor([2, 5, 0, 1, 3, 0]))
    # The second hypothesis of each sample goes on as both.
    state = decoder.select(state, torch.tensor([1, 1, 3, 3, 5, 5]))
    logits, _ = decoder.step(state, torch.tensor([0, 1, 2, 3, 4, 5]))
    for place, last in enumerate([(0, 2, 4), (1, 3, 5)]):
        symbols = torch.tensor([[6, 5, last[0]], [6, 1, last[1]], [6, 0, last[2]]])
        torch.testing.assert_close(logits[place::2], decoder(x, ptr, symbols)[:, -1])


def test_later_symbols_and_other_samples_change_nothing(decoder, components):
    x, ptr = components
    logits = decoder(x, ptr, SYMBOLS)
    changed = SYMBOLS.clone()
    changed[:, 3] = 1
    torch.testing.assert_close(decoder(x, ptr, changed)[:, :3], logits[:, :3])
    torch.testing.assert_close(decoder(x[4:6], torch.tensor([0, 2]), SYMBOLS[1:2]), logits[1:2])
    assert not torch.allclose(decoder(x + 1, ptr, SYMBOLS), logits)


def test_a_search_gives_the_probabilities_of_the_whole_sequence(decoder, components):
    x, ptr = components
    found = beam_search(decoder, x, ptr)
    for sample, (first, last) in enumerate(zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)):
        for place in range(5):
            total, sequence = 0.0, found.sequences[sample, place].tolist()
            labels = [symbol for symbol in sequence if symbol < NUM_LABELS]
            symbols = torch.tensor([[NUM_LABELS, *labels]])
            logits = decoder(x[first:last], torch.tensor([0, last - first]), symbols)[0]
            for i, symbol in enumerate([*labels, NUM_LABELS]):
                logits[i, labels[:i]] = -torch.inf
                total += logits[i].log_softmax(dim=0)[symbol].item()
            assert found.log_probs[sample, place].item() == pytest.approx(total, abs=1e-4)


def test_samples_without_components_are_searched_too(decoder, components):
    x, _ = components
    ptr = torch.tensor([0, 0, 9, 9])
    torch.testing.assert_close(stepwise(decoder, x, ptr, SYMBOLS), decoder(x, ptr, SYMBOLS))
    alone = stepwise(decoder, x[:0], torch.tensor([0, 0]), SYMBOLS[:1])
    torch.testing.assert_close(alone, decoder(x, ptr, SYMBOLS)[:1])


def test_every_parameter_is_used(decoder, components):
    decoder(*components, SYMBOLS).square().sum().backward()
    unused = [
        name for name, parameter in decoder.named_parameters() if not parameter.grad.abs().sum() > 0
    ]
    assert unused == []


def test_sizes_are_checked():
    for kind in (AttentionDecoder, RecurrentDecoder):
        with pytest.raises(ValueError, match="'num_labels'"):
            kind(16, 0)
    with pytest.raises(ValueError, match="'num_steps'"):
        AttentionDecoder(16, 3, 0)
    with pytest.raises(ValueError, match="'num_layers'"):
        RecurrentDecoder(16, 3, 0)


def test_a_step_projects_the_last_symbols_only(components):
    decoder, seen = AttentionDecoder(16, NUM_LABELS, 1).eval(), []
    for conv in (decoder.feature_to_label[0], decoder.label_to_label[0]):
        conv.lin_key.register_forward_pre_hook(lambda _, args: seen.append(args[0].size(0)))
    stepwise(decoder, *components, SYMBOLS)
    assert seen == [12, 3, 3, 3, 3]  # the components once, as three samples of up to four
