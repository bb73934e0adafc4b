"""Scores a file with Ray Data: python examples/score_with_ray.py model drugs.csv scores smiles

Memory does not grow with the file; unreadable rows get an error. First pip install 'ray[data]'.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import torch

import tg_mlc


class Scores:
    """A worker with a model, which adds scores of labels and errors to rows."""

    def __init__(self, model: str, columns: list[str]) -> None:
        torch.set_num_threads(1)  # Ray has a worker for each processor.
        self.model, self.columns = tg_mlc.load(model), columns

    def __call__(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Returns the rows with a column for each label."""
        raw = rows[self.columns] if len(self.columns) > 1 else rows[self.columns[0]].tolist()
        prediction = self.model.answer(raw)
        columns = dict(zip(self.model.label_names, prediction.probabilities.T, strict=True))
        errors = [prediction.reasons.get(row, "") for row in range(len(rows))]
        return rows.assign(**columns, error=errors)


def csv_options(columns: list[str]) -> dict[str, object]:
    """Returns options that keep cells as texts: the model knows that 1E2 may be a name."""
    from pyarrow import csv, string

    convert = csv.ConvertOptions(column_types=dict.fromkeys(columns, string()))
    return {"convert_options": convert, "parse_options": csv.ParseOptions(newlines_in_values=True)}


def main(
    model: str = "model", path: str = "drugs.csv", out: str = "scores", columns: str = "smiles"
) -> None:
    """Writes the scores of all rows as Parquet files; commas separate the columns of inputs."""
    import ray

    ray.init()  # On this machine, or the cluster of the environment variable RAY_ADDRESS.
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    names = columns.split(",")
    rows = ray.data.read_csv(str(Path(path).resolve()), **csv_options(names))
    arguments, pool = (str(Path(model).resolve()), names), ray.data.ActorPoolStrategy(size=2)
    options = {"batch_format": "pandas", "batch_size": 1024, "compute": pool, "num_cpus": 0.5}
    scored = rows.map_batches(Scores, fn_constructor_args=arguments, **options)
    scored.write_parquet(str(Path(out).resolve()))
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
