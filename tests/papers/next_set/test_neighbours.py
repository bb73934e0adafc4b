from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import Ridge

from tg_mlc.sequences.neighbours import NUM_FOLDS, RIDGES, SHARPNESS, Neighbours

GENERATOR = torch.Generator().manual_seed(0)
PROFILES = torch.rand(9, 5, generator=GENERATOR).square()
SHARE = torch.rand(3, 5, generator=GENERATOR)


def test_entities_count_by_likeness_and_nobody_is_its_own_neighbour():
    told = Neighbours(PROFILES)(SHARE, torch.tensor([0, 8, 9]))[..., 1].exp() - 1e-3
    for row, (share, itself) in enumerate(zip(SHARE, (0, 8, 9), strict=True)):
        others = [j for j in range(9) if j != itself]
        likeness = torch.stack([torch.cosine_similarity(share, PROFILES[j], dim=0) for j in others])
        weight = (SHARPNESS[1] * likeness).softmax(dim=0)
        torch.testing.assert_close(told[row], weight @ PROFILES[others], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("place", "ridge"), list(enumerate(RIDGES)))
def test_labels_are_told_by_a_ridge_regression_on_all_others_without_the_fold_of_the_entity(place, ridge):
    layer, entity = Neighbours(PROFILES), torch.tensor([0, 8, 9])  # of which the last is new
    told = layer(SHARE, entity)[..., 2 + place]
    x, share = layer._in_units(PROFILES), layer._in_units(SHARE)
    for row, fold in enumerate(entity % NUM_FOLDS):
        rest = torch.arange(9) % NUM_FOLDS != fold
        for label in range(5):
            others = [other for other in range(5) if other != label]
            fitted = Ridge(ridge, fit_intercept=False).fit(x[rest][:, others], x[rest, label])
            expected = fitted.predict(share[row : row + 1, others]).item()
            assert told[row, label].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("profiles", [PROFILES[:1], torch.zeros(4, 5), torch.eye(5)], ids=["one", "nothing", "rare"])
def test_what_is_hardly_known_is_finite(profiles):
    told = Neighbours(profiles)(torch.zeros(2, 5), torch.tensor([0, 7]))
    assert told.isfinite().all()
