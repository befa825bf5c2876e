"""Our HFiles read back, real ones read, broken ones named."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.hfile.format import read_vlong, vlong
from hudi_sql.storage.hfile.reader import HFileReader
from hudi_sql.storage.hfile.writer import encode_hfile


def cells(count: int, *, key_width: int = 9) -> tuple[pa.Array, pa.Array]:
    keys = pa.array([f"{i:0{key_width}d}" for i in range(count)])
    values = pa.array([bytes([i % 251]) * (i % 90) for i in range(count)], pa.binary())
    return keys, values


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 5_000])
def test_what_is_written_is_read(count, compress) -> None:
    keys, values = cells(count)
    reader = HFileReader.of_bytes(encode_hfile(keys, values, '"bytes"', compress=compress))
    found = reader.cells()
    assert (reader.num_entries, reader.schema_json) == (count, '"bytes"')
    assert found.keys.cast(pa.string()).equals(keys.cast(pa.string()))
    assert found.values.cast(pa.binary()).equals(values)


def test_blocks_stay_below_the_size_at_which_java_loses_cells() -> None:
    keys, values = cells(20_000)
    data = encode_hfile(keys, values, '"bytes"', compress=False)
    start = sizes = 0
    while data[start : start + 8] == b"DATABLK*":
        size = int.from_bytes(data[start + 12 : start + 16], "big")
        assert size <= 64 * 1024
        sizes += 1
        start += 33 + int.from_bytes(data[start + 8 : start + 12], "big")
    assert sizes > 10


@pytest.mark.parametrize("width", [9, 126, 140, 300])
def test_lookups_read_only_the_blocks_they_need(width) -> None:
    keys, values = cells(9_000, key_width=width)
    data = encode_hfile(keys, values, '"bytes"')
    reads: list[tuple[int, int]] = []

    def read(start: int, length: int) -> bytes:
        reads.append((start, length))
        return data[start : start + length]

    reader = HFileReader(read, len(data))
    reads.clear()
    wanted = keys.take(pa.array([17, 8_000])).cast(pa.string())
    found = reader.lookup(pa.concat_arrays([wanted, pa.array(["nope"])]))
    assert found.keys.cast(pa.string()).equals(wanted)
    assert sum(length for _, length in reads) < len(data) / 4
    prefix = keys[4_321].as_py()[:-1].encode()
    assert len(reader.prefix_scan([prefix]).keys) == 10


def test_a_length_in_the_form_of_hudi_1_1_is_understood() -> None:
    """Its writer gives lengths of 126 and more as protobuf varints, which other readers cannot read."""
    keys, values = cells(3, key_width=140)
    data = bytearray(encode_hfile(keys, values, '"bytes"', compress=False))
    at = data.index(b"IDXROOT2") + 33 + 12
    length, _ = read_vlong(bytes(data), at)
    assert length == 142
    data[at : at + 2] = bytes([142 & 0x7F | 0x80, 142 >> 7])
    assert HFileReader.of_bytes(bytes(data)).cells().keys.cast(pa.string()).equals(keys)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 255, 256, 65_535, 70_000])
def test_variable_length_numbers_come_back(number) -> None:
    assert read_vlong(vlong(number), 0) == (number, len(vlong(number)))


def test_damage_is_a_typed_error_and_never_hangs() -> None:
    keys, values = cells(400)
    data = encode_hfile(keys, values, '"bytes"')
    rng = np.random.default_rng(3)
    broken = [data[:size] for size in (0, 10, 4095, len(data) - 1, len(data) // 2)]
    for _ in range(300):
        copy = bytearray(data)
        for at in rng.integers(0, len(copy), 3):
            copy[at] ^= int(rng.integers(1, 256))
        broken.append(bytes(copy))
    named = 0
    for one in broken:
        try:
            HFileReader.of_bytes(one, "x.hfile").cells()
        except CorruptTableError as error:
            named += error.path == "x.hfile"
    assert named > 10
