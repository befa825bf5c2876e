import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_sql.config.write import WriteConfig
from hudi_sql.storage.base_file.statistics import footer_ranges, indexed_columns
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.schema.meta_columns import with_meta_columns
from tests.unit.storage.base_file.files import ALL_TYPES, all_types_rows, write, write_foreign

META = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path))


def ranges_of(store, table, schema=None, columns=None, **options):
    base = write_foreign(store, table, **options)
    with store.open_input(base.path) as source:
        metadata = pq.ParquetFile(source).metadata
    return {
        item.column: item
        for item in footer_ranges(metadata, schema or table.schema, columns or table.column_names)
    }


def bounds(item):
    return tuple(None if bound is None else bound.as_py() for bound in (item.minimum, item.maximum))


def test_ranges_over_row_groups_of_all_types(store):
    _, written = write(
        store, [all_types_rows(0, 10), all_types_rows(10, 5)], settings=WriteConfig(block_size_bytes=1)
    )
    schema = with_meta_columns(ALL_TYPES)
    found = {
        item.column: item for item in footer_ranges(written.metadata, schema, [*schema.names, "c_struct.a"])
    }
    assert bounds(found["id"]) == (0, 14)
    assert bounds(found["c_bool"]) == (False, True)
    assert bounds(found["c_float"]) == (0.0, 6.5)
    assert bounds(found["c_double"]) == (-3.25, 0.0)
    assert bounds(found["c_dec"]) == (Decimal("-0.03"), Decimal("0.10"))
    assert bounds(found["c_big"]) == (Decimal(0).scaleb(-10), Decimal(13).scaleb(-10))
    assert bounds(found["c_date"]) == (dt.date(1969, 12, 30), dt.date(1970, 1, 12))
    assert found["c_ts"].minimum.cast(pa.int64()).as_py() == -2
    assert found["c_millis"].type == pa.timestamp("ms", "UTC")
    assert found["c_millis"].maximum.cast(pa.int64()).as_py() == 13
    assert bounds(found["c_str"]) == ("text 0", "text 8")
    assert bounds(found["c_bin"]) == (b"\0", b"\x0d")
    assert bounds(found["c_struct.a"]) == (1, 13)
    assert bounds(found["_hoodie_record_key"]) == ("0", "9")
    assert {"c_list", "c_map", "c_struct"}.isdisjoint(found)
    assert all(item.num_values == 15 for item in found.values())
    assert found["c_str"].num_nulls == 3
    assert found["id"].num_nulls == 0
    for item in found.values():
        assert item.minimum is None or item.minimum.type == item.type
    chunks = [written.metadata.row_group(group).column(5) for group in range(2)]
    assert found["id"].total_size_bytes == sum(chunk.total_compressed_size for chunk in chunks)
    assert found["id"].total_uncompressed_bytes == sum(chunk.total_uncompressed_size for chunk in chunks)


def test_columns_of_nulls_have_the_bounds_that_hudi_gives_them(store):
    schema = pa.schema(
        [
            ("i", pa.int32()),
            ("l", pa.int64()),
            ("d", pa.float64()),
            ("b", pa.bool_()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("dec", pa.decimal128(9, 2)),
            ("s", pa.string()),
            ("bin", pa.binary()),
        ]
    )
    found = ranges_of(store, schema.empty_table().from_pylist([{}], schema=schema))
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    wanted = {"i": 0, "l": 0, "d": 0.0, "b": False, "day": epoch.date(), "at": epoch}
    for name, zero in wanted.items():
        assert bounds(found[name]) == (zero, zero)
    for name in ("dec", "s", "bin"):
        assert bounds(found[name]) == (None, None)
    assert all((item.num_nulls, item.num_values) == (1, 1) for item in found.values())


def test_a_row_group_of_nulls_widens_the_range_to_zero(store):
    table = pa.table({"v": pa.array([5, 6, None, None], pa.int32())})
    assert bounds(ranges_of(store, table, row_group_size=2)["v"]) == (0, 6)


def test_nan_is_no_bound(store):
    nan = float("nan")
    table = pa.table({"some": [1.0, nan], "only": [nan, nan]})
    found = ranges_of(store, table)
    assert bounds(found["some"]) == (1.0, 1.0)
    assert bounds(found["only"]) == (None, None)
    apart = ranges_of(store, pa.table({"d": [1.0, 2.0, nan, nan]}), row_group_size=2)
    assert bounds(apart["d"]) == (None, None)


def test_columns_without_statistics_are_left_out(store):
    table = pa.table({"a": [1], "b": [2]})
    assert ranges_of(store, table, write_statistics=["a"]).keys() == {"a"}


def test_text_too_long_for_statistics_has_no_bounds(store):
    found = ranges_of(store, pa.table({"s": ["x" * 10_000, None]}))["s"]
    assert bounds(found) == (None, None)
    assert (found.num_nulls, found.num_values) == (1, 2)


def test_bounds_are_in_the_type_of_the_table(store):
    table = pa.table(
        {"i": pa.array([1, 5], pa.int32()), "f": pa.array([1.1, 2.5], pa.float32()), "n": [9, 10]}
    )
    schema = pa.schema([("i", pa.int64()), ("f", pa.float64()), ("n", pa.string())])
    found = ranges_of(store, table, schema)
    assert (found["i"].minimum.type, bounds(found["i"])) == (pa.int64(), (1, 5))
    assert bounds(found["f"]) == (1.1, 2.5)
    # 9 and 10 are ordered otherwise as text.
    assert bounds(found["n"]) == (None, None)


def test_decimals_stored_as_integers_and_text_over_row_groups(store):
    table = pa.table(
        {
            "d": pa.array([Decimal("-1.50"), Decimal("2.25")], pa.decimal128(9, 2)),
            "s": ["\uffee", "\U0001f389"],
        }
    )
    found = ranges_of(store, table, store_decimal_as_integer=True, row_group_size=1)
    assert bounds(found["d"]) == (Decimal("-1.50"), Decimal("2.25"))
    # As Java merges them: by UTF-16 units.
    assert bounds(found["s"]) == ("\U0001f389", "\uffee")


def test_columns_that_the_file_lacks_are_left_out(store):
    schema = pa.schema([("a", pa.int64()), ("z", pa.int64())])
    assert ranges_of(store, pa.table({"a": [1]}), schema, ["a", "z", "nowhere"]).keys() == {"a"}


def test_file_without_row_groups_has_no_ranges(store):
    _, written = write(store, [all_types_rows(0, 0)])
    assert footer_ranges(written.metadata, with_meta_columns(ALL_TYPES), ["id", "c_str"]) == []


def test_indexed_columns_are_the_first_ones_that_have_an_order():
    fields = [(f"c{n}", pa.int32()) for n in range(40)]
    schema = with_meta_columns(pa.schema([("xs", pa.list_(pa.int32())), *fields]))
    assert indexed_columns(schema) == (*META, *(f"c{n}" for n in range(32)))
    assert indexed_columns(schema, max_columns=2) == (*META, "c0", "c1")


def test_listed_columns_may_be_nested():
    schema = pa.schema(
        [("a", pa.int32()), ("s", pa.struct([("x", pa.int32()), ("ys", pa.list_(pa.int32()))]))]
    )
    listed = ["s.x", "a", "s.ys", "s", "nowhere", "a"]
    assert indexed_columns(schema, listed=listed) == (*META, "s.x", "a")
