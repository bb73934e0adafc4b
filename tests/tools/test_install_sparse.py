import os
import subprocess
from pathlib import Path

import pytest
import torch

from tools import install_sparse


@pytest.fixture
def tool(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return install_sparse


@pytest.fixture
def calls(tool, monkeypatch):
    """Returns the list of commands that were run. Compiling writes an empty wheel."""
    commands = []

    def run(command, **_):
        commands.append(command)
        if "wheel" in command:
            folder, name = command[command.index("--wheel-dir") + 1], command[-1].replace("-", "_")
            Path(folder, f"{name}-1.0-py3-none-any.whl").touch()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(tool.subprocess, "run", run)
    return commands


def compiled(calls):
    return [command[-1] for command in calls if "wheel" in command]


def test_compiles_once_and_installs_from_the_cache(tool, calls, tmp_path):
    tool.main()
    tool.main()
    assert compiled(calls) == ["torch-scatter", "torch-sparse"]
    installs = [command for command in calls if "install" in command]
    assert len(installs) == 2
    assert all(str(tmp_path / "cache" / "tg_mlc" / "wheels") in path for path in installs[1][-2:])


def test_compiles_again_for_another_torch(tool, calls, monkeypatch):
    tool.main()
    monkeypatch.setattr(torch, "__version__", "9.9.9")
    tool.main()
    assert len(compiled(calls)) == 4


def test_a_failed_compilation_leaves_no_wheel(tool, tmp_path, monkeypatch):
    def run(command, **_):
        folder = Path(command[command.index("--wheel-dir") + 1])
        (folder / "torch_scatter-1.0-py3-none-any.whl").touch()
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(tool.subprocess, "run", run)
    with pytest.raises(SystemExit, match="torch-scatter could not be compiled"):
        tool.main()
    assert not list(tmp_path.rglob("*.whl"))


def test_falls_back_to_the_working_directory(tool, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert tool.cache_folder() == tmp_path / ".cache"


def test_builds_on_all_cores_unless_max_jobs_is_set(tool, monkeypatch):
    monkeypatch.delenv("MAX_JOBS", raising=False)
    assert tool.build_environment()["MAX_JOBS"] == str(os.cpu_count())
    monkeypatch.setenv("MAX_JOBS", "1")
    assert tool.build_environment()["MAX_JOBS"] == "1"


@pytest.mark.parametrize(("cuda", "only_cpu"), [(None, "1"), ("13.0", None)])
def test_skips_cuda_unless_torch_has_it(tool, monkeypatch, cuda, only_cpu):
    monkeypatch.delenv("FORCE_ONLY_CPU", raising=False)
    monkeypatch.setenv("FORCE_CUDA", "1")
    monkeypatch.setattr(torch.version, "cuda", cuda)
    assert tool.build_environment().get("FORCE_ONLY_CPU") == only_cpu
