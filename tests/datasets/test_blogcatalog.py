import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from torch_geometric.transforms import Constant

from tg_mlc.datasets import BlogCatalog
from tg_mlc.datasets.downloads import RawFile


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Returns a folder with a published file: three bloggers in a path and two groups."""
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    monkeypatch.setattr(BlogCatalog, "files", (RawFile("blogcatalog.mat"),))
    (tmp_path / "raw").mkdir()
    network = sp.csc_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float))
    group = sp.csc_matrix(np.array([[1, 0], [1, 1], [0, 0]], dtype=float))
    scipy.io.savemat(tmp_path / "raw" / "blogcatalog.mat", {"network": network, "group": group})
    return tmp_path


def test_the_data_set_is_one_graph_with_labels(small):
    dataset = BlogCatalog(small)
    (data,) = dataset
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.y.tolist() == dataset.y.tolist() == [[1, 0], [1, 1], [0, 0]]
    assert (data.num_nodes, dataset.label_names) == (3, ["group 1", "group 2"])
    # A second call reads the stored file.
    assert BlogCatalog(small)[0].to_dict().keys() == data.to_dict().keys()
    assert BlogCatalog(small, pre_transform=Constant())[0].x.shape == (3, 1)
