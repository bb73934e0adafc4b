from __future__ import annotations

import csv
import errno
import os
import shlex
import subprocess
import sys
from datetime import timedelta
from importlib.metadata import entry_points
from types import ModuleType

import numpy as np
import pytest

import tg_mlc
from tests.cli.conftest import run
from tests.fresh import run_python
from tg_mlc import cli
from tg_mlc._files import sha256
from tg_mlc.data.records import Records
from tg_mlc.datasets import registry
from tg_mlc.datasets.base import PublishedTable
from tg_mlc.datasets.card import DatasetCard
from tg_mlc.datasets.downloads import RawFile
from tg_mlc.datasets.registry import RegistryEntry

CONTENT = b"a,b,calm\n1,2,1\n3,4,0\n"


class Toy(PublishedTable):
    files = (RawFile("toy.csv", (sha256(CONTENT),), ("http://127.0.0.1:9/toy.csv",), "toy/raw"),)

    def read(self):
        [content] = self.read_raw().values()
        table = np.loadtxt(content.decode().splitlines(), delimiter=",", skiprows=1)
        return Records(table[:, :2], table[:, 2:], ["calm"])


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """Registers a data set whose file lies only in the data folder."""
    module = ModuleType("toy_data")
    module.Toy = Toy
    shared = tmp_path / "shared" / "toy" / "raw" / "toy.csv"
    shared.parent.mkdir(parents=True)
    shared.write_bytes(CONTENT)
    monkeypatch.setitem(sys.modules, "toy_data", module)
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "shared"))
    recorded = DatasetCard.of(Toy(tmp_path / "once")).statistics
    entries = registry.catalogue()

    def catalogue():
        facts = {"title": "two samples", "maker": "toy_data:Toy", "files": (Toy.files,), **recorded}
        return {**entries, "toy": RegistryEntry(name="toy", **facts)}

    monkeypatch.setattr(registry, "catalogue", catalogue)
    return recorded


def test_version_and_help_are_printed(capsys):
    texts = {"version": f"tg-mlc {tg_mlc.__version__}", "help": "usage: tg-mlc"}
    for option, text in texts.items():
        with pytest.raises(SystemExit) as stop:
            run(f"--{option}")
        assert stop.value.code == 0
        assert text in capsys.readouterr().out


