import datetime as dt
import pickle
import re
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_sql.errors import ConstraintError, NullKeyError, SchemaError, UnsupportedTableError
from hudi_sql.storage.key_generator.escaping import escape_path_values, unescape_path_value
from hudi_sql.storage.key_generator.key_generator import KeyGenerator
from hudi_sql.storage.properties.table_config import parse_table_config

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
NULL = "__HIVE_DEFAULT_PARTITION__"


def generator(schema, keys="", partitions="", *, stored_key=None, version="9", **properties):
    given = {
        "hoodie.table.name": "t",
        "hoodie.table.version": version,
        "hoodie.table.recordkey.fields": keys,
        "hoodie.table.partition.fields": partitions,
        **properties,
    }
    return KeyGenerator.for_table(parse_table_config(given), schema, stored_key=stored_key)


def kind(name, **more):
    return {"hoodie.table.keygenerator.type": name, **more}


def keys_of(batch, fields, **options):
    return generator(batch.schema, fields, **options).record_keys(batch).to_pylist()


def paths_of(batch, fields, **properties):
    paths = generator(batch.schema, "", fields, **properties).partition_paths(batch)
    return paths.cast(pa.string()).to_pylist()


def one(values, kind=None):
    return pa.record_batch([pa.array(values, kind)], ["p"])


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([-5, 2**40], pa.int64(), ["-5", str(2**40)]),
        (["a", "ü b"], pa.string(), ["a", "ü b"]),
        ([True, False], pa.bool_(), ["true", "false"]),
        ([Decimal("1.500"), Decimal(1)], pa.decimal128(9, 3), ["1.500", "1.000"]),
        ([dt.date(2024, 2, 29)], pa.date32(), ["2024-02-29"]),
        ([1704164645123456], pa.timestamp("us", "UTC"), ["1704164645123456"]),
        ([b"\x01\x02\xff"], pa.binary(), ["0102ff"]),
    ],
)
def test_single_keys_are_the_value(values, kind, texts):
    assert keys_of(one(values, kind), "p") == texts


ROWS = pa.record_batch(
    {
        "a": pa.array(["1", "2", None, "x,b:1"]),
        "b": pa.array([None, "", "1", "2"]),
        "s": pa.array([{"x": 1}, {"x": 2}, {"x": None}, {"x": 4}]),
    }
)


def test_several_keys_are_named_and_have_placeholders():
    wanted = ["a:1,b:__null__", "a:2,b:__empty__", "a:__null__,b:1", "a:x,b:1,b:2"]
    assert keys_of(ROWS, "a,b") == wanted
    # Without partitions too, and in the declared order.
    assert keys_of(ROWS, "b,a", **kind("NON_PARTITION"))[1] == "b:__empty__,a:2"


def test_nested_key_fields_keep_their_path():
    assert keys_of(ROWS.slice(0, 2), "s.x") == ["1", "2"]
    assert keys_of(ROWS.slice(2, 2), "s.x,b") == ["s.x:__null__,b:1", "s.x:4,b:2"]


def test_key_of_nulls_alone_is_refused():
    batch = pa.record_batch({"a": pa.array(["1", None]), "b": pa.array(["2", None])})
    with pytest.raises(NullKeyError, match="a, b"):
        keys_of(batch, "a,b")
    for empty in ("", None):
        batch = pa.record_batch({"a": pa.array([""]), "b": pa.array([empty], pa.string())})
        with pytest.raises(NullKeyError, match="a, b"):
            keys_of(batch, "a,b")


@pytest.mark.parametrize("value", [None, ""])
def test_single_null_or_empty_key_is_refused(value):
    with pytest.raises(NullKeyError, match="p"):
        keys_of(one(["1", value], pa.string()), "p")


def test_complex_key_of_one_field_follows_what_the_table_holds():
    batch = one(["7"])
    complex_ = kind("COMPLEX")
    assert keys_of(batch, "p", **complex_) == ["p:7"]
    for version in ("6", "8"):
        open_ = generator(batch.schema, "p", version=version, **complex_)
        assert open_.needs_stored_key
        with pytest.raises(UnsupportedTableError):
            open_.record_keys(batch)
        plain = generator(batch.schema, "p", version=version, stored_key="3", **complex_)
        named = generator(batch.schema, "p", version=version, stored_key="p:3", **complex_)
        assert not plain.needs_stored_key
        assert plain.record_keys(batch).to_pylist() == ["7"]
        assert named.record_keys(batch).to_pylist() == ["p:7"]
    assert not generator(batch.schema, "p", **complex_).needs_stored_key


def test_table_without_key_fields_is_auto():
    assert generator(ROWS.schema).is_auto
    assert not generator(ROWS.schema, "a").is_auto


