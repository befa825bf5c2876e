from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_sql.errors import SchemaError
from hudi_sql.storage.schema.avro_arrow import list_of
from hudi_sql.storage.schema.evolution import adapt_array, adapt_batch, can_adapt, same_type


def adapted(values, source, target):
    return adapt_array(pa.array(values, source), target, "c").to_pylist()


@pytest.mark.parametrize(
    ("values", "source", "target", "wanted"),
    [
        ([1, None], pa.int32(), pa.int64(), [1, None]),
        ([1, None], pa.int32(), pa.float32(), [1.0, None]),
        ([3000000000], pa.int64(), pa.float64(), [3e9]),
        ([2**62 + 1], pa.int64(), pa.float64(), [float(2**62)]),
        ([1.1, None], pa.float32(), pa.float64(), [1.1, None]),
        ([5, None], pa.int32(), pa.string(), ["5", None]),
        ([1e7], pa.float64(), pa.string(), ["1.0E7"]),
        ([1.1], pa.float32(), pa.string(), ["1.1"]),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.string(), ["1.50"]),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.decimal128(7, 4), [Decimal("1.5000")]),
        ([7], pa.int32(), pa.decimal128(12, 2), [Decimal("7.00")]),
        ([19782], pa.date32(), pa.string(), ["2024-02-29"]),
        (["é"], pa.string(), pa.binary(), ["é".encode()]),
        (["é".encode()], pa.binary(), pa.string(), ["é"]),
        (["x"], pa.string_view(), pa.string(), ["x"]),
    ],
)
def test_widening(values, source, target, wanted):
    assert can_adapt(source, target)
    assert adapted(values, source, target) == wanted


def test_timestamps_are_read_as_the_file_says():
    values = pa.array([1767225600000], pa.timestamp("ms"))
    micros = adapt_array(values, pa.timestamp("us", "UTC"), "c")
    assert micros.cast(pa.int64()).to_pylist() == [1767225600000000]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.int32()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.string(), pa.int32()),
        (pa.bool_(), pa.int32()),
        (pa.string(), pa.date32()),
        (pa.decimal128(10, 2), pa.decimal128(10, 4)),
        (pa.decimal128(10, 2), pa.decimal128(9, 2)),
        (pa.int64(), pa.decimal128(18, 0)),
        (pa.timestamp("us"), pa.int64()),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int32())])),
        (pa.list_(pa.int64()), list_of(pa.int32())),
    ],
)
def test_what_hudi_does_not_widen_is_refused(source, target):
    assert not can_adapt(source, target)
    with pytest.raises(SchemaError, match="Column c"):
        adapt_array(pa.nulls(1, source), target, "c")


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(SchemaError, match="Column c"):
        adapted([b"\xff"], pa.binary(), pa.string())


def test_batch_is_matched_by_name_and_missing_columns_are_null():
    batch = pa.RecordBatch.from_pydict(
        {"b": pa.array([1], pa.int32()), "gone": pa.array(["x"]), "A": pa.array(["y"])}
    )
    target = pa.schema([("a", pa.string()), ("b", pa.int64())])
    result = adapt_batch(batch, target)
    assert result.schema == target
    assert result.to_pylist() == [{"a": None, "b": 1}]


def test_missing_required_column_is_refused():
    batch = pa.RecordBatch.from_pydict({"b": pa.array([1])})
    with pytest.raises(SchemaError, match="required"):
        adapt_batch(batch, pa.schema([pa.field("a", pa.string(), nullable=False)]))


def test_batch_without_columns_keeps_its_length():
    assert adapt_batch(pa.RecordBatch.from_pydict({"b": [1, 2, 3]}), pa.schema([])).num_rows == 3


NESTED = pa.schema(
    [
        ("xs", list_of(pa.string())),
        ("s", pa.struct([("new", pa.string()), ("x", pa.int64()), ("in", pa.struct([("d", pa.float64())]))])),
        ("m", pa.map_(pa.string(), pa.float64())),
        ("xss", list_of(pa.struct([("y", list_of(pa.int64()))]))),
    ]
)


@pytest.mark.parametrize("start", [0, 1, 2])
def test_nested_types_are_adapted_at_every_level_also_in_slices(start):
    old = pa.RecordBatch.from_pydict(
        {
            "m": pa.array([[("a", 1)], None, [("b", 2), ("c", None)]], pa.map_(pa.string(), pa.int32())),
            "s": pa.array(
                [{"x": 1, "in": {"d": 1.1}}, None, {"x": None, "in": None}],
                pa.struct([("x", pa.int32()), ("in", pa.struct([("d", pa.float32())]))]),
            ),
            "xs": pa.array([[1, 2], None, []], pa.list_(pa.field("array", pa.int32(), nullable=False))),
            "xss": pa.array(
                [[{"y": [1]}, None], [], None], pa.large_list(pa.struct([("y", pa.list_(pa.int32()))]))
            ),
        }
    )
    rows = [
        {
            "xs": ["1", "2"],
            "s": {"new": None, "x": 1, "in": {"d": 1.1}},
            "m": [("a", 1.0)],
            "xss": [{"y": [1]}, None],
        },
        {"xs": None, "s": None, "m": None, "xss": []},
        {"xs": [], "s": {"new": None, "x": None, "in": None}, "m": [("b", 2.0), ("c", None)], "xss": None},
    ]
    result = adapt_batch(old.slice(start), NESTED)
    result.validate(full=True)
    assert result.schema == NESTED
    assert result.to_pylist() == rows[start:]


def test_dictionaries_are_decoded():
    values = pa.array([1, None, 1], pa.int32()).dictionary_encode()
    assert adapt_array(values, pa.string(), "c").to_pylist() == ["1", None, "1"]


def test_same_type_minds_every_name_but_that_of_map_entries():
    entries = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int32())])
    mine = pa.map_(pa.string(), pa.int32())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"m": pa.array([], mine)}), sink, store_schema=False)
    theirs = pq.read_schema(pa.BufferReader(sink.getvalue())).field("m").type
    assert str(theirs) != str(mine)
    assert same_type(mine, theirs)
    assert not same_type(mine, pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)))
    assert not same_type(mine, pa.map_(pa.string(), pa.int64()))
    assert not same_type(list_of(pa.int32()), pa.list_(pa.field("array", pa.int32())))
    assert not same_type(list_of(pa.int32()), list_of(pa.int32(), nullable=False))
    assert not same_type(list_of(list_of(pa.int32())), list_of(pa.list_(pa.int32())))
    assert not same_type(entries, pa.struct([("value", pa.int32())]))
    assert same_type(pa.struct([("m", mine)]), pa.struct([("m", theirs)]))
