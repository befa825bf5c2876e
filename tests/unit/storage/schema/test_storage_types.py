import pyarrow as pa
import pytest

from hudi_sql.errors import SchemaError
from hudi_sql.storage.schema.evolution import same_type
from hudi_sql.storage.schema.names import check_storable
from hudi_sql.storage.schema.storage_types import to_storage_schema


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary(16), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.decimal256(30, 4), pa.decimal128(30, 4)),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.list_(pa.field("l", pa.int8())), pa.list_(pa.field("element", pa.int32()))),
        (pa.list_(pa.field("", pa.int8()), 3), pa.list_(pa.field("element", pa.int32()))),
        (
            pa.large_list(pa.field("x", pa.int8(), nullable=False)),
            pa.list_(pa.field("element", pa.int32(), nullable=False)),
        ),
        (pa.map_(pa.large_string(), pa.int16()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int32())])),
    ],
)
def test_type_that_stores_another(given, stored):
    schema = to_storage_schema(pa.schema([pa.field("c", given, nullable=False)]))
    assert same_type(schema.field("c").type, stored)
    assert not schema.field("c").nullable
    check_storable(schema)


@pytest.mark.parametrize(
    "kind", [pa.uint64(), pa.decimal256(60, 0), pa.duration("s"), pa.time64("us"), pa.null()]
)
def test_type_without_counterpart_is_named(kind):
    with pytest.raises(SchemaError, match=r"Column s\.x"):
        to_storage_schema(pa.schema([("s", pa.struct([("x", kind)]))]))
