"""The column-wise Avro codec against fastavro, on whatever hypothesis comes up with and on real records."""

from __future__ import annotations

import contextlib
import io
import json

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.avro.datum import arrow_type_of, decode_datums, encode_datums

LONG = st.integers(-(2**63), 2**63 - 1)
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "l", "type": "long"},
        {"name": "i", "type": ["null", "int"]},
        {"name": "s", "type": ["null", "string"]},
        {"name": "b", "type": "bytes"},
        {"name": "t", "type": ["boolean", "null"]},
        {"name": "d", "type": "double"},
        {"name": "f", "type": ["null", "float"]},
        {"name": "x", "type": {"type": "fixed", "name": "x3", "size": 3}},
        {"name": "e", "type": {"type": "enum", "name": "en", "symbols": ["A", "B"]}},
        {"name": "m", "type": ["null", {"type": "map", "values": {"type": "record", "name": "v", "fields": [
            {"name": "size", "type": "long"}, {"name": "gone", "type": "boolean"}]}}]},
        {"name": "a", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "u", "type": ["null", {"type": "record", "name": "W1", "fields": [{"name": "value", "type": "int"}]},
                               {"type": "record", "name": "W2", "fields": [{"name": "value", "type": "string"}]}]},
    ],
}  # fmt: skip
TEXT = json.dumps(SCHEMA)
PARSED = fastavro.parse_schema(SCHEMA)

ROW = st.fixed_dictionaries(
    {
        "l": LONG,
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "s": st.none() | st.text(max_size=300),
        "b": st.binary(max_size=200),
        "t": st.none() | st.booleans(),
        "d": st.floats(allow_nan=False),
        "f": st.none() | st.floats(width=32, allow_nan=False),
        "x": st.binary(min_size=3, max_size=3),
        "e": st.sampled_from("AB"),
        "m": st.none()
        | st.dictionaries(
            st.text(max_size=5), st.fixed_dictionaries({"size": LONG, "gone": st.booleans()}), max_size=4
        ),
        "a": st.lists(st.none() | st.text(max_size=5), max_size=5),
        "u": st.none()
        | st.integers(0, 100).map(lambda value: ("W1", value))
        | st.text(max_size=9).map(lambda value: ("W2", value)),
    }
)


def theirs(row: dict) -> bytes:
    record = {**row, "u": None if row["u"] is None else (row["u"][0], {"value": row["u"][1]})}
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, PARSED, record)
    return sink.getvalue()


def ours(row: dict) -> dict:
    union = row["u"]
    return {
        **row,
        "m": None if row["m"] is None else list(row["m"].items()),
        "u": None if union is None else {union[0]: {"value": union[1]}},
    }


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=12))
def test_bytes_and_values_are_those_of_avro(rows) -> None:
    expected = [theirs(row) for row in rows]
    records = pa.array([ours(row) for row in rows], arrow_type_of(TEXT))
    assert encode_datums(records, TEXT).to_pylist() == expected
    decoded = decode_datums(pa.array(expected, pa.binary()), TEXT)
    assert decoded.type == records.type
    assert decoded.to_pylist() == records.to_pylist()


def test_a_slice_of_an_array_is_encoded_as_what_it_is() -> None:
    schema = json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array", "items": "long"}}]}
    )
    records = pa.array([{"a": [1, 2]}, {"a": []}, {"a": [3]}], arrow_type_of(schema))
    assert decode_datums(encode_datums(records.slice(1), schema), schema).to_pylist() == [
        {"a": []},
        {"a": [3]},
    ]


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_a_record_that_ends_early_is_corrupt(cut) -> None:
    row = {
        "l": 1,
        "i": 2,
        "s": "abc",
        "b": b"xyz",
        "t": True,
        "d": 1.0,
        "f": None,
        "x": b"123",
        "e": "A",
        "m": {},
        "a": [],
        "u": None,
    }
    data = theirs(row)
    with pytest.raises(CorruptTableError, match="file"):
        decode_datums(pa.array([data[:-cut]], pa.binary()), TEXT, "file")


def test_damaged_bytes_never_come_out_as_another_error() -> None:
    rng = np.random.default_rng(7)
    row = {"l": 2**40, "i": 2, "s": "abc", "b": b"xyz", "t": True, "d": 1.0, "f": 2.0, "x": b"123", "e": "B",
           "m": {"k": {"size": 5, "gone": False}}, "a": ["q", None], "u": ("W2", "w")}  # fmt: skip
    data = theirs(row)
    for _ in range(300):
        broken = bytearray(data)
        for at in rng.integers(0, len(broken), 2):
            broken[at] = rng.integers(0, 256)
        with contextlib.suppress(CorruptTableError):
            decode_datums(pa.array([bytes(broken)], pa.binary()), TEXT)
