"""Avro records without a container, column by column: a vector of positions, moved on one field at a time.

The Arrow form of an Avro type: primitives as they are (logical types are not looked at), records as structs, maps and
arrays as such, a union of null and one type as a nullable column, and a union of several types as a struct with one
nullable field for each branch, named like it; at most one of them has a value. Results are byte for byte those of
Avro's own encoders.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.avro.cells import Bytes, Ints, Pieces, binary_array, cut, join_pieces, pieces_of

__all__ = ["arrow_type_of", "decode_datums", "encode_datums"]

_MAX_VARINT_BYTES = 10


@dataclass(slots=True)
class _Cursor:
    """Where each of the rows is in the buffer."""

    buffer: Bytes
    at: Ints

    def some(self, rows: Ints) -> _Cursor:
        return _Cursor(self.buffer, self.at[rows])


def decode_datums(values: pa.Array, schema_json: str, path: str = "") -> pa.StructArray:
    """Decode one record from each value.

    Args:
        values: Binary array without NULLs.
        schema_json: Avro schema that they were written in.
        path: File to name when they do not fit it.

    Raises:
        CorruptTableError: A value ends before its record does.
    """
    pieces = pieces_of(values)
    # A pad keeps a damaged last value from being read past the end of the buffer.
    buffer = np.concatenate([pieces.data, np.zeros(_MAX_VARINT_BYTES + 8, np.uint8)])
    cursor = _Cursor(buffer, pieces.starts.copy())
    try:
        decoded = _decode(_parsed(schema_json), cursor)
    except (IndexError, ValueError, pa.ArrowInvalid) as exc:
        raise CorruptTableError(f"A record in {path} does not fit its schema: {exc}", path=path) from exc
    if (cursor.at != pieces.starts + pieces.lengths).any():
        raise CorruptTableError(f"A record in {path} is shorter or longer than its schema says", path=path)
    assert isinstance(decoded, pa.StructArray)
    return decoded


def encode_datums(records: pa.StructArray, schema_json: str) -> pa.LargeBinaryArray:
    """Encode one record from each row; fields that the struct lacks are null."""
    return binary_array(_encode(_parsed(schema_json), records), pa.large_binary())


def arrow_type_of(schema_json: str) -> pa.DataType:
    """The Arrow type that `decode_datums` gives and `encode_datums` takes."""
    return _arrow(_parsed(schema_json))


# ------------------------------------------------------------------------------------------------ schemas


@dataclass(frozen=True, slots=True)
class _Node:
    """A resolved Avro type."""

    kind: str
    name: str = ""
    fields: tuple[tuple[str, _Node], ...] = ()
    """Of a record: name and type of each field. Of a union: name and type of each branch."""
    item: _Node | None = None
    """Of an array or map."""
    size: int = 0
    """Of a fixed type, in bytes."""

    @property
    def is_optional(self) -> bool:
        """A union of null and one other type."""
        return (
            self.kind == "union" and len(self.fields) == 2 and any(n.kind == "null" for _, n in self.fields)
        )


@lru_cache(maxsize=64)
def _parsed(schema_json: str) -> _Node:
    return _resolve(json.loads(schema_json), {}, "")


def _resolve(schema: Any, known: dict[str, _Node], space: str) -> _Node:
    if isinstance(schema, list):
        branches = [_resolve(branch, known, space) for branch in schema]
        return _Node("union", fields=tuple((branch.name or branch.kind, branch) for branch in branches))
    if isinstance(schema, str):
        return known.get(schema) or known.get(f"{space}.{schema}") or _Node(schema)
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _resolve(kind, known, space)
    space = schema.get("namespace", space)
    name = str(schema.get("name", ""))
    if kind == "record":
        fields = tuple((field["name"], _resolve(field["type"], known, space)) for field in schema["fields"])
        node = _Node("record", name=name, fields=fields)
    elif kind == "array":
        return _Node("array", item=_resolve(schema["items"], known, space))
    elif kind == "map":
        return _Node("map", item=_resolve(schema["values"], known, space))
    elif kind == "fixed":
        node = _Node("fixed", name=name, size=int(schema["size"]))
    elif kind == "enum":
        node = _Node("enum", name=name, fields=tuple((symbol, _Node("null")) for symbol in schema["symbols"]))
    else:
        return _Node(kind)
    known[name] = known[f"{space}.{name}"] = node
    return node


_ARROW = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}


def _arrow(node: _Node) -> pa.DataType:
    if node.is_optional:
        return _arrow(next(branch for _, branch in node.fields if branch.kind != "null"))
    if node.kind in ("record", "union"):
        return pa.struct([(name, _arrow(child)) for name, child in node.fields if child.kind != "null"])
    if node.kind == "fixed":
        return pa.binary(node.size)
    if node.kind == "array":
        assert node.item is not None
        return pa.list_(_arrow(node.item))
    if node.kind == "map":
        assert node.item is not None
        return pa.map_(pa.string(), _arrow(node.item))
    return _ARROW[node.kind]


# ----------------------------------------------------------------------------------------------- decoding


def _decode(node: _Node, cursor: _Cursor) -> pa.Array:
    decoder = _DECODERS.get(node.kind)
    if decoder is None:
        raise ValueError(f"unknown Avro type {node.kind}")
    return decoder(node, cursor)


def _varints(cursor: _Cursor) -> Ints:
    """Zigzag numbers; moves the cursor."""
    found = np.zeros(len(cursor.at), np.uint64)
    rows = np.arange(len(cursor.at))
    for number in range(_MAX_VARINT_BYTES):
        byte = cursor.buffer[cursor.at[rows]]
        found[rows] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * number)
        cursor.at[rows] += 1
        rows = rows[byte >= 0x80]
        if not len(rows):
            break
    else:
        raise ValueError("a number has more than ten bytes")
    return ((found >> np.uint64(1)) ^ (-(found & np.uint64(1)).astype(np.int64)).astype(np.uint64)).view(
        np.int64
    )


def _decode_null(_: _Node, cursor: _Cursor) -> pa.Array:
    return pa.nulls(len(cursor.at))


def _decode_boolean(_: _Node, cursor: _Cursor) -> pa.Array:
    values = cursor.buffer[cursor.at] != 0
    cursor.at += 1
    return pa.array(values)


def _decode_int(_: _Node, cursor: _Cursor) -> pa.Array:
    return pa.array(_varints(cursor)).cast(pa.int32())


def _decode_long(_: _Node, cursor: _Cursor) -> pa.Array:
    return pa.array(_varints(cursor))


def _decode_float(node: _Node, cursor: _Cursor) -> pa.Array:
    size, kind = (4, "<f4") if node.kind == "float" else (8, "<f8")
    window = cursor.buffer[cursor.at[:, None] + np.arange(size)]
    cursor.at += size
    return pa.array(np.ascontiguousarray(window).view(kind).reshape(-1), _ARROW[node.kind])


def _decode_bytes(node: _Node, cursor: _Cursor) -> pa.Array:
    lengths = np.full(len(cursor.at), node.size, np.int64) if node.kind == "fixed" else _varints(cursor)
    if (lengths < 0).any() or (cursor.at + lengths > len(cursor.buffer)).any():
        raise ValueError("a length points outside the value")
    pieces = cut(cursor.buffer, cursor.at, lengths)
    cursor.at += lengths
    if node.kind == "fixed":
        return pa.Array.from_buffers(pa.binary(node.size), len(lengths), [None, pa.py_buffer(pieces.data)])
    return binary_array(pieces, _ARROW[node.kind])


def _decode_enum(node: _Node, cursor: _Cursor) -> pa.Array:
    symbols = pa.array([symbol for symbol, _ in node.fields], pa.string())
    return symbols.take(pa.array(_varints(cursor)))


def _decode_record(node: _Node, cursor: _Cursor) -> pa.Array:
    children = [_decode(child, cursor) for _, child in node.fields]
    kept = [
        (name, array)
        for (name, child), array in zip(node.fields, children, strict=True)
        if child.kind != "null"
    ]
    if not kept:
        return pa.array([{}] * len(cursor.at), pa.struct([]))
    return pa.StructArray.from_arrays([array for _, array in kept], names=[name for name, _ in kept])


def _decode_union(node: _Node, cursor: _Cursor) -> pa.Array:
    branches = _varints(cursor)
    if len(branches) and (branches.min() < 0 or branches.max() >= len(node.fields)):
        raise ValueError("a union has no such branch")
    children: dict[str, pa.Array] = {}
    for number, (name, child) in enumerate(node.fields):
        if child.kind == "null":
            continue
        rows = np.flatnonzero(branches == number)
        children[name] = _scattered(child, rows, cursor)
    if node.is_optional:
        return next(iter(children.values()))
    mask = np.ones(len(branches), bool)
    for number, (_, child) in enumerate(node.fields):
        if child.kind != "null":
            mask &= branches != number
    return pa.StructArray.from_arrays(list(children.values()), names=list(children), mask=pa.array(mask))


def _scattered(child: _Node, rows: Ints, cursor: _Cursor) -> pa.Array:
    """Values of one branch at their rows, NULL at all others."""
    total = len(cursor.at)
    if not len(rows):
        return pa.nulls(total, _arrow(child))
    part = cursor.some(rows)
    values = _decode(child, part)
    cursor.at[rows] = part.at
    if len(rows) == total:
        return values
    picks = np.zeros(total, np.int64)
    picks[rows] = np.arange(len(rows))
    missing = np.ones(total, bool)
    missing[rows] = False
    return values.take(pa.array(picks, mask=missing))


def _decode_items(node: _Node, cursor: _Cursor) -> tuple[Ints, list[pa.Array]]:
    """Items of all arrays or maps: offsets of each row's items, and their columns (map: key and value)."""
    assert node.item is not None
    total = len(cursor.at)
    owners: list[Ints] = []
    steps: list[list[pa.Array]] = []
    open_rows = np.arange(total)
    while len(open_rows):
        part = cursor.some(open_rows)
        counts = _varints(part)
        # A negative count is followed by the size of the block in bytes.
        negative = np.flatnonzero(counts < 0)
        if len(negative):
            sized = part.some(negative)
            _varints(sized)
            part.at[negative] = sized.at
        counts = np.abs(counts)
        cursor.at[open_rows] = part.at
        open_rows, counts = open_rows[counts > 0], counts[counts > 0]
        left, rows = counts.copy(), open_rows
        while len(rows):
            part = cursor.some(rows)
            columns = [_decode_bytes(_Node("string"), part)] if node.kind == "map" else []
            columns.append(_decode(node.item, part))
            cursor.at[rows] = part.at
            owners.append(rows)
            steps.append(columns)
            left -= 1
            rows, left = rows[left > 0], left[left > 0]
    owner = np.concatenate(owners) if owners else np.empty(0, np.int64)
    order = pa.array(np.argsort(owner, kind="stable"))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=total))]).astype(np.int64)
    if not steps:
        empty = [pa.array([], _arrow(node.item))]
        return offsets, [pa.array([], pa.string()), *empty] if node.kind == "map" else empty
    columns = [pa.concat_arrays([step[i] for step in steps]).take(order) for i in range(len(steps[0]))]
    return offsets, columns


