import sys
from datetime import date
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mutations import mutated
from tg_mlc._optional import is_installed
from tg_mlc.data import from_events

ROLES = {"entity": "who", "time": "day", "label": "item"}
NOT_ISO = "as in ISO 8601 in row 1, column 'day'"
BASKETS = (
    "who,day,item,cost\n"
    "eve,2024-01-03,tea,2\n"
    "bob,2024-01-02,jam,1\n"
    "eve,2024-01-01,jam,0.5\n"
    "eve,2024-01-03,egg,-1\n"
    "eve,2024-01-03,tea,0.25\n"
    "bob,2024-01-01,tea,4\n"
    "eve,2024-01-02,egg,0\n"
)


def frame(**columns):
    return pd.DataFrame({"who": ["a", "b"], "day": [1, 2], "item": ["x", "y"], **columns})


def check_baskets(events):
    assert (events.entities, events.label_names) == (["bob", "eve"], ["egg", "jam", "tea"])
    assert events.ptr.tolist() == [0, 2, 5]
    assert (events.ptr.dtype, events.time.dtype) == (torch.int64, torch.float64)
    assert events.time.tolist() == [19723, 19724, 19723, 19724, 19725]
    assert events.y.toarray().tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 1]]
    expected = [[0, 0, 4], [0, 1, 0], [0, 0.5, 0], [0, 0, 0], [-1, 0, 2.25]]
    assert events.amount.toarray().tolist() == expected


def test_rows_of_one_entity_and_time_are_merged(save):
    events = from_events(save(BASKETS), **ROLES, amount="cost")
    check_baskets(events)
    assert repr(events) == "EventSequences(num_entities=2, num_events=5, num_labels=3)"
    assert events.cardinality == 1.2
    # A label whose amounts sum to zero is kept.
    assert events.y.nnz == events.amount.nnz == 6
    assert events.y.indices.tolist() == events.amount.indices.tolist()
    y = events.y.toarray()
    events.amount.eliminate_zeros()
    assert events.y.toarray().tolist() == y.tolist()
    counts = from_events(save(BASKETS), **ROLES).amount.toarray()
    assert counts.tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 2]]


@pytest.mark.parametrize("convert", [str, date.fromisoformat, pd.Timestamp, np.datetime64])
def test_data_frames_with_dates_of_any_type_are_read(save, convert):
    table = pd.read_csv(save(BASKETS))
    table["day"] = [convert(text) for text in table["day"]]
    check_baskets(from_events(table, **ROLES, amount="cost"))


@pytest.mark.parametrize("time_zone", [None, "UTC"])
def test_dates_of_polars_are_read(save, time_zone):
    polars = pytest.importorskip("polars")
    table = polars.read_csv(save(BASKETS), try_parse_dates=True)
    check_baskets(from_events(table, **ROLES, amount="cost"))
    timestamps = polars.col("day").cast(polars.Datetime).dt.replace_time_zone(time_zone)
    check_baskets(from_events(table.with_columns(timestamps), **ROLES, amount="cost"))
    message = r"a name in row 1, column 'who' of the table \(got (None|nan)\)"
    with pytest.raises(ValueError, match=message):
        from_events(polars.DataFrame({"who": [1, None], "day": [1, 2], "item": [*"xy"]}), **ROLES)


@pytest.mark.skipif(pd.__version__ < "3", reason="pandas 2 makes an object per timestamp")
def test_many_timestamps_are_read_at_once():
    num = 200_000
    days = pd.date_range("1960-01-01T12", periods=num, freq="6h")
    table = pd.DataFrame({"who": "a", "day": days, "item": "x"})
    with mock.patch.object(pd.Timestamp, "__hash__", side_effect=AssertionError):
        time = from_events(table, **ROLES).time
    assert time.tolist() == [-3652.5 + 0.25 * i for i in range(num)]


