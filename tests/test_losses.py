import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score
from torch.testing import assert_close

from tg_mlc.losses import (
    asymmetric_loss,
    focal_loss,
    lamp_loss,
    listwise_loss,
    masked_bce,
    sequence_loss,
    soft_f1_loss,
)

NAN = float("nan")
#: All losses of logits and targets.
LOSSES = {
    "bce": partial(masked_bce, pos_weight=2.0),
    "focal": focal_loss,
    "asymmetric": asymmetric_loss,
    "listwise": listwise_loss,
    "macro": soft_f1_loss,
    "micro": partial(soft_f1_loss, average="micro"),
    "lamp": lambda logits, y, **options: lamp_loss(logits, y, [logits * 2], 0.5, **options),
}
SYMBOLS = torch.tensor([[1, 0, 3, 3], [3, 3, 3, 3]])  # Two labels and none; symbol 3 stops.
COUNTED = torch.tensor([[True, True, True, False], [True, False, False, False]])


@pytest.fixture
def y():
    return torch.tensor([[1.0, 0.0, NAN], [NAN, 1.0, 1.0], [NAN, NAN, NAN]])


@pytest.fixture
def logits():
    return torch.randn(3, 3, generator=torch.Generator().manual_seed(0)).double().requires_grad_()


@pytest.fixture(params=LOSSES.values(), ids=LOSSES)
def loss(request):
    return request.param


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
def test_unknown_entries_get_no_gradient_whatever_their_logits(logits, y, loss, bad):
    broken = torch.where(y.isnan(), bad, logits.detach()).requires_grad_()
    value = loss(broken, y)
    value.backward()
    assert_close(value, loss(logits, y))
    assert (broken.grad[y.isnan()] == 0).all()
    assert (broken.grad[~y.isnan()] != 0).any()


def test_loss_and_gradient_are_zero_if_nothing_is_observed(logits, loss):
    value = loss(logits, torch.full((3, 3), NAN), label_smoothing=0.1)
    value.backward()
    assert value.item() == 0.0
    assert (logits.grad == 0).all()


def test_gradients_equal_finite_differences(logits, y, loss):
    assert torch.autograd.gradcheck(lambda z: loss(z, y), logits)


def test_shapes_smoothing_and_half_precision(logits, y, loss):
    with pytest.raises(ValueError, match=r"one shape \(got \(3, 3\) and \(3, 2\)\)"):
        loss(logits, y[:, :2])
    with pytest.raises(ValueError, match="label_smoothing"):
        loss(logits, y, label_smoothing=1.0)
    assert loss(torch.full((3, 3), 8.0, dtype=torch.float16), y).isfinite()


@pytest.mark.parametrize("value", [-1.0, -100.0, 2.0, math.inf, -math.inf, 1.5])
def test_wrong_targets_are_refused_by_value_and_index(logits, y, loss, value):
    y[1, 2] = value
    with pytest.raises(ValueError, match=rf"'y' to hold 0, 1 or NaN .*\(got {value} at \[1, 2\]\)"):
        loss(logits, y)


def test_targets_may_be_probabilities_booleans_and_batched_by_transforms(logits, loss):
    assert loss(logits, torch.full((3, 3), 0.5)).isfinite()
    assert loss(logits, torch.ones(3, 3, dtype=torch.bool)) == loss(logits, torch.ones(3, 3))
    values = torch.func.vmap(loss)(logits.detach().expand(2, 3, 3), torch.ones(2, 3, 3))
    assert_close(values, loss(logits, torch.ones(3, 3)).detach().expand(2))


@pytest.mark.parametrize("symbol", [-1, 4])
def test_symbols_out_of_range_are_refused(symbol):
    symbols = torch.tensor([[1, 0, 3], [2, symbol, 3]])
    with pytest.raises(ValueError, match=rf"'symbols' .* 3 to stop \(got {symbol} at \[1, 1\]\)"):
        sequence_loss(torch.randn(2, 3, 4).log_softmax(dim=-1), symbols)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (focal_loss, {"gamma": -1.0}),
        (focal_loss, {"alpha": 2.0}),
        (asymmetric_loss, {"gamma_neg": -1.0}),
        (asymmetric_loss, {"gamma_pos": NAN}),
        (asymmetric_loss, {"margin": 1.0}),
        (listwise_loss, {"weight": -1.0}),
        (soft_f1_loss, {"average": "samples"}),
        *((lamp_loss, {"intermediate_weight": weight}) for weight in (-0.1, NAN, math.inf)),
        *((masked_bce, {"pos_weight": w}) for w in (-5.0, math.inf, NAN, [1.0, -1.0, 1.0], "x")),
        *((masked_bce, {"pos_weight": w}) for w in ([1.0, 2.0], torch.ones(2), torch.ones(3, 1))),
    ],
)
def test_options_out_of_range_are_named(logits, y, loss, options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}'"):
        loss(logits, y, **options)