def test_list_and_cards_need_no_files(capsys):
    assert run("data list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == registry.names()
    assert "1,427 x 27" in lines[0]
    assert len({line.index(" x ") for line in lines}) == 1
    assert run("data info bibtex") == 0
    assert capsys.readouterr().out == f"{registry.card('bibtex')}\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("info bibtexx", "Expected the name of a data set, one of sider, "),
        ("get bibtexx", "Expected the name of a data set, one of sider, "),
        ("info yeast --root none", "which is not a folder"),
    ],
)
def test_unknown_names_and_folders_are_refused(command, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(f"data {command}") == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_get_and_info_compare_statistics_with_the_record(capsys, tmp_path, toy):
    root = tmp_path / "data"
    assert run("data get toy", root=root) == 0
    assert capsys.readouterr().out == f"{registry.card('toy')}\nAs recorded.\n"
    assert (root / "toy" / "raw" / "toy.csv").read_bytes() == CONTENT
    assert run("data info toy", root=root) == 0
    toy["samples"] = 3
    assert run("data info toy", root=root) == 1
    assert "Not as recorded:\nsamples: 2 (recorded: 3)" in capsys.readouterr().out
    toy["origin"] = "reported"
    assert run("data info toy", root=root) == 0
    assert "nothing to compare with" in capsys.readouterr().out


def test_data_sets_without_files_download_nothing(capsys, tmp_path):
    for command in ("get", "info"):
        assert run(f"data {command} planted", root=tmp_path) == 0
        printed = capsys.readouterr().out
        assert printed.endswith("no file is downloaded or written.\nAs recorded.\n")
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_gives_a_message(capsys, tmp_path, toy, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt  # Ctrl-C raises this error.

    monkeypatch.setattr(Toy, "read", interrupted)
    assert run("data get toy", root=tmp_path) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "tg-mlc: interrupted; run it again"


def test_a_failed_download_gives_a_message(capsys, tmp_path, toy, monkeypatch):
    monkeypatch.delenv("TG_MLC_DATA")
    assert run("data get toy", root=tmp_path) == 1
    error = capsys.readouterr().err
    assert "tg-mlc: Expected one source of 'toy.csv' to be reachable" in error
    assert "http://127.0.0.1:9/toy.csv: ConnectionError" in error
    assert "Place 1 file by hand" in error
    assert f"'{tmp_path / 'toy' / 'raw' / 'toy.csv'}' or '$TG_MLC_DATA/toy/raw/toy.csv'" in error
    assert "Traceback" not in error


def test_a_wrong_file_gives_a_message(capsys, tmp_path, toy):
    raw = tmp_path / "toy" / "raw"
    raw.mkdir(parents=True)
    (raw / "toy.csv").write_bytes(b"<html>")
    assert run("data get toy", root=tmp_path) == 1
    error = capsys.readouterr().err
    assert "has a different SHA-256 than expected. Expected SHA-256" in error
    assert "run again to get the right file" in error
    assert not list((tmp_path / "toy").glob("processed/data.pt"))
    assert run("data get toy", root=tmp_path) == 0  # The file comes from the data folder.


def test_info_downloads_nothing(capsys, tmp_path, toy, monkeypatch):
    monkeypatch.setattr(Toy, "download", lambda self: pytest.fail("downloaded"))
    assert run("data info toy", root=tmp_path) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tg-mlc: Expected 'toy' to be in '{tmp_path}' (got no '")
    assert error.endswith(f"get it with: tg-mlc data get toy --root {tmp_path}\n")
    assert not (tmp_path / "toy").exists()


@pytest.mark.parametrize("command", ["get", "info"])
def test_a_damaged_file_gives_a_message_that_suggests_force(capsys, tmp_path, toy, command):
    root = tmp_path / "data"
    run("data get toy", root=root)
    processed = root / "toy" / "processed" / "data.pt"
    processed.write_bytes(processed.read_bytes()[:-100])
    capsys.readouterr()
    assert run(f"data {command} toy", root=root) == 1
    error = capsys.readouterr().err
    assert f"tg-mlc: Expected '{processed}' to be a processed data set of this version" in error
    assert f"run 'tg-mlc data get toy --root {root} --force' to build it again" in error
    assert "force_reload" not in error
    assert run("data get toy --force", root=root) == 0
    assert "As recorded." in capsys.readouterr().out
    assert run("data info toy", root=root) == 0


def test_internal_errors_show_a_traceback(tmp_path, toy, monkeypatch):
    def break_down(self):
        raise RuntimeError("an operator is broken")

    monkeypatch.setattr(Toy, "read", break_down)
    with pytest.raises(RuntimeError, match="an operator is broken"):
        run("data get toy", root=tmp_path)


def test_a_missing_extra_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonargparse", None)
    assert run("data list") == 1
    assert 'pip install "tg_mlc[data]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "line_buffering"), [("data list", False), ("data list", True), ("--help", False)]
)
def test_a_closed_output_gives_no_message(command, line_buffering, capsys, monkeypatch):
    read, write = os.pipe()
    os.close(read)
    stdout = os.fdopen(write, "w")
    stdout.reconfigure(line_buffering=line_buffering)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert run(command) == 141
    stdout.close()  # Python closes stdout at exit.
    assert capsys.readouterr().err == ""


def test_other_write_errors_give_a_message(capsys, monkeypatch):
    def fill_up():
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(registry, "names", fill_up)
    assert run("data list") == 1
    assert capsys.readouterr().err == "tg-mlc: [Errno 28] No space left on device\n"


def test_the_command_line_starts_without_torch():
    code = "import sys, tg_mlc.cli; print('torch' in sys.modules)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "False\n"  # PyTorch takes seconds to import.


def test_the_package_runs_as_a_module():
    code = """
import runpy
try:
    runpy.run_module("tg_mlc", run_name="__main__", alter_sys=True)
except SystemExit as stop:
    print(stop.code)
"""
    printed, errors = run_python(code, ["data", "info", "nothing"])
    assert printed == "1\n"
    assert "Traceback" not in errors


def test_the_command_is_installed():
    scripts = entry_points(group="console_scripts", name="tg-mlc")
    if not scripts:
        pytest.skip("tg_mlc is not installed here, or was before the command existed")
    assert next(iter(scripts)).load() is cli.main


@pytest.fixture
def table(tmp_path):
    """Returns a function that writes a table, given a function from row numbers to rows."""

    def write(header, row, number=12):
        path = tmp_path / "a.csv"
        path.write_text("\n".join([header, *map(row, range(number))]))
        return path

    return write


def test_data_check_prints_the_roles_of_columns(table, tmp_path, capsys):
    row = "{0},{0},{1},{2},1".format
    path = table("id,price,colour,odd,calm", lambda i: row(i, "rb"[i % 2], i % 3 or "x"))
    schema = tmp_path / "schema.yaml"
    assert run("data check --labels calm --ignore price", csv=path, write=schema) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "12 rows of 5 columns."
    roles = ["id id", "price ignored", "colour category", "odd refused", "calm label"]
    assert [" ".join(line.split()[:2]) for line in lines[2:7]] == roles
    assert max(map(len, lines[1:7])) < 100
    assert lines[7].startswith("Refused: Expected numbers, or blank (missing), in row 0 (line 2)")
    assert lines[7].endswith("or leave it out: --ignore 'odd'.")
    assert run("train --labels calm", csv=path, schema=schema, out=tmp_path / "model") == 1
    assert "another role of column 'odd' (got 'refused'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cells", "role", "note"),
    [
        ([[float(i), 1.0] for i in range(12)], "refused", "one value in every cell"),
        ([{"a": i} for i in range(12)], "refused", "one value in every cell"),
        ([*map(float, range(11)), float("inf")], "refused", "32 bits can hold in row 11"),
        ([f"+49 (170) {7 * i} {i * i:04d}" for i in range(12)], "refused", "or texts that repeat"),
        ([timedelta(hours=26 * i + 2) for i in range(12)], "number", "durations, read as days"),
    ],
    ids=["lists", "objects", "infinity", "telephone", "durations"],
)
def test_typed_tables_are_checked_as_training_reads_them(tmp_path, capsys, cells, role, note):
    pandas, path = pytest.importorskip("pandas"), tmp_path / "a.parquet"
    pytest.importorskip("pyarrow")
    columns = {"what": cells, "size": [i * i for i in range(12)], "calm": [0, 1] * 6}
    pandas.DataFrame(columns).to_parquet(path)
    assert run("data check --labels calm", csv=path) == (role == "refused")
    printed = capsys.readouterr().out
    assert printed.splitlines()[2].split()[:2] == ["what", role]
    assert note in printed
    if role == "refused":
        assert run("train --labels calm", csv=path, out=tmp_path / "model") == 1
        assert note in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["Age (years)", "it's", 'a "b"', "a, b", "back\\slash", "x]", "größe"]
)
def test_the_options_named_in_a_message_solve_the_problem(tmp_path, capsys, name):
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        rows = [[i * i, "x" if i == 5 else i * i % 7, i % 2] for i in range(12)]
        csv.writer(file).writerows([["size", name, "calm"], *rows])
    assert run("train --labels calm --seconds 0", csv=path, out=tmp_path / "model") == 1
    error = capsys.readouterr().err
    ignore = shlex.split(error[error.index("--ignore") :])[1]
    assert run("data check", csv=path, ignore=ignore) == 0
    assert "ignored  as specified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (
            ["C" * i + end for i in range(1, 7) for end in ("O", "N")],
            "molecule  perhaps inputs: pass --smiles 'what'",
        ),
        (["CO", "CN", "C"], "category"),  # Three values are too few to tell.
        ([f"town {i}" for i in range(12)], "category"),
    ],
    ids=["molecules", "few", "names"],
)
def test_categories_that_are_all_molecules_are_named(table, capsys, values, line):
    pytest.importorskip("rdkit")
    path = table("what,calm", lambda i: f"{values[i % len(values)]},{i % 2}", 4 * len(values))
    assert run("data check --labels calm", csv=path) == 0
    assert line in capsys.readouterr().out.splitlines()[2]


