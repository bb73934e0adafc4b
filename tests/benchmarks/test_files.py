import json
from operator import itemgetter

import joblib
import pytest

from benchmarks import files
from benchmarks.report.writing import machine


def test_tracked_results_are_replaced_on_request_only(results, own_runs):
    (results / "one.json").write_text("tracked")
    assert files.write_results("one", {"a": 1}) == own_runs / "one.json"
    assert (results / "one.json").read_text() == "tracked"
    files.write_results("one", {"a": 2}, replace=True)
    assert json.loads((results / "one.json").read_text())["a"] == 2
    assert json.loads((own_runs / "one.json").read_text())["a"] == 1


def test_reduced_runs_cannot_replace_tracked_results():
    with pytest.raises(SystemExit, match=r"whole run with --replace \(got --max_epochs\)"):
        files.check_replacement(True, max_epochs=3, quick=False)
    files.check_replacement(True, quick=False)
    files.check_replacement(False, quick=True)


def test_a_replacement_needs_all_tracked_runs(results):
    def seed(run):
        return int(run["seed"])

    files.check_kept("one", seed, {1}, replace=True)
    files.write_results("one", {"runs": [{"seed": 1}, {"seed": 2}]}, replace=True)
    files.check_kept("one", seed, {1}, replace=False)
    files.check_kept("one", seed, {1, 2, 3}, replace=True)
    message = r"all rows and seeds of .* \(1 of them would be lost, such as 2\); run them too"
    with pytest.raises(SystemExit, match=message):
        files.check_kept("one", seed, {1, 3}, replace=True)


def collect(seeds, make=lambda seed: [{"seed": seed}], **options):
    """Returns the seeds in the file of results, and the seeds that this call ran."""
    called = []

    def call(seed):
        called.append(seed)
        return make(seed)

    content = {"a": 1, "seeds": list(seeds), **options.pop("content", {})}
    calls = {seed: joblib.delayed(call)(seed) for seed in seeds}
    path = files.collect("one", content, calls, itemgetter("seed"), str, **options)
    return [run["seed"] for run in json.loads(path.read_text())["runs"]], called


def test_a_comparison_continues_from_existing_results(results, own_runs):
    assert collect([1]) == ([1], [1])
    assert collect([1, 2]) == ([1, 2], [2])
    assert collect([2]) == ([2], [])
    assert collect([1, 2], replace=True) == ([1, 2], [1, 2])  # Files in runs/ are not used.
    (own_runs / "one.json").unlink()
    assert collect([1, 2, 3]) == ([1, 2, 3], [3])  # Tracked results are used.
    assert collect([3, 1], keeps=lambda run: run["seed"] == 1) == ([1, 3], [3])


def test_processors_of_earlier_runs_are_recorded(own_runs, monkeypatch):
    def processors():
        content = json.loads((own_runs / "one.json").read_text())
        return [*content.get(files.OTHERS, []), content["environment"]["processor"]]

    cases = [([1], "A", ["A"]), ([1, 2], "B", ["A", "B"]), ([1, 2, 3], "A", ["B", "A"])]
    for seeds, name, expected in cases:
        monkeypatch.setattr(files, "_processor", lambda name=name: name)
        collect(seeds)
        assert processors() == expected
    assert machine(json.loads((own_runs / "one.json").read_text())).startswith("B and A; torch")
    collect([1], content={"a": 2})
    assert processors() == ["A"]  # All runs are new.


@pytest.mark.parametrize(
    ("changes", "repeated"),
    [
        ({"a": 2}, True),
        ({"b": 1}, True),
        ({"part": {"x": 2}}, True),
        ({"part": {"y": 2}}, False),
        ({}, False),
    ],
)
def test_runs_with_another_description_are_repeated(changes, repeated, own_runs, capsys):
    collect([1], content={"part": {"x": 1}})
    assert collect([1], content={"part": {"x": 1}, **changes}) == ([1], [1] if repeated else [])
    assert ("repeated" in capsys.readouterr().out) is repeated
    if not repeated:
        part = json.loads((own_runs / "one.json").read_text())["part"]
        assert part == {"x": 1, **changes.get("part", {})}


@pytest.mark.usefixtures("own_runs")
def test_runs_of_another_version_are_repeated(monkeypatch):
    collect([1])
    monkeypatch.setattr("tg_mlc.__version__", "another")
    assert collect([1]) == ([1], [1])
    monkeypatch.setattr("tg_mlc.__version__", "another.dev1")
    assert collect([1]) == ([1], [])


def test_finished_runs_are_kept(own_runs):
    def make(seed):
        if seed == 2:
            raise RuntimeError("stopped early")
        return [{"seed": seed}]

    with pytest.raises(RuntimeError, match="stopped early"):
        collect([1, 2], make)
    assert json.loads((own_runs / "one.part").read_text())["runs"] == [{"seed": 1}]
    assert collect([1, 2]) == ([1, 2], [2])
    content = json.loads((own_runs / "one.json").read_text())
    assert content["environment"]["command"].startswith("python ")
    assert not (own_runs / "one.part").exists()


@pytest.mark.parametrize("root", [["--root", "a folder"], ["--root=a folder"], []])
def test_commands_are_recorded_without_folders_of_the_machine(root):
    words = ["python3", "-m", "benchmarks.accuracy.auto", *root, "--seeds", "5"]
    assert files.command_of(words) == "python -m benchmarks.accuracy.auto --seeds 5"
    serving = ["python3", "-m", "benchmarks.speed.serving", "--model", "/home/me/models/drugs"]
    command = files.command_of([*serving, "--rounds", "3"])
    assert command == "python -m benchmarks.speed.serving --model drugs --rounds 3"
