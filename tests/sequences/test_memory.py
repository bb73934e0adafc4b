from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge

from tests.sequences.batches import FREQUENCY, NUM_FEATURES, NUM_LABELS, PROFILES, batch
from tests.sequences.histories import COLUMNS, split_histories
from tg_mlc.data import from_events
from tg_mlc.sequences import EventPreprocessor, time_split
from tg_mlc.sequences.memory import (
    NUM_FOLDS,
    RIDGES,
    SHARPNESS,
    Neighbours,
    PersonalMemory,
    personal_memory,
)


def memory(**options):
    torch.manual_seed(0)
    return PersonalMemory(FREQUENCY, NUM_FEATURES, 4, **options)


@pytest.mark.parametrize("profiles", [None, PROFILES])
def test_logits_start_at_the_frequencies_of_training(profiles):
    views, logits = memory(profiles=profiles)(batch())
    assert views.shape == (5, NUM_LABELS, 4)
    torch.testing.assert_close(logits.sigmoid(), FREQUENCY.expand(5, -1))


def test_labels_that_an_entity_never_had_have_zero_features():
    layer, data = memory(), batch()
    features = layer.features(data)
    assert not features[0, :, : 2 * NUM_FEATURES].any()  # The first sample has no history.
    assert torch.equal(features[data.memory_sample, data.memory_label, :NUM_FEATURES], data.memory)
    has_memory = torch.zeros(5, NUM_LABELS, dtype=torch.bool)
    has_memory[data.memory_sample, data.memory_label] = True
    assert not features[..., :NUM_FEATURES][~has_memory].any()


def test_trends_are_relative_to_the_frequencies():
    layer, data = memory(), batch()
    data.trend = FREQUENCY.view(1, -1, 1).repeat(5, 1, 3)
    data.trend[0] = 0.0  # Before a first event, nothing is known.
    data.trend[1] *= 2.0
    trend = layer.features(data)[..., 2 * NUM_FEATURES + 1 :]
    assert not trend[[0, 2]].any()
    assert (trend[1] > 0.6).all()


def test_one_function_serves_all_labels():
    layer, data = memory(), batch()
    layer.frequency.fill_(0.3)
    data.trend.fill_(0.2)
    torch.nn.init.normal_(layer.to_logit.weight)
    views, logits = layer(data)
    data.memory_label = NUM_LABELS - 1 - data.memory_label
    mirrored, mirrored_logits = layer(data)
    torch.testing.assert_close(mirrored.flip(1), views)
    torch.testing.assert_close((mirrored_logits - layer.bias).flip(1), logits - layer.bias)


def test_features_are_scaled_by_training_targets():
    layer, data = memory(profiles=PROFILES), batch(64)
    layer.scale_by(data)
    scaled = ((layer.features(data) - layer.mean) / layer.std).flatten(end_dim=1)
    torch.testing.assert_close(scaled.mean(dim=0), torch.zeros(scaled.size(1)), atol=1e-4, rtol=0)
    torch.testing.assert_close(scaled.std(dim=0), torch.ones(scaled.size(1)), atol=1e-4, rtol=0)


@pytest.mark.parametrize("size", ["num_features", "channels", "hidden_channels"])
def test_sizes_are_checked(size):
    options = {"num_features": 7, "channels": 4, size: 0}
    with pytest.raises(ValueError, match=f"'{size}' to be a whole number"):
        PersonalMemory(FREQUENCY, **options)


@pytest.mark.parametrize("convert", [np.asarray, list, torch.Tensor.tolist])
def test_a_memory_depends_on_training_targets_only(convert):
    dataset, split = split_histories()
    expected = personal_memory(dataset, split.train, 4)
    y = torch.from_numpy(dataset.y[split.train.numpy()].toarray())
    torch.testing.assert_close(expected.frequency, y.mean(dim=0))
    entity = torch.from_numpy(dataset.entity_of[split.train.numpy()])
    for i in range(dataset.num_entities):
        torch.testing.assert_close(expected.neighbours.profiles[i], y[entity == i].mean(dim=0))
    later = split.val.tolist() + split.test.tolist()
    # Events after training get another label.
    dataset.y.indices[[dataset.y.indptr[event] for event in later]] = 0
    changed = personal_memory(dataset, convert(split.train), 4)
    for name in ("frequency", "mean", "std", "neighbours.profiles"):
        assert torch.equal(changed.get_buffer(name), expected.get_buffer(name))


@pytest.mark.parametrize(("num_labels", "num_scaled"), [(302, 512), (2_000, 131)])
def test_features_of_many_labels_are_scaled_by_fewer_targets(num_labels, num_scaled, monkeypatch):
    number, cost = np.arange(6_000), np.random.default_rng(0).normal(size=6_000)
    rows = {"who": number % 3, "day": number // 5, "item": number % num_labels, "cost": cost}
    events = from_events(pd.DataFrame(rows), **COLUMNS)
    dataset = EventPreprocessor().fit_transform(events, time_split(events, (1.0, 0.0, 0.0)))
    sizes = []
    monkeypatch.setattr(PersonalMemory, "scale_by", lambda _, data: sizes.append(data.num_graphs))
    personal_memory(dataset, range(len(dataset)), 4, neighbours=False)
    [size] = sizes
    assert num_scaled * 0.75 < size <= num_scaled


GENERATOR = torch.Generator().manual_seed(0)
OTHERS = torch.rand(9, 5, generator=GENERATOR).square()
SHARE = torch.rand(3, 5, generator=GENERATOR)


def test_weights_are_similarities_and_no_entity_is_its_own_neighbour():
    scores = Neighbours(OTHERS)(SHARE, torch.tensor([0, 8, 9]))[..., 1].exp() - 1e-3
    for row, (share, itself) in enumerate(zip(SHARE, (0, 8, 9), strict=True)):
        others = [j for j in range(9) if j != itself]
        similarity = torch.stack([torch.cosine_similarity(share, OTHERS[j], dim=0) for j in others])
        weight = (SHARPNESS[1] * similarity).softmax(dim=0)
        torch.testing.assert_close(scores[row], weight @ OTHERS[others], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("index", "ridge"), list(enumerate(RIDGES)))
def test_scores_equal_a_ridge_regression_on_all_other_labels_and_folds(index, ridge):
    layer, entity = Neighbours(OTHERS), torch.tensor([0, 8, 9])  # Entity 9 is new.
    scores = layer(SHARE, entity)[..., 2 + index]
    x, share = layer._scale(OTHERS), layer._scale(SHARE)
    for row, fold in enumerate(entity % NUM_FOLDS):
        train = torch.arange(9) % NUM_FOLDS != fold
        for label in range(5):
            others = [other for other in range(5) if other != label]
            fitted = Ridge(ridge, fit_intercept=False).fit(x[train][:, others], x[train, label])
            expected = fitted.predict(share[row : row + 1, others]).item()
            assert scores[row, label].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("profiles", [OTHERS[:1], torch.zeros(4, 5), torch.eye(5)])
def test_scores_of_few_profiles_are_finite(profiles):
    scores = Neighbours(profiles)(torch.zeros(2, 5), torch.tensor([0, 7]))
    assert scores.isfinite().all()
