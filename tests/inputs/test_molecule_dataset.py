import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.loader import DataLoader

from tg_mlc.data import MoleculeDataset, MoleculeReport
from tg_mlc.inputs import molecule_dataset as module
from tg_mlc.inputs.molecule_dataset import DuplicateMolecule, InvalidMolecule

TABLE = """name,smiles,toxic,bitter
ethanol,CCO,0,1
broken,C1CC,1,1
salt,[Na+].[Cl-],0,
lithium,[Li+],1,0
again,OCC,,
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def read(table, **options):
    return MoleculeDataset.from_csv(table, "smiles", ["toxic", "bitter"], **options)


def test_a_table_gives_samples_labels_and_a_report(table):
    with pytest.warns(UserWarning, match=r"1 of 5 rows cannot be read .* row 1 .*'C1CC': "):
        dataset = read(table)
    assert dataset.label_names == ["toxic", "bitter"]
    assert dataset.num_labels == dataset.num_classes == 2
    assert dataset[0].smiles == "CCO"
    assert dataset.y.nan_to_num(-1).tolist() == [[0, 1], [0, -1], [1, 0], [-1, -1]]
    report = dataset.report
    assert report.num_rows == 5
    assert [(entry.row, entry.smiles) for entry in report.invalid] == [(1, "C1CC")]
    assert report.duplicates == [DuplicateMolecule(4, 0, "CCO")]
    assert report.kept_rows == [0, 2, 3, 4]
    assert torch.equal(dataset[[2, 0]].y, dataset.y[[2, 0]])
    assert dataset[1:3].label_names == dataset.label_names
    assert dataset[torch.tensor([True, False, False, True])].y.shape == (2, 2)


def test_single_atoms_and_fragments_can_be_batched(table):
    batch = next(iter(DataLoader(read(table), batch_size=4)))
    assert (batch.num_graphs, batch.y.shape, batch.edge_index.shape[0]) == (4, (4, 2), 2)
    assert batch.batch.bincount().tolist() == [3, 2, 1, 3]


def test_one_molecule_in_any_notation_is_a_data_set():
    for text in ("CCO", "InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3"):
        dataset = MoleculeDataset.from_smiles([text], [[1.0, math.nan]])
        assert dataset.y.shape == (1, 2)
        assert dataset.label_names == ["label_0", "label_1"]
        assert dataset[0].smiles == "CCO"


def test_transforms_and_filters_are_applied(table):
    def shift(data):
        data.shifted = data.x + 1
        return data

    dataset = read(table, pre_transform=shift, pre_filter=lambda data: data.num_nodes > 1)
    assert len(dataset) == 3
    assert dataset.report.filtered == [3]
    assert dataset.report.kept_rows == [0, 2, 4]
    assert torch.equal(dataset[0].shifted, dataset[0].x + 1)
    assert "shifted" in read(table, transform=shift)[0]


def test_root_keeps_the_graphs(table, tmp_path, monkeypatch):
    first = read(table, root=tmp_path / "kept")
    monkeypatch.setattr(
        module, "parse_smiles", lambda smiles: pytest.fail("the graphs were made again")
    )
    second = read(table, root=tmp_path / "kept")
    assert second.report == first.report
    assert torch.equal(second[1].x, first[1].x)


def test_root_makes_new_graphs_when_something_changed(table, tmp_path, monkeypatch):
    table.write_text(TABLE.replace("C1CC", "C1CC1"))
    read(table, root=tmp_path)
    calls, molecule_samples = [], module.molecule_samples

    def record(*args, **options):
        calls.append(args)
        return molecule_samples(*args, **options)

    monkeypatch.setattr(module, "molecule_samples", record)
    dataset = MoleculeDataset.from_csv(table, "smiles", ["bitter"], root=tmp_path)
    assert dataset.label_names == ["bitter"]
    read(table, root=tmp_path, on_error="raise")
    read(table, root=tmp_path, force_reload=True)
    table.write_text(TABLE)
    assert len(read(table, root=tmp_path)) == 4
    assert len(calls) == 4


def test_a_damaged_file_in_root_asks_for_force_reload(table, tmp_path):
    read(table, root=tmp_path)
    (path,) = (tmp_path / "processed").iterdir()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RuntimeError, match="force_reload=True"):
        read(table, root=tmp_path)
    assert len(read(table, root=tmp_path, force_reload=True)) == 4


@pytest.mark.parametrize(
    ("smiles", "y", "options", "message"),
    [
        (["C", "CC"], [[1.0]], {}, r"shape \[2, 1\].*got \[1, 1\]"),
        (["C"], [[0.5]], {}, r"got 0.5 in row 0, column 0: label 'label_0'"),
        (["C"], [[1.0]], {"label_names": ["a", "b"]}, r"each of the 1 columns \(got 2 names\)"),
        (["C"], [[1.0, 0.0]], {"label_names": ["a", "a"]}, r"to be unique \(got \['a'\]"),
        (["C"], [[1.0]], {"label_names": "a"}, "list of names"),
        (None, [[1.0]], {}, r"'smiles' to be a list of strings \(got NoneType\)"),
        ("CCO", [[1.0]], {}, r"'smiles' to be a list of strings \(got str\)"),
        (pd.DataFrame({"smiles": ["C"]}), [[1.0]], {}, r"\(got DataFrame\); choose a column"),
        ([None], [[1.0]], {"on_error": "raise"}, r"row 0 \(got 'None': not a string"),
        (["C", "C("], [[1.0]] * 2, {"on_error": "raise"}, r"row 1 .*valid SMILES.*on_error='skip'"),
        (["C"], [[1.0]], {"on_error": "ignore"}, "'on_error' to be one of skip, raise"),
        (["C1", ""], [[1.0], [0.0]], {}, "at least one molecule"),
        ([], [], {}, "Expected"),
    ],
)
def test_wrong_arguments_are_refused(smiles, y, options, message):
    with pytest.raises(ValueError, match=message):
        MoleculeDataset.from_smiles(smiles, y, **options)


def test_frames_may_have_missing_cells():
    columns = {"smiles": ["CCO", None, "C", np.nan], "b": [1, 1, 0, 0], "a": [0, 0, np.nan, 1]}
    frame = pd.DataFrame(columns)
    dataset = MoleculeDataset.from_smiles(frame["smiles"], frame[["b", "a"]])
    assert dataset.label_names == ["b", "a"]
    assert dataset.y.nan_to_num(-1).tolist() == [[1, 0], [0, -1]]
    reasons = {entry.row: entry.reason for entry in dataset.report.invalid}
    assert reasons == {1: "not a string", 3: "not a string"}
    with pytest.raises(ValueError, match="rows in one order"):
        MoleculeDataset.from_smiles(frame["smiles"], frame[["b"]].iloc[::-1])


class MinNodes:
    def __init__(self, smallest):
        self.smallest = smallest

    def __call__(self, data):
        return data.num_nodes >= self.smallest


def test_graphs_are_kept_for_filter_objects_not_functions(table, tmp_path):
    for smallest, num_molecules in ((2, 3), (3, 2), (2, 3)):
        assert len(read(table, root=tmp_path, pre_filter=MinNodes(smallest))) == num_molecules
    assert len(list((tmp_path / "processed").iterdir())) == 2
    for keep, num_molecules in (
        (lambda data: data.num_nodes > 1, 3),
        (lambda data: data.num_nodes > 2, 2),
    ):
        assert len(read(table, root=tmp_path, pre_filter=keep)) == num_molecules
    assert len(list((tmp_path / "processed").iterdir())) == 2


def test_there_is_no_progress_bar_without_a_terminal(capfd):
    MoleculeDataset.from_smiles(["C"] * 400, [[1.0]] * 400)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.slow
def test_clintox_is_read(real_file):
    dataset = MoleculeDataset.from_csv(real_file("clintox/raw/clintox.csv"), "smiles")
    assert dataset.label_names == ["FDA_APPROVED", "CT_TOX"]
    assert dataset.report.num_rows == 1484
    assert len(dataset) + len(dataset.report.invalid) == 1484
    assert 1470 <= len(dataset) <= 1484
    assert {entry.row for entry in dataset.report.invalid} >= {7}


def test_tox21_is_read(real_file, tmp_path):
    path = real_file("tox21/raw/tox21.csv.xz")
    with pytest.raises(ValueError, match=r"'mol_id'.*choose other columns"):
        MoleculeDataset.from_csv(path, "smiles")
    smiles, y, names = module.read_molecules(path, "smiles", ["NR-AR", "NR-AhR", "SR-p53"])
    smiles, y, total = smiles[1200:1500], y[1200:1500], len(smiles)
    dataset = MoleculeDataset.from_smiles(smiles, y, names)
    assert total == 7831
    assert y.isnan().any(dim=0).all()
    assert [entry.row for entry in dataset.report.invalid] == [122]
    assert dataset.y.isnan().sum() == y[dataset.report.kept_rows].isnan().sum()


def test_reports_name_skipped_rows_and_are_restored():
    invalid, copy = InvalidMolecule(1, "C1C", "not a valid SMILES"), DuplicateMolecule(3, 0, "CC")
    report = MoleculeReport(6, [invalid], [copy], [4])
    assert report.kept_rows == [0, 2, 3, 5]
    assert MoleculeReport.from_dict(report.to_dict()) == report
    assert all(type(entry) is list for entry in report.to_dict()["invalid"])
    assert str(report).splitlines() == [
        "6 rows: 4 kept (1 invalid, 1 duplicates, 1 filtered)",
        "  row 1: invalid SMILES 'C1C': not a valid SMILES",
        "  row 3: same molecule as row 0",
    ]
    text = str(MoleculeReport(40, invalid=[InvalidMolecule(i, "x", "y") for i in range(25)]))
    assert "... and 15 more" in text
    assert "row 10:" not in text
