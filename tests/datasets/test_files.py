from __future__ import annotations

import os
import stat

import pytest

from tg_mlc.datasets._files import replace_when_done, set_aside


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "folder" / "file.bin"

    def write_half():
        with replace_when_done(path) as unfinished:
            unfinished.write_bytes(b"half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert list(path.parent.iterdir()) == []
    with replace_when_done(path) as unfinished:
        unfinished.write_bytes(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_files_get_the_usual_permissions(tmp_path):
    with replace_when_done(tmp_path / "ours") as unfinished:
        unfinished.write_bytes(b"")
    (tmp_path / "usual").write_bytes(b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "usual")]
    assert modes[0] == modes[1]


def test_set_aside_overwrites_nothing(tmp_path):
    names = []
    for content in (b"1", b"2", b"3"):
        path = tmp_path / "file.csv"
        path.write_bytes(content)
        names.append(set_aside(path).name)
    assert names == ["file.csv.bad", "file.csv.bad1", "file.csv.bad2"]
    assert (tmp_path / "file.csv.bad").read_bytes() == b"1"
