from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from examples.next_basket import BASELINES, COLUMNS, NETWORK, main
from tg_mlc._optional import is_installed


@pytest.mark.skipif(not is_installed("pyarrow"), reason="pyarrow is not installed")
def test_every_predictor_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    sizes = {"household_id": 20, "product_id": 15, "week": 30}
    bought = pd.DataFrame({name: random.integers(size, size=3_000) for name, size in sizes.items()})
    bought.assign(sales_value=1.0).to_parquet(tmp_path / "transactions.parquet")
    categories = [str(product % 8) for product in range(15)]
    pd.DataFrame({"product_id": range(15), "product_category": categories, "department": "x"}).to_parquet(
        tmp_path / "products.parquet"
    )
    main(folder=tmp_path)
    printed = capsys.readouterr().out
    assert "num_entities=20" in printed
    for name in [*BASELINES, NETWORK]:
        line = next(line for line in printed.splitlines() if line.startswith(f"{name}  "))
        values = [float(value) for value in line[36:].split("(")[0].split()]
        assert len(values) == len(COLUMNS)
        assert all(0 <= value <= 1 for value in values)
