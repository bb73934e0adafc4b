"""Installs a wheel and a source distribution, and the wheel with each extra, and uses each.

    python tools/smoke.py dist --torch "torch==2.13.0"

Every environment starts from one with the bare wheel, so that a package missing in an extra shows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
BARE = """
import torch, tg_mlc
from tg_mlc.data import from_arrays
layer = tg_mlc.LabelMessagePassing(8, tg_mlc.graphs.fully_connected(3), heads=2)
assert layer(torch.randn(5, 8), torch.tensor([0, 0, 1, 1, 1])).shape == (2, 3, 8)
y = [[0, 1], [1, 0], [1, 1], [0, 0], [1, 0], [0, 1]]
dataset = from_arrays(torch.randn(6, 3).numpy(), y, kind="vector")
assert dataset.num_labels == 2
"""
MODEL = """
import tg_mlc, torch
from tg_mlc.data import from_arrays
x = torch.randn(40, 3).numpy()
model = tg_mlc.auto(from_arrays(x, x[:, :2] > 0, label_names=["a", "b"], kind="vector"), seconds=3)
"""
TABLE = """
import pathlib
from tg_mlc.data import from_csv
pathlib.Path("t.csv").write_text("x,y,a\\n1,2,0\\n3,4,1\\n5,6,1\\n")
assert len(from_csv("t.csv", label_columns=["a"])) == 3
"""
#: Code that uses each extra as a user would.
USES = {
    "data": TABLE,
    "molecules": """
import torch
from tg_mlc.data import MoleculeDataset
y = torch.tensor([[0.0, 1], [1, 0]])
assert len(MoleculeDataset.from_smiles(["CCO", "c1ccccc1"], y, ["a", "b"])) == 2
""",
    "train": MODEL
    + """
model.save("m")
assert tg_mlc.load("m").predict([[0.5, 1.0, 0.1]])["probability"].shape == (1, 2)
""",
    "numba": 'from tg_mlc.ops import available_backends; assert "csr" in available_backends()',
    "plot": 'from tg_mlc.graphs import fully_connected; fully_connected(3).plot(path="graph.svg")',
    "parquet": """
import pandas
from tg_mlc.data import from_csv
pandas.DataFrame({"x": [1.0, 2.0, 4.0], "a": [0, 1, 0]}).to_parquet("t.parquet")
assert len(from_csv("t.parquet", label_columns=["a"])) == 3
""",
    "excel": """
import pandas
from tg_mlc.data import from_csv
pandas.DataFrame({"x": [1.0, 2.0, 4.0], "a": [0, 1, 0]}).to_excel("t.xlsx", index=False)
assert len(from_csv("t.xlsx", label_columns=["a"])) == 3
""",
    "serve": "from tg_mlc.serving import make_app",
    "train,explain": MODEL + 'tg_mlc.explain(model, x[:2]).to_html("why.html")',
    "train,export": MODEL
    + 'model.save("m"); tg_mlc.export(tg_mlc.load("m"), "program", format="onnx")',
    "train,tune": "import tg_mlc.training, optuna",
    "hub": "import huggingface_hub, tg_mlc.inference",
}


def main() -> None:
    """Runs all uses, and says which failed."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("folder", type=Path, help="where the wheel and the source distribution are")
    torch_help = "arguments of pip install for PyTorch, of all environments"
    parser.add_argument("--torch", default="torch", help=torch_help)
    options = parser.parse_args()
    folder = options.folder.resolve()
    (wheel,), (source,) = (sorted(folder.glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    failed = []
    with tempfile.TemporaryDirectory() as name:
        base = Environment(Path(name) / "base")
        base.install(*options.torch.split())
        base.install(str(wheel))
        failed += ["bare wheel"] * (not base.runs(BARE))
        for extra, use in USES.items():
            environment = Environment(Path(name) / extra.replace(",", "-"), base)
            environment.install(f"{wheel}[{extra}]")
            failed += [extra] * (not environment.runs(use))
        from_source = Environment(Path(name) / "source", base)
        from_source.install("--force-reinstall", "--no-deps", str(source))
        failed += ["source distribution"] * (not from_source.runs(BARE))
    sys.exit(f"Failed: {', '.join(failed)}" if failed else None)


class Environment:
    """A virtual environment that also has the packages of another one.

    Args:
        folder (Path): The folder of the environment.
        base (Environment, optional): The other environment, whose packages are visible.
    """

    def __init__(self, folder: Path, base: Environment | None = None) -> None:
        venv.create(folder, with_pip=True)
        self.folder, self.python = folder, folder / "bin" / "python"
        if base is not None:
            (self.packages / "base.pth").write_text(f"{base.packages}\n")

    @property
    def packages(self) -> Path:
        """The folder of installed packages."""
        return next((self.folder / "lib").glob("python*")) / "site-packages"

    def install(self, *arguments: str) -> None:
        """Installs packages."""
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command = [*pip, *arguments]
        subprocess.run(command, check=True)

    def runs(self, code: str) -> bool:
        """Whether code runs without an error in a new folder."""
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([self.python, "-c", code], cwd=folder, check=False)
        print(f"{self.folder.name}: {'passed' if result.returncode == 0 else 'FAILED'}", flush=True)
        return result.returncode == 0


if __name__ == "__main__":
    main()
