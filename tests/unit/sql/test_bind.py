"""Names, columns and types of statements over a table `t` and sources that DuckDB or a fake describes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from hudi_sql.errors import (
    BindError,
    ConfigError,
    SchemaError,
    UnsupportedStatementError,
    UnsupportedTableError,
)
from hudi_sql.sql.bind import bind
from hudi_sql.sql.context import TableInfo
from hudi_sql.sql.model import (
    BoundCreateTable,
    BoundDropTable,
    BoundInsert,
    BoundMerge,
    BoundPassThrough,
    BoundSelect,
    BoundSet,
    BoundUpdate,
    ClauseAction,
    ClauseKind,
    TableName,
)
from hudi_sql.sql.parse import split_and_parse
from hudi_sql.sql.properties import normalise_table_properties
from hudi_sql.storage.properties.kinds import MergeMode, TableType

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("Name", pa.string()),
        ("price", pa.float64()),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("pt", pa.string()),
    ]
)
SOURCE = pa.schema(
    [("id", pa.int32()), ("name", pa.string()), ("price", pa.float64()), ("extra", pa.int64())]
)
META = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
]


class Context:
    """One Hudi table, and queries whose columns a test states."""

    def __init__(self, dialect: str = "duckdb", described: pa.Schema = SOURCE) -> None:
        self.dialect = dialect
        self.described = described

    def table_schema(self, name: TableName) -> TableInfo | None:
        if name.location is None and name.parts[-1].lower() != "t":
            return None
        return TableInfo(
            schema=SCHEMA, record_key_fields=("id",), partition_fields=("pt",), ordering_fields=()
        )

    def describe(self, query: exp.Expression) -> pa.Schema:
        return self.described


def bound(text: str, dialect: str = "duckdb", described: pa.Schema = SOURCE) -> Any:
    (parsed,) = split_and_parse(text, dialect)
    return bind(parsed, Context(dialect, described))


def columns(*kinds: pa.DataType) -> pa.Schema:
    return pa.schema([(f"x{number}", kind) for number, kind in enumerate(kinds)])


def test_statements_that_touch_no_hudi_table_pass() -> None:
    for text in (
        "SELECT 1",
        "CREATE TABLE x (a INT)",
        "INSERT INTO x VALUES (1)",
        "DROP TABLE x",
        "DELETE FROM x",
    ):
        assert isinstance(bound(text), BoundPassThrough)


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT * FROM t",
        "explain analyze WITH c AS (SELECT * FROM t) SELECT * FROM c",
        "EXPLAIN (FORMAT json) SELECT * FROM x JOIN t USING (id)",
        "EXPLAIN DELETE FROM t WHERE id = 1",
        "DESCRIBE t",
    ],
)
def test_plans_of_hudi_tables_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedStatementError, match=r"EXPLAIN|DESCRIBE"):
        bound(text)


def test_the_engine_explains_its_own_statements() -> None:
    for text in ("EXPLAIN SELECT * FROM x", "EXPLAIN ANALYZE SELECT 1", "EXPLAIN this is no statement"):
        assert isinstance(bound(text), BoundPassThrough)


def test_a_query_says_which_tables_it_reads() -> None:
    found = bound("WITH c AS (SELECT 1) SELECT * FROM t JOIN c ON true JOIN hudi.'/a/b' x ON true")
    assert isinstance(found, BoundSelect)
    assert set(found.tables) == {"t", "/a/b"}
    assert isinstance(bound("WITH t AS (SELECT 1) SELECT * FROM t"), BoundPassThrough)
    past = bound("SELECT * FROM t TIMESTAMP AS OF '20260101000000000'")
    assert past.tables["t@20260101000000000"].as_of == "20260101000000000"


def test_names_of_an_update_are_spelled_as_stored() -> None:
    found = bound("UPDATE t SET NAME = upper(name), ST.A = 5 WHERE T.ID = 1 AND PRICE > 2")
    assert isinstance(found, BoundUpdate)
    assert [(item.column, item.path) for item in found.assignments] == [("Name", ()), ("st", ("a",))]
    assert found.assignments[0].value.sql("duckdb") == 'CAST(UPPER("t"."Name") AS TEXT)'
    assert found.where is not None
    assert found.where.sql("duckdb") == '"t"."id" = 1 AND "t"."price" > 2'


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("UPDATE t SET pric = 1", "pric"),
        ("UPDATE t SET price = nme", "nme"),
        ("UPDATE t SET price = 1 WHERE pricee = 1", "pricee"),
        ("DELETE FROM t WHERE t.idd = 1", "idd"),
        ("UPDATE t SET st.c = 1", "c"),
    ],
)
def test_unknown_columns_propose_near_ones(text: str, column: str) -> None:
    with pytest.raises(BindError) as raised:
        bound(text)
    assert raised.value.column == column
    assert raised.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET",
        "UPDATE t SET price = 1, PRICE = 2",
        "UPDATE t SET st = NULL, st.a = 1",
        "UPDATE t SET _hoodie_record_key = 'x'",
        "UPDATE t SET (id, price) = (1, 2, 3)",
        "INSERT INTO t (id, ID) VALUES (1, 2)",
        "INSERT INTO t (_hoodie_record_key) VALUES ('x')",
        "DELETE FROM t TIMESTAMP AS OF '2026-01-01' WHERE id = 1",
    ],
)
def test_what_contradicts_itself_is_refused(text: str) -> None:
    with pytest.raises(BindError):
        bound(text, described=columns(pa.int32(), pa.int32()))


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET price = 1 LIMIT 1",
        "INSERT OVERWRITE t SELECT 1",
        "INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 1",
        "TRUNCATE TABLE t",
        "CALL show_commits(table => 't')",
        "CREATE OR REPLACE TABLE u (a INT) USING hudi",
        "CREATE TABLE u USING hudi AS SELECT 1 AS a",
        "CREATE TABLE u (a INT, PRIMARY KEY (a)) USING hudi",
        "CREATE TABLE u (d DATE) USING hudi PARTITIONED BY (days(d))",
    ],
)
def test_what_is_not_supported_says_what_to_write(text: str) -> None:
    with pytest.raises(UnsupportedStatementError) as raised:
        bound(text)
    assert raised.value.hint


def test_an_insert_goes_by_position_and_casts() -> None:
    given = columns(pa.int64(), pa.string())
    found = bound("INSERT INTO t (PRICE, id) SELECT a, b FROM x", described=given)
    assert isinstance(found, BoundInsert)
    assert found.columns == ("price", "id")
    text = found.query.sql("duckdb")
    assert 'CAST("__hudi_sql_q"."price" AS DOUBLE) AS "price"' in text
    assert 'CAST("__hudi_sql_q"."id" AS INT) AS "id"' in text
    with pytest.raises(BindError, match="2 columns for 5"):
        bound("INSERT INTO t SELECT a, b FROM x", described=given)


def test_meta_columns_at_the_front_of_a_source_are_dropped() -> None:
    given = pa.schema([*((name, pa.string()) for name in META), *SCHEMA])
    found = bound("INSERT INTO t SELECT * FROM x", described=given)
    assert found.columns == tuple(SCHEMA.names)
    assert '"__hudi_sql_c4", "id", ' in found.query.sql("duckdb")


def test_by_name_needs_every_column_and_no_other() -> None:
    with pytest.raises(BindError, match="extra"):
        bound("INSERT INTO t BY NAME SELECT * FROM x")
    with pytest.raises(BindError, match="st"):
        bound(
            "INSERT INTO t BY NAME SELECT * FROM x", described=pa.schema([SOURCE.field(n) for n in range(3)])
        )


def test_partition_values_stand_beside_the_query() -> None:
    given = columns(pa.int32(), pa.string(), pa.float64(), SCHEMA.field("st").type)
    found = bound("insert into t partition (pt = 'x') select a, b, c, d from x", "spark", given)
    assert found.columns == ("id", "Name", "price", "st")
    assert list(found.static_partition) == ["pt"]
    with pytest.raises(BindError, match="nope"):
        bound("insert into t partition (nope = 'x') select 1", "spark", given)


def test_spark_refuses_text_for_numbers_on_insert_and_not_on_update() -> None:
    with pytest.raises(BindError, match="string"):
        bound("insert into t (id) select a from x", "spark", columns(pa.string()))
    bound("INSERT INTO t (id) SELECT a FROM x", "duckdb", columns(pa.string()))
    bound("update t set id = '7'", "spark", columns(pa.string()))


MERGE = "MERGE INTO t USING s ON t.id = s.id "


def test_a_star_goes_by_name_whatever_else_the_source_has() -> None:
    schema = pa.schema([("EXTRA", pa.int64()), *reversed(list(SCHEMA))])
    found = bound(MERGE + "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", described=schema)
    assert isinstance(found, BoundMerge)
    assert [item.column for item in found.clauses[0].assignments] == list(SCHEMA.names)
    with pytest.raises(BindError) as raised:
        bound(MERGE + "WHEN MATCHED THEN UPDATE SET *")
    assert raised.value.column == "st"


def test_a_key_that_only_on_gives_is_taken_from_there() -> None:
    schema = pa.schema([("sid", pa.int32()), *list(SCHEMA)[1:]])
    text = "MERGE INTO t USING s ON t.id = s.sid WHEN NOT MATCHED THEN INSERT *"
    found = bound(text, described=schema)
    assert found.clauses[0].assignments[0].value.sql("duckdb") == 'CAST("s"."sid" AS INT)'


def test_each_clause_sees_the_sides_that_have_a_row() -> None:
    found = bound(
        MERGE + "WHEN NOT MATCHED AND price > 1 THEN INSERT (id, name) VALUES (id, name) "
        "WHEN NOT MATCHED BY SOURCE AND price < 1 THEN DELETE"
    )
    conditions = [clause.condition.sql("duckdb") for clause in found.clauses]
    assert conditions == ['"s"."price" > 1', '"t"."price" < 1']
    assert [clause.kind for clause in found.clauses] == [
        ClauseKind.NOT_MATCHED,
        ClauseKind.NOT_MATCHED_BY_SOURCE,
    ]
    for text in (
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (id, t.name)",
        "WHEN NOT MATCHED AND t.price > 1 THEN INSERT (id) VALUES (id)",
        "WHEN NOT MATCHED BY SOURCE AND s.price > 1 THEN DELETE",
        "WHEN MATCHED AND price > 1 THEN DELETE",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
        "WHEN NOT MATCHED THEN INSERT (name) VALUES (name)",
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (id)",
        "WHEN MATCHED THEN UPDATE SET price = 1, price = 2",
    ):
        with pytest.raises(BindError):
            bound(MERGE + text)


def test_short_forms_of_merge() -> None:
    found = bound("MERGE INTO t USING s USING (ID) WHEN MATCHED THEN DO NOTHING WHEN MATCHED THEN DELETE")
    assert found.on.sql("duckdb") == '"t"."id" = "s"."id"'
    assert [clause.action for clause in found.clauses] == [ClauseAction.NOTHING, ClauseAction.DELETE]
    found = bound("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE", described=SCHEMA)
    assert [item.column for item in found.clauses[0].assignments] == list(SCHEMA.names)
    star = bound(MERGE + "WHEN MATCHED THEN UPDATE SET * EXCEPT (st, pt)")
    assert [item.column for item in star.clauses[0].assignments] == ["id", "Name", "price"]


def test_spark_keeps_to_its_order_of_clauses() -> None:
    first = MERGE + "when not matched then insert (id) values (s.id) when matched then delete"
    twice = MERGE + "when matched then delete when matched and s.id = 1 then delete"
    for text in (first, twice):
        with pytest.raises(BindError):
            bound(text, "spark")
        bound(text, "duckdb")


def test_columns_of_create_table_have_storage_types() -> None:
    found = bound(
        "create table u (id int not null comment 'the key', PT string, n tinyint, v varchar(3), d decimal(5,1), "
        "at timestamp, l array<struct<x:bigint>>, m map<string,double>) using hudi options (primaryKey = 'id') "
        "partitioned by (pt) location '/x'",
        "spark",
    )
    assert isinstance(found, BoundCreateTable)
    assert found.schema is not None
    assert found.schema.names[-1] == "PT"
    assert found.partition_fields == ("PT",)
    assert found.schema.field("id") == pa.field("id", pa.int32(), nullable=False)
    assert found.schema.field("n").type == pa.int32()
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")
    assert found.schema.field("l").type == pa.list_(pa.struct([("x", pa.int64())]))
    assert len(found.notices) == 2
    assert dict(found.properties) == {"primaryKey": "id"}


@pytest.mark.parametrize("kind", ["INTERVAL", "TIMETZ", "BIT", "HUGEINT", "DECIMAL(39, 0)"])
def test_types_that_hudi_does_not_have_are_refused(kind: str) -> None:
    with pytest.raises(SchemaError) as raised:
        bound(f"CREATE TABLE u (a {kind}) USING hudi")
    assert raised.value.column == "a"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE u (a INT, A INT) USING hudi",
        "CREATE TABLE u (_hoodie_record_key INT) USING hudi",
        "CREATE TABLE u (a INT) USING hudi PARTITIONED BY (b)",
    ],
)
def test_columns_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(BindError):
        bound(text)


def test_drop_and_set() -> None:
    found = bound("DROP TABLE IF EXISTS default.t PURGE")
    assert isinstance(found, BoundDropTable)
    assert (found.name.parts, found.if_exists, found.purge) == (("default", "t"), True, True)
    setting = bound("SET hoodie.parquet.max.file.size = '5'")
    assert isinstance(setting, BoundSet)
    assert (setting.key, setting.value) == ("hoodie.parquet.max.file.size", "5")
    assert isinstance(bound("SET threads = 2"), BoundPassThrough)


def test_properties_have_many_spellings() -> None:
    found = normalise_table_properties(
        {
            "primaryKey": "a, b",
            "hoodie.datasource.write.precombine.field": "ts",
            "TYPE": "mor",
            "hoodie.record.merge.mode": "commit_time_ordering",
            "hoodie.datasource.write.hive_style_partitioning": "false",
            "hoodie.parquet.small.file.limit": "0",
            "owner": "me",
        }
    )
    assert found.record_key_fields == ("a", "b")
    assert found.ordering_fields == ("ts",)
    assert found.table_type is TableType.MERGE_ON_READ
    assert found.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert dict(found.table_properties) == {"hoodie.datasource.write.hive_style_partitioning": "false"}
    assert dict(found.settings) == {"hoodie.parquet.small.file.limit": "0"}
    assert dict(found.others) == {"owner": "me"}


def test_properties_that_cannot_be_are_refused() -> None:
    for properties in (
        {"type": "zebra"},
        {"hoodie.record.merge.mode": "x"},
        {"hoodie.tabel.name": "t"},
    ):
        with pytest.raises(ConfigError):
            normalise_table_properties(properties)
    with pytest.raises(UnsupportedTableError):
        normalise_table_properties({"hoodie.write.table.version": "6"})
