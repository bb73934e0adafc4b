import re
from pathlib import Path

from benchmarks.accuracy.explained_drug import LABEL, NAME, SMILES
from benchmarks.files import read

PAGE = Path(__file__).parents[3] / "docs" / "explanations.md"


def numbers_in(value):
    """Returns all numbers of a result without signs, with two decimals as on the page."""
    if isinstance(value, dict):
        return set().union(*map(numbers_in, value.values()))
    return {f"{abs(value):.2f}"} if isinstance(value, float) else set()


def test_every_number_of_the_section_is_in_the_results():
    section = PAGE.read_text().split("## How to read why a drug gets a label")[1].split("\n## ")[0]
    result = {key: value for key, value in read(NAME).items() if key != "environment"}
    written = set(re.findall(r"\d+\.\d+", section))
    assert len(written) > 10
    assert written <= numbers_in(result)
    assert SMILES in section
    assert LABEL in section


def test_statements_of_the_section_follow_from_the_results():
    result = read(NAME)
    assert result["probability"] > result["threshold"]
    assert min(result["parts"].values()) >= 0
    assert result["largest effect of a label"] < 0.01
    occlusion, absent = result["occlusion"], result["given as absent"]
    present = result["given as present"]
    assert sorted(occlusion, key=occlusion.__getitem__)[-3:] == ["C3", "S7", "N6"]
    assert min(absent, key=absent.__getitem__).startswith("Skin")
    assert max(present, key=present.__getitem__).startswith("Neoplasms")
