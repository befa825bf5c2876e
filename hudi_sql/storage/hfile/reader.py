"""Reading HFiles (HFile notes §1 to §7). Cells of all blocks are walked side by side, one cell of each at a time."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.avro.cells import Pieces, binary_array, cut
from hudi_sql.storage.hfile.format import (
    BLOCK_HEADER,
    CODEC_GZ,
    CODEC_NONE,
    FILE_INFO_MAGIC,
    INDEX_MAGIC,
    TRAILER_BYTES,
    TRAILER_MAGIC,
    proto_fields,
    read_varint,
    read_vlong,
)

__all__ = ["HFileCells", "HFileReader"]

_MAX_BLOCK_BYTES = 1 << 31


@dataclass(frozen=True, slots=True)
class HFileCells:
    """Cells in key order."""

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray


@dataclass(frozen=True, slots=True)
class _Entry:
    """A data block in the index."""

    offset: int
    size: int
    first_key: bytes


class HFileReader:
    """One HFile, of which only what is asked for is read."""

    def __init__(self, read: Callable[[int, int], bytes], size: int, path: str = "") -> None:
        """Open a file.

        Args:
            read: Gives (start, length) bytes of the file.
            size: Of the file, in bytes.
            path: To name in errors.

        Raises:
            CorruptTableError: It is no HFile, or of a kind that Hudi does not write.
        """
        self._read = read
        self._size = size
        self._path = path
        if size < TRAILER_BYTES:
            raise self._corrupt("it is shorter than the trailer of an HFile", 0)
        try:
            self._open()
        except (ValueError, IndexError, zlib.error) as exc:
            raise self._corrupt(str(exc), size - TRAILER_BYTES) from exc

    @classmethod
    def of_bytes(cls, data: bytes, path: str = "") -> HFileReader:
        """Open a file that is in memory."""
        return cls(lambda start, length: data[start : start + length], len(data), path)

    @property
    def schema_json(self) -> str:
        """Avro schema of the values; empty when the file does not say."""
        return self._info.get(b"schema", b"").decode("utf-8", "replace")

    @property
    def num_entries(self) -> int:
        """Number of cells."""
        return self._num_entries

    def cells(self) -> HFileCells:
        """All cells."""
        return self._cells(self._entries)

    def lookup(self, keys: pa.Array) -> HFileCells:
        """The cells of these keys (string or binary); reads only blocks in which they may be."""
        wanted = pc.unique(keys.cast(pa.large_binary()))
        firsts = [entry.first_key for entry in self._entries]
        # Keys are few, or there are few blocks: either way this is a loop over the smaller side of a search.
        blocks = sorted({bisect_right(firsts, key) - 1 for key in wanted.to_pylist()} - {-1})
        found = self._cells([self._entries[number] for number in blocks])
        hit = pc.is_in(found.keys, wanted)
        return HFileCells(found.keys.filter(hit), found.values.filter(hit))

    def prefix_scan(self, prefixes: Iterable[bytes]) -> HFileCells:
        """The cells whose keys begin with one of these; reads only blocks in which they may be."""
        firsts = [entry.first_key for entry in self._entries]
        blocks: set[int] = set()
        chosen = sorted(set(prefixes))
        for prefix in chosen:
            number = max(0, bisect_right(firsts, prefix) - 1)
            while number < len(firsts) and (firsts[number] <= prefix or firsts[number].startswith(prefix)):
                blocks.add(number)
                number += 1
        found = self._cells([self._entries[number] for number in sorted(blocks)])
        if not len(found.keys):
            return found
        hit = pa.array(np.zeros(len(found.keys), bool))
        for prefix in chosen:
            hit = pc.or_(hit, pc.starts_with(found.keys, prefix))
        return HFileCells(found.keys.filter(hit), found.values.filter(hit))

    def _open(self) -> None:
        trailer = self._read(self._size - TRAILER_BYTES, TRAILER_BYTES)
        if not trailer.startswith(TRAILER_MAGIC):
            raise ValueError("it has no trailer of an HFile")
        length, at = read_varint(trailer, len(TRAILER_MAGIC))
        fields = dict(proto_fields(trailer[at : at + length]))
        self._codec = _number(fields, 12, CODEC_NONE)
        if self._codec not in (CODEC_GZ, CODEC_NONE):
            raise ValueError(f"its compression codec {self._codec} is none that Hudi writes")
        self._num_entries = _number(fields, 7, 0)
        start = _number(fields, 2, -1)
        if not 0 <= start <= self._size - TRAILER_BYTES:
            raise ValueError("its index lies outside the file")
        section = self._read(start, self._size - TRAILER_BYTES - start)
        root, at = self._section_block(section, 0, INDEX_MAGIC)
        _, at = self._section_block(section, at, INDEX_MAGIC)
        info, _ = self._section_block(section, at, FILE_INFO_MAGIC)
        self._info = _file_info(info)
        levels = _number(fields, 8, 1)
        self._entries = self._load_index(root, _number(fields, 5, 0), levels)

    def _section_block(self, section: bytes, at: int, magic: bytes) -> tuple[bytes, int]:
        payload, size = self._payload(section, at, magic)
        return payload, at + size

    def _payload(self, data: bytes, at: int, magic: bytes | None) -> tuple[bytes, int]:
        """Uncompressed payload of the block at a position, and the block's size on disk."""
        if at + BLOCK_HEADER.size > len(data):
            raise ValueError("a block runs past the end")
        found, stored, plain, _, _, _, with_header = BLOCK_HEADER.unpack_from(data, at)
        if magic is not None and found != magic:
            raise ValueError(f"a block begins with {found!r} instead of {magic!r}")
        body = data[at + BLOCK_HEADER.size : at + with_header]
        if with_header < BLOCK_HEADER.size or len(body) != with_header - BLOCK_HEADER.size:
            raise ValueError("a block is shorter than it says")
        if not 0 <= plain < _MAX_BLOCK_BYTES:
            raise ValueError("a block says an impossible size")
        if self._codec == CODEC_GZ:
            # Bounded: a damaged block must not blow up memory.
            body = zlib.decompressobj(wbits=31).decompress(body, plain + 1) if plain or body else b""
        if len(body) != plain:
            raise ValueError("a block has another size than it says")
        return body, BLOCK_HEADER.size + stored

    def _load_index(self, root: bytes, count: int, levels: int) -> list[_Entry]:
        if levels <= 1:
            return _index_entries(root, count)
        # Files that HBase wrote have leaf blocks below the root, with full cell keys.
        entries = _index_entries(root, None)
        for _ in range(levels - 1):
            below: list[_Entry] = []
            for entry in entries:
                payload, _ = self._payload(self._read(entry.offset, entry.size), 0, None)
                below += _leaf_entries(payload)
            entries = below
        return entries

    def _cells(self, entries: Sequence[_Entry]) -> HFileCells:
        try:
            payloads = self._load(entries)
            return _walk(payloads)
        except (ValueError, IndexError, zlib.error) as exc:
            raise self._corrupt(str(exc), entries[0].offset if entries else 0) from exc

    def _load(self, entries: Sequence[_Entry]) -> list[bytes]:
        """Payloads of blocks; neighbouring ones are read in one go."""
        payloads: list[bytes] = []
        at = 0
        while at < len(entries):
            end = at + 1
            while (
                end < len(entries) and entries[end].offset == entries[end - 1].offset + entries[end - 1].size
            ):
                end += 1
            start = entries[at].offset
            data = self._read(start, entries[end - 1].offset + entries[end - 1].size - start)
            payloads += [self._payload(data, entry.offset - start, None)[0] for entry in entries[at:end]]
            at = end
        return payloads

    def _corrupt(self, problem: str, offset: int) -> CorruptTableError:
        return CorruptTableError(
            f"The HFile {self._path} is damaged: {problem}",
            path=self._path,
            offset=offset,
            hint="Spark rebuilds a metadata table whose folder and property are removed.",
        )


