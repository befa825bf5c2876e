import pyarrow as pa
import pytest

from hudi_sql.errors import SchemaError
from hudi_sql.storage.schema.names import check_storable


@pytest.mark.parametrize("name", ["1Min", "a-b", "$x", "", "a b", "é"])
def test_names_that_avro_does_not_allow_are_named(name):
    with pytest.raises(SchemaError) as caught:
        check_storable(pa.schema([("id", pa.int32()), (name, pa.int32())]))
    assert caught.value.column == name


def test_a_bad_name_inside_a_struct_is_named_by_its_path():
    inner = pa.struct([("ok", pa.int32()), ("a-b", pa.int32())])
    for kind in (inner, pa.list_(inner), pa.map_(pa.string(), inner)):
        with pytest.raises(SchemaError, match=r"s.*a-b"):
            check_storable(pa.schema([("s", kind)]))


def test_names_that_differ_in_case_only_are_refused():
    with pytest.raises(SchemaError, match="differ in case"):
        check_storable(pa.schema([("id", pa.int32()), ("ID", pa.int32())]))


def test_meta_columns_are_not_for_users():
    schema = pa.schema([("_hoodie_record_key", pa.string())])
    with pytest.raises(SchemaError, match="meta columns"):
        check_storable(schema)
    check_storable(schema, allow_meta_columns=True)


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.uint64(),
        pa.large_string(),
        pa.decimal256(40, 2),
        pa.duration("us"),
        pa.null(),
        pa.struct([]),
        pa.map_(pa.int32(), pa.string()),
        pa.list_(pa.int16()),
        pa.timestamp("us", "Europe/Berlin"),
        pa.dictionary(pa.int32(), pa.string()),
    ],
)
def test_types_that_hudi_does_not_store_are_refused(kind):
    with pytest.raises(SchemaError, match=r"column|Column"):
        check_storable(pa.schema([("c", kind)]))


def test_a_table_needs_a_column():
    with pytest.raises(SchemaError):
        check_storable(pa.schema([]))
