import pytest
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.data.dataset import ArrayDataset, joined
from tg_mlc.data.parts import Blank, Part, has_part, mixed_dataset, part_of, with_part
from tg_mlc.data.samples import Samples

Y = torch.tensor([[1.0], [0.0], [torch.nan], [1.0]])


def graphs(sizes, name):
    """Returns a data set of path graphs with a text each."""
    samples = []
    for size in sizes:
        edges = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        x = torch.full((size, 2), float(size))
        samples.append(Data(x=x, edge_index=edges, y=torch.zeros(1, 1), text=f"{name}{size}"))
    return ArrayDataset(Samples.collate(samples, ["a"], None))


def make(is_present=((1, 1), (0, 1), (1, 0), (1, 1))):
    present = torch.tensor(is_present, dtype=torch.bool)
    base = Samples(Data(y=Y[: len(present)]), None, ["a"], None)
    dataset = mixed_dataset(base, {"left": Part(["l"]), "right": Part(["r"])}, present)
    blank = Blank.of(graphs([2, 3], "l"))
    for column, name in enumerate(("left", "right")):
        sizes = [2 + row + column for row in range(len(present)) if present[row, column]]
        part = graphs(sizes, name[0]) if sizes else part_of(dataset, name)
        dataset = with_part(dataset, name, part, blank)
    return dataset


@pytest.mark.parametrize("rows", [slice(None), [3, 0], [1], [2, 1], []])
def test_a_part_is_a_data_set_of_the_samples_that_have_it(rows):
    dataset = make()[rows]
    left = part_of(dataset, "left")
    assert has_part(dataset, "left").sum() == len(left)
    expected = list(range(4))[rows] if isinstance(rows, slice) else rows
    expected = [row for row in expected if row != 1]
    assert [sample.text for sample in left] == [f"l{2 + row}" for row in expected]
    assert [sample.x.size(0) for sample in left] == [2 + row for row in expected]
    if expected:
        torch.testing.assert_close(left.y, Y[expected], equal_nan=True)


def test_batches_count_the_nodes_of_each_part():
    batch = Batch.from_data_list(list(make()))
    assert batch.part_sizes.tolist() == [[2, 3], [-1, 4], [4, -1], [5, 6]]
    for column, sizes in enumerate(([2, 4, 5], [3, 4, 6])):
        part = batch.part(("left", "right")[column], column)
        assert (part.num_graphs, part.ptr.diff().tolist()) == (3, sizes)
        # The edges of a part stay within its samples.
        assert torch.equal(*part.batch[part.edge_index])
        assert part.edge_index.size(1) == sum(sizes) - 3


@pytest.mark.parametrize("present", [[(1, 1)], [(0, 1)], [(0, 1), (0, 1)]])
def test_samples_that_all_lack_a_part_keep_its_attributes(present):
    dataset, whole = make(present), make()
    assert {*dataset[0].keys()} == {*whole[0].keys()}
    assert len(part_of(dataset, "left")) == sum(row[0] for row in present)
    both = joined([dataset, whole])
    assert both.parts.keys() == whole.parts.keys()
    names = [sample["right.text"] for sample in both]
    assert names == [sample["right.text"] for part in (dataset, whole) for sample in part]
    assert len(Batch.from_data_list(list(both))["right.text"]) == len(present) + 4


def test_a_new_part_replaces_the_old_one():
    dataset = make()
    changed = with_part(dataset, "left", graphs([9, 8, 7], "n"), Blank.of(graphs([2], "l")))
    assert [sample.text for sample in part_of(changed, "left")] == ["n9", "n8", "n7"]
    assert changed.rows("part_sizes")[:, 0].tolist() == [9, -1, 8, 7]
    assert [sample.text for sample in part_of(dataset, "left")] == ["l2", "l4", "l5"]
