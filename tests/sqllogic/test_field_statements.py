"""Small inputs that went wrong for users of lake tables: statements and keys. The FC numbers are those cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hudi_sql.errors import (
    BindError,
    CardinalityError,
    ConstraintError,
    DuplicateKeyError,
    NullKeyError,
    SqlSyntaxError,
    UnsupportedStatementError,
    UnsupportedTableError,
)
from tests.conftest import engines

if TYPE_CHECKING:
    from tests.sqllogic.conftest import Lake

pytestmark = pytest.mark.slow

ITEM = "id INT, name VARCHAR, price DOUBLE, ts BIGINT"
ITEM_ROWS = "(1,'a',1.0,10),(2,'b',2.0,10),(3,'c',3.0,10)"
BOTH = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
ALL = "SELECT id, name, price, ts FROM item ORDER BY id"


def values(rows: str, names: str) -> str:
    return f"(SELECT * FROM (VALUES {rows}) AS v({names}))"


# -- MERGE, UPDATE, DELETE


@engines
@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_highest_ordering_value_of_a_source_key_wins(lake: Lake, is_reversed: bool) -> None:
    # FC-001, with the source in several batches and both orders
    lake.item()
    source = pa.table(
        {
            "id": pa.array([1, 1, 1, 9, 9], pa.int32()),
            "name": ["lo", "hi", "mid", "lo", "hi"],
            "price": [5.0, 6.0, 7.0, 1.0, 2.0],
            "ts": [20, 30, 25, 1, 2],
        }
    )
    rows = [source.slice(at, 1) for at in (range(4, -1, -1) if is_reversed else range(5))]
    lake.session.register("source", pa.concat_tables(rows))
    assert lake.run(f"MERGE INTO item t USING source s ON t.id = s.id {BOTH}") == (1, 1, 0, 0)
    assert lake.rows(ALL) == [(1, "hi", 6.0, 30), (2, "b", 2.0, 10), (3, "c", 3.0, 10), (9, "hi", 2.0, 2)]


@engines
def test_only_source_rows_that_act_compete(lake: Lake) -> None:
    # FC-002
    lake.create("item", ITEM, rows=ITEM_ROWS)
    source = values("(1,'x',true),(1,'y',false)", "id, name, flag")
    merge = f"MERGE INTO item t USING {source} s ON t.id = s.id "
    assert lake.run(merge + "WHEN MATCHED AND s.flag THEN UPDATE SET name = s.name") == (0, 1, 0, 0)
    assert lake.rows("SELECT name FROM item WHERE id = 1") == [("x",)]
    lake.fails(CardinalityError, merge + "WHEN MATCHED THEN UPDATE SET name = s.name")
    assert lake.run(merge + "WHEN MATCHED THEN DELETE") == (0, 0, 1, 0)
    assert lake.rows("SELECT id FROM item ORDER BY id") == [(2,), (3,)]


@engines
def test_clauses_by_source_act_in_any_order(lake: Lake) -> None:
    # FC-004
    lake.item()
    source = values("(1,'z',5.0,20),(7,'q',7.0,20)", "id, name, price, ts")
    start = f"MERGE INTO item t USING {source} s ON t.id = s.id "
    first = "WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET name = 'gone', ts = 99 WHEN MATCHED THEN DELETE"
    assert lake.run(start + first) == (0, 1, 1, 0)
    assert lake.rows(ALL) == [(2, "gone", 2.0, 99), (3, "c", 3.0, 10)]
    last = "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE"
    assert lake.run(start + last) == (2, 0, 2, 0)
    assert lake.rows("SELECT id FROM item ORDER BY id") == [(1,), (7,)]
    nothing = "MERGE INTO item t USING (SELECT 1 AS id WHERE false) s ON t.id = s.id "
    assert lake.run(nothing + "WHEN NOT MATCHED BY SOURCE THEN DELETE") == (0, 0, 2, 0)


@engines
def test_a_merge_that_matches_on_another_column_keeps_the_key(lake: Lake) -> None:
    # FC-005
    lake.create("item", ITEM, rows="(1,'old',20.0,1000)")
    merge = "MERGE INTO item t USING (SELECT 'old' AS name, 20.5 AS price) s ON t.name = s.name "
    assert lake.run(merge + "WHEN MATCHED THEN UPDATE SET price = s.price") == (0, 1, 0, 0)
    query = "SELECT id, name, price, ts, _hoodie_record_key FROM item"
    assert lake.rows(query) == [(1, "old", 20.5, 1000, "1")]


@engines
def test_names_match_in_any_case(lake: Lake) -> None:
    # FC-006
    lake.create(
        "cased", '"Id" INT, "Name" VARCHAR, "P" VARCHAR', key="Id", partition='"P"', rows="(1,'a','x')"
    )
    lake.run(
        "MERGE INTO cased t USING (SELECT 1 AS ID, 'b' AS name, 'x' AS p) s ON t.ID = s.id "
        "WHEN MATCHED THEN UPDATE SET NAME = s.name WHEN NOT MATCHED THEN INSERT *"
    )
    lake.run("MERGE INTO cased t USING (SELECT 2 AS iD, 'n' AS naMe, 'y' AS P) s ON t.id = s.ID " + BOTH)
    assert lake.rows("SELECT iD, NAME FROM cased t WHERE T.p = 'x' ORDER BY nAme") == [(1, "b")]
    assert lake.rows("WITH c AS (SELECT ID FROM cased) SELECT id FROM c ORDER BY Id") == [(1,), (2,)]
    assert lake.run("UPDATE cased SET NAME = 'q' WHERE ID = 1 AND p IN ('x')") == (0, 1, 0, 0)
    assert lake.run("INSERT INTO cased (p, ID, nAME) VALUES ('x', 5, 'n')") == (1, 0, 0, 0)
    assert lake.run("DELETE FROM cased WHERE iD = 5") == (0, 0, 1, 0)
    assert lake.session.sql("SELECT * FROM cased").columns[5:] == ["Id", "Name", "P"]


KEYS = {
    "text from int": ("VARCHAR", "'1'", "1", "1"),
    "int from decimal": ("INT", "1", "CAST(1.0 AS DECIMAL(5, 2))", "1"),
    "int from bigint": ("INT", "1", "CAST(1 AS BIGINT)", "1"),
    "int from text": ("INT", "1", "'1'", "1"),
    "bigint from double": ("BIGINT", "1", "CAST(1 AS DOUBLE)", "1"),
    "decimal from int": ("DECIMAL(10, 2)", "7.00", "7", "7.00"),
    "date from timestamp": ("DATE", "DATE '2026-01-01'", "TIMESTAMP '2026-01-01 00:00:00'", "2026-01-01"),
}


@engines
@pytest.mark.parametrize("kind", KEYS)
def test_a_key_of_another_type_is_the_same_key(lake: Lake, kind: str) -> None:
    # FC-007: never a second row of the key
    column, stored, given, text = KEYS[kind]
    lake.create("t", f"id {column}, v INT", rows=f"({stored}, 10)")
    merge = f"MERGE INTO t USING (SELECT {given} AS id, 11 AS v) s ON t.id = s.id {BOTH}"
    assert lake.run(merge) == (0, 1, 0, 0)
    assert lake.rows("SELECT v, _hoodie_record_key FROM t") == [(11, text)]


@engines
@pytest.mark.parametrize(("on", "kind"), [("=", "VARCHAR"), ("=", "DATE"), ("IS NOT DISTINCT FROM", "INT")])
def test_a_null_part_of_a_key_matches_itself(lake: Lake, on: str, kind: str) -> None:
    # FC-008
    lake.create(
        "t", f"k1 INT, k2 {kind}, v VARCHAR, ts BIGINT", key="k1,k2", rows="(1,NULL,'a',1)", ordering="ts"
    )
    for number in (2, 3):
        source = f"(SELECT 1 AS k1, CAST(NULL AS {kind}) AS k2, 'b' AS v, {number} AS ts)"
        merge = f"MERGE INTO t USING {source} s ON (t.k1 = s.k1) AND t.k2 {on} s.k2 {BOTH}"
        assert lake.run(merge) == (0, 1, 0, 0)
    found = lake.rows("SELECT k1, k2, v, ts, _hoodie_record_key FROM t")
    assert found == [(1, None, "b", 3, "k1:1,k2:__null__")]


@engines
def test_not_null_is_asked_of_rows_and_not_of_joins(lake: Lake) -> None:
    # FC-009
    lake.create("t", "id INT NOT NULL, v INT NOT NULL, note VARCHAR")
    lake.session.register("many", pa.table({"id": pa.array(range(1, 101), pa.int32())}))
    lake.run("INSERT INTO t SELECT id, 0, 'n' FROM many")
    merge = "MERGE INTO t USING {} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    assert lake.run(merge.format(values("(1,5,'x'),(101,6,'y')", "id, v, note"))) == (1, 1, 0, 0)
    assert lake.rows("SELECT count(*), sum(v) FROM t") == [(101, 11)]
    null = "(SELECT CAST(NULL AS INT) AS id, 1 AS v, 'x' AS note)"
    lake.fails(NullKeyError, merge.format(null), "id")
    lake.fails(ConstraintError, merge.format("(SELECT 1 AS id, CAST(NULL AS INT) AS v, 'x' AS note)"), "v")


@engines
@pytest.mark.parametrize("is_hive", ["true", "false"])
def test_a_delete_finds_its_partition(lake: Lake, is_hive: str) -> None:
    # FC-010: by key, by scan, by partition
    lake.visit(properties={"hoodie.datasource.write.hive_style_partitioning": is_hive})
    folders = lake.partitions("visit")
    assert folders == (["place=p1", "place=p2"] if is_hive == "true" else ["p1", "p2"])
    assert lake.run("DELETE FROM visit WHERE id = 1") == (0, 0, 1, 0)
    assert (
        lake.run("MERGE INTO visit t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")[2]
        == 1
    )
    assert lake.run("DELETE FROM visit WHERE place = 'p2' AND n > 1") == (0, 0, 1, 0)
    assert lake.rows("SELECT * FROM visit") == []
    assert lake.partitions("visit") == folders


@engines
def test_an_update_from_several_matches_is_refused(lake: Lake) -> None:
    # FC-011
    lake.item()
    start = "UPDATE item SET price = item.price + s.d FROM (VALUES {}) s(id, d) WHERE item.id = s.id"
    lake.fails(CardinalityError, start.format("(1, 1.0), (1, 2.0)"))
    assert lake.run(start.format("(1, 1.0), (2, 2.0)")) == (0, 2, 0, 0)
    assert lake.rows("SELECT price FROM item ORDER BY id") == [(2.0,), (4.0,), (3.0,)]


@engines
def test_a_write_of_no_rows_changes_nothing(lake: Lake) -> None:
    # FC-013
    lake.item()
    before = lake.rows("SELECT * FROM item ORDER BY id")
    for text in (
        "INSERT INTO item SELECT id, name, price, ts FROM item WHERE false",
        "UPDATE item SET name = 'x' WHERE false",
        "DELETE FROM item WHERE id > 3",
        f"MERGE INTO item t USING (SELECT * FROM item WHERE id < 0) s ON t.id = s.id {BOTH}",
    ):
        assert lake.run(text) == (0, 0, 0, 0)
        assert lake.rows("SELECT * FROM item ORDER BY id") == before
    lake.run("DELETE FROM item")
    assert lake.rows("SELECT * FROM item") == []
    assert lake.run("INSERT INTO item VALUES (4, 'd', 4.0, 1)") == (1, 0, 0, 0)
    assert lake.rows(ALL) == [(4, "d", 4.0, 1)]


@engines
def test_an_insert_of_a_key_that_exists(lake: Lake) -> None:
    # FC-015: refused unless the statement or a setting says otherwise
    lake.item()
    insert = "INSERT INTO item VALUES (1,'z',5.0,20),(7,'q',7.0,20)"
    lake.fails(DuplicateKeyError, insert)
    lake.session.sql("SET hoodie.datasource.write.operation=upsert")
    assert lake.run(insert) == (1, 1, 0, 0)
    found = lake.rows("SELECT id, name, _hoodie_record_key FROM item ORDER BY id")
    assert found == [(1, "z", "1"), (2, "b", "2"), (3, "c", "3"), (7, "q", "7")]


# -- record keys


@engines
@pytest.mark.parametrize(
    ("kind", "literal", "text"),
    [
        ("TIMESTAMP", "TIMESTAMP '2026-03-01 10:00:00.5'", "1772359200500000"),
        ("TIMESTAMP", "TIMESTAMP '1969-12-31 23:59:59.999999'", "-1"),
        ("DATE", "DATE '1969-12-31'", "1969-12-31"),
        ("DECIMAL(10, 2)", "-0.10", "-0.10"),
        ("BOOLEAN", "true", "true"),
        ("VARCHAR", "'a,b:c'", "a,b:c"),
    ],
)
def test_every_verb_writes_one_key_text(lake: Lake, kind: str, literal: str, text: str) -> None:
    # FC-017, FC-018: in the declared order, whatever the order of the columns
    lake.create("t", f"at {kind}, v VARCHAR, id INT", key="id,at", rows=f"({literal}, 'a', 125)")
    merge = f"MERGE INTO t USING (SELECT {literal} AS at, 'b' AS v, 125 AS id) s ON t.at = s.at AND t.id = s.id {BOTH}"
    assert lake.run(merge) == (0, 1, 0, 0)
    lake.fails(DuplicateKeyError, f"INSERT INTO t VALUES ({literal}, 'c', 125)")
    assert lake.rows("SELECT v, _hoodie_record_key FROM t") == [("b", f"id:125,at:{text}")]


@engines
def test_null_and_empty_key_parts(lake: Lake) -> None:
    # FC-019
    lake.create("t", "a INT, b VARCHAR, v INT", key="a,b", rows="(1,NULL,1),(1,'',2),(NULL,'1',3)")
    found = lake.rows("SELECT v, _hoodie_record_key FROM t ORDER BY v")
    assert found == [(1, "a:1,b:__null__"), (2, "a:1,b:__empty__"), (3, "a:__null__,b:1")]
    lake.fails(NullKeyError, "INSERT INTO t VALUES (NULL, NULL, 4)")
    lake.fails(DuplicateKeyError, "INSERT INTO t VALUES (1, '__empty__', 4)")
    lake.create("one", "a VARCHAR, v INT", key="a", rows="('x', 1)")
    for value in ("NULL", "''"):
        lake.fails(NullKeyError, f"INSERT INTO one VALUES ({value}, 1)")
        lake.fails(NullKeyError, f"UPDATE one SET a = {value}")


@engines
@pytest.mark.parametrize(("kind", "key"), [("FLOAT", "id,v"), ("DOUBLE", "id")])
def test_floating_point_keys_are_refused(lake: Lake, kind: str, key: str) -> None:
    # FC-020: 0.0 and -0.0 are equal and their texts are not
    lake.create("t", f"id {kind}, v INT", key=key)
    lake.fails(UnsupportedTableError, "INSERT INTO t VALUES (0.0, 1)", "id")


@engines
def test_rows_without_keys_are_all_changed(lake: Lake) -> None:
    # FC-021
    lake.create("t", "s VARCHAR, n INT", key=None, rows="('x', 1)")
    lake.run("INSERT INTO t VALUES ('x', 1), (NULL, 1)")
    assert lake.run("UPDATE t SET n = 2 WHERE s = 'x'") == (0, 2, 0, 0)
    merge = "MERGE INTO t USING (SELECT 'x' AS s, 5 AS n) s ON t.s = s.s WHEN MATCHED THEN UPDATE SET n = s.n"
    assert lake.run(merge) == (0, 2, 0, 0)
    assert sorted(lake.rows("SELECT n, s FROM t")) == [(1, None), (5, "x"), (5, "x")]
    assert lake.run("DELETE FROM t WHERE s = 'x'") == (0, 0, 2, 0)
    assert lake.run("DELETE FROM t WHERE s IS NULL") == (0, 0, 1, 0)


@engines
def test_number_keys_are_found_though_their_texts_sort_otherwise(lake: Lake) -> None:
    # FC-022
    lake.create("t", "id BIGINT, v INT", rows="(9,1),(10,1)")
    lake.session.sql("SET hoodie.parquet.small.file.limit=0")
    lake.run("INSERT INTO t VALUES (100,1),(105,1),(110,1)")
    assert lake.run(f"MERGE INTO t USING {values('(10,5),(105,6)', 'id, v')} s ON t.id = s.id {BOTH}") == (
        0,
        2,
        0,
        0,
    )
    assert lake.rows("SELECT id, v FROM t ORDER BY id") == [(9, 1), (10, 5), (100, 1), (105, 6), (110, 1)]
    lake.fails(DuplicateKeyError, "INSERT INTO t VALUES (9, 1)")
    assert lake.run("INSERT INTO t VALUES (99, 1)") == (1, 0, 0, 0)


# -- SQL text


@engines
def test_using_columns_is_short_for_equality(lake: Lake) -> None:
    # FC-081
    lake.item()
    for name, price in (("id", 9.0), ("ID", 10.0)):
        source = f"(SELECT 1 AS id, {price} AS price, 20 AS ts)"
        merge = f"MERGE INTO item USING {source} s USING ({name}) WHEN MATCHED THEN UPDATE SET price = s.price, ts = s.ts"
        assert lake.run(merge) == (0, 1, 0, 0)
        assert lake.rows("SELECT price, ts FROM item WHERE id = 1") == [(price, 20)]


@engines
@pytest.mark.parametrize(("update", "insert"), [("UPDATE", "INSERT"), ("UPDATE SET *", "INSERT *")])
def test_short_forms_go_by_position_or_by_name(lake: Lake, update: str, insert: str) -> None:
    # FC-082: stars go by name, the bare words by position
    lake.item()
    is_star = "*" in update
    in_order = values("(2,'y',9.5,30),(8,'n',8.0,1)", "id, name, price, ts")
    other = values("(30,2,'y',9.5),(1,8,'n',8.0)", "ts, id, name, price")
    merge = f"MERGE INTO item t USING {{}} s ON t.id = s.id WHEN MATCHED THEN {update} WHEN NOT MATCHED THEN {insert}"
    assert lake.run(merge.format(other if is_star else in_order)) == (1, 1, 0, 0)
    assert lake.rows(ALL) == [(1, "a", 1.0, 10), (2, "y", 9.5, 30), (3, "c", 3.0, 10), (8, "n", 8.0, 1)]
    more = merge.format(values("('w',2,'y',9.5,30)", "extra, id, name, price, ts"))
    if is_star:
        assert lake.run(more) == (0, 1, 0, 0)
    else:
        lake.fails(BindError, more)
    lake.fails(BindError, merge.format(values("(2,9.5,30)", "id, price, ts")))


OTHER_CLAUSES = """
WHEN MATCHED THEN UPDATE *
WHEN MATCHED THEN UPDATE BY NAME
WHEN MATCHED THEN ERROR
WHEN MATCHED THEN INSERT *
WHEN NOT MATCHED THEN INSERT BY NAME
WHEN NOT MATCHED THEN INSERT BY POSITION
WHEN NOT MATCHED THEN INSERT DEFAULT VALUES
WHEN NOT MATCHED THEN INSERT (name)
WHEN NOT MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN DELETE
WHEN NOT MATCHED BY SOURCE THEN UPDATE
WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *
WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = s.name
"""


@engines
def test_other_forms_of_clauses_are_refused(lake: Lake) -> None:
    # FC-082: a typed error, whatever the parser makes of them
    lake.item()
    source = values("(2,'y',9.5,30),(8,'n',8.0,1)", "id, name, price, ts")
    for clause in OTHER_CLAUSES.strip().splitlines():
        merge = f"MERGE INTO item t USING {source} s ON t.id = s.id {clause}"
        lake.fails((BindError, SqlSyntaxError, UnsupportedStatementError), merge)


@engines
def test_names_of_the_side_that_is_there(lake: Lake) -> None:
    # FC-083
    lake.item()
    start = "MERGE INTO item t USING (SELECT 11 AS id, 'n' AS name, 1.5 AS price, 5 AS ts) s ON t.id = s.id "
    insert = "WHEN NOT MATCHED THEN INSERT (id, name, price, ts) VALUES (id, {}, price, ts) "
    lake.fails(BindError, start + insert.format("t.name"), "target")
    delete = "WHEN NOT MATCHED BY SOURCE AND ts < 15 AND id < 3 THEN DELETE"
    assert lake.run(start + insert.format("name") + delete) == (1, 0, 2, 0)
    assert lake.rows(ALL) == [(3, "c", 3.0, 10), (11, "n", 1.5, 5)]
    lake.fails(BindError, start + "WHEN MATCHED AND ts > 1 THEN DELETE", "ts")


@engines
def test_statements_that_are_not_supported_say_so(lake: Lake) -> None:
    lake.item(rows=None)
    for text in (
        "INSERT OVERWRITE item VALUES (1,'a',1.0,1)",
        "TRUNCATE TABLE item",
        "ALTER TABLE item ADD COLUMN z INT",
        "CALL show_commits('item')",
        "DESCRIBE item",
        "CREATE INDEX i ON item (id)",
        "EXPLAIN DELETE FROM item",
    ):
        lake.fails(UnsupportedStatementError, text)
