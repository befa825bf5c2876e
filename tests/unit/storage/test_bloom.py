"""Bloom filters: those of Spark, bit by bit, and what ours promise."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage import bloom
from hudi_sql.storage.bloom import build_bloom_filter, parse_bloom_filter
from tests.golden_tables import unpack

SPARK = {"num_entries": 60_000, "fpp": 1e-9, "max_entries": 100_000}


def test_bits_are_those_of_spark(tmp_path) -> None:
    checked = 0
    for file in unpack("v9_cow_many_file_groups", tmp_path).rglob("city=*/*.parquet"):
        footer = pq.read_metadata(file).metadata
        keys = pq.read_table(file, columns=["_hoodie_record_key"]).column(0).combine_chunks()
        text = footer[b"org.apache.hudi.bloomfilter"].decode()
        theirs = parse_bloom_filter(text, footer[b"hoodie_bloom_filter_type_code"].decode(), str(file))
        assert theirs.encode() == text
        assert theirs.might_contain(keys).all()
        if theirs.num_keys_in_last != len(keys):
            continue  # rows were deleted since: their keys stay in the filter
        row = np.zeros_like(theirs.rows[0])
        for _, bits in bloom._bit_positions(keys, theirs.num_hashes, theirs.num_bits):
            flags = np.zeros(len(row) * 8, np.uint8)
            flags[bits.ravel()] = 1
            row |= np.packbits(flags, bitorder="little")
        assert (row == theirs.rows[0]).all()
        checked += 1
    assert checked > 3


@pytest.mark.parametrize("count", [0, 1, 500, 70_000, 150_000])
def test_every_key_is_found_and_others_hardly_ever(count) -> None:
    keys = pa.array([f"ключ-{i}" if i % 3 else str(i) for i in range(count)], pa.string())
    built = build_bloom_filter(keys, **SPARK)
    again = parse_bloom_filter(built.encode(), built.type_code, "x")
    assert again.might_contain(keys).all()
    if count <= 70_000:
        assert again.might_contain(pa.array([f"other{i}" for i in range(5_000)])).mean() < 0.001


def test_far_more_keys_than_a_filter_may_hold_make_a_small_one_that_says_maybe() -> None:
    keys = pa.array(np.arange(900_000)).cast(pa.string())
    built = build_bloom_filter(keys, **SPARK)
    assert len(built.encode()) < 200
    assert built.might_contain(keys.slice(0, 1000)).all()


@pytest.mark.parametrize(
    "text", ["", "!!!", base64.b64encode(b"\0" * 13).decode(), base64.b64encode(b"\xff" * 30).decode()]
)
def test_a_broken_filter_is_named(text) -> None:
    with pytest.raises(CorruptTableError, match=r"x\.parquet"):
        parse_bloom_filter(text, "DYNAMIC_V0", "x.parquet")
