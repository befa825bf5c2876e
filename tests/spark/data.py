"""Rows of every column type, and a plain model of what statements do to them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NUM_PARTITIONS = 3

WIDE_DDL = """
    id bigint, flag boolean, small int, big bigint, f float, d double, dec5 decimal(5,2), dec18 decimal(18,4),
    dec30 decimal(30,10), name string, raw binary, day date, at timestamp, at_ntz timestamp_ntz, xs array<int>,
    m map<string,int>, st struct<a:int,b:string>, sts array<struct<x:int,y:string>>, `Mixed` string, ts bigint, part string
"""
NARROW_DDL = "id bigint, name string, price double, day date, ts bigint, part string"

WIDE_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("big", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("dec5", pa.decimal128(5, 2)),
        ("dec18", pa.decimal128(18, 4)),
        ("dec30", pa.decimal128(30, 10)),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("at_ntz", pa.timestamp("us")),
        ("xs", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("sts", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))),
        ("Mixed", pa.string()),
        ("ts", pa.int64()),
        ("part", pa.string()),
    ]
)
NARROW_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("day", pa.date32()),
        ("ts", pa.int64()),
        ("part", pa.string()),
    ]
)


def _with_nulls(values: pa.Array, ids: np.ndarray, every: int) -> pa.Array:
    return pc.if_else(pa.array(ids % every == every - 1), pa.scalar(None, values.type), values)


def _lists(ids: np.ndarray, values: pa.Array) -> pa.Array:
    """Lists of 0, 1 or 2 of `values` (which has two per id)."""
    lengths = ids % 3
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    starts = np.arange(len(ids)) * 2
    take = np.concatenate([starts[lengths >= 1], starts[lengths >= 2] + 1])
    owner = np.concatenate([np.flatnonzero(lengths >= 1), np.flatnonzero(lengths >= 2)])
    return pa.ListArray.from_arrays(
        pa.array(offsets), values.take(pa.array(take[np.argsort(owner, kind="stable")]))
    )


def partition_of(ids: np.ndarray) -> pa.Array:
    """The partition of a key never changes: most tests are about one key, one partition."""
    return pc.binary_join_element_wise("p", pa.array((ids % NUM_PARTITIONS).astype(str)), "")


def wide_rows(ids: np.ndarray, ts: int) -> pa.Table:
    """Rows of every type, NULLs in all but the key, the ordering and the partition column."""
    text = pa.array(ids.astype(str))
    micros = ids * 1_000_003 + ts
    unscaled = pa.array((ids % 9999).astype(np.int64)).cast(pa.decimal128(19, 0))
    two = np.repeat(ids, 2)
    pairs = pa.StructArray.from_arrays(
        [pa.array(two.astype(np.int32)), pa.array(two.astype(str))], names=["x", "y"]
    )
    hundred = pa.scalar(Decimal(100), pa.decimal128(3, 0))
    columns = {
        "id": pa.array(ids),
        "flag": _with_nulls(pa.array(ids % 2 == 0), ids, 7),
        "small": _with_nulls(pa.array((ids % 2**31).astype(np.int32)), ids, 11),
        "big": pa.array(-ids * 2**31 + ts),
        "f": _with_nulls(pa.array((ids / 7).astype(np.float32)), ids, 13),
        "d": pa.array(np.sqrt(ids) * ts),
        "dec5": _with_nulls(
            pc.divide(unscaled.cast(pa.decimal128(19, 0)), hundred).cast(pa.decimal128(5, 2), safe=False),
            ids,
            5,
        ),
        "dec18": pc.divide(unscaled, hundred).cast(pa.decimal128(18, 4), safe=False),
        "dec30": pc.divide(unscaled, hundred).cast(pa.decimal128(30, 10), safe=False),
        "name": _with_nulls(pc.binary_join_element_wise("näme-", text, ""), ids, 17),
        "raw": _with_nulls(text.cast(pa.binary()), ids, 19),
        "day": _with_nulls(pa.array((ids % 40000).astype(np.int32)).cast(pa.date32()), ids, 23),
        "at": _with_nulls(pa.array(micros).cast(pa.timestamp("us", "UTC")), ids, 29),
        "at_ntz": pa.array(-micros).cast(pa.timestamp("us")),
        "xs": _with_nulls(_lists(ids, pa.array(two.astype(np.int32))), ids, 31),
        "m": pa.MapArray.from_arrays(
            pa.array(np.arange(len(ids) + 1, dtype=np.int32)), text, pa.array((ids % 1000).astype(np.int32))
        ),
        "st": pa.StructArray.from_arrays([pa.array((ids % 99).astype(np.int32)), text], names=["a", "b"]),
        "sts": _lists(ids, pairs),
        "Mixed": pc.binary_join_element_wise("M", text, "-"),
        "ts": pa.array(np.full(len(ids), ts)),
        "part": partition_of(ids),
    }
    return pa.table(columns).cast(WIDE_SCHEMA)


def narrow_rows(ids: np.ndarray, ts: int) -> pa.Table:
    """Rows that hudi-rs reads as well."""
    columns = {
        "id": pa.array(ids),
        "name": _with_nulls(pc.binary_join_element_wise("name", pa.array(ids.astype(str)), "-"), ids, 9),
        "price": pa.array(ids * 1.5 + ts),
        "day": _with_nulls(pa.array((ids % 20000).astype(np.int32)).cast(pa.date32()), ids, 5),
        "ts": pa.array(np.full(len(ids), ts)),
        "part": partition_of(ids),
    }
    return pa.table(columns).cast(NARROW_SCHEMA)


class Model:
    """The rows a table should hold: a plain Arrow table, changed the way the statements say."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def upsert(self, rows: pa.Table) -> None:
        """Replace rows by id, add the others."""
        kept = self.rows.filter(pc.invert(pc.is_in(self.rows["id"], rows["id"].combine_chunks())))
        self.rows = pa.concat_tables([kept, rows])

    def delete(self, ids: np.ndarray) -> None:
        self.rows = self.rows.filter(pc.invert(pc.is_in(self.rows["id"], pa.array(ids))))

    def set(self, ids: np.ndarray, **values: pa.Scalar) -> None:
        """Give columns a value in the rows of these ids."""
        hit = pc.is_in(self.rows["id"], pa.array(ids))
        for name, value in values.items():
            index = self.rows.column_names.index(name)
            new = pc.if_else(hit, value.cast(self.rows.schema.field(name).type), self.rows[name])
            self.rows = self.rows.set_column(index, self.rows.schema.field(name), new)


def plain(value: object) -> object:
    """A value in a form that compares: NaN equals itself, maps are sorted pairs."""
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value


def differences(left: pa.Table, right: pa.Table, columns: list[str], *, most: int = 5) -> list[str]:
    """How two tables differ as multisets of rows over `columns`; empty when they do not."""
    if left.num_rows != right.num_rows:
        return [f"{left.num_rows} rows against {right.num_rows}"]
    order = [("id", "ascending"), ("ts", "ascending"), ("part", "ascending")]
    left, right = (table.select(columns).sort_by(order) for table in (left, right))
    found = []
    for name in columns:
        a, b = left[name], right[name]
        try:
            same = a.combine_chunks().equals((b if a.type == b.type else b.cast(a.type)).combine_chunks())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            same = False
        if same:
            continue
        pairs = zip(left["id"].to_pylist(), a.to_pylist(), b.to_pylist(), strict=True)
        wrong = [(key, x, y) for key, x, y in pairs if plain(x) != plain(y)]
        found += [f"{name} of id {key}: {x!r} against {y!r}" for key, x, y in wrong[:most]]
    return found
