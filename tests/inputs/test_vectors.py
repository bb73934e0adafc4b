import numpy as np
import pandas as pd
import pytest
import torch

from tests.inputs.test_kinds import fitted
from tg_mlc.data import from_arrays
from tg_mlc.inputs import Scale, Vectors

Y = np.eye(4, 2)
X = np.array([[1.5, 30, 2], [2.5, 10, np.nan], [0.5, 20, 2], [3.5, 0, 2]])


def test_new_rows_have_the_columns_of_training():
    dataset = from_arrays(X, Y, ["a", "b"], ["u", "v", "w"], kind="vector")
    vectors = fitted(Vectors(), dataset)
    samples = vectors.transform([[1, 2, 3.5]])
    assert samples[0].x.tolist() == [[1, 2, 3.5]]
    assert vectors.components(samples[0]) == ["u", "v", "w"]
    expected = ["column 0", "column 1", "column 2"]
    assert fitted(Vectors(), from_arrays(X, Y)).components(samples[0]) == expected
    with pytest.raises(ValueError, match="3 columns"):
        vectors.transform([[1.0, 2.0]])


def test_columns_that_training_did_not_have_are_ignored():
    frame = pd.DataFrame({"size": [1.0, 2, 3, 4] * 2, "colour": ["red", "blue"] * 4})
    vectors = fitted(Vectors(), from_arrays(frame, np.ones((8, 1)), kind="vector"))
    wider = frame.assign(label=1, name=list("abcdefgh"))[["name", "colour", "label", "size"]]
    matrices = [vectors.transform(table).rows("x") for table in (wider, frame)]
    np.testing.assert_array_equal(*matrices)
    with pytest.raises(ValueError, match=r"Expected the columns \['size'\]"):
        vectors.transform(wider.drop(columns="size"))


@pytest.mark.parametrize("scaling", ["standard", "quantile", "centred"])
def test_views_scale_vectors_and_are_restored(scaling):
    dataset = from_arrays(X, Y, kind="vector")
    view = Vectors.views[scaling]().fit(dataset)
    matrix = view.matrix(dataset)
    restored = Vectors.views[scaling]().load_state_dict(view.state_dict())
    np.testing.assert_array_equal(restored.matrix(dataset), matrix)
    assert np.isfinite(matrix).all()
    assert (
        matrix[:, 2] == 0
    ).all()  # Column 2 is constant, and a missing entry counts as the mean.
    if scaling != "quantile":
        length = 2 / 3 if scaling == "standard" else 1
        assert np.square(matrix).sum(axis=1).mean() == pytest.approx(length, rel=1e-4)
    if scaling == "centred":
        assert matrix[:, 1].std() == pytest.approx(10 * matrix[:, 0].std(), rel=1e-4)


def test_steps_scale_for_networks_alone():
    assert [type(step) for step in Vectors.steps()] == [Vectors]
    assert [type(step) for step in Vectors.steps(scaled=True)] == [Vectors, Scale]


def test_the_encoder_makes_components_of_a_row():
    dataset = from_arrays(X[:, :2], Y, kind="vector")
    encoder = Vectors.encoder(dataset, 8, num_components=3)
    assert torch.equal(encoder(dataset[0]).ptr, torch.tensor([0, 3]))
