import pytest
import torch
from torch.testing import assert_close

from tests.nn.samples import path_graph
from tg_mlc.graphs import fully_connected
from tg_mlc.nn import LabelHead, LabelMessagePassing


def test_tied():
    labels = LabelMessagePassing(8, path_graph(5))
    readout = LabelHead(labels, tied=True)
    assert str(readout) == "LabelHead(8, num_labels=5, tied=True)"
    assert readout.weight is labels.embedding.weight
    u = torch.randn(3, 5, 8)
    expected = torch.stack([u[:, i] @ labels.embedding.weight[i] for i in range(5)], dim=1)
    assert_close(readout(u), expected)
    assert readout(u[0]).size() == (5,)
    before = labels.embedding.weight.clone()
    readout.reset_parameters()
    assert not torch.equal(labels.embedding.weight, before)


def test_untied_with_bias():
    labels = LabelMessagePassing(8, path_graph(5))
    readout = LabelHead(labels, bias=True)
    assert str(readout) == "LabelHead(8, num_labels=5, tied=False)"
    assert readout.weight.data_ptr() != labels.embedding.weight.data_ptr()
    with torch.no_grad():
        readout.bias.copy_(torch.arange(5.0))
    assert_close(readout(torch.zeros(3, 5, 8)), torch.arange(5.0).expand(3, -1))
    before = readout.weight.clone()
    readout.reset_parameters()
    assert not torch.equal(readout.weight, before)
    assert (readout.bias == 0).all()


def test_logits_start_around_zero_unless_tied():
    labels = LabelMessagePassing(128, fully_connected(50)).eval()
    x, ptr = torch.randn(200, 128), torch.arange(0, 201, 20)
    states = labels(x, ptr=ptr, return_intermediate=True)
    readout = LabelHead(labels)
    for u in (*states.intermediate, states.states):
        logits = readout(u)
        # Labels differ from the start, and none is likelier than others without a reason.
        assert logits.mean().abs() < 0.5
        assert 0.5 < logits.std() < 2
    tied = LabelHead(labels, tied=True)
    assert labels.embedding.weight.std().item() == pytest.approx(128**-0.5, rel=0.05)
    first, *_ = labels(x, ptr=ptr, return_intermediate=True).intermediate
    assert tied(first).mean() > 3


def test_it_can_start_from_frequencies():
    labels, nan = LabelMessagePassing(8, path_graph(3), num_steps=1), float("nan")
    readout, odds = LabelHead(labels, bias=True), torch.tensor([1 / 3, 0.25, 0.5]).logit()
    y = torch.tensor([[1, 0, nan], [0, 0, nan], [nan, 1, nan], [0, 0, nan]])
    readout.start_from_frequencies(y)
    assert_close(readout.bias, odds)
    readout.start_from_frequencies(y, frequency_strength=0.5)
    assert_close(readout.bias, (odds + odds.mean()) / 2)


def test_errors():
    with pytest.raises(TypeError, match=r"'labels' to be a LabelMessagePassing \(got int\)"):
        LabelHead(4)  # type: ignore[arg-type]
    readout = LabelHead(LabelMessagePassing(8, path_graph(5)))
    with pytest.raises(ValueError, match="'bias=True'"):
        readout.start_from_frequencies(torch.zeros(2, 5))
    with pytest.raises(ValueError, match=r"'u' of shape \[\*, 5, 8\] \(got \[3, 8, 5\]\)"):
        readout(torch.zeros(3, 8, 5))


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.labels = LabelMessagePassing(8, path_graph(5))
        self.readout = LabelHead(self.labels, tied=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(
            model.labels, "embedding", torch.nn.Embedding.from_pretrained(torch.randn(5, 8))
        ),
        lambda model: model.to(torch.float64),
        lambda model: model.to("meta").to_empty(device="cpu"),
        lambda model: model.load_state_dict(Tied().state_dict(), assign=True),
    ],
    ids=["replace", "to", "to_empty", "assign"],
)
def test_tied_to_whatever_embedding_the_labels_have(change):
    model = Tied()
    before = model.labels.embedding.weight.data
    change(model)
    assert model.readout.weight is model.labels.embedding.weight
    assert model.readout.weight.data is not before
    assert sum(part is model.labels for part in model.modules()) == 1
