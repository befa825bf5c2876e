import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import CorruptTableError, ObjectNotFoundError, SchemaError, UnsupportedTableError
from hudi_sql.storage.base_file.reader import RowGroup, open_base_file
from hudi_sql.storage.base_file.writer import BaseFileWriter
from hudi_sql.storage.bloom import parse_bloom_filter
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.model.files import parse_file
from hudi_sql.storage.schema.avro_arrow import list_of
from hudi_sql.storage.schema.evolution import same_type
from hudi_sql.storage.schema.meta_columns import META_COLUMNS, with_meta_columns
from tests.golden_tables import unpack
from tests.unit.storage.base_file.files import (
    ALL_TYPES,
    NAME,
    all_types_rows,
    with_meta,
    write,
    write_foreign,
)

SMALL = WriteConfig(block_size_bytes=1)
"""Every batch becomes a row group."""


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    return open_store(str(tmp_path / "t") if request.param == "local" else f"memory://{tmp_path.name}")


def read(store, base, schema, **options):
    with open_base_file(store, base) as reader:
        return pa.Table.from_batches(list(reader.batches(target_schema=schema, **options)))


def test_all_types_and_nulls_come_back_over_several_row_groups(store):
    batches = [all_types_rows(0, 7), all_types_rows(7, 5), all_types_rows(12, 1)]
    base, written = write(store, batches, settings=SMALL)
    table = pa.Table.from_batches([with_meta(batch) for batch in batches])
    assert read(store, base, with_meta_columns(ALL_TYPES)).equals(table)
    assert (written.num_rows, written.metadata.num_row_groups) == (13, 3)
    assert store.info(base.path).size_bytes == written.size_bytes


def test_types_of_a_file_of_ours_are_those_of_the_table(store):
    base, _ = write(store, [all_types_rows(0, 4)])
    with open_base_file(store, base) as reader:
        for field in ALL_TYPES:
            assert same_type(reader.schema.field(field.name).type, field.type), field.name


def test_duckdb_reads_what_was_written(tmp_path):
    store = open_store(str(tmp_path))
    base, _ = write(store, [all_types_rows(0, 9), all_types_rows(9, 3)], settings=SMALL)
    # DuckDB has no milliseconds with a zone, and names list elements its own way.
    plain = [name for name in ALL_TYPES.names if name not in ("c_millis", "c_list", "c_struct")]
    found = duckdb.sql(
        f"select {', '.join(plain)} from '{tmp_path / base.name}' order by id"
    ).to_arrow_table()
    wanted = pa.Table.from_batches([all_types_rows(0, 12)]).select(plain)
    assert found.cast(wanted.schema).to_pylist() == wanted.to_pylist()
    lists = duckdb.sql(f"select c_list, c_struct from '{tmp_path / base.name}' order by id").fetchall()
    assert [row[0] for row in lists] == all_types_rows(0, 12).column("c_list").to_pylist()


def test_file_without_rows(store):
    base, written = write(store, [all_types_rows(0, 0)])
    assert (written.num_rows, written.min_key, written.max_key) == (0, None, None)
    with open_base_file(store, base) as reader:
        assert reader.num_rows == 0
        assert reader.key_range is None
        assert list(reader.batches(target_schema=with_meta_columns(ALL_TYPES))) == []


def test_footer_says_what_hudi_looks_for(store):
    _, written = write(store, [all_types_rows(5, 10)])
    with store.open_input(NAME) as source:
        footer = pq.ParquetFile(source)
        entries = footer.metadata.metadata
        chunk = footer.metadata.row_group(0).column(0)
        lists = [footer.schema.column(index).path for index in range(len(footer.schema))]
    assert (written.min_key, written.max_key) == ("10", "9")
    assert (entries[b"hoodie_min_record_key"], entries[b"hoodie_max_record_key"]) == (b"10", b"9")
    avro = json.loads(entries[b"parquet.avro.schema"])
    assert (avro["name"], avro["namespace"]) == ("t_record", "hoodie.t")
    assert [field["name"] for field in avro["fields"]] == [*META_COLUMNS, *ALL_TYPES.names]
    assert b"ARROW:schema" not in entries
    assert chunk.compression == "ZSTD"
    assert "c_list.list.element" in lists
    assert "c_map.key_value.key" in lists
    bloom = parse_bloom_filter(
        entries[b"org.apache.hudi.bloomfilter"].decode(),
        entries[b"hoodie_bloom_filter_type_code"].decode(),
        NAME,
    )
    assert bloom.might_contain(pa.array([str(n) for n in range(5, 15)])).all()
    assert not bloom.might_contain(pa.array(["no such key", "4"])).any()


