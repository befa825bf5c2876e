from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_sql.errors import SchemaError
from hudi_sql.storage.schema.java_text import java_text


def texts(values, kind):
    return java_text(pa.array(values, kind)).to_pylist()


def test_doubles_are_written_as_by_java():
    # Left: values; right: Double.toString of them.
    known = {
        0.0: "0.0",
        1.0: "1.0",
        100.0: "100.0",
        2.5: "2.5",
        -2.5: "-2.5",
        0.001: "0.001",
        0.002: "0.002",
        0.0009999: "9.999E-4",
        1e-4: "1.0E-4",
        1.5e-7: "1.5E-7",
        9999999.0: "9999999.0",
        9999999.999999998: "9999999.999999998",
        1e7: "1.0E7",
        12345678.9: "1.23456789E7",
        1e10: "1.0E10",
        1e20: "1.0E20",
        -1.234e-5: "-1.234E-5",
        123456789012345680.0: "1.2345678901234568E17",
        1.7976931348623157e308: "1.7976931348623157E308",
        float("inf"): "Infinity",
        float("-inf"): "-Infinity",
    }
    for value, text in known.items():
        assert texts([value], pa.float64()) == [text]
    assert texts([*known, -0.0, None, float("nan")], pa.float64())[-3:] == ["-0.0", None, "NaN"]


def test_floats_have_their_own_shortest_text():
    assert texts([1.1, 3.4028235e38, 16777216.0, 0.1, None], pa.float32()) == [
        "1.1",
        "3.4028235E38",
        "1.6777216E7",
        "0.1",
        None,
    ]


def test_decimals_are_written_with_all_digits_of_the_scale():
    kind = pa.decimal128(20, 10)
    assert texts([Decimal("1.5"), Decimal("1E-10"), Decimal(0), Decimal("0.000001")], kind) == [
        "1.5000000000",
        "1E-10",
        "0E-10",
        "0.0000010000",
    ]
    assert texts([Decimal("1.000")], pa.decimal128(5, 3)) == ["1.000"]


def test_other_types():
    assert texts([-5, None], pa.int64()) == ["-5", None]
    assert texts([True, False], pa.bool_()) == ["true", "false"]
    assert texts([19782], pa.date32()) == ["2024-02-29"]
    assert texts([1704164645123456, None], pa.timestamp("us", "UTC")) == ["1704164645123456", None]
    assert texts([1704164645123], pa.timestamp("ms")) == ["1704164645123"]
    assert texts(["a", ""], pa.string()) == ["a", ""]
    assert java_text(pa.array(["b", None, "b"]).dictionary_encode()).to_pylist() == ["b", None, "b"]


def test_bytes_are_lower_case_hex_also_in_a_slice():
    values = pa.array([b"skipped", b"\x01\x02\xff", None, b"", b"a"])[1:]
    assert java_text(values).to_pylist() == ["0102ff", None, "", "61"]
    assert java_text(pa.array([], pa.binary())).to_pylist() == []
    assert java_text(pa.array([b"\xab\xcd"], pa.binary(2))).to_pylist() == ["abcd"]


def test_nested_values_have_no_text():
    with pytest.raises(SchemaError):
        java_text(pa.array([[1]]))
