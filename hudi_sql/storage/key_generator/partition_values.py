"""Values of partition columns out of the path of a partition."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from hudi_sql.storage.key_generator.escaping import (
    DEFAULT_PARTITION,
    OLD_DEFAULT_PARTITION,
    unescape_path_value,
)

__all__ = ["parse_value", "split_path"]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_INTEGER = re.compile(r"-?\d{1,19}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def split_path(path: str, fields: Sequence[str], *, hive_style: bool) -> list[str] | None:
    """Cut a partition path into the texts of its fields; None when it does not have that shape.

    A single field may span several folders: without escapes a slash in its value is a slash in the path.
    """
    parts = [path] if len(fields) == 1 else path.split("/")
    if not fields or len(parts) != len(fields):
        return None
    texts = []
    for part, field in zip(parts, fields, strict=True):
        if not hive_style:
            texts.append(part)
        elif part.startswith(f"{field}="):
            texts.append(part[len(field) + 1 :])
        else:
            return None
    return texts


def parse_value(text: str, kind: pa.DataType, *, is_encoded: bool, exact: bool) -> pa.Scalar | None:
    """Read the text of one partition field; None when it does not tell the value.

    Args:
        text: As the path has it.
        kind: Type of the column.
        is_encoded: Whether the table escapes partition values.
        exact: Whether the value must be that of every row: paths made of timestamps by Spark SQL drop the fraction and
            do not name a zone. The default partition of a text column holds NULL and the empty text, and every
            reader takes both for NULL.
    """
    is_text = pa.types.is_string(kind)
    if text == DEFAULT_PARTITION or (text == OLD_DEFAULT_PARTITION and not is_text):
        return pa.scalar(None, kind)
    if is_text:
        if text == OLD_DEFAULT_PARTITION and exact:
            return None
        return pa.scalar(unescape_path_value(text) if is_encoded else text, kind)
    try:
        return _parse(unescape_path_value(text), kind, exact=exact)
    except (ValueError, InvalidOperation, OverflowError, pa.ArrowException):
        return None


def _parse(text: str, kind: pa.DataType, *, exact: bool) -> pa.Scalar | None:
    if pa.types.is_boolean(kind):
        return pa.scalar(text == "true", kind) if text in ("true", "false") else None
    if pa.types.is_integer(kind):
        return pa.scalar(int(text), kind) if _INTEGER.fullmatch(text) else None
    if pa.types.is_date(kind):
        return pa.scalar(dt.date.fromisoformat(text), kind) if _DATE.fullmatch(text) else None
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(text), kind)
    if pa.types.is_floating(kind):
        value = pa.scalar(float(text), pa.float64()).cast(kind)
        # NaN equals nothing, not even itself, in comparisons of bounds.
        return None if math.isnan(value.as_py()) else value
    if pa.types.is_timestamp(kind):
        if _INTEGER.fullmatch(text):
            return pa.scalar(int(text), pa.int64()).cast(kind)
        if exact or not _TIMESTAMP.fullmatch(text):
            return None
        moment = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
        micros = (moment - _EPOCH) // dt.timedelta(microseconds=1)
        return pa.scalar(micros, pa.timestamp("us", kind.tz)).cast(kind)
    return None
