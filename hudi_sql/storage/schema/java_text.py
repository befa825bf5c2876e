"""Numbers, times and bytes as Java writes them: the text of keys, partition paths and widened columns.

Column-wise throughout. `Double.toString` of JDK 19 and later is followed (shortest digits); older ones write a digit
more for a few values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import SchemaError

__all__ = ["floating_text", "hex_text", "java_text"]

_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7
_PARTS = r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<part>\d+))?(?:[eE](?P<power>[-+]?\d+))?$"


def java_text(values: pa.Array) -> pa.StringArray:
    """Write values of any flat type as Hudi turns them into text (key generator notes §3).

    Timestamps are the plain number that Avro holds (micros or millis), binary is lower-case hex.

    Raises:
        SchemaError: The type has no text.

    Example:
        >>> java_text(pa.array([1e7, 0.5, 100.0, None])).to_pylist()
        ['1.0E7', '0.5', '100.0', None]
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        return java_text(values.dictionary).take(values.indices)
    if pa.types.is_floating(kind):
        return floating_text(values)
    if pa.types.is_timestamp(kind):
        return values.cast(pa.int64()).cast(pa.string())
    if pa.types.is_time(kind):
        return values.cast(pa.int64() if pa.types.is_time64(kind) else pa.int32()).cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return hex_text(values)
    # Arrow writes decimals by the rule of BigDecimal.toString: with all digits of the scale, and with an
    # exponent for values far below one.
    if (
        pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    ):
        return values.cast(pa.string())
    raise SchemaError(f"A value of type {kind} has no text in Hudi", hint="Use a column of a flat type.")


def floating_text(values: pa.Array) -> pa.StringArray:
    """Write floats or doubles as `Float.toString` and `Double.toString` do."""
    text = values.cast(pa.string())
    finite = pc.is_finite(values)
    size = pc.abs(values)
    plain = pc.or_(
        pc.equal(size, 0), pc.and_(pc.greater_equal(size, _PLAIN_FROM), pc.less(size, _PLAIN_BELOW))
    )
    with_point = pc.if_else(
        pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, pa.scalar("0"), ".")
    )
    result = with_point
    scientific = pc.and_(finite, pc.invert(plain))
    if pc.any(scientific).as_py():
        rows = pc.indices_nonzero(scientific.fill_null(fill_value=False))
        written = _scientific(text.take(rows))
        result = pc.replace_with_mask(result, scientific.fill_null(fill_value=False), written)
    if pc.any(pc.invert(finite)).as_py():
        word = pc.if_else(pc.greater(values, 0), "Infinity", "-Infinity")
        word = pc.if_else(pc.is_nan(values), "NaN", word)
        result = pc.if_else(finite, result, word)
    return result


def _scientific(text: pa.StringArray) -> pa.StringArray:
    """`d.dddE±n` out of any spelling of finite numbers other than zero."""
    parts = pc.extract_regex(text, _PARTS)
    sign, whole, part, power = (pc.struct_field(parts, name) for name in ("sign", "whole", "part", "power"))
    exponent = pc.if_else(pc.equal(power, ""), "0", pc.replace_substring(power, "+", "")).cast(pa.int64())
    digits = pc.binary_join_element_wise(whole, part, "")
    significant = pc.utf8_ltrim(digits, "0")
    dropped = pc.subtract(pc.utf8_length(digits), pc.utf8_length(significant)).cast(pa.int64())
    # The point stands after `whole`; it moves behind the first significant digit.
    exponent = pc.subtract(pc.add(exponent, pc.utf8_length(whole).cast(pa.int64())), pc.add(dropped, 1))
    significant = pc.utf8_rtrim(significant, "0")
    first = pc.utf8_slice_codeunits(significant, 0, 1)
    rest = pc.utf8_slice_codeunits(significant, 1)
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    mantissa = pc.binary_join_element_wise(first, rest, ".")
    number = pc.binary_join_element_wise(mantissa, exponent.cast(pa.string()), "E")
    return pc.binary_join_element_wise(sign, number, "")


def hex_text(values: pa.Array) -> pa.StringArray:
    """Write bytes as lower-case hex digits."""
    plain = values.cast(pa.binary())
    count = len(plain)
    if count == 0:
        return pa.array([], pa.string())
    offsets = np.frombuffer(plain.buffers()[1], dtype=np.int32)[plain.offset : plain.offset + count + 1]
    start, stop = int(offsets[0]), int(offsets[-1])
    buffer = plain.buffers()[2]
    data = np.frombuffer(buffer, dtype=np.uint8)[start:stop] if buffer is not None else np.empty(0, np.uint8)
    letters = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    text = np.empty(2 * len(data), dtype=np.uint8)
    text[0::2] = letters[data >> 4]
    text[1::2] = letters[data & 15]
    doubled = ((offsets - start) * 2).astype(np.int32)
    mask = None
    if plain.null_count:
        mask = pc.is_valid(plain).buffers()[1]
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(doubled), pa.py_buffer(text), mask, plain.null_count
    )
