from __future__ import annotations

from tg_mlc.datasets._files import set_aside


def test_set_aside_overwrites_nothing(tmp_path):
    names = []
    for content in (b"1", b"2", b"3"):
        path = tmp_path / "file.csv"
        path.write_bytes(content)
        names.append(set_aside(path).name)
    assert names == ["file.csv.bad", "file.csv.bad1", "file.csv.bad2"]
    assert (tmp_path / "file.csv.bad").read_bytes() == b"1"