def _decode_array(node: _Node, cursor: _Cursor) -> pa.Array:
    offsets, (items,) = _decode_items(node, cursor)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)


def _decode_map(node: _Node, cursor: _Cursor) -> pa.Array:
    offsets, (keys, items) = _decode_items(node, cursor)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)


_DECODERS: dict[str, Callable[[_Node, _Cursor], pa.Array]] = {
    "null": _decode_null,
    "boolean": _decode_boolean,
    "int": _decode_int,
    "long": _decode_long,
    "float": _decode_float,
    "double": _decode_float,
    "bytes": _decode_bytes,
    "string": _decode_bytes,
    "fixed": _decode_bytes,
    "enum": _decode_enum,
    "record": _decode_record,
    "union": _decode_union,
    "array": _decode_array,
    "map": _decode_map,
}

# ----------------------------------------------------------------------------------------------- encoding


def _encode(node: _Node, array: pa.Array) -> Pieces:
    if node.kind == "record":
        return _encode_record(node, array)
    if node.kind == "union":
        return _encode_union(node, array)
    if node.kind in ("array", "map"):
        return _encode_items(node, array)
    return _encode_primitive(node, array)


def _encode_varints(numbers: Ints) -> Pieces:
    zigzag = (numbers.astype(np.int64) << 1) ^ (numbers.astype(np.int64) >> 63)
    left = zigzag.view(np.uint64)
    digits = np.empty((len(left), _MAX_VARINT_BYTES), np.uint8)
    lengths = np.ones(len(left), np.int64)
    for number in range(_MAX_VARINT_BYTES):
        digits[:, number] = (left & np.uint64(0x7F)).astype(np.uint8)
        left = left >> np.uint64(7)
        more = left != 0
        digits[more, number] |= 0x80
        lengths += more
        if not more.any():
            break
    used = np.arange(_MAX_VARINT_BYTES) < lengths[:, None]
    return Pieces(lengths, digits[used])


