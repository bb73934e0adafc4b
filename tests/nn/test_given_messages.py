import numpy as np
import torch
from numpy.testing import assert_allclose
from torch.export import Dim
from torch.testing import assert_close

from tests.requirements import needs_export
from tg_mlc.graphs import fully_connected
from tg_mlc.nn.given_messages import LabelAutoencoder, LabelNeighbours


def labels(num_samples=300):
    """Returns labels that depend on each other."""
    values = torch.randn(num_samples, 1, generator=torch.Generator().manual_seed(0))
    noise = torch.randn(num_samples, 6, generator=torch.Generator().manual_seed(1))
    return (values + noise > 0).float()


def test_neighbours_are_weighted_by_given_labels_and_base_logits():
    y = torch.tensor([[1.0, 1, 0], [1, 0, 1], [0, torch.nan, 1]])
    b = torch.tensor([[2.0, 0, -1], [0, 1, 0], [-1, 0, 2]])
    layer = LabelNeighbours(fully_connected(3)).start_from_samples(b, y).sharpen(4.0, 2.0)
    own, given = torch.tensor([[1.0, 1, 0]]), torch.tensor([[1.0, torch.nan, torch.nan]])
    mean, labels = y.nanmean(dim=0), torch.where(y.isnan(), b.sigmoid(), y)
    similarity = torch.cosine_similarity(own - b.mean(dim=0), b - b.mean(dim=0))
    # Samples have the same value of the given label, or the opposite one.
    weight = (4 * torch.tensor([1.0, 1, -1]) + 2 * similarity).softmax(dim=0)
    expected = (0.98 * weight @ labels + 0.02 * mean).logit()
    assert_close(layer(own, given)[0, 1:], expected[1:])
    assert layer(own, given)[0, 0] == own[0, 0]


def test_the_autoencoder_equals_a_ridge_regression_on_the_other_labels():
    y = labels()
    y[::7, 2] = torch.nan
    part = LabelAutoencoder(fully_connected(6)).start_from_labels(y).damp(0.2)
    x = np.nan_to_num((y - y.nanmean(dim=0)).double().numpy())
    others = x[:, 1:].T
    covariance = others @ others.T / len(x)
    expected = np.linalg.solve(covariance + 0.2 * np.eye(5), others @ x[:, 0] / len(x))
    assert_allclose(part.weight[1:, 0], 10 * expected, atol=1e-5)
    given = torch.full((1, 6), torch.nan)
    given[0, 0] = 0.0
    assert_allclose(part(torch.ones(1, 6), given), 1 - y[:, 0].mean() * part.weight[:1], atol=1e-6)


@needs_export
def test_an_autoencoder_is_exported_for_any_number_of_samples():
    layer = LabelAutoencoder(fully_connected(6)).start_from_labels(labels()).damp(0.2)
    b = torch.randn(5, 6)
    given = torch.where(torch.rand(5, 6) < 0.5, torch.rand(5, 6).round(), torch.nan)
    program = torch.export.export(layer, (b, given), dynamic_shapes=({0: Dim.DYNAMIC},) * 2)
    assert_close(program.module()(b[:3], given[:3]), layer(b[:3], given[:3]))
