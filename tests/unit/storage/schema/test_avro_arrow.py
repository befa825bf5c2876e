import json
import zipfile

import fastavro
import pyarrow as pa
import pytest

from hudi_sql.errors import CorruptTableError, SchemaError
from hudi_sql.storage.schema.avro_arrow import (
    arrow_schema_from_avro,
    avro_schema_from_arrow,
    decimal_width,
    list_of,
    with_meta_fields,
)
from hudi_sql.storage.schema.meta_columns import META_COLUMNS, with_meta_columns, without_meta_columns
from tests.golden_tables import TABLES


def record(*fields):
    return json.dumps({"type": "record", "name": "r", "namespace": "n", "fields": list(fields)})


def spark_schemas():
    """Schemas in the commits of tables that Spark wrote, by table."""
    for name in ("v9_cow_types", "v9_cow_upper_names", "v9_cow_widening", "v8_cow"):
        with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
            for entry in archive.namelist():
                if entry.startswith(f"{name}/.hoodie/timeline/") and entry.endswith(".commit"):
                    with archive.open(entry) as file:
                        (payload,) = fastavro.reader(file)
                    yield name, payload["extraMetadata"]["schema"]


def test_commit_schemas_of_spark_come_back_byte_for_byte():
    schemas = list(spark_schemas())
    assert len(schemas) >= 10
    for name, text in schemas:
        assert avro_schema_from_arrow(arrow_schema_from_avro(text), name) == text


def test_footer_schema_is_the_commit_schema_behind_the_meta_fields():
    name, text = next(spark_schemas())
    widened = with_meta_fields(text)
    assert json.loads(widened)["fields"][5:] == json.loads(text)["fields"]
    assert with_meta_fields(widened) == widened
    schema = arrow_schema_from_avro(text)
    assert avro_schema_from_arrow(with_meta_columns(schema), name) == widened


@pytest.mark.parametrize("union", [["null", "int"], ["int", "null"]])
def test_both_orders_of_a_union_are_nullable(union):
    schema = arrow_schema_from_avro(record({"name": "a", "type": union}))
    assert schema.field("a") == pa.field("a", pa.int32())


def test_a_plain_type_is_required_both_ways():
    text = record({"name": "a", "type": "string"}, {"name": "xs", "type": {"type": "array", "items": "long"}})
    schema = arrow_schema_from_avro(text)
    assert not schema.field("a").nullable
    assert not schema.field("xs").type.value_field.nullable
    again = json.loads(avro_schema_from_arrow(schema, "t"))
    assert [field["type"] for field in again["fields"]] == ["string", {"type": "array", "items": "long"}]


@pytest.mark.parametrize(
    ("avro", "arrow"),
    [
        ({"type": "int", "logicalType": "date"}, pa.date32()),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, pa.decimal128(9, 2)),
        (
            {"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 9},
            pa.decimal128(9, 0),
        ),
        ({"type": "fixed", "name": "f", "size": 4}, pa.binary(4)),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "map", "values": ["null", "int"]}, pa.map_(pa.string(), pa.int32())),
        ({"type": "array", "items": ["string", "null"]}, list_of(pa.string())),
        ({"type": {"type": "long"}}, pa.int64()),
    ],
)
def test_type(avro, arrow):
    assert arrow_schema_from_avro(record({"name": "a", "type": ["null", avro]})).field("a").type == arrow


def test_a_named_type_may_be_mentioned_again():
    point = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
    schema = arrow_schema_from_avro(
        record({"name": "a", "type": point}, {"name": "b", "type": "point"}, {"name": "c", "type": "n.point"})
    )
    assert schema.field("a").type == schema.field("b").type == schema.field("c").type


def test_list_elements_have_one_name():
    schema = pa.schema([("xs", pa.list_(pa.field("l", pa.int32())))])
    text = avro_schema_from_arrow(schema, "t")
    assert arrow_schema_from_avro(text).field("xs").type.value_field.name == "element"


def test_union_of_two_types_is_refused():
    with pytest.raises(SchemaError, match="several types"):
        arrow_schema_from_avro(record({"name": "a", "type": ["null", "int", "string"]}))


def test_unknown_type_name_is_refused():
    with pytest.raises(SchemaError, match="mentions type"):
        arrow_schema_from_avro(record({"name": "a", "type": "elsewhere"}))


@pytest.mark.parametrize("text", ["", "{", "[]", '"int"', '{"type":"record","name":"r"}', '{"type":"array"}'])
def test_no_record_schema_is_corrupt(text):
    with pytest.raises(CorruptTableError):
        arrow_schema_from_avro(text)


def test_decimal_width_is_the_least_that_holds_the_precision():
    ends = {1: 2, 2: 4, 3: 6, 4: 9, 5: 11, 6: 14, 7: 16, 8: 18, 9: 21, 13: 31, 16: 38}
    for width, precision in ends.items():
        assert decimal_width(precision) == width
        if precision < 38:
            assert decimal_width(precision + 1) == width + 1


def test_meta_columns_come_first_once():
    schema = pa.schema([pa.field("id", pa.int32()), pa.field(META_COLUMNS[2], pa.string())])
    assert with_meta_columns(schema).names == [*META_COLUMNS, "id"]
    assert without_meta_columns(with_meta_columns(schema)).names == ["id"]