@pytest.mark.parametrize(
    "key", [pa.float64(), pa.float32(), pa.list_(pa.int32()), pa.struct([("x", pa.int32())])]
)
def test_key_types_without_one_text_are_refused(key):
    made = generator(pa.schema([("p", key)]), "p")
    with pytest.raises(UnsupportedTableError) as caught:
        made.check_writable()
    assert caught.value.property == "hoodie.table.recordkey.fields"


@pytest.mark.parametrize("name", ["TIMESTAMP", "CUSTOM", "GLOBAL_DELETE", "SPARK_SQL"])
def test_other_generators_cannot_write_and_tell_no_values(name):
    made = generator(pa.schema([("id", pa.int32()), ("p", pa.timestamp("us"))]), "id", "p", **kind(name))
    batch = pa.record_batch({"id": [1], "p": pa.array([0], pa.timestamp("us"))})
    for refused in (
        made.check_writable,
        lambda: made.record_keys(batch),
        lambda: made.partition_paths(batch),
    ):
        with pytest.raises(UnsupportedTableError) as caught:
            refused()
        assert (caught.value.property, caught.value.value) == ("hoodie.table.keygenerator.type", name)
    if name != "CUSTOM":
        assert made.partition_values("2026-03-01") == {}


def test_custom_with_plain_fields_tells_values_and_with_formatted_ones_none():
    schema = pa.schema([("id", pa.int32()), ("p", pa.string()), ("at", pa.int64())])
    plain = generator(schema, "id", "p:SIMPLE,at:SIMPLE", **kind("CUSTOM"))
    assert {name: value.as_py() for name, value in plain.partition_values("x/5").items()} == {
        "p": "x",
        "at": 5,
    }
    formatted = generator(schema, "id", "p:SIMPLE,at:TIMESTAMP", **kind("CUSTOM"))
    assert formatted.partition_values("x/5") == {}


def test_timestamp_keys_in_a_jvm_zone_are_refused():
    setting = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    schema = pa.schema([("p", pa.timestamp("us", "UTC"))])
    with pytest.raises(UnsupportedTableError) as caught:
        generator(schema, "p", **{setting: "true"}).check_writable()
    assert caught.value.property == setting
    generator(schema, "p", **{setting: "false"}).check_writable()


def test_field_that_the_schema_lacks():
    for path in ("q", "s.y", "a.x"):
        with pytest.raises(SchemaError, match=path.replace(".", r"\.")):
            generator(ROWS.schema, path)


def test_generator_pickles():
    made = generator(ROWS.schema, "a", "b", **HIVE)
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("values", "type_", "texts"),
    [
        (["sf", "", None, "é+ b"], pa.string(), ["sf", NULL, NULL, "é+ b"]),
        ([1, None], pa.int32(), ["1", NULL]),
        ([True, None], pa.bool_(), ["true", NULL]),
        ([dt.date(2026, 3, 1), None], pa.date32(), ["2026-03-01", NULL]),
        ([Decimal("10.50"), Decimal("-0.10"), None], pa.decimal128(10, 2), ["10.50", "-0.10", NULL]),
        ([1e10, 0.1], pa.float64(), ["1.0E10", "0.1"]),
        ([1704164645123456, None], pa.timestamp("us", "UTC"), ["2024-01-02 03%3A04%3A05", NULL]),
        ([-1], pa.timestamp("us"), ["1969-12-31 23%3A59%3A59"]),
    ],
)
def test_paths_of_one_field(values, type_, texts):
    batch = one(values, type_)
    assert paths_of(batch, "p") == texts
    assert paths_of(batch, "p", **HIVE) == [f"p={text}" for text in texts]


def test_paths_of_several_fields_follow_the_declared_order():
    batch = pa.record_batch(
        {"os": ["ios", "x"], "day": pa.array([0, None], pa.date32()), "country": ["us", None]}
    )
    assert paths_of(batch, "country,day,os") == ["us/1970-01-01/ios", f"{NULL}/{NULL}/x"]
    assert paths_of(batch, "country,os", **HIVE) == ["country=us/os=ios", f"country={NULL}/os=x"]


def test_table_without_partitions_has_one_path():
    assert paths_of(one([1, 2]), "") == ["", ""]


def test_dictionaries_are_partition_values_too():
    batch = pa.record_batch([pa.array(["b", None, "a", "b"]).dictionary_encode()], ["p"])
    assert paths_of(batch, "p") == ["b", NULL, "a", "b"]


ODD = ["a b", "a-b", "a=", "a%", "a/b", "a:b", "é", "a#b", "a?b", "a+b", "a%2Fb", '"\\\x7f', "{[]}^*'\x01"]


