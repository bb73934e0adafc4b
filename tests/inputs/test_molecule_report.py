from __future__ import annotations

from tg_mlc.data import DuplicateMolecule, InvalidMolecule, MoleculeReport


def make_report():
    return MoleculeReport(
        num_rows=6,
        invalid=[InvalidMolecule(1, "C1C", "not a valid SMILES")],
        duplicates=[DuplicateMolecule(3, 0, "CC")],
        filtered=[4],
    )


def test_kept_rows_map_samples_to_rows():
    assert make_report().kept_rows == [0, 2, 3, 5]


def test_round_trip_through_plain_values():
    report = make_report()
    assert MoleculeReport.from_dict(report.to_dict()) == report
    assert all(type(entry) is list for entry in report.to_dict()["invalid"])


def test_str_names_rows_and_reasons():
    text = str(make_report())
    assert "6 rows: 4 kept (1 invalid, 1 duplicates, 1 filtered)" in text
    assert "row 1: invalid SMILES 'C1C': not a valid SMILES" in text
    assert "row 3: the molecule of row 0 again" in text


def test_str_shortens_long_lists():
    report = MoleculeReport(40, invalid=[InvalidMolecule(i, "x", "y") for i in range(25)])
    assert "... and 15 more" in str(report)
    assert "row 10:" not in str(report)
