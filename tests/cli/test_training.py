from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress

from tg_mlc.cli._training import time_left


def test_the_time_left_is_shown_until_all_is_done(monkeypatch, capsys):
    threads = threading.active_count()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with suppress(KeyboardInterrupt), time_left(90.0):
        time.sleep(0.2)
        raise KeyboardInterrupt
    assert "Training takes at most about 01:29 more" in capsys.readouterr().err
    assert threading.active_count() <= threads + 1  # tqdm has one of its own


def test_nothing_is_shown_without_a_terminal(capsys):
    with time_left(90.0):
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")