def _number(fields: dict[int, int | bytes], key: int, default: int) -> int:
    value = fields.get(key, default)
    if not isinstance(value, int):
        raise ValueError(f"field {key} of the trailer is no number")  # noqa: TRY004  # the file is wrong, not a caller
    return value


def _file_info(payload: bytes) -> dict[bytes, bytes]:
    if not payload.startswith(b"PBUF"):
        raise ValueError("the file info is not in protobuf form")
    length, at = read_varint(payload, 4)
    found = {}
    for _, pair in proto_fields(payload[at : at + length]):
        assert isinstance(pair, bytes)
        parts = dict(proto_fields(pair))
        name, value = parts.get(1, b""), parts.get(2, b"")
        assert isinstance(name, bytes)
        assert isinstance(value, bytes)
        found[name] = value
    return found


def _index_entries(payload: bytes, count: int | None) -> list[_Entry]:
    found: list[_Entry] = []
    at = 0
    while at < len(payload) and (count is None or len(found) < count):
        offset = int.from_bytes(payload[at : at + 8], "big")
        size = int.from_bytes(payload[at + 8 : at + 12], "big")
        key, at = _index_key(payload, at + 12)
        found.append(_Entry(offset, size, key))
    if count is not None and len(found) < count:
        raise ValueError("the index has fewer blocks than the trailer says")
    return found