def test_odd_values_escaped_as_by_hudi():
    wanted = [
        "a b", "a-b", "a%3D", "a%25", "a%2Fb", "a%3Ab", "é", "a%23b", "a%3Fb", "a+b", "a%252Fb", "%22%5C%7F",
        "%7B%5B%5D}%5E%2A%27%01",
    ]  # fmt: skip
    assert paths_of(one(ODD), "p", **ENCODED) == wanted
    assert escape_path_values(pa.array(ODD)).to_pylist() == wanted
    assert [unescape_path_value(text) for text in wanted] == ODD


@pytest.mark.parametrize("properties", [{}, HIVE, ENCODED, {**HIVE, **ENCODED}])
def test_odd_values_are_read_back_from_the_path(properties):
    refused = "[/:]|%2F"
    values = [
        value for value in ODD if ENCODED.items() <= properties.items() or not re.search(refused, value)
    ]
    assert len(values) > 7
    batch = one(values)
    made = generator(batch.schema, "", "p", **properties)
    paths = made.partition_paths(batch).cast(pa.string()).to_pylist()
    assert [made.partition_values(path)["p"].as_py() for path in paths] == values


@pytest.mark.parametrize("value", ["a%20b", "%41"])
def test_values_that_spark_would_misread_are_refused(value):
    batch = one([value], pa.string())
    with pytest.raises(ConstraintError, match="read back"):
        paths_of(batch, "p")
    assert paths_of(batch, "p", **ENCODED) == [escape_path_values(pa.array([value]))[0].as_py()]


def test_slash_makes_folders_with_one_field_and_is_refused_with_more():
    batch = pa.record_batch({"p": ["a/b"], "q": ["x"]})
    made = generator(batch.schema, "", "p", **HIVE)
    assert paths_of(batch, "p", **HIVE) == ["p=a/b"]
    assert made.partition_values("p=a/b")["p"].as_py() == "a/b"
    with pytest.raises(ConstraintError, match="a/b"):
        paths_of(batch, "p,q", **HIVE)
    assert paths_of(batch, "p,q", **ENCODED) == ["a%2Fb/x"]


@pytest.mark.parametrize("value", [".", "..", "a/../b", "a/", "/a", "a//b", ".hoodie", ".hoodie/x", "a:b"])
def test_values_that_leave_the_table_or_its_folders_are_refused(value):
    with pytest.raises(ConstraintError, match="cannot be a folder"):
        paths_of(one(["fine", value]), "p")


def values_of(text, kind, *, exact=True, **properties):
    made = generator(pa.schema([("p", kind)]), "", "p", **properties)
    found = made.partition_values(text) if exact else made.filled_values(text)
    return found["p"].as_py() if "p" in found else "unknown"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("2026-03-01", pa.date32(), dt.date(2026, 3, 1)),
        ("2026/03/01", pa.date32(), "unknown"),
        ("2026-13-01", pa.date32(), "unknown"),
        ("7", pa.int32(), 7),
        ("07x", pa.int32(), "unknown"),
        ("99999999999", pa.int32(), "unknown"),
        ("true", pa.bool_(), True),
        ("yes", pa.bool_(), "unknown"),
        ("10.50", pa.decimal128(10, 2), Decimal("10.50")),
        ("1E-10", pa.decimal128(20, 10), Decimal("1E-10")),
        ("10.505", pa.decimal128(10, 2), "unknown"),
        ("1.0E10", pa.float64(), 1e10),
        ("NaN", pa.float64(), "unknown"),
        ("1704164645500000", pa.timestamp("us"), dt.datetime(2024, 1, 2, 3, 4, 5, 500000)),
        ("2024-01-02 03%3A04%3A05", pa.timestamp("us"), "unknown"),
        ("default", pa.string(), "unknown"),
        (NULL, pa.string(), None),
        *((name, kind, None) for name in (NULL, "default") for kind in (pa.date32(), pa.int32(), pa.bool_())),
        (NULL, pa.decimal128(10, 5), None),
        (NULL, pa.timestamp("us"), None),
        ("0102", pa.binary(), "unknown"),
    ],
)
def test_values_that_a_path_tells(text, kind, value):
    assert values_of(text, kind) == value


def test_values_to_fill_in_where_files_lack_the_column():
    zoned = pa.timestamp("us", "UTC")
    assert values_of("2024-01-02 03%3A04%3A05", zoned, exact=False) == dt.datetime(
        2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC
    )
    assert values_of(NULL, pa.string(), exact=False) is None
    assert values_of("default", pa.string(), exact=False) == "default"


def test_paths_of_another_shape_tell_nothing():
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    hive = generator(schema, "", "a,b", **HIVE)
    assert hive.partition_values("a=1/b=2").keys() == {"a", "b"}
    for path in ("a=1", "1/2", "a=1/b=2/c=3", "b=2/a=1", ""):
        assert hive.partition_values(path) == {}
