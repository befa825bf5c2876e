"""Records of the metadata table as Arrow columns, and their Avro form (metadata table notes §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import pyarrow as pa

from hudi_sql.storage.avro.datum import arrow_type_of, encode_datums
from hudi_sql.storage.schema.avro_arrow import with_meta_fields

__all__ = [
    "COLUMN_STATS",
    "FILES",
    "PARTITION_LIST",
    "PARTITION_STATS",
    "RECORD_INDEX",
    "file_schema_json",
    "files_record",
    "record_type",
    "records",
    "table_schema_json",
]

PARTITION_LIST = 1
FILES = 2
COLUMN_STATS = 3
RECORD_INDEX = 5
PARTITION_STATS = 6


@cache
def table_schema_json() -> str:
    """Avro schema of the records, as commits state it."""
    folder = resources.files("hudi_sql.storage.avro").joinpath("schemas")
    return " ".join(folder.joinpath("HoodieMetadataRecord.avsc").read_text(encoding="utf-8").split())


@cache
def file_schema_json() -> str:
    """The same with the meta columns in front: so are the records in files, with all of them NULL."""
    return with_meta_fields(table_schema_json())


@cache
def record_type() -> pa.StructType:
    """Arrow type of a record in a file."""
    return arrow_type_of(file_schema_json())


def records(kind: int, num_rows: int, **payloads: pa.Array) -> pa.LargeBinaryArray:
    """Encode records of one kind; `payloads` are the fields that this kind fills in.

    The field `key` is empty: the key stands in the cell.
    """
    columns: Mapping[str, pa.Array] = {
        "key": pa.repeat(pa.scalar("", pa.string()), num_rows),
        "type": pa.repeat(pa.scalar(kind, pa.int32()), num_rows),
        **payloads,
    }
    batch = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    return encode_datums(batch, file_schema_json())


def files_record(files: Sequence[Mapping[str, tuple[int, bool]]]) -> pa.Array:
    """The payload of `files` records: for each record a map of names to (size, is deleted)."""
    kind = record_type().field("filesystemMetadata").type
    rows = [
        [(name, {"size": size, "isDeleted": deleted}) for name, (size, deleted) in entries.items()]
        for entries in files
    ]
    return pa.array(rows, kind)
