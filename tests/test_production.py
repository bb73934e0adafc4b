"""Runs every command of the page on production, in order."""

import json
import re
import shlex
import socket
import subprocess
import sys
import time
from importlib.util import find_spec

import httpx
import pandas as pd
import pytest

from tests.exporting.test_folder import check_by_readme
from tests.snippets import ROOT, python_blocks
from tg_mlc import cli
from tg_mlc.stacking import folds

PAGE = (ROOT / "docs" / "production.md").read_text()
COMMANDS = "".join(re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)).splitlines()
[CLIENT] = re.findall(r"^```py\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_page_has_few_commands_and_a_client_of_ten_lines():
    starts = [" ".join(shlex.split(command)[:2]) for command in COMMANDS]
    others = ["head -4", "pip install", "python examples/score_with_ray.py"]
    assert starts == ["tg-mlc train", "tg-mlc serve", *others, *["tg-mlc export"] * 2]
    assert len([line for line in CLIENT.splitlines() if line]) <= 10


@pytest.mark.slow
def test_every_command_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folds, "MAX_EPOCHS", 3)
    monkeypatch.setattr(folds, "NUM_FOLDS", (2,))
    exec(python_blocks("docs/production.md")[0], {})
    train, serve, query, _, score, *exports = COMMANDS
    assert cli.main(shlex.split(train)[1:]) == 0
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    arguments = shlex.split(serve.replace("8000", port))[1:]
    process = subprocess.Popen([sys.executable, "-m", "tg_mlc", *arguments])
    try:
        for _ in range(1200):
            try:
                httpx.get(f"http://127.0.0.1:{port}/ready").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        capsys.readouterr()
        exec(CLIENT.replace("8000", port), {})
        first, second = capsys.readouterr().out.splitlines()
        answer = r"\{'calm': [\d.e-]+, 'sad': 1\.0\} \{'calm': (True|False), 'sad': True\}"
        assert re.match(answer, first)
        assert second.endswith("None")
        options = {"shell": True, "capture_output": True, "text": True}
        response = subprocess.run(query.replace("8000", port), check=True, **options)
        assert len(json.loads(response.stdout)["results"]) == 3
    finally:
        process.terminate()
        assert process.wait(60) == 0
    if find_spec("ray"):
        command = [sys.executable, str(ROOT / shlex.split(score)[1]), *shlex.split(score)[2:]]
        subprocess.run(command, check=True, capture_output=True)
        scored = pd.read_parquet("scores")
        assert scored["tempo"].tolist() == pd.read_csv("songs.csv")["tempo"].tolist()
        assert scored[["calm", "sad"]].notna().all(axis=None)
    for export in exports:
        assert cli.main(shlex.split(export)[1:]) == 0
        check_by_readme(tmp_path / shlex.split(export)[4])
