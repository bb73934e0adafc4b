import pytest

from tg_mlc.inputs.label_columns import find_labels

HEADER = ["smiles", "NR-AR", "NR-ER", "SR-p53", "a*"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["SR-p53"], ["SR-p53"]),
        (["NR-*"], ["NR-AR", "NR-ER"]),
        (["?R-?R", "SR-*"], ["NR-AR", "NR-ER", "SR-p53"]),
        (["SR-p53", "rest"], ["SR-p53", "NR-AR", "NR-ER", "a*"]),
        (["a*"], ["a*"]),  # An equal name wins over a pattern.
        (["NR-*", "NR-AR"], ["NR-AR", "NR-ER"]),
        (["SR-p53", "SR-p53"], ["SR-p53", "SR-p53"]),  # The reader refuses repeated names.
        (["missing"], ["missing"]),  # The reader refuses missing names.
    ],
)
def test_names_patterns_and_the_rest_are_found(labels, expected):
    assert find_labels(labels, HEADER, ["smiles"]) == expected


@pytest.mark.parametrize(
    ("labels", "inputs", "message"),
    [
        (["XR-*"], ["smiles"], r"'XR-\*' \(got none; near: '.R-"),
        (["smi*"], ["smiles"], r"'smi\*' \(got none; near: 'smiles'"),
        (["rest"], HEADER, r"'rest' \(got none"),
        (["rest"], [], "inputs to be named, as 'label_columns' take the rest"),
    ],
)
def test_patterns_without_a_column_are_refused(labels, inputs, message):
    with pytest.raises(ValueError, match=message):
        find_labels(labels, HEADER, inputs)
