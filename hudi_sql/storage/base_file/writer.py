"""Writes one Parquet base file, in one pass (base file notes §3 to §5)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import HudiSqlError, SchemaError, StorageError
from hudi_sql.storage.base_file.key_order import greatest, java_min_max, least
from hudi_sql.storage.bloom import build_bloom_filter
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.schema.avro_arrow import avro_schema_from_arrow
from hudi_sql.storage.schema.evolution import adapt_batch, same_type

__all__ = ["BaseFileWriter", "WrittenBaseFile"]

_KEY = "_hoodie_record_key"
# Readers work on row groups in parallel; one of millions of narrow rows would leave them idle.
_MOST_ROWS_OF_GROUP = 1_048_576
_CODECS = {"lz4": "LZ4_RAW"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBaseFile:
    """A finished base file."""

    path: str
    size_bytes: int
    num_rows: int
    metadata: pq.FileMetaData
    """The footer, for statistics."""
    min_key: str | None
    max_key: str | None
    """Record keys as Java orders text; None when there are no rows, or no keys."""


class BaseFileWriter:
    """Streams batches into a new base file; nothing is there for certain before `close` returned.

    Memory holds the rows of one row group and all record keys (for the Bloom filter).

    Args:
        store: Where to.
        path: Relative to the table.
        schema: Of the file, meta columns first.
        table_name: For the Avro schema in the footer.
        settings: Codec, sizes, Bloom filter.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        schema: pa.Schema,
        *,
        table_name: str,
        settings: WriteConfig | None = None,
    ) -> None:
        self._path = path
        self._schema = schema
        self._settings = settings or WriteConfig()
        self._footer = {"parquet.avro.schema": avro_schema_from_arrow(schema, table_name)}
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._pending_rows = 0
        self._keys: list[pa.Array] = []
        self._num_rows = 0
        self._sink = store.open_output(path)
        self._writer = pq.ParquetWriter(self._sink, schema, **self._options())

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows. Types that differ from the file's in form only (views, dictionaries) are fine.

        Raises:
            SchemaError: The rows do not fit the schema.
            StorageError: The store failed.
        """
        if not batch.num_rows:
            return
        batch = self._conform(batch)
        if _KEY in self._schema.names:
            self._keys.append(batch.column(_KEY))
        self._num_rows += batch.num_rows
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        if (
            self._pending_bytes >= self._settings.block_size_bytes
            or self._pending_rows >= _MOST_ROWS_OF_GROUP
        ):
            self._flush()

    def close(self) -> WrittenBaseFile:
        """Write what is left and the footer.

        Raises:
            StorageError: The store failed; the file may be there, whole or in part.
        """
        self._flush()
        bounds = self._key_facts()
        try:
            self._writer.add_key_value_metadata(self._footer)
            self._writer.close()
            size = self._sink.tell()
            self._sink.close()
        except HudiSqlError:
            raise
        except (pa.ArrowException, OSError) as exc:
            raise self._failed(exc) from exc
        return WrittenBaseFile(
            path=self._path,
            size_bytes=size,
            num_rows=self._num_rows,
            metadata=self._writer.writer.metadata,
            min_key=bounds[0] if bounds else None,
            max_key=bounds[1] if bounds else None,
        )

    def abandon(self) -> None:
        """Close the file without finishing it. The unfinished file is the caller's to delete."""
        self._pending.clear()
        self._keys.clear()
        for item in (self._writer, self._sink):
            try:
                item.close()
            except (pa.ArrowException, OSError, HudiSqlError):  # the first error is what counts
                continue

    def _options(self) -> dict[str, object]:
        codec = self._settings.compression
        return {
            "compression": _CODECS.get(codec, codec).upper(),
            "use_dictionary": self._settings.dictionary,
            "data_page_size": self._settings.page_size_bytes,
            "write_page_checksum": True,
            "write_statistics": True,
            # Spark and Hudi go by the Avro schema; Arrow's own would only bring the engine's names along.
            "store_schema": False,
            "use_compliant_nested_type": True,
        }

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        pairs = zip(batch.schema, self._schema, strict=False)
        if batch.schema.names == self._schema.names and all(
            same_type(one.type, other.type) for one, other in pairs
        ):
            return batch
        missing = [name for name in self._schema.names if name not in batch.schema.names]
        if missing:
            raise SchemaError(f"Rows for {self._path} lack column {missing[0]}", column=missing[0])
        return adapt_batch(batch, self._schema)

    def _flush(self) -> None:
        if not self._pending:
            return
        try:
            table = pa.Table.from_batches([item.cast(self._schema) for item in self._pending], self._schema)
            self._writer.write_table(table, row_group_size=self._pending_rows)
        except HudiSqlError:
            raise
        except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as exc:
            raise SchemaError(f"Rows for {self._path} do not fit its schema: {exc}") from exc
        except (pa.ArrowException, OSError) as exc:
            raise self._failed(exc) from exc
        self._pending.clear()
        self._pending_bytes = self._pending_rows = 0

    def _key_facts(self) -> tuple[str, str] | None:
        """Put what is known of the keys into the footer (HoodieBloomFilterWriteSupport)."""
        if _KEY not in self._schema.names:
            return None
        found = [bounds for keys in self._keys if (bounds := java_min_max(keys)) is not None]
        keys = pa.chunked_array(self._keys, type=pa.string()).drop_null().combine_chunks()
        if isinstance(keys, pa.ChunkedArray):
            keys = keys.cast(pa.large_string()).combine_chunks()
        bloom = build_bloom_filter(
            keys,
            num_entries=self._settings.bloom_entries,
            fpp=self._settings.bloom_fpp,
            max_entries=self._settings.bloom_max_entries,
        )
        self._footer["org.apache.hudi.bloomfilter"] = bloom.encode()
        self._footer["hoodie_bloom_filter_type_code"] = bloom.type_code
        if not found:
            return None
        bounds = least(item[0] for item in found), greatest(item[1] for item in found)
        self._footer["hoodie_min_record_key"], self._footer["hoodie_max_record_key"] = bounds
        return bounds

    def _failed(self, cause: Exception) -> StorageError:
        return StorageError(f"Base file {self._path} could not be written: {cause}", path=self._path)
