import pytest

from benchmarks.report.explained_drug import draw

pytest.importorskip("rdkit")


def test_atoms_and_labels_have_the_color_of_their_sign():
    labels = {"a": 0.5, "b": -2.0}
    result = {"smiles": "CCO", "label": "x", "probability": 0.7, "threshold": 0.4}
    result |= {"occlusion": {"C0": 0.1, "C1": -0.4, "O2": 0.2}, "given as present": labels}
    result["given as absent"] = {"c": 1.0}
    left, right = draw(result).axes
    circles = [(patch.get_facecolor()[:3], patch.radius) for patch in left.patches]
    colors = [color for color, _ in circles]
    assert colors[0] == colors[2] != colors[1]
    assert circles[1][1] > circles[2][1] > circles[0][1]
    assert [text.get_text() for text in left.texts] == ["OH"]
    assert [tick.get_text() for tick in right.get_yticklabels()] == ["b", "c: absent", "a"]
    assert [bar.get_width() for bar in right.patches] == [-2.0, 1.0, 0.5]