@pytest.mark.parametrize(
    "days",
    [
        [20240131, 20240201],
        [1_706_659_200, 1_706_745_600],
        ["20240131", "20240201"],
        [202401, 202402],
    ],
)
def test_dates_and_seconds_are_not_mistaken_for_days(days):
    with pytest.raises(ValueError, match=rf"\(got '?{days[0]}'?\); pass time_format='%Y%m%d'"):
        from_events(frame(day=days), **ROLES)


def test_names_of_any_type_become_texts():
    events = from_events(frame(who=[10, 9], day=[2.5, -1], item=[3, 3]), **ROLES)
    assert (events.entities, events.label_names) == (["10", "9"], ["3"])  # Texts are sorted.
    assert events.time.tolist() == [2.5, -1]
    mixed = frame(item=pd.Series([1, True], dtype=object))
    assert from_events(mixed, **ROLES).label_names == ["1", "True"]


def test_a_table_without_an_entity_column_is_one_sequence(save):
    events = from_events(save(BASKETS), **{**ROLES, "entity": None})
    expected = ["all"], [0, 3], [19723, 19724, 19725]
    assert (events.entities, events.ptr.tolist(), events.time.tolist()) == expected
    assert events.amount.toarray().tolist() == [[0, 1, 1], [1, 1, 0], [1, 0, 2]]


BERLIN = pd.to_datetime(["1970-01-02 01:00", "1970-01-05 01:00"]).tz_localize("Europe/Berlin")


@pytest.mark.parametrize(
    ("days", "time_format", "expected"),
    [
        (["21-07-2015 06:00", "05-01-1970 00:00"], "%d-%m-%Y %H:%M", [16637.25, 4]),
        ([20150721, 19700105], "%Y%m%d", [16637, 4]),
        ([197001, 197002], "%Y%m", [0, 31]),
        (["2015-07-21 12:00", "1969-12-31"], None, [16637.5, -1]),
        (["1970-01-02T01:00+01:00", "1970-01-02"], None, [1, 1]),
        (["16637", " 4.5 "], None, [16637, 4.5]),
        (BERLIN, None, [1, 4]),
    ],
)
def test_dates_of_any_format_become_days(days, time_format, expected):
    assert from_events(frame(day=days), **ROLES, time_format=time_format).time.tolist() == expected


def test_years_and_months_are_read_without_a_header(save):
    path = save("b,2012,7,x,100 \r\na,1970,1,x,5 \r\nb,2011,12,y,1 \r\nb,2012,07,x,20 \r\n")
    names = ["store", "year", "month", "kind", "sold"]
    roles = {"entity": "store", "time": ("year", "month"), "label": "kind", "amount": "sold"}
    events = from_events(path, **roles, columns=names)
    months = np.array(["1970-01", "2011-12", "2012-07"], dtype="datetime64[M]")
    assert events.time.tolist() == months.astype("datetime64[D]").astype(int).tolist()
    assert events.amount.toarray().tolist() == [[5, 0], [0, 1], [120, 0]]
    table = pd.DataFrame([["b", 2012, 7.0, "x", 1]], columns=names)
    assert from_events(table, **roles).time.tolist() == [events.time[2]]


def test_short_sequences_are_dropped(save):
    events = from_events(save(BASKETS), **ROLES, amount="cost")
    with pytest.warns(UserWarning, match="1 of 2 entities have fewer than 3 events"):
        longer = events.with_at_least(3)
    expected = ["eve"], [0, 3], [19723, 19724, 19725]
    assert (longer.entities, longer.ptr.tolist(), longer.time.tolist()) == expected
    assert (longer.label_names, longer.y.nnz, longer.amount.nnz) == (["egg", "jam", "tea"], 4, 4)
    assert longer.amount.toarray().tolist() == events.amount.toarray()[2:].tolist()
    check_baskets(events)
    check_baskets(events.with_at_least(2))
    with pytest.raises(ValueError, match=r"least 4 events \(got at most 3 events in 2 entities\)"):
        events.with_at_least(4)