def test_likely_labels_are_listed_and_patterns_match_labels(table, capsys):
    row = "{0},{1},{2},{3}".format
    path = table("size,a-x,a-y,b", lambda i: row(i * i, i % 2, "" if i % 3 else i // 3 % 2, 0))
    assert run("data check", csv=path) == 0
    assert "Perhaps --labels, as all cells are 0, 1 or blank: a-x, a-y." in capsys.readouterr().out
    names_of = {"a-*": ["a-x", "a-y"], "b,a-?": ["a-x", "a-y", "b"], "rest": ["a-x", "a-y", "b"]}
    for labels, names in names_of.items():
        assert run("data check --features size", csv=path, labels=labels) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines if " label " in line] == names
    assert run("data check", csv=path, labels="c-*") == 1
    assert "'c-*' (got none; near: 'a-" in capsys.readouterr().err


def test_a_schema_is_written_changed_and_used(table, tmp_path, capsys):
    schema = tmp_path / "schema.yaml"
    path = table("zone,size,calm", lambda i: f"{10 * (i % 3)},{i * i},{i % 2}", 30)
    assert run("data check --labels calm", csv=path, write=schema) == 0
    text = schema.read_text()
    assert "role: number" in text
    schema.write_text(text.replace("name: size\n  role: number", "name: size\n  role: ignored"))
    assert run("data check", csv=path, schema=schema) == 0
    assert "size    ignored" in capsys.readouterr().out
    train = "train --labels calm --seconds 0"
    assert run(train, csv=path, schema=schema, out=tmp_path / "model") == 0
    assert tg_mlc.load(tmp_path / "model").facts["inputs"]["columns"] == ["zone"]
    assert run(train, csv=path, schema="nosuch.yaml", out=tmp_path / "none") == 1
    assert "Expected 'nosuch.yaml' to be a schema" in capsys.readouterr().err
    schema.write_text("columns: 3")
    assert run(train, csv=path, schema=schema, out=tmp_path / "other") == 1
    assert "to be a schema of 'tg-mlc data check --write'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--ignore zone", ["size"]),
        ("--id Size", ["zone"]),
        ("--features Size", "'schema' or the names of columns of inputs"),
        ("--categorical zone", "change the roles in the schema"),
        ("--ignore zone,Size", "Expected a column of inputs"),
    ],
)
def test_options_override_a_schema_or_are_refused(table, tmp_path, capsys, options, expected):
    schema, row = tmp_path / "schema.yaml", "{0},{1},{2},{3}".format
    path = table("zone,Size,calm,sad", lambda i: row(10 * (i % 3), i * i, i % 2, i % 3 // 2), 30)
    # Without --labels, columns of labels become numbers.
    assert run("data check", csv=path, write=schema) == 0
    schema.write_text(schema.read_text().replace("name: Size", "name: size"))
    train = f"train --labels calm,sad --seconds 0 {options}"
    status = run(train, csv=path, schema=schema, out=tmp_path / "model")
    if isinstance(expected, str):
        assert (status, expected in capsys.readouterr().err) == (1, True)
    else:
        columns = tg_mlc.load(tmp_path / "model").facts["inputs"]["columns"]
        assert (status, [name.lower() for name in columns]) == (0, expected)


def test_a_warning_is_printed_once(table, capsys):
    for _ in range(2):
        path = table("fold,calm", lambda i: f"{i % 3},{i % 2}")
        assert run("data check --labels calm", csv=path) == 0
        assert capsys.readouterr().err.count("to split or weight the rows") == 1


def test_data_check_warns_of_labels_that_programs_have_changed(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("text,tags\nred,x;2-Mar\nblue,x\u200b;y\ngreen,x;y;z\n", encoding="utf-8")
    options = "data check --text text --labels tags --label_separator ;"
    assert run(options, csv=path) == 0
    printed = capsys.readouterr().err
    assert "Labels look like dates or decimals" in printed
    assert "Names with invisible characters" in printed


def test_data_check_reads_arff(tmp_path, capsys):
    path, schema = tmp_path / "a.arff", tmp_path / "schema.yaml"
    attributes = [f"x{i} numeric" for i in range(40)]
    attributes += ["colour {red,green,blue}", "name string", "calm {0,1}"]
    lines = [f"@attribute {attribute}" for attribute in attributes]
    row = ",".join([*["1"] * 40, "red", "ann", "1"])
    data = ["@data", row, row.replace("1", "?", 1)]
    path.write_text("\n".join(["@relation 'toy: -C -1'", *lines, *data]))
    assert run("data check", arff=path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 rows of 43 attributes."
    names = ["x0", "x1", "x2", "(37", "colour", "name", "calm"]
    assert [line.split()[0] for line in lines[2:]] == names
    assert lines[2].split()[-2:] == ["1", "1"]
    assert "3 values: red, green, blue" in lines[6]
    assert "1 values: ann" in lines[7]
    assert "label" in lines[8]
    assert run("data check --ignore x0", csv=path, write=schema) == 0
    assert capsys.readouterr().out.splitlines()[2].split()[:2] == ["x0", "ignored"]
    assert "name: colour" in schema.read_text()
    for options in ("--delimiter ;", "--text name", "--ignore nosuch", "--max_lost 0.5"):
        assert run(f"data check {options}", arff=path) == 1
        option, value = options.split()
        assert (value if option == "--ignore" else option) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "options", "line"),
    [
        ("emotions/raw/emotions-train.arff", "--labels {}", "391 rows of 78 attributes."),
        ("bibtex/raw/bibtex-train.arff.xz", "--labels {}", "4,880 rows of 1,995 attributes."),
        ("sider/raw/sider.csv", "--smiles smiles --labels rest", "1,427 rows of 28 columns."),
        ("tox21/raw/tox21.csv.xz", "--labels NR-*,SR-*", "7,831 rows of 14 columns."),
        ("complete_journey/raw/demographics.parquet", "", "801 rows of 8 columns."),
        ("complete_journey/raw/transactions.parquet", "", "1,469,307 rows of 11 columns."),
    ],
)
def test_real_files_are_checked_without_a_warning(real_file, file, options, line, capsys):
    if file.endswith("parquet"):
        pytest.importorskip("pyarrow")
    if ".arff" in file:
        name = file.split("/")[0]
        options = options.format(real_file(f"{name}/raw/{name}.xml"))
    assert run(f"data check {options}", csv=real_file(file)) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == line
    assert printed.err == ""
    if "smiles" in printed.out:
        pytest.importorskip("rdkit")
        assert "molecule" in printed.out
        assert printed.out.count(" label ") == (27 if "sider" in file else 12)


def test_leading_zeros_are_quoted_in_a_schema(tmp_path):
    path, schema = tmp_path / "a.csv", tmp_path / "schema.yaml"
    path.write_text("zip,calm\n" + "02906,1\n01067,0\n" * 6)
    assert run("data check --labels calm", csv=path, write=schema) == 0
    assert "- '02906'" in schema.read_text()
