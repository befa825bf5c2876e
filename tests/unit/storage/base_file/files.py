"""Base files for tests."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_sql.config.write import WriteConfig
from hudi_sql.storage.base_file.writer import BaseFileWriter, WrittenBaseFile
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.files import BaseFile, parse_file
from hudi_sql.storage.schema.avro_arrow import list_of
from hudi_sql.storage.schema.meta_columns import META_COLUMNS, with_meta_columns

NAME = "f1-0_0-0-0_20240101000000000.parquet"

ALL_TYPES = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("c_bool", pa.bool_()),
        ("c_long", pa.int64()),
        ("c_float", pa.float32()),
        ("c_double", pa.float64()),
        ("c_dec", pa.decimal128(9, 2)),
        ("c_big", pa.decimal128(38, 10)),
        ("c_date", pa.date32()),
        ("c_ts", pa.timestamp("us", "UTC")),
        ("c_ntz", pa.timestamp("us")),
        ("c_millis", pa.timestamp("ms", "UTC")),
        ("c_str", pa.string()),
        ("c_bin", pa.binary()),
        ("c_list", list_of(pa.string())),
        ("c_map", pa.map_(pa.string(), pa.int64())),
        ("c_struct", pa.struct([("a", pa.int32()), ("xs", list_of(pa.decimal128(5, 1)))])),
        ("c_null", pa.string()),
    ]
)


def all_types_rows(start: int, count: int) -> pa.RecordBatch:
    """Rows of all types; every fifth is NULL but for its id."""
    rows = []
    for number in range(start, start + count):
        if number % 5 == 4:
            rows.append({"id": number})
            continue
        rows.append(
            {
                "id": number,
                "c_bool": number % 2 == 0,
                "c_long": number - 2**62,
                "c_float": number / 2,
                "c_double": -number / 4,
                "c_dec": Decimal(number - 3).scaleb(-2),
                "c_big": Decimal(number).scaleb(-10),
                "c_date": number - 2,
                "c_ts": number - 2,
                "c_ntz": number,
                "c_millis": number,
                "c_str": f"text {number}",
                "c_bin": bytes([number % 256]),
                "c_list": [["a", None], [], None, ["b"]][number % 4],
                "c_map": [(f"k{number}", number), ("n", None)],
                "c_struct": {"a": number, "xs": [Decimal("1.5"), None]} if number % 3 else None,
            }
        )
    return pa.RecordBatch.from_pylist(rows, schema=ALL_TYPES)


def with_meta(batch: pa.RecordBatch, partition: str = "", name: str = NAME) -> pa.RecordBatch:
    """Put meta columns before the rows; the first column's text is the key."""
    rows = batch.num_rows
    keys = batch.column(0).cast(pa.string())
    meta = [
        pa.repeat("20240101000000000", rows),
        keys,
        keys,
        pa.repeat(partition, rows),
        pa.repeat(name, rows),
    ]
    schema = with_meta_columns(batch.schema)
    return pa.RecordBatch.from_arrays([*meta, *batch.columns], schema=schema)


def write(
    store: Store,
    batches: list[pa.RecordBatch],
    *,
    partition: str = "",
    name: str = NAME,
    settings: WriteConfig | None = None,
) -> tuple[BaseFile, WrittenBaseFile]:
    """Write batches (without meta columns) as one base file."""
    path = f"{partition}/{name}" if partition else name
    schema = with_meta_columns(batches[0].schema)
    writer = BaseFileWriter(store, path, schema, table_name="t", settings=settings)
    for batch in batches:
        writer.write(with_meta(batch, partition, name))
    written = writer.close()
    base = parse_file(partition, name, written.size_bytes)
    assert isinstance(base, BaseFile)
    return base, written


def write_foreign(
    store: Store, table: pa.Table, *, partition: str = "", name: str = NAME, **options
) -> BaseFile:
    """Write a Parquet file by pyarrow alone, as other writers would."""
    path = f"{partition}/{name}" if partition else name
    with store.open_output(path) as sink:
        pq.write_table(table, sink, **options)
    base = parse_file(partition, name, store.info(path).size_bytes)
    assert isinstance(base, BaseFile)
    return base


__all__ = ["ALL_TYPES", "META_COLUMNS", "NAME", "all_types_rows", "with_meta", "write", "write_foreign"]
