import logging

import pytest
import torch

from tg_mlc.datasets import NCIFunctionalGroups
from tg_mlc.datasets import nci as module
from tg_mlc.graphs import tree
from tg_mlc.inputs import Fingerprint


def test_the_report_counts_invalid_and_duplicate_rows(nci):
    report = nci.report
    assert (report.num_rows, len(report.invalid), len(report.duplicates)) == (4999, 8, 99)


def test_the_hierarchy_holds_in_names_and_labels(nci):
    assert len(set(nci.label_names)) == 52
    assert {"Amine", "Amine.Primary.Aromatic", "TerminalAlkyne"} <= set(nci.label_names)
    assert len(nci.label_parents) == 40
    index = {name: i for i, name in enumerate(nci.label_names)}
    for child, parent in nci.label_parents:
        assert child.startswith(f"{parent}.")
        assert (nci.y[:, index[child]] <= nci.y[:, index[parent]]).all()
    assert tree(nci.label_parents, nci.label_names, self_loops=False).label_names == nci.label_names


def test_groups_of_known_molecules_are_found():
    y, names = module.functional_groups(["CCO", "Nc1ccccc1", "CC(=O)O", "broken"])
    groups = [{names[i] for i in row.nan_to_num(0).nonzero().flatten()} for row in y]
    assert groups[0] == {"Alcohol", "Alcohol.Aliphatic"}
    assert groups[1] == {"Amine", "Amine.Primary", "Amine.Primary.Aromatic", "Amine.Aromatic"}
    assert groups[2] == {"CarboxylicAcid", "CarboxylicAcid.Aliphatic"}
    assert y[3].isnan().all()


def test_labels_belong_to_their_molecules_and_are_stored(nci, monkeypatch):
    indices = [0, 2500, 4990]  # The file has invalid lines between the three molecules.
    y, _ = module.functional_groups([nci[i].smiles for i in indices])
    assert torch.equal(y, nci.y[indices])
    monkeypatch.setattr(module, "functional_groups", lambda smiles: pytest.fail("processed again"))
    reloaded = NCIFunctionalGroups(nci.root)
    assert torch.equal(reloaded.y, nci.y)
    assert reloaded.report == nci.report


def test_changed_files_of_rdkit_are_reported(monkeypatch, caplog):
    monkeypatch.setitem(module.SHA256, module.HIERARCHY, "0" * 64)
    with caplog.at_level(logging.WARNING):
        module._read_rdkit_file(module.HIERARCHY)
    assert "differs" in caplog.text


def test_missing_files_of_rdkit_are_named(monkeypatch, tmp_path):
    from rdkit import RDConfig

    monkeypatch.setattr(RDConfig, "RDDataDir", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"first_5K\.smi"):
        NCIFunctionalGroups(tmp_path)


def test_each_transform_has_its_own_processed_folder(tmp_path, monkeypatch):
    smiles, y = ["CCO", "CN"], torch.ones(2, 52)
    monkeypatch.setattr(module, "_read_rdkit_file", lambda name: "\n".join(smiles))
    groups = y, [f"group {i}" for i in range(52)]
    monkeypatch.setattr(module, "functional_groups", lambda smiles: groups)
    plain = NCIFunctionalGroups(tmp_path)
    marked = NCIFunctionalGroups(tmp_path, pre_transform=Fingerprint("maccs"))
    assert "maccs" not in plain[0]
    assert "maccs" in marked[0]
    assert "maccs" in NCIFunctionalGroups(tmp_path, pre_transform=Fingerprint("maccs"))[0]
    assert "maccs" not in NCIFunctionalGroups(tmp_path)[0]