def _encode_primitive(node: _Node, array: pa.Array) -> Pieces:
    rows = len(array)
    if node.kind == "null":
        return Pieces(np.zeros(rows, np.int64), np.empty(0, np.uint8))
    if node.kind == "boolean":
        return Pieces(np.ones(rows, np.int64), array.cast(pa.uint8()).to_numpy(zero_copy_only=False))
    if node.kind in ("int", "long"):
        return _encode_varints(array.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if node.kind in ("float", "double"):
        size, kind = (4, "<f4") if node.kind == "float" else (8, "<f8")
        raw = array.to_numpy(zero_copy_only=False).astype(kind)
        return Pieces(np.full(rows, size, np.int64), raw.view(np.uint8).reshape(-1))
    if node.kind == "enum":
        symbols = pa.array([symbol for symbol, _ in node.fields], pa.string())
        return _encode_varints(
            pa.compute.index_in(array, symbols).cast(pa.int64()).to_numpy(zero_copy_only=False)
        )
    pieces = pieces_of(array)
    if node.kind == "fixed":
        return pieces
    return join_pieces([_encode_varints(pieces.lengths), pieces])


def _encode_record(node: _Node, array: pa.StructArray) -> Pieces:
    columns = []
    for name, child in node.fields:
        index = array.type.get_field_index(name)
        column = array.field(index) if index >= 0 else pa.nulls(len(array), _arrow(child))
        columns.append(_encode(child, column))
    if not columns:
        return Pieces(np.zeros(len(array), np.int64), np.empty(0, np.uint8))
    return join_pieces(columns)


def _encode_union(node: _Node, array: pa.Array) -> Pieces:
    rows = len(array)
    null_branch = next((n for n, (_, child) in enumerate(node.fields) if child.kind == "null"), 0)
    branches = np.full(rows, null_branch, np.int64)
    parts: list[tuple[Ints, Pieces]] = []
    for number, (name, child) in enumerate(node.fields):
        if child.kind == "null":
            continue
        column = array
        if not node.is_optional:
            index = array.type.get_field_index(name)
            if index < 0:
                continue
            column = array.flatten()[index]
        valid = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        if not len(valid):
            continue
        branches[valid] = number
        chosen = column if len(valid) == rows else column.take(pa.array(valid))
        parts.append((valid, _encode(child, chosen)))
    bodies = [_encode_varints(branches)]
    for valid, pieces in parts:
        lengths = np.zeros(rows, np.int64)
        lengths[valid] = pieces.lengths
        bodies.append(Pieces(lengths, pieces.data))
    return join_pieces(bodies)


def _encode_items(node: _Node, array: pa.Array) -> Pieces:
    """One block of items, then the end; an empty collection is the end alone."""
    assert node.item is not None
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    counts = np.diff(offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    if node.kind == "map":
        keys = array.keys.slice(first, last - first)
        items = array.items.slice(first, last - first)
        encoded = join_pieces([_encode_primitive(_Node("string"), keys), _encode(node.item, items)])
    else:
        encoded = _encode(node.item, array.values.slice(first, last - first))
    owners = np.repeat(np.arange(len(array)), counts)
    lengths = np.bincount(owners, weights=encoded.lengths, minlength=len(array)).astype(np.int64)
    heads = _encode_varints(counts)
    blank = counts == 0
    if blank.any():
        # The count of a block that is not there is not written.
        keep = np.repeat(~blank, heads.lengths)
        heads = Pieces(np.where(blank, 0, heads.lengths), heads.data[keep])
    ends = Pieces(np.ones(len(array), np.int64), np.zeros(len(array), np.uint8))
    return join_pieces([heads, Pieces(lengths, encoded.data), ends])
