"""Keys of new and stored rows, looked up in a snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.planner.model import TableFacts
from hudi_sql.storage.model.files import FileSlice
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.read.predicate import And, Compare, CompareOp, Predicate
from hudi_sql.storage.read.snapshot import Snapshot

__all__ = ["SnapshotKeys"]

_KEY = "_hoodie_record_key"
_PARTITION = "_hoodie_partition_path"


class SnapshotKeys:
    """The `KeySource` over one snapshot: reads key columns, and only of files that may hold a key."""

    def __init__(self, snapshot: Snapshot, facts: TableFacts) -> None:
        self._snapshot = snapshot
        self._facts = facts
        self._generator = snapshot.key_generator
        self._slices: tuple[FileSlice, ...] = ()

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """Slices of the last `locate`."""
        return self._slices

    def record_keys(self, rows: pa.Table) -> pa.Array:
        """Key texts of rows with all table columns."""
        return self._generator.record_keys(_batch(rows))

    def partition_paths(self, rows: pa.Table) -> pa.Array:
        """Partition paths of rows with all table columns."""
        paths = self._generator.partition_paths(_batch(rows))
        return paths.cast(pa.string()) if pa.types.is_dictionary(paths.type) else paths

    def locate(
        self,
        keys: pa.Array,
        partitions: pa.Array,
        *,
        extra: Sequence[str] = (),
        ranges: pa.Table | None = None,
    ) -> pa.Table:
        """Stored rows that have one of the keys: in its partition, or anywhere when keys are global.

        Args:
            keys: Key texts.
            partitions: Partition path of each key.
            extra: Further columns to read of the rows found.
            ranges: The new rows, for leaving out files by the ranges of their key columns.
        """
        wanted = pc.unique(keys)
        slices = self._snapshot.slices(self._key_range(ranges))
        if not self._facts.has_global_index:
            touched = set(pc.unique(partitions).to_pylist())
            slices = tuple(s for s in slices if s.partition in touched)
        self._slices = slices
        columns = list(dict.fromkeys([_KEY, _PARTITION, *extra]))
        found = []
        with self._snapshot.scan_positions(columns, slices=slices) as reader:
            schema = reader.schema
            for batch in reader:
                mask = pc.is_in(batch[_KEY].cast(pa.string()), value_set=wanted)
                if pc.any(mask).as_py():
                    found.append(batch.filter(mask))
        table = pa.Table.from_batches(found, schema=schema)
        if not self._facts.has_global_index and table.num_rows:
            table = table.filter(_pairs_in(table[_KEY], table[_PARTITION], keys, partitions))
        names = {SLICE_COLUMN: "slice", POSITION_COLUMN: "position", _KEY: "key", _PARTITION: "partition"}
        return table.rename_columns([names.get(name, name) for name in table.column_names])

    def keys_at(self, places: Sequence[tuple[FileSlice, int]]) -> list[str]:
        """Stored keys of a few rows, for messages."""
        result = []
        for piece, position in places:
            with self._snapshot.scan_positions([_KEY], slices=(piece,)) as reader:
                table = reader.read_all()
            at = pc.index(table[POSITION_COLUMN], pa.scalar(position, pa.int64())).as_py()
            result.append(str(table[_KEY][at].as_py()) if at >= 0 else "?")
        return result

    def _key_range(self, rows: pa.Table | None) -> Predicate | None:
        """Range of the first key column over the new rows: few keys rarely spread over all files."""
        if rows is None or not rows.num_rows or not self._facts.record_key_fields:
            return None
        name = self._facts.record_key_fields[0]
        if "." in name or name not in rows.column_names or rows[name].null_count:
            return None
        kind = rows.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind)):
            return None
        ends = pc.min_max(rows[name])
        return And(
            parts=(
                Compare(column=name, op=CompareOp.GE, value=ends["min"]),
                Compare(column=name, op=CompareOp.LE, value=ends["max"]),
            )
        )


def _batch(rows: pa.Table) -> pa.RecordBatch:
    combined = rows.combine_chunks()
    if not combined.num_rows:
        return pa.RecordBatch.from_arrays(
            [pa.array([], type=field.type) for field in combined.schema], schema=combined.schema
        )
    return combined.to_batches()[0]


def _pairs_in(
    keys: pa.ChunkedArray, partitions: pa.ChunkedArray, wanted: pa.Array, wanted_partitions: pa.Array
) -> pa.Array:
    """Whether each (key, partition) is one of the wanted pairs."""
    all_partitions = pa.chunked_array(
        [
            *partitions.cast(pa.string()).chunks,
            *pa.chunked_array([wanted_partitions]).cast(pa.string()).chunks,
        ]
    ).combine_chunks()
    codes = all_partitions.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(str)
    size = len(partitions)
    mine = pc.binary_join_element_wise(pa.array(codes[:size]), keys.cast(pa.string()).combine_chunks(), "/")
    theirs = pc.binary_join_element_wise(pa.array(codes[size:]), wanted, "/")
    return pc.is_in(mine, value_set=theirs)