def test_codec_of_the_settings(store):
    _, written = write(store, [all_types_rows(0, 3)], settings=WriteConfig(compression="gzip"))
    assert written.metadata.row_group(0).column(0).compression == "GZIP"


def test_pages_have_checksums(tmp_path):
    store = open_store(str(tmp_path))
    base, _ = write(store, [all_types_rows(0, 500)])
    path = tmp_path / base.name
    data = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(2)
    data[chunk.file_offset + chunk.total_compressed_size // 2 if chunk.file_offset else 200] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises((OSError, pa.ArrowException)):
        pq.ParquetFile(path, page_checksum_verification=True).read()


def test_element_names_of_an_engine_do_not_reach_the_file(store):
    given = pa.record_batch(
        [pa.array(["1"]), pa.array([["a", None]], pa.list_(pa.field("l", pa.string())))], ["id", "xs"]
    )
    schema = with_meta_columns(pa.schema([("id", pa.string()), ("xs", list_of(pa.string()))]))
    writer = BaseFileWriter(store, NAME, schema, table_name="t")
    writer.write(with_meta(given))
    writer.close()
    with open_base_file(store, parse_file("", NAME, 1)) as reader:
        assert reader.schema.field("xs").type.value_field.name == "element"
        assert [batch.column("xs").to_pylist() for batch in reader.batches(target_schema=schema)] == [
            [["a", None]]
        ]


def test_null_in_a_required_column_is_refused(store):
    schema = with_meta_columns(pa.schema([pa.field("id", pa.string(), nullable=False)]))
    writer = BaseFileWriter(store, NAME, schema, table_name="t")
    batch = with_meta(pa.record_batch([pa.array(["1", None])], ["id"]))
    writer.write(batch)
    with pytest.raises(SchemaError):
        writer.close()
    writer.abandon()


def test_rows_without_a_column_are_refused(store):
    schema = with_meta_columns(pa.schema([("id", pa.string()), ("v", pa.int32())]))
    writer = BaseFileWriter(store, NAME, schema, table_name="t")
    with pytest.raises(SchemaError, match="lack column v"):
        writer.write(with_meta(pa.record_batch([pa.array(["1"])], ["id"])))
    writer.abandon()


def test_projection_order_and_missing_columns(store):
    base, _ = write(store, [all_types_rows(0, 3)])
    target = with_meta_columns(pa.schema([("new", pa.date32()), ("c_str", pa.string()), ("id", pa.int64())]))
    with open_base_file(store, base) as reader:
        (batch,) = reader.batches(["id", "new", "c_str"], target_schema=target)
    assert batch.to_pylist()[1] == {"id": 1, "new": None, "c_str": "text 1"}
    assert batch.schema.field("id").type == pa.int64()


def test_no_columns_give_lengths(store):
    base, _ = write(store, [all_types_rows(0, 5), all_types_rows(5, 2)], settings=SMALL)
    with open_base_file(store, base) as reader:
        batches = list(reader.batches([], target_schema=with_meta_columns(ALL_TYPES), batch_rows=4))
    assert [(batch.num_columns, batch.num_rows) for batch in batches] == [(0, 4), (0, 3)]


def test_positions_are_right_when_row_groups_are_skipped(store):
    base, _ = write(store, [all_types_rows(n * 10, 10) for n in range(5)], settings=SMALL)
    with open_base_file(store, base) as reader:
        groups = reader.row_groups
        assert groups[2] == RowGroup(index=2, start=20, num_rows=10)
        kept = [groups[0], groups[2], groups[3]]
        found = []
        for item in reader.positioned_batches(
            ["id"], target_schema=with_meta_columns(ALL_TYPES), row_groups=kept, batch_rows=7
        ):
            ids = item.batch.column("id").to_numpy()
            assert (ids == np.arange(item.start, item.start + len(ids))).all()
            found += ids.tolist()
    assert found == [*range(10), *range(20, 40)]


def test_constants_fill_columns_that_the_file_lacks_and_no_others(store):
    base, _ = write(store, [all_types_rows(0, 2)])
    target = with_meta_columns(pa.schema([("id", pa.int32()), ("city", pa.string()), ("day", pa.date32())]))
    constants = {"city": pa.scalar("sf"), "id": pa.scalar(9, pa.int32()), "day": pa.scalar(None, pa.date32())}
    table = read(store, base, target, columns=["city", "id", "day"], constants=constants)
    assert table.to_pylist() == [{"city": "sf", "id": n, "day": None} for n in range(2)]
    only = read(store, base, target, columns=["city"], constants=constants)
    assert only.to_pylist() == [{"city": "sf"}] * 2


def test_two_level_lists_of_spark(tmp_path):
    store = open_store(str(unpack("v9_cow_types", tmp_path)))
    info = max(
        (item for item in store.list("") if item.name.endswith(".parquet")), key=lambda item: item.name[-25:]
    )
    base = parse_file("", info.name, info.size_bytes)
    target = pa.schema(
        [
            ("id", pa.int32()),
            ("c_arr", list_of(pa.int64())),
            ("c_arr_struct", list_of(pa.struct([("y", list_of(pa.string())), ("x", pa.int32())]))),
        ]
    )
    rows = {row["id"]: row for row in read(store, base, target).to_pylist()}
    assert rows[1]["c_arr"] == [9]
    assert rows[1]["c_arr_struct"] == [{"y": ["p", "q"], "x": 1}, {"y": [], "x": 2}]
    assert rows[3]["c_arr_struct"] is None


def test_int96_timestamps_are_micros(store):
    texts = ["1900-01-01T00:00:00", "1969-12-31T23:59:59.999999", "2026-03-01T10:00:00"]
    stamps = pa.array([np.datetime64(text, "us") for text in texts], pa.timestamp("us"))
    base = write_foreign(store, pa.table({"at": stamps}), use_deprecated_int96_timestamps=True)
    kind = pa.timestamp("us", "UTC")
    assert read(store, base, pa.schema([("at", kind)]))["at"].combine_chunks() == stamps.cast(kind)


def test_views_dictionaries_and_large_text_of_other_writers(store):
    table = pa.table(
        {
            "a": pa.array(["x", None]).dictionary_encode(),
            "b": pa.array(["y", "z"], pa.large_string()),
            "c": pa.array([b"1", b"2"], pa.binary_view()),
        }
    )
    base = write_foreign(store, table)
    target = pa.schema([("a", pa.string()), ("b", pa.string()), ("c", pa.binary())])
    assert read(store, base, target).to_pydict() == {"a": ["x", None], "b": ["y", "z"], "c": [b"1", b"2"]}


def test_narrowing_is_refused_with_the_column(store):
    base = write_foreign(store, pa.table({"v": pa.array([2**40])}))
    with pytest.raises(SchemaError, match="Column v"):
        read(store, base, pa.schema([("v", pa.int32())]))


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all, but long enough for a footer", None])
def test_damaged_files_are_corrupt(tmp_path, damage):
    store = open_store(str(tmp_path))
    base, _ = write(store, [all_types_rows(0, 100)])
    path: Path = tmp_path / base.name
    path.write_bytes(path.read_bytes()[:-20] if damage is None else damage)
    with pytest.raises(CorruptTableError) as caught:
        open_base_file(store, base)
    assert caught.value.path == base.path


def test_damaged_page_is_corrupt(tmp_path):
    store = open_store(str(tmp_path))
    base, _ = write(store, [all_types_rows(0, 2000)])
    path = tmp_path / base.name
    data = bytearray(path.read_bytes())
    data[40:4000] = bytes(3960)
    path.write_bytes(data)
    with pytest.raises(CorruptTableError):
        read(store, base, with_meta_columns(ALL_TYPES))


def test_missing_file_and_other_formats(store):
    with pytest.raises(ObjectNotFoundError):
        open_base_file(store, parse_file("", NAME, 10))
    with pytest.raises(UnsupportedTableError, match="orc"):
        open_base_file(store, parse_file("", NAME.replace("parquet", "orc"), 10))


def test_abandoned_writer_can_be_left(store):
    writer = BaseFileWriter(store, NAME, with_meta_columns(ALL_TYPES), table_name="t")
    writer.write(with_meta(all_types_rows(0, 3)))
    writer.abandon()
    writer.abandon()
