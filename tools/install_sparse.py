"""Installs torch-scatter and torch-sparse, compiled against the torch of this environment.

Compiling them takes minutes, so the wheels are kept in the user's cache, one folder for each Python
and torch. The packages and their build needs (ninja, setuptools, wheel) are those of the running
interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

PACKAGES = ("torch-scatter", "torch-sparse")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def main() -> None:
    """Compiles the wheels that the cache lacks, then installs all wheels from the cache."""
    folder = cache_folder() / "wheels" / build_tag()
    wheels = [cached_wheel(folder, package) or build_wheel(folder, package) for package in PACKAGES]
    install = (*PIP, "install", "--no-index", "--no-deps", "--force-reinstall", *map(str, wheels))
    subprocess.run(install, check=True)
    import_command = (sys.executable, "-c", "import torch_scatter, torch_sparse")
    if subprocess.run(import_command, check=False).returncode:
        sys.exit(
            f"The wheels in {folder} were installed but cannot be imported; remove that folder and "
            "try again."
        )


def cache_folder() -> Path:
    """The user's cache folder for tg_mlc, or ``.cache`` here if the user's folder is read-only."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    preferred = Path(home) / "tg_mlc"
    try:
        preferred.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(".cache").resolve()
    return preferred if os.access(preferred, os.W_OK) else Path(".cache").resolve()


def build_tag() -> str:
    """A name for everything that a compiled wheel depends on."""
    import torch

    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    device = "cuda" if compiles_cuda() else "cpu"
    return f"{python}-{sysconfig.get_platform()}-torch-{torch.__version__}-{device}"


def compiles_cuda() -> bool:
    """Whether a build here would include the CUDA kernels, by the rule of the packages."""
    import torch
    from torch.utils.cpp_extension import CUDA_HOME

    if os.environ.get("FORCE_ONLY_CPU") == "1" or torch.version.cuda is None:
        return False
    usable = torch.cuda.is_available() and CUDA_HOME is not None
    return os.environ.get("FORCE_CUDA") == "1" or usable


def cached_wheel(folder: Path, package: str) -> Path | None:
    """The newest wheel of a package in the folder, if there is one."""
    paths = folder.glob(f"{package.replace('-', '_')}-*.whl")
    wheels = sorted(paths, key=lambda path: path.stat().st_mtime)
    return wheels[-1] if wheels else None


def build_wheel(folder: Path, package: str) -> Path:
    """Compiles a package and moves the finished wheel into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    print(
        f"Compiling {package} against the installed torch; this takes minutes, but only once ...",
        flush=True,
    )
    # The folder is temporary, so that an interrupted build leaves no partial wheel behind.
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as build:
        # pip's own cache of built wheels does not record for which torch they were built.
        options = ("--no-cache-dir", "--no-build-isolation", "--no-deps", "--wheel-dir", build)
        command = (*PIP, "wheel", *options, package)
        if subprocess.run(command, env=build_environment(), check=False).returncode:
            needs = f"a C++ compiler and the headers of {sys.executable}"
            sys.exit(f"{package} could not be compiled; it needs {needs}.")
        wheel = next(Path(build).glob("*.whl"))
        return wheel.replace(folder / wheel.name)


def build_environment() -> dict[str, str]:
    """The environment of a compilation: all cores, and CUDA kernels only if they can be built."""
    # The folder of this interpreter holds ninja; without activation it is not on the path.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    only_cpu = {} if compiles_cuda() else {"FORCE_ONLY_CPU": "1"}
    return {"MAX_JOBS": str(os.cpu_count() or 1), **os.environ, **only_cpu, "PATH": path}


if __name__ == "__main__":
    main()