def test_the_next_event_of_each_entity_has_no_labels(save):
    events = from_events(save(BASKETS), **ROLES, amount="cost")
    longer = events.with_next()
    assert (longer.entities, longer.label_names) == (events.entities, events.label_names)
    assert longer.ptr.tolist() == [0, 3, 7]
    assert longer.time.tolist() == [19723, 19724, np.inf, 19723, 19724, 19725, np.inf]
    earlier = [0, 1, 3, 4, 5]
    assert longer.y[earlier].toarray().tolist() == events.y.toarray().tolist()
    assert longer.amount[earlier].toarray().tolist() == events.amount.toarray().tolist()
    assert (longer.y.nnz, longer.amount.nnz) == (6, 6)  # One label has amount 0.
    check_baskets(events)


@pytest.mark.parametrize("blank", [np.nan, "", "  ", None])
def test_missing_amounts_are_left_out_of_sums(blank):
    rows = [("a", 1, "x", 2), ("a", 1, "x", blank), ("a", 1, "y", blank), ("b", 1, "y", blank)]
    rows += [("b", 1, "y", blank), ("b", 2, "x", 0)]
    table = pd.DataFrame(rows, columns=["who", "day", "item", "cost"])
    events = from_events(table, **ROLES, amount="cost")
    np.testing.assert_array_equal(events.amount.toarray(), [[2, np.nan], [0, np.nan], [0, 0]])
    assert events.y.toarray().tolist() == [[1, 1], [0, 1], [1, 0]]


def test_dates_and_amounts_in_any_notation():
    table = frame(day=["31.01.2024", "01.02.2024"], cost=["1,50 €", "-"])
    events = from_events(table, **ROLES, amount="cost")
    assert sorted(events.time.tolist()) == [19753, 19754]
    np.testing.assert_array_equal(np.sort(events.amount.data), [1.5, np.nan])
    with pytest.raises(ValueError, match="dates that may be written as '%d/%m/%Y' or '%m/%d/%Y'"):
        from_events(frame(day=["01/02/2024", "02/02/2024"]), **ROLES)


def test_missing_amounts_of_files_are_left_out_of_sums(save):
    path = save(f"{BASKETS}eve,2024-01-04,tea,\neve,2024-01-03,tea,\n")
    amount = from_events(path, **ROLES, amount="cost").amount
    assert np.isnan(amount[5, 2])
    assert amount[4, 2] == 2.25
    blank = save("who,day,item,cost\neve,2024-01-03,tea,\n")
    assert np.isnan(from_events(blank, **ROLES, amount="cost").amount.data).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"who": ["a", None]}, r"a name in row 1, column 'who' of the table \(got"),
        ({"who": pd.array([None, 1], dtype="Int64")}, r"0, column 'who' of the table \(got <NA>\)"),
        ({"item": ["x", "  "]}, r"a name in row 1, column 'item' of the table \(got '  '\)"),
        ({"item": [["x", "y"], ["x"]]}, r"per cell in row 0, column 'item' .*; give each its row"),
        ({"day": [1, np.nan]}, r"number of days.* in row 1, column 'day'.*got nan"),
        ({"day": ["2024-01-01", "21-07-2015"]}, rf"{NOT_ISO}.*'21-07-2015'\); .*time_format"),
        ({"day": ["", "2024-01-01"]}, r"ISO 8601 in row 0, column 'day' of the table \(got ''\)"),
        ({"day": ["2024-01-01", "7"]}, NOT_ISO),
        ({"day": [pd.Timestamp("2024"), pd.NaT]}, r"row 1, column 'day' of the table \(got NaT\)"),
        ({"cost": [1, -np.inf]}, r"a blank cell in row 1, column 'cost' of the table \(got -inf\)"),
        ({"cost": ["inf", 1]}, r"a blank cell in row 0, column 'cost' of the table \(got 'inf'\)"),
        ({"cost": ["1_000", 1]}, r"cell in row 0, column 'cost' of the table \(got '1_000'\)"),
    ],
)
def test_malformed_cells_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        from_events(frame(**{"cost": [1, 1], **columns}), **ROLES, amount="cost")