@pytest.mark.parametrize("pos_weight", [None, 3.0, [1.0, 2.0, 5.0], torch.tensor([1.0, 2.0, 5.0])])
def test_bce_equals_torch_on_the_observed_entries(logits, y, pos_weight):
    observed = ~y.isnan()
    weight = None
    if pos_weight is not None:
        weight = torch.as_tensor(pos_weight).double().expand(3, 3)[observed]
    target = y[observed].double() * 0.8 + 0.1
    expected = F.binary_cross_entropy_with_logits(logits[observed], target, pos_weight=weight)
    actual = masked_bce(logits, y, pos_weight=pos_weight, label_smoothing=0.2)
    assert_close(actual, expected)
    assert_close(*(torch.autograd.grad(value, logits) for value in (actual, expected)))


def test_half_precision_is_summed_in_float32():
    value = masked_bce(torch.full((300, 300), 0.5, dtype=torch.bfloat16), torch.zeros(300, 300))
    assert value.dtype == torch.float32
    assert_close(value, F.softplus(torch.tensor(0.5)))


@pytest.mark.parametrize("loss", [LOSSES[name] for name in ("bce", "focal", "asymmetric", "micro")])
def test_lamp_loss_adds_weighted_intermediate_terms_of_any_loss(logits, y, loss):
    options = {"label_smoothing": 0.1}
    first, *others = (loss(scores, y, **options) for scores in (logits, logits * 2, logits - 1))
    terms = [logits * 2, logits - 1]
    assert_close(lamp_loss(logits, y, terms, 0.3, loss=loss, **options), first + 0.3 * sum(others))
    assert_close(lamp_loss(logits, y, terms, loss=loss, **options), first)
    assert_close(lamp_loss(logits, y, (), 0.3, loss=loss, **options), first)


def test_lamp_loss_compiles_without_graph_breaks(logits, y):
    compiled = torch.compile(lamp_loss, fullgraph=True, backend="eager")
    assert_close(compiled(logits, y, [logits], 0.2), lamp_loss(logits, y, [logits], 0.2))


def test_listwise_adds_the_cross_entropy_of_the_observed_labels_of_each_sample():
    logits = torch.tensor([[1.0, 0.0, -1.0, 9.0], [0.5, 0.0, 0.0, 2.0], [3.0, 1.0, 0.0, 0.0]])
    y = torch.tensor([[1.0, 0.0, 1.0, NAN], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    first = math.log(math.e + 1 + 1 / math.e) - (1.0 - 1.0) / 2
    second = math.log(math.exp(0.5) + 2 + math.exp(2.0))
    expected = masked_bce(logits, y) + 3.0 * (first + second) / 12
    assert_close(listwise_loss(logits, y, weight=3.0), expected)
    expected = masked_bce(logits, y, label_smoothing=0.1)
    assert_close(listwise_loss(logits, y, weight=0.0, label_smoothing=0.1), expected)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.3])
def test_sequence_loss_equals_torch_if_all_symbols_are_allowed(label_smoothing):
    logits = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))
    expected = F.cross_entropy(logits[COUNTED], SYMBOLS[COUNTED], label_smoothing=label_smoothing)
    value = sequence_loss(logits.log_softmax(dim=-1), SYMBOLS, label_smoothing=label_smoothing)
    assert_close(value, expected)
    with pytest.raises(ValueError, match="'label_smoothing'"):
        sequence_loss(logits, SYMBOLS, label_smoothing=1.0)


def test_smoothing_skips_excluded_symbols():
    logits = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    excluded = torch.zeros(2, 4, 4, dtype=torch.bool)
    excluded[0, 1, 1] = True
    log_probs = logits.masked_fill(excluded, -torch.inf).log_softmax(dim=-1)
    value = sequence_loss(log_probs, SYMBOLS, label_smoothing=0.2)
    steps = [(0, 0, [0, 1, 2, 3]), (0, 1, [0, 2, 3]), (0, 2, [0, 1, 2, 3]), (1, 0, [0, 1, 2, 3])]
    pairs = [(logits[b, i, symbols], symbols.index(SYMBOLS[b, i])) for b, i, symbols in steps]
    terms = [F.cross_entropy(x, torch.tensor(n), label_smoothing=0.2) for x, n in pairs]
    assert_close(value, torch.stack(terms).mean())
    value.backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 1, 1] == 0.0
    assert not logits.grad[~COUNTED].any()


