"""Avro object container files that hold exactly one record: payloads of instants (timeline notes §3)."""

from __future__ import annotations

import io
import json
from functools import cache
from importlib import resources
from typing import Any

import fastavro

from hudi_sql.errors import CorruptTableError

__all__ = ["decode_container", "encode_container", "schema_of"]

_MAGIC = b"Obj\x01"
_LONGEST_REASON = 200


@cache
def schema_of(name: str) -> Any:
    """The parsed Avro schema that a payload is written in; `name` is that of its record."""
    text = resources.files(__package__).joinpath("schemas", f"{name}.avsc").read_text(encoding="utf-8")
    return fastavro.schema.parse_schema(json.loads(text))


def encode_container(name: str, record: dict[str, Any]) -> bytes:
    """Write one record into a container file, uncompressed, as Hudi does."""
    sink = io.BytesIO()
    fastavro.writer(sink, schema_of(name), [record], codec="null")
    return sink.getvalue()


def decode_container(data: bytes, path: str) -> dict[str, Any]:
    """Read the first record of a container file.

    Raises:
        CorruptTableError: It is no container file, or holds no record.
    """
    if not data.startswith(_MAGIC):
        raise CorruptTableError(f"{path} is no Avro file", path=path, offset=0)
    try:
        # Names of records in unions are of no use here: fields tell them apart.
        record = next(iter(fastavro.reader(io.BytesIO(data))))
    except StopIteration:
        raise CorruptTableError(f"{path} holds no record", path=path) from None
    except Exception as exc:
        # fastavro raises whatever its decoding runs into: EOFError, ValueError, KeyError, IndexError, struct.error.
        raise CorruptTableError(f"{path} cannot be decoded: {_reason(exc)}", path=path) from exc
    if not isinstance(record, dict):
        raise CorruptTableError(f"{path} holds a {type(record).__name__}, not a record", path=path)
    return record


def _reason(error: BaseException) -> str:
    """A line about the cause; some messages hold the whole file."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