@pytest.mark.parametrize("month", [0, 13, 1.5, "", np.nan])
def test_malformed_months_are_refused(month):
    table = frame(year=[2024, 2025], month=[1, month])
    with pytest.raises(ValueError, match=r"to 12 in row 1, column 'year' and 'month' of the table"):
        from_events(table, **{**ROLES, "time": ("year", "month")})


@pytest.mark.parametrize("time_format", ["%d-%m-%Y", "%Y-%m-%d %q", "%Y-%Y-%m"])
def test_wrong_time_formats_are_refused(save, time_format):
    message = rf"as '{time_format}' in row 0 \(line 2\), column 'day' of '.*csv'"
    with pytest.raises(ValueError, match=message):
        from_events(save(BASKETS), **ROLES, time_format=time_format)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": "thing"}, r"in the table \(got the columns \['who', 'day', 'item'\]\)"),
        ({"entity": "whom", "amount": "paid"}, r"columns \['whom', 'paid'\] in the table"),
        ({"label": "who"}, r"\['who'\] more than once in the table"),
        ({"time": ("day",)}, r"got time=\('day',\), time_format=None"),
        ({"time": ("day", "item"), "time_format": "%Y"}, r"year and month without 'time_format'"),
        ({"columns": ["who", "day", "item"]}, r"'columns' only for a CSV file without header"),
        ({"table": frame()[:0]}, r"at least one row in the table \(got none\)"),
        ({"table": pd.concat([frame(), frame()], axis=1)}, r"more than once"),
        ({"table": [("a", 1, "x")]}, r"a data frame, or the path of a file \(got list\)"),
    ],
)
def test_malformed_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        from_events(**{"table": frame(), **ROLES, **arguments})


def test_malformed_files_are_refused(save, tmp_path):
    with pytest.raises(ValueError, match=r"in '.*csv' \(got the columns \['a', 'day', 'item'\]\)"):
        from_events(save("a,day,item\nb,1,x\n"), **ROLES)
    with pytest.raises(ValueError, match=r"3 cells.*row 0 \(line 1\).*got 4"):
        from_events(save("b,1,x,5\n"), **ROLES, columns=["who", "day", "item"])
    with pytest.raises(ValueError, match="at least one row"):
        from_events(save("who,day,item\n"), **ROLES)
    text = f"{BASKETS}\nbob,2024-01-05,tea,!\nbob,2024-01-04,tea,?\nbob,2024-01-05,tea,!\n"
    with pytest.raises(ValueError, match=r"7 \(line 10\), column 'cost' of '.*csv' \(got '!'\)"):
        from_events(save(text), **ROLES, amount="cost")
    for name in ("none.csv", *(["none.parquet"] if is_installed("pyarrow") else [])):
        with pytest.raises(FileNotFoundError, match=rf"file '.*{name}' \(got no such file"):
            from_events(tmp_path / name, **ROLES)


def test_parquet_without_a_reader_is_refused(save, monkeypatch):
    path = save("PAR1 no parquet", "baskets.parquet")
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ImportError, match=r"'pyarrow' to be installed.*pip install \"tg_mlc\[parquet\]\""
    ):
        from_events(path, **ROLES)


