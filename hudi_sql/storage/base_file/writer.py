"""Writing Parquet base files (base file notes §2, §3).

Codec, sizes and footers are those of Hudi's readers' liking: zstd unless configured, pages with checksums, no Arrow schema
in the footer (it makes every open slow), three-level lists with the element name that Spark writes, and the keys that
writers with a Bloom index prune by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import SchemaError
from hudi_sql.storage.bloom import build_bloom_filter
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.schema.avro_arrow import avro_schema_from_arrow, with_meta_fields
from hudi_sql.storage.schema.meta_columns import META_COLUMNS, without_meta_columns

__all__ = ["BLOOM_KEY", "BLOOM_TYPE_KEY", "BaseFileWriter", "WrittenBaseFile"]

_KEY_COLUMN = META_COLUMNS[2]
BLOOM_KEY = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
_FIRST_SURROGATE_LEAD = 0xF0  # first byte of UTF-8 texts outside the basic plane
_MAX_ROW_GROUP_ROWS = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBaseFile:
    """A closed base file."""

    path: str
    size_bytes: int
    num_rows: int
    metadata: pq.FileMetaData
    """Its footer, for statistics."""


class BaseFileWriter:
    """Streams batches into one base file, a row group at a time."""

    def __init__(
        self, store: Store, path: str, schema: pa.Schema, *, table_name: str, settings: WriteConfig
    ) -> None:
        """Open the file.

        Args:
            store: The table.
            path: Of the new file, relative to the table.
            schema: Columns of the file, meta columns first.
            table_name: Names the Avro schema in the footer.
            settings: Codec and sizes.
        """
        self._store = store
        self._path = path
        self._schema = canonical_schema(schema)
        self._table_name = table_name
        self._settings = settings
        self._buffer: list[pa.RecordBatch] = []
        self._buffered_bytes = 0
        self._buffered_rows = 0
        self._num_rows = 0
        self._keys: list[pa.Array] = []
        self._carried: Mapping[str, str] | None = None
        self._sink = store.open_output(path)
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            compression=settings.compression,
            use_dictionary=settings.dictionary,
            data_page_size=settings.page_size_bytes,
            write_page_checksum=True,
            store_schema=False,
            use_compliant_nested_type=True,
            coerce_timestamps=None,
        )

    def carry_bloom_filter(self, footer: Mapping[str, str]) -> None:
        """Take over the filter of the file that this one replaces: it still holds for every row carried over.

        Keys of deleted rows stay in it, which costs a look and no row. Rows with other keys must not be written.
        """
        if BLOOM_KEY in footer and BLOOM_TYPE_KEY in footer:
            self._carried = {name: footer[name] for name in (BLOOM_KEY, BLOOM_TYPE_KEY)}

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, in the columns and types of the schema."""
        if not batch.num_rows:
            return
        self._buffer.append(batch)
        self._buffered_bytes += batch.nbytes
        self._buffered_rows += batch.num_rows
        self._keys.append(batch.column(batch.schema.get_field_index(_KEY_COLUMN)))
        if (
            self._buffered_bytes >= self._settings.block_size_bytes
            or self._buffered_rows >= _MAX_ROW_GROUP_ROWS
        ):
            self._flush()

    def close(self) -> WrittenBaseFile:
        """Write the footer and close the file."""
        self._flush()
        self._writer.add_key_value_metadata(self._footer())
        self._writer.close()
        size_bytes = self._sink.tell()
        self._sink.close()
        return WrittenBaseFile(
            path=self._path,
            size_bytes=size_bytes,
            num_rows=self._num_rows,
            metadata=self._writer.writer.metadata,
        )

    def abandon(self) -> None:
        """Close what is open after an error; the file itself is left to its marker."""
        try:
            self._writer.close()
        except (OSError, pa.ArrowException):
            pass
        if not self._sink.closed:
            self._sink.close()

    def _flush(self) -> None:
        if not self._buffer:
            return
        try:
            table = pa.Table.from_batches([_in_schema(batch, self._schema) for batch in self._buffer])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as exc:
            raise SchemaError(
                f"Rows do not fit the schema of {self._path}: {exc}", part="the new rows"
            ) from exc
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._num_rows += table.num_rows
        self._buffer, self._buffered_bytes, self._buffered_rows = [], 0, 0

    def _footer(self) -> dict[str, str]:
        avro = avro_schema_from_arrow(without_meta_columns(self._schema), self._table_name)
        footer = {"parquet.avro.schema": with_meta_fields(avro), "writer.model.name": "avro"}
        keys = pa.chunked_array(self._keys, pa.string())
        if len(keys) > keys.null_count:
            least, greatest = _key_range(keys)
            footer["hoodie_min_record_key"] = least
            footer["hoodie_max_record_key"] = greatest
        if self._carried is not None:
            footer.update(self._carried)
        else:
            settings = self._settings
            bloom = build_bloom_filter(
                pc.unique(keys.drop_null()),
                num_entries=settings.bloom_entries,
                fpp=settings.bloom_fpp,
                max_entries=settings.bloom_max_entries,
            )
            footer[BLOOM_KEY] = bloom.encode()
            footer[BLOOM_TYPE_KEY] = bloom.type_code
        return footer


def canonical_schema(schema: pa.Schema) -> pa.Schema:
    """The schema in which a file is written: names inside lists and maps as Spark has them, no metadata."""
    return pa.schema(
        [pa.field(field.name, _canonical(field.type), nullable=field.nullable) for field in schema]
    )


def _canonical(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([pa.field(f.name, _canonical(f.type), nullable=f.nullable) for f in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        item = kind.value_field
        return pa.list_(pa.field("element", _canonical(item.type), nullable=item.nullable))
    if types.is_map(kind):
        item = kind.item_field
        return pa.map_(pa.string(), pa.field("value", _canonical(item.type), nullable=item.nullable))
    return kind


def _in_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _key_range(keys: pa.ChunkedArray) -> tuple[str, str]:
    """Least and greatest key in the order of Java's strings, which is that of UTF-16 units."""
    ends = pc.min_max(keys).as_py()
    least, greatest = str(ends["min"]), str(ends["max"])
    # UTF-8 and UTF-16 order differ only when texts outside the basic plane are about.
    if greatest.encode()[:1] >= bytes([_FIRST_SURROGATE_LEAD - 2]) or not greatest.isascii():
        texts = sorted(pc.unique(keys.drop_null()).to_pylist(), key=lambda text: text.encode("utf-16-be"))
        return texts[0], texts[-1]
    return least, greatest
