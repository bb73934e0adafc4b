"""Scores a file of molecules with Ray Data: python examples/score_with_ray.py model drugs.csv scores

Workers hold the model and take some rows at a time, so that memory does not grow with the file. Rows stay in order; one
that cannot be read has its error beside it. It needs "pip install 'ray[data]'".
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tg_mlc


class Scores:
    """A worker with a model, which adds the scores of its labels and an error to some rows."""

    def __init__(self, model: str, column: str) -> None:
        torch.set_num_threads(1)  # Ray has a worker for each processor
        self.model, self.column = tg_mlc.load(model), column

    def __call__(self, rows: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the rows with a column for each label."""
        scores, refused = self.model.readable_scores(rows[self.column].tolist())
        errors = np.array([refused.get(row, "") for row in range(len(scores))])
        return {**rows, **dict(zip(self.model.label_names, scores.T, strict=True)), "error": errors}


def main(model: str = "model", path: str = "drugs.csv", out: str = "scores", column: str = "smiles") -> None:
    """Writes the scores of all rows as Parquet files."""
    import ray

    ray.init()  # on this machine, or the cluster that the environment variable RAY_ADDRESS names
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    workers = ray.data.ActorPoolStrategy(size=2)
    rows = ray.data.read_csv(str(Path(path).resolve()))
    scored = rows.map_batches(
        Scores, fn_constructor_args=(str(Path(model).resolve()), column), batch_size=1024, compute=workers, num_cpus=0.5
    )
    scored.write_parquet(str(Path(out).resolve()))
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