@pytest.mark.skipif(not is_installed("pyarrow"), reason="pyarrow is not installed")
def test_parquet_files_are_read(save, tmp_path):
    path = tmp_path / "baskets.PARQUET"
    pd.read_csv(save(BASKETS)).to_parquet(path)
    check_baskets(from_events(path, **ROLES, amount="cost"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"'.*PARQUET' to be a parquet file .*\(got"):
        from_events(path, **ROLES)


@given(data=st.data(), time_format=st.sampled_from([None, "%Y-%m-%d"]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_give_one_clear_error(tmp_path, data, time_format):
    # Damaged compressed files are tested in test_tables.py.
    path = tmp_path / "baskets.csv"
    path.write_bytes(mutated(data, BASKETS.encode(), 4))
    try:
        events = from_events(path, **ROLES, amount="cost", time_format=time_format)
    except ValueError:  # Any other error fails the test.
        return
    assert events.y.shape == events.amount.shape == (events.num_events, events.num_labels)
    assert events.ptr[-1] == events.num_events
    assert (events.ptr.diff() > 0).all()


letters, numbers = st.sampled_from("abc"), st.integers(-3, 3)


@settings(max_examples=40)
@given(st.lists(st.tuples(letters, numbers, letters, numbers), min_size=1))
def test_any_table_is_grouped_as_by_pandas(rows):
    table = pd.DataFrame(rows, columns=["who", "day", "item", "cost"])
    events = from_events(table, **ROLES, amount="cost")
    expected = table.groupby(["who", "day", "item"])["cost"].sum().unstack(fill_value=0)
    entity = torch.arange(events.num_entities).repeat_interleave(events.ptr.diff())
    entities = [events.entities[index] for index in entity.tolist()]
    assert [*zip(entities, events.time.tolist(), strict=True)] == expected.index.tolist()
    assert events.label_names == expected.columns.tolist()
    assert events.amount.toarray().tolist() == expected.to_numpy().tolist()
    assert events.y.nnz == len(table.drop_duplicates(["who", "day", "item"]))


def test_groceries_are_read(real_file):
    path = real_file("groceries/raw/Groceries_dataset.csv.xz")
    roles = {"entity": "customer_unique_id", "time": "Date", "label": "product_id"}
    events = from_events(path, **roles, time_format="%d-%m-%Y")
    expected = 3_898, 167, 728
    assert (events.num_entities, events.num_labels, events.time.unique().numel()) == expected
    assert (events.amount.sum(), events.num_events, events.y.nnz) == (38_765, 14_963, 38_006)
    span = np.array([events.time.min(), events.time.max()]).astype("datetime64[D]")
    assert span.astype(str).tolist() == ["2014-01-01", "2015-12-30"]
    longer = events.with_at_least(7)
    assert (longer.num_entities, longer.num_events) == (349, 2_689)


def test_bread_basket_is_read(real_file):
    path = real_file("bread_basket/raw/bread_basket.csv.xz")
    events = from_events(path, entity=None, time="Transaction", label="Item")
    assert (events.num_entities, events.num_events, events.num_labels) == (1, 9_465, 94)
    assert events.amount.sum() == 20_507
    roles = {"entity": None, "time": "date_time", "label": "Item"}
    minutes = from_events(path, **roles, time_format="%d-%m-%Y %H:%M")
    # Some customers buy in the same minute.
    assert (minutes.num_events, minutes.amount.sum()) == (9_182, 20_507)


def test_product_demand_is_read(real_file):
    path = real_file("product_demand_sample/raw/Historical_Product_Demand_first5000.csv")
    names = ["product", "warehouse", "category", "year", "month", "demand"]
    roles = {"entity": "warehouse", "time": ("year", "month"), "label": "category"}
    events = from_events(path, **roles, amount="demand", columns=names)
    assert (events.num_entities, events.num_events, events.num_labels) == (3, 40, 18)
    assert events.amount.sum() == 93_807_226
    assert from_events(path, **roles, columns=names).amount.sum() == 5_000


def test_complete_journey_is_read(real_file):
    pytest.importorskip("pyarrow", reason="pyarrow reads parquet files, and is not installed")
    path = real_file("complete_journey/raw/transactions.parquet")
    events = from_events(path, entity="household_id", time="week", label="product_id")
    assert (events.num_entities, events.num_events, events.num_labels) == (2_469, 69_674, 68_509)
    assert (events.amount.sum(), events.time.unique().numel()) == (1_469_307, 53)
