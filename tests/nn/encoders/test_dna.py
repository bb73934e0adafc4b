import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tg_mlc.nn.encoders.dna import DNAEncoder


def batch_of(*lengths):
    generator = torch.Generator().manual_seed(0)
    samples = [torch.randint(5, (n,), generator=generator, dtype=torch.uint8) for n in lengths]
    return Batch.from_data_list([Data(x=x, y=torch.zeros(1, 3)) for x in samples])


def by_hand(encoder, x):
    """Computes the equation of the encoder's docstring, letter by letter."""
    weight, bias, width = encoder.conv.weight, encoder.conv.bias, encoder.conv.kernel_size[0]
    vectors = [torch.full((4,), 0.25) if code == 4 else torch.eye(4)[code] for code in x.tolist()]
    states = []
    for i in range(len(vectors)):
        state = bias.clone()
        for j in range(width):
            position = i + j - width // 2
            if 0 <= position < len(vectors):
                state = state + weight[:, :, j] @ vectors[position]
        states.append(state.relu())
    windows = [states[k : k + encoder.pool] for k in range(0, len(x), encoder.pool)]
    return torch.stack([torch.stack(window).amax(0) for window in windows])


@pytest.mark.parametrize("lengths", [(9, 9, 9), (7, 1, 12), (5,)])
@pytest.mark.parametrize(("kernel_size", "pool"), [(1, 1), (4, 1), (5, 3), (16, 2), (2, 7)])
def test_the_encoder_equals_the_equation(lengths, kernel_size, pool):
    encoder = DNAEncoder(6, kernel_size, pool)
    batch = batch_of(*lengths)
    x, ptr, edge_index, edge_attr = encoder(batch)[:4]
    expected = [by_hand(encoder, data.x) for data in batch.to_data_list()]
    assert_close(x, torch.cat(expected))
    assert ptr.diff().tolist() == [len(states) for states in expected]
    assert (edge_index, edge_attr, encoder.channels, encoder.edge_dim) == (None, None, 6, None)


def test_samples_may_be_equal_ragged_or_empty_and_columns_of_letters():
    encoder, batch = DNAEncoder(8, 7, 4), batch_of(10, 10, 10)
    equal, ragged = encoder(batch), encoder._ragged(encoder.one_hot[batch.x.long()], batch.ptr)
    assert_close(equal.x, ragged.x)
    assert torch.equal(equal.ptr, ragged.ptr)
    column = Batch.from_data_list([Data(x=data.x.view(-1, 1)) for data in batch.to_data_list()])
    assert torch.equal(encoder(column).x, equal.x)
    assert encoder(batch_of(0, 3, 0)).ptr.tolist() == [0, 0, 1, 1]
    out = encoder(batch_of(0, 0))
    assert (out.x.shape, out.ptr.tolist()) == ((0, 8), [0, 0, 0])
    assert sorted(encoder.state_dict()) == ["conv.bias", "conv.weight"]
    original = encoder.conv.weight.clone()
    encoder.reset_parameters()
    assert not torch.equal(original, encoder.conv.weight)
    for lengths in ((9, 9), (9, 4)):
        (grad,) = torch.autograd.grad(encoder(batch_of(*lengths)).x.sum(), encoder.conv.weight)
        assert grad.abs().sum() > 0


@pytest.mark.parametrize("lengths", [(9, 9, 9), (7, 1, 12)])
@pytest.mark.parametrize("kernel_size", [1, 4, 5])
def test_both_strands_are_read(lengths, kernel_size):
    one = DNAEncoder(6, kernel_size, pool=1)
    both = DNAEncoder(6, kernel_size, pool=1, both_strands=True)
    both.load_state_dict(one.state_dict())
    batch = batch_of(*lengths)
    letters = batch.x.long().split(list(lengths))
    complements = [Data(x=torch.where(x < 4, 3 - x, x).flip(0)) for x in letters]
    reversed_states = one(Batch.from_data_list(complements)).x.split(list(lengths))
    expected = torch.maximum(one(batch).x, torch.cat([part.flip(0) for part in reversed_states]))
    assert_close(both(batch).x, expected)
