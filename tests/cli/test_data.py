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
    """A published data set whose file lies in the data folder, and nowhere else."""
    module = ModuleType("toy_data")
    module.Toy = Toy
    shared = tmp_path / "shared" / "toy" / "raw" / "toy.csv"
    shared.parent.mkdir(parents=True)
    shared.write_bytes(CONTENT)
    monkeypatch.setitem(sys.modules, "toy_data", module)
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "shared"))
    recorded = DatasetCard.of(Toy(tmp_path / "once")).statistics
    known = registry.catalogue()

    def catalogue():
        entry = RegistryEntry(
            name="toy", title="two samples", maker="toy_data:Toy", files=(Toy.files,), **recorded
        )
        return {**known, "toy": entry}

    monkeypatch.setattr(registry, "catalogue", catalogue)
    return recorded


def test_version_and_help(capsys):
    for option, text in {
        "--version": f"tg-mlc {tg_mlc.__version__}",
        "--help": "usage: tg-mlc",
    }.items():
        with pytest.raises(SystemExit) as stop:
            cli.main([option])
        assert stop.value.code == 0
        assert text in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [[], ["data"], ["data", "fetch"], ["data", "get"], ["data", "info", "a", "--no", "b"]],
)
def test_what_is_no_command_exits_with_2(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(command)
    assert stop.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_list(capsys):
    assert cli.main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == registry.names()
    assert "1,427 x 27" in lines[0]
    assert len({line.index(" x ") for line in lines}) == 1


def test_info_needs_no_files(capsys):
    assert cli.main(["data", "info", "bibtex"]) == 0
    assert capsys.readouterr().out == f"{registry.card('bibtex')}\n"


def test_an_unknown_name_is_a_message(capsys):
    for command in ("info", "get"):
        assert cli.main(["data", command, "bibtexx"]) == 1
        assert capsys.readouterr().err.startswith(
            "tg-mlc: Expected the name of a data set, one of sider, "
        )


def test_info_of_a_folder_that_is_none(capsys, tmp_path):
    assert cli.main(["data", "info", "yeast", "--root", str(tmp_path / "none")]) == 1
    assert "which is none" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_get_and_count_again(capsys, tmp_path, toy):
    root = ["--root", str(tmp_path / "data")]
    assert cli.main(["data", "get", "toy", *root]) == 0
    assert capsys.readouterr().out == f"{registry.card('toy')}\nAs recorded.\n"
    assert (tmp_path / "data" / "toy" / "raw" / "toy.csv").read_bytes() == CONTENT
    assert cli.main(["data", "info", "toy", *root]) == 0
    toy["samples"] = 3
    assert cli.main(["data", "info", "toy", *root]) == 1
    assert "Not as recorded:\nsamples: 2 (recorded: 3)" in capsys.readouterr().out
    toy["origin"] = "reported"
    assert cli.main(["data", "info", "toy", *root]) == 0
    assert "nothing to compare with" in capsys.readouterr().out


def test_what_keeps_no_files_says_so(capsys, tmp_path):
    root = ["--root", str(tmp_path)]
    for command in ("get", "info"):
        assert cli.main(["data", command, "planted", *root]) == 0
        printed = capsys.readouterr().out
        assert printed.endswith("no file is downloaded or written.\nAs recorded.\n")
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_while_samples_are_made_is_a_message(capsys, tmp_path, toy, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt  # as Ctrl-C does

    monkeypatch.setattr(Toy, "read", interrupted)
    assert cli.main(["data", "get", "toy", "--root", str(tmp_path)]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "tg-mlc: interrupted; run it again"


def test_offline_is_a_message(capsys, tmp_path, toy, monkeypatch):
    monkeypatch.delenv("TG_MLC_DATA")
    assert cli.main(["data", "get", "toy", "--root", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "tg-mlc: Expected one source of 'toy.csv' to be reachable" in error
    assert "http://127.0.0.1:9/toy.csv: ConnectionError" in error
    assert "Place 1 file by hand" in error
    assert f"'{tmp_path / 'toy' / 'raw' / 'toy.csv'}' or '$TG_MLC_DATA/toy/raw/toy.csv'" in error
    assert "Traceback" not in error


def test_a_wrong_file_is_a_message(capsys, tmp_path, toy):
    raw = tmp_path / "toy" / "raw"
    raw.mkdir(parents=True)
    (raw / "toy.csv").write_bytes(b"<html>")
    assert cli.main(["data", "get", "toy", "--root", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "is not the file it should be. Expected SHA-256" in error
    assert "run again to get the right file, or place it by hand" in error
    assert not list((tmp_path / "toy").glob("processed/data.pt"))
    assert cli.main(["data", "get", "toy", "--root", str(tmp_path)]) == 0  # from the data folder


def test_counting_again_downloads_nothing(capsys, tmp_path, toy, monkeypatch):
    monkeypatch.setattr(Toy, "download", lambda self: pytest.fail("downloaded"))
    (tmp_path / "data").mkdir()
    assert cli.main(["data", "info", "toy", "--root", str(tmp_path / "data")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tg-mlc: Expected 'toy' to be in '{tmp_path / 'data'}' (got no '")
    assert error.endswith(f"get it with: tg-mlc data get toy --root {tmp_path / 'data'}\n")
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize("command", ["get", "info"])
def test_a_damaged_file_is_a_message_that_says_force(capsys, tmp_path, toy, command):
    root = ["--root", str(tmp_path / "data")]
    cli.main(["data", "get", "toy", *root])
    processed = tmp_path / "data" / "toy" / "processed" / "data.pt"
    processed.write_bytes(processed.read_bytes()[:-100])
    capsys.readouterr()
    assert cli.main(["data", command, "toy", *root]) == 1
    error = capsys.readouterr().err
    assert f"tg-mlc: Expected '{processed}' to be a processed data set of this version" in error
    assert f"run 'tg-mlc data get toy {' '.join(root)} --force' to build it again" in error
    assert "force_reload" not in error
    assert cli.main(["data", "get", "toy", "--force", *root]) == 0
    assert "As recorded." in capsys.readouterr().out
    assert cli.main(["data", "info", "toy", *root]) == 0


def test_mistakes_of_ours_show_their_traceback(tmp_path, toy, monkeypatch):
    def break_down(self):
        raise RuntimeError("an operator is broken")

    monkeypatch.setattr(Toy, "read", break_down)
    with pytest.raises(RuntimeError, match="an operator is broken"):
        cli.main(["data", "get", "toy", "--root", str(tmp_path)])


def test_without_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonargparse", None)
    assert cli.main(["data", "list"]) == 1
    assert 'pip install "tg_mlc[data]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "line_buffering"),
    [(["data", "list"], False), (["data", "list"], True), (["--help"], False)],
)
def test_nothing_is_said_when_nobody_reads(command, line_buffering, capsys, monkeypatch):
    read, write = os.pipe()
    os.close(read)
    stdout = os.fdopen(write, "w")
    stdout.reconfigure(line_buffering=line_buffering)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert cli.main(command) == 141
    stdout.close()  # as Python does at exit
    assert capsys.readouterr().err == ""


def test_other_errors_of_writing_are_a_message(capsys, monkeypatch):
    def fill_up():
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(registry, "names", fill_up)
    assert cli.main(["data", "list"]) == 1
    assert capsys.readouterr().err == "tg-mlc: [Errno 28] No space left on device\n"


def test_it_can_be_interrupted_from_the_start():
    code = "import sys, tg_mlc.cli; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"  # which takes seconds to import


def test_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "tg_mlc", "data", "info", "nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_the_command_is_installed():
    scripts = entry_points(group="console_scripts", name="tg-mlc")
    if not scripts:
        pytest.skip("tg_mlc is not installed here, or was before the command existed")
    assert next(iter(scripts)).load() is cli.main


def test_a_file_is_checked(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text(
        "id,price,colour,odd,calm\n"
        + "".join(f"{i},{i},{'rb'[i % 2]},{i % 3 or 'x'},1\n" for i in range(12))
    )
    schema = tmp_path / "schema.yaml"
    words = ["--labels", "calm", "--ignore", "price"]
    assert cli.main(["data", "check", str(path), *words, "--write", str(schema)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "12 rows of 5 columns."
    assert [line.split()[:2] for line in lines[2:7]] == [
        ["id", "id"], ["price", "ignored"], ["colour", "category"], ["odd", "refused"], ["calm", "label"]
    ]  # fmt: skip
    assert max(map(len, lines[1:7])) < 100
    assert lines[7].startswith(
        "Refused: Expected numbers, or blank (missing), in row 0 (line 2), column 'odd'"
    )
    assert lines[7].endswith("or leave it out: --ignore 'odd'.")
    train = ["train", "--csv", str(path), "--labels", "calm", "--out", str(tmp_path / "model")]
    assert cli.main([*train, "--schema", str(schema)]) == 1
    assert (
        "another role of column 'odd' (got 'refused': Expected numbers" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("cells", "role", "told"),
    [
        ([[float(i), 1.0] for i in range(12)], "refused", "one value in every cell"),
        ([{"a": i} for i in range(12)], "refused", "one value in every cell"),
        (
            [float("inf") if i == 5 else float(i) for i in range(12)],
            "refused",
            "32 bits can hold in row 5",
        ),
        (
            [f"+49 (170) {7 * i} {i * i:04d}" for i in range(12)],
            "refused",
            "numbers, or texts that repeat",
        ),
        (
            [timedelta(hours=26 * i + 2) for i in range(12)],
            "number",
            "durations, read as days  2:00:00",
        ),
    ],
    ids=["lists", "objects", "infinity", "telephone", "durations"],
)
def test_columns_of_typed_tables_are_checked_as_training_reads_them(
    tmp_path, capsys, cells, role, told
):
    pandas, path = pytest.importorskip("pandas"), tmp_path / "a.parquet"
    pytest.importorskip("pyarrow")
    pandas.DataFrame(
        {"what": cells, "size": [i * i for i in range(12)], "calm": [0, 1] * 6}
    ).to_parquet(path)
    assert cli.main(["data", "check", str(path), "--labels", "calm"]) == (role == "refused")
    printed = capsys.readouterr().out
    assert printed.splitlines()[2].split()[:2] == ["what", role]
    assert told in printed
    if role == "refused":
        assert (
            cli.main(
                ["train", "--csv", str(path), "--labels", "calm", "--out", str(tmp_path / "model")]
            )
            == 1
        )
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["Age (years)", "it's", 'a "b"', "a, b", "back\\slash", "x]", "größe"]
)
def test_the_options_that_a_message_names_do_what_it_says(tmp_path, capsys, name):
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        rows = [
            ["size", name, "calm"],
            *([i * i, "x" if i == 5 else i * i % 7, i % 2] for i in range(12)),
        ]
        csv.writer(file).writerows(rows)
    words = [
        "train",
        "--csv",
        str(path),
        "--labels",
        "calm",
        "--seconds",
        "0",
        "--out",
        str(tmp_path / "model"),
    ]
    assert cli.main(words) == 1
    told = capsys.readouterr().err
    ignore = shlex.split(told[told.index("--ignore") :])[:2]
    assert cli.main(["data", "check", str(path), *ignore]) == 0
    assert "ignored  as specified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (
            ["C" * i + end for i in range(1, 7) for end in ("O", "N")],
            "molecule  perhaps inputs: pass --smiles 'what'",
        ),
        (["CO", "CN", "C"], "category"),  # too few to tell
        ([f"town {i}" for i in range(12)], "category"),
    ],
    ids=["molecules", "few", "names"],
)
def test_categories_that_are_all_molecules_are_named(tmp_path, capsys, values, line):
    pytest.importorskip("rdkit")
    path = tmp_path / "a.csv"
    path.write_text(
        "what,calm\n" + "".join(f"{value},{i % 2}\n" for i, value in enumerate(values * 4))
    )
    assert cli.main(["data", "check", str(path), "--labels", "calm"]) == 0
    assert line in capsys.readouterr().out.splitlines()[2]


def test_a_schema_is_written_changed_and_used(tmp_path, capsys):
    path, schema = tmp_path / "a.csv", tmp_path / "schema.yaml"
    path.write_text(
        "zone,size,calm\n" + "".join(f"{10 * (i % 3)},{i * i},{i % 2}\n" for i in range(30))
    )
    assert cli.main(["data", "check", str(path), "--labels", "calm", "--write", str(schema)]) == 0
    text = schema.read_text()
    assert "role: number" in text
    schema.write_text(text.replace("name: size\n  role: number", "name: size\n  role: ignored"))
    assert cli.main(["data", "check", str(path), "--schema", str(schema)]) == 0
    assert "size    ignored" in capsys.readouterr().out
    words = [
        "train",
        "--csv",
        str(path),
        "--labels",
        "calm",
        "--schema",
        str(schema),
        "--seconds",
        "0",
    ]
    assert cli.main([*words, "--out", str(tmp_path / "model")]) == 0
    assert tg_mlc.load(tmp_path / "model").facts["inputs"]["columns"] == ["zone"]
    assert cli.main([*words[:-4], "--schema", "nosuch.yaml", "--out", str(tmp_path / "none")]) == 1
    assert "Expected 'nosuch.yaml' to be a schema" in capsys.readouterr().err
    schema.write_text("columns: 3")
    assert cli.main([*words, "--out", str(tmp_path / "other")]) == 1
    assert "to be a schema of 'tg-mlc data check --write'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--ignore", "zone"], ["size"]),
        (["--id", "Size"], ["zone"]),
        (["--features", "Size"], "'schema' or the names of columns of inputs"),
        (["--categorical", "zone"], "change the roles in the schema"),
        (["--ignore", "zone,Size"], "Expected a column of inputs"),
    ],
)
def test_options_beside_a_schema_win_or_are_refused(tmp_path, capsys, options, expected):
    path, schema = tmp_path / "a.csv", tmp_path / "schema.yaml"
    rows = "".join(f"{10 * (i % 3)},{i * i},{i % 2},{i % 3 // 2}\n" for i in range(30))
    path.write_text(f"zone,Size,calm,sad\n{rows}")
    # without --labels, which become numbers
    assert cli.main(["data", "check", str(path), "--write", str(schema)]) == 0
    schema.write_text(schema.read_text().replace("name: Size", "name: size"))
    words = [
        "train",
        "--csv",
        str(path),
        "--labels",
        "calm,sad",
        "--schema",
        str(schema),
        "--seconds",
        "0",
    ]
    status = cli.main([*words, "--out", str(tmp_path / "model"), *options])
    if isinstance(expected, str):
        assert (status, expected in capsys.readouterr().err) == (1, True)
    else:
        columns = tg_mlc.load(tmp_path / "model").facts["inputs"]["columns"]
        assert (status, [name.lower() for name in columns]) == (0, expected)


def test_a_warning_is_printed_once(tmp_path, capsys):
    for _ in range(2):
        path = tmp_path / "a.csv"
        path.write_text("fold,calm\n" + "".join(f"{i % 3},{i % 2}\n" for i in range(12)))
        assert cli.main(["data", "check", str(path), "--labels", "calm"]) == 0
        assert capsys.readouterr().err.count("has the name of one that divides") == 1


def test_arff_is_checked(tmp_path, capsys):
    path = tmp_path / "a.arff"
    attributes = [
        *(f"x{i} numeric" for i in range(40)),
        "colour {red,green,blue}",
        "name string",
        "calm {0,1}",
    ]
    lines = [f"@attribute {attribute}" for attribute in attributes]
    row = ",".join([*("1" for _ in range(40)), "red", "ann", "1"])
    path.write_text(
        "\n".join(["@relation 'toy: -C -1'", *lines, "@data", row, row.replace("1", "?", 1)])
    )
    assert cli.main(["data", "check", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 rows of 43 attributes."
    names = ["x0", "x1", "x2", "(37", "colour", "name", "calm"]
    assert [line.split()[0] for line in lines[2:]] == names
    assert lines[2].split()[-2:] == ["1", "1"]
    assert "3 values: red, green, blue" in lines[6]
    assert "1 values: ann" in lines[7]
    assert "label" in lines[8]
    schema = tmp_path / "schema.yaml"
    assert cli.main(["data", "check", str(path), "--ignore", "x0", "--write", str(schema)]) == 0
    assert capsys.readouterr().out.splitlines()[2].split()[:2] == ["x0", "ignored"]
    assert "name: colour" in schema.read_text()
    for options in (
        ["--delimiter", ";"],
        ["--text", "name"],
        ["--ignore", "nosuch"],
        ["--max_lost", "0.5"],
    ):
        assert cli.main(["data", "check", str(path), *options]) == 1
        assert (
            options[-1 if "nosuch" in options or "name" in options else 0]
            in capsys.readouterr().err
        )


@pytest.mark.parametrize(
    ("file", "labels", "line"),
    [
        (
            "emotions/raw/emotions-train.arff",
            "emotions/raw/emotions.xml",
            "391 rows of 78 attributes.",
        ),
        (
            "bibtex/raw/bibtex-train.arff.xz",
            "bibtex/raw/bibtex.xml",
            "4,880 rows of 1,995 attributes.",
        ),
        ("sider/raw/sider.csv", "", "1,427 rows of 28 columns."),
        ("tox21/raw/tox21.csv.xz", "", "7,831 rows of 14 columns."),
        ("complete_journey/raw/demographics.parquet", "", "801 rows of 8 columns."),
        ("complete_journey/raw/transactions.parquet", "", "1,469,307 rows of 11 columns."),
    ],
)
def test_real_files_are_checked_without_a_warning(real_file, file, labels, line, capsys):
    if file.endswith("parquet"):
        pytest.importorskip("pyarrow")
    given = ["--labels", str(real_file(labels))] if labels else []
    status = cli.main(["data", "check", str(real_file(file)), *given])
    printed = capsys.readouterr()
    assert status == 0
    assert printed.out.splitlines()[0] == line
    assert printed.err == ""
    if "smiles" in printed.out:
        pytest.importorskip("rdkit")
        assert "molecule" in printed.out
