"""The Dockerfile, by its syntax, where no image can be built."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
KNOWN = {
    "ARG",
    "FROM",
    "RUN",
    "COPY",
    "ENV",
    "USER",
    "WORKDIR",
    "EXPOSE",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
}


def instructions():
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace(
        "\\\n", " "
    )
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def test_instructions_are_known_and_their_lists_are_json():
    found = instructions()
    assert found[0][0] == "FROM"
    assert {name for name, _ in found} <= KNOWN
    for name, rest in found:
        if name in ("ENTRYPOINT", "CMD"):
            assert all(isinstance(word, str) for word in json.loads(rest))
        if name == "HEALTHCHECK":
            json.loads(rest[rest.index("CMD ") + 4 :])


def test_what_it_copies_and_installs_exists():
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    copied = [
        rest.split()[:-1]
        for name, rest in instructions()
        if name == "COPY" and "--from" not in rest
    ]
    assert all((ROOT / path).exists() for paths in copied for path in paths)
    [installed] = [rest for name, rest in instructions() if "pip install" in rest and "[" in rest]
    assert {*re.search(r"\[(.*?)\]", installed)[1].split(",")} <= {*extras}


def test_the_server_does_not_run_as_root():
    stage = instructions()
    last = max(place for place, (name, _) in enumerate(stage) if name == "FROM")
    users = [rest for name, rest in stage[last:] if name == "USER"]
    assert users
    assert "root" not in users