def released_asymmetric(z, y, gamma_neg, gamma_pos, margin):
    """Returns the loss of the authors' released code, but does not clamp the logarithms."""
    p, q = z.sigmoid(), (1 - z.sigmoid() + margin).clamp(max=1)
    losses = y * p.log() + (1 - y) * q.log()
    pt = p * y + q * (1 - y)
    return -(losses * (1 - pt) ** (gamma_pos * y + gamma_neg * (1 - y)))


def torchvision_focal(z, y, alpha, gamma):
    """Returns the loss as torchvision.ops.sigmoid_focal_loss computes it."""
    p = z.sigmoid()
    ce = F.binary_cross_entropy_with_logits(z, y, reduction="none")
    loss = ce * (1 - (p * y + (1 - p) * (1 - y))) ** gamma
    return (alpha * y + (1 - alpha) * (1 - y)) * loss


@pytest.mark.parametrize(
    ("loss", "reference", "options"),
    [
        (focal_loss, torchvision_focal, {"alpha": 0.25, "gamma": 2.0}),
        (focal_loss, torchvision_focal, {"alpha": 0.7, "gamma": 0.5}),
        (focal_loss, torchvision_focal, {"alpha": 0.5, "gamma": 0.0}),
        (asymmetric_loss, released_asymmetric, {"gamma_neg": 4, "gamma_pos": 0, "margin": 0.05}),
        (asymmetric_loss, released_asymmetric, {"gamma_neg": 4, "gamma_pos": 1, "margin": 0.3}),
        (asymmetric_loss, released_asymmetric, {"gamma_neg": 2, "gamma_pos": 1, "margin": 0.0}),
    ],
)
def test_losses_equal_released_code_on_the_observed_entries(logits, y, loss, reference, options):
    observed = ~y.isnan()
    expected = reference(logits[observed], y[observed].double(), **options).mean()
    actual = loss(logits, y, **options)
    assert_close(actual, expected)
    assert_close(*(torch.autograd.grad(value, logits) for value in (actual, expected)))


def test_focal_and_asymmetric_loss_without_exponents_are_cross_entropy(logits, y):
    expected = masked_bce(logits, y, label_smoothing=0.2)
    assert_close(focal_loss(logits, y, gamma=0.0, alpha=None, label_smoothing=0.2), expected)
    plain = {"gamma_neg": 0.0, "gamma_pos": 0.0, "margin": 0.0}
    assert_close(asymmetric_loss(logits, y, **plain, label_smoothing=0.2), expected)


@pytest.mark.parametrize("size", [30.0, 1000.0])
@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (focal_loss, {"gamma": 0.5}),
        (asymmetric_loss, {"gamma_neg": 0.5, "gamma_pos": 0.5}),
        (asymmetric_loss, {"gamma_neg": 0.5, "margin": 0.0}),
    ],
)
def test_extreme_logits_have_finite_gradients(loss, options, size):
    z = torch.tensor([[-size, -size, size, size]], requires_grad=True)
    loss(z, torch.tensor([[0.0, 1.0, 0.0, 1.0]]), **options).backward()
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_certain_scores_give_the_f1_of_decisions(average):
    generator = torch.Generator().manual_seed(0)
    y, decisions = (torch.randint(0, 2, (30, 4), generator=generator) for _ in range(2))
    loss = soft_f1_loss((decisions * 2.0 - 1.0) * 100.0, y.float(), average=average)
    assert loss.item() == pytest.approx(1 - f1_score(y, decisions, average=average))


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_unknown_entries_do_not_change_the_soft_f1_loss(logits, y, average):
    y[:, 2] = NAN
    loss = soft_f1_loss(logits, y, average=average)
    loss.backward()
    p = logits.detach().sigmoid()
    macro = [1 - 2 * p[0, 0] / (1 + p[0, 0]), 1 - 2 * p[1, 1] / (1 + p[0, 1] + p[1, 1])]
    micro = 1 - 2 * (p[0, 0] + p[1, 1]) / (2 + p[0, 0] + p[0, 1] + p[1, 1])
    assert_close(loss.detach(), sum(macro) / 2 if average == "macro" else micro)
    assert (logits.grad[y.isnan()] == 0).all()