def _index_key(payload: bytes, at: int) -> tuple[bytes, int]:
    """Key of an entry: the row of a cell. Hudi 1.1 writes its length as a protobuf varint, everybody reads a VLong."""
    length, after = read_vlong(payload, at)
    row = int.from_bytes(payload[after : after + 2], "big")
    if length < 2 or after + length > len(payload) or row > length - 2:
        length, after = read_varint(payload, at)
        row = int.from_bytes(payload[after : after + 2], "big")
    if length < 2 or after + length > len(payload) or row > length - 2:
        raise ValueError("a key of the index has an impossible length")
    return payload[after + 2 : after + 2 + row], after + length


def _leaf_entries(payload: bytes) -> list[_Entry]:
    count = int.from_bytes(payload[:4], "big")
    table = 4 + 4 * (count + 1)
    if table > len(payload):
        raise ValueError("a leaf of the index is shorter than it says")
    ends = np.frombuffer(payload, ">i4", count + 1, 4).astype(np.int64) + table
    found = []
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        key = payload[start + 12 : end]
        row = int.from_bytes(key[:2], "big")
        offset = int.from_bytes(payload[start : start + 8], "big")
        found.append(_Entry(offset, int.from_bytes(payload[start + 8 : start + 12], "big"), key[2 : 2 + row]))
    return found


def _walk(payloads: Sequence[bytes]) -> HFileCells:
    """Keys and values of the cells of blocks: all blocks step from cell to cell together."""
    buffer = np.frombuffer(b"".join(payloads) + bytes(16), np.uint8)
    ends = np.cumsum([len(payload) for payload in payloads], dtype=np.int64)
    at = ends - np.array([len(payload) for payload in payloads], np.int64)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    alive = at < ends
    at, ends = at[alive], ends[alive]
    while len(at):
        head = np.ascontiguousarray(buffer[at[:, None] + np.arange(8)]).view(">i4").astype(np.int64)
        key_size, value_size = head[:, 0], head[:, 1]
        after = at + 9 + key_size + value_size
        if (key_size < 12).any() or (value_size < 0).any() or (after > ends).any():
            raise ValueError("a cell has an impossible length")
        found.append((at, key_size, value_size))
        going = after < ends
        at, ends = after[going], ends[going]
    if not found:
        empty = pa.array([], pa.large_binary())
        return HFileCells(empty, empty)
    starts = np.concatenate([step[0] for step in found])
    order = np.argsort(starts)
    starts = starts[order]
    key_sizes = np.concatenate([step[1] for step in found])[order]
    value_sizes = np.concatenate([step[2] for step in found])[order]
    keys: Pieces = cut(buffer, starts + 10, key_sizes - 12)
    values: Pieces = cut(buffer, starts + 8 + key_sizes, value_sizes)
    return HFileCells(binary_array(keys, pa.large_binary()), binary_array(values, pa.large_binary()))
