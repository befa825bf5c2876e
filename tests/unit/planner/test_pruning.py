"""Conditions become predicates only where that is certain."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import engine_adapters.datafusion.dialect  # noqa: F401  # registers the dialect
from hudi_sql.planner.lending import Lender
from hudi_sql.planner.pruning import to_predicate
from hudi_sql.planner.rewrite import conjuncts
from hudi_sql.sql.model import TableName
from hudi_sql.storage.read.predicate import And, Compare, CompareOp, IsIn, IsNull, Or, Predicate

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("small", pa.float32()),
        ("day", pa.date32()),
        ("amount", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("ok", pa.bool_()),
    ]
)


def predicate(text: str) -> Predicate | None:
    tree = sqlglot.parse_one(text, read="duckdb")
    names = set(SCHEMA.names)

    def resolve(column: exp.Column) -> str | None:
        return column.name if column.name in names and column.table in ("", "t") else None

    return to_predicate(conjuncts(tree), resolve, SCHEMA)


def compare(column: str, op: CompareOp, value: object) -> Compare:
    return Compare(column=column, op=op, value=pa.scalar(value, SCHEMA.field(column).type))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.id = 5", compare("id", CompareOp.EQ, 5)),
        ("5 < id", compare("id", CompareOp.GT, 5)),
        ("id >= -5", compare("id", CompareOp.GE, -5)),
        ("name = 'x'", compare("name", CompareOp.EQ, "x")),
        ("price < 2.5", compare("price", CompareOp.LT, 2.5)),
        ("amount <= 2.5", compare("amount", CompareOp.LE, Decimal("2.50"))),
        ("day > date '2026-01-02'", compare("day", CompareOp.GT, dt.date(2026, 1, 2))),
        ("ok = true", compare("ok", CompareOp.EQ, value=True)),
        ("name is null", IsNull(column="name")),
    ],
)
def test_comparisons_with_literals(text: str, expected: Predicate) -> None:
    assert predicate(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "id = s.id",
        "s.id = 5",
        "id = '5'",
        "id = 1.5",
        "id = 99999999999",
        "small < 1.1",
        "name like 'a%'",
        "upper(name) = 'X'",
        "amount = 1.005",
        "at > timestamp '2026-01-01'",
        "id in (select 1)",
        "id + 1 = 5",
        "id = 5 or name like 'x'",
        "not id = 5",
        "name not in ('x')",
    ],
)
def test_what_is_not_certain_is_left_to_the_engine(text: str) -> None:
    assert predicate(text) is None


def test_conjunctions_keep_what_they_can() -> None:
    found = predicate("id = 5 and name like 'a%' and price between 1 and 2")
    assert found == And(
        parts=(
            compare("id", CompareOp.EQ, 5),
            And(parts=(compare("price", CompareOp.GE, 1.0), compare("price", CompareOp.LE, 2.0))),
        )
    )
    either = predicate("id = 5 or name in ('x', 'y')")
    names = IsIn(column="name", values=(pa.scalar("x"), pa.scalar("y")))
    assert either == Or(parts=(compare("id", CompareOp.EQ, 5), names))


def lend(text: str) -> list[Predicate | None]:
    lender = Lender({"t": TableName(parts=("t",)), "u": TableName(parts=("u",))}, {"t": SCHEMA, "u": SCHEMA})
    lender.lend(sqlglot.parse_one(text, read="duckdb"))
    return [table.predicate for table in lender.lent]


def test_each_table_of_a_query_is_pruned_by_its_own_conditions() -> None:
    found = lend("select * from t a join u on a.id = u.id where a.id = 5 and u.name = 'x' and id < 9")
    assert found == [compare("id", CompareOp.EQ, 5), compare("name", CompareOp.EQ, "x")]
    assert lend("select * from t where id = 5") == [compare("id", CompareOp.EQ, 5)]


def test_is_null_prunes_nothing_beside_a_join() -> None:
    assert lend("select * from t left join u on t.id = u.id where u.id is null") == [None, None]


def test_a_common_table_expression_hides_a_table() -> None:
    text = "with t as (select * from t where id = 1) select * from t join u on true"
    lender = Lender({"t": TableName(parts=("t",)), "u": TableName(parts=("u",))}, {"t": SCHEMA, "u": SCHEMA})
    tree = lender.lend(sqlglot.parse_one(text, read="duckdb"))
    assert [table.key for table in lender.lent] == ["t", "u"]
    assert tree.sql("duckdb") == (
        'WITH t AS (SELECT * FROM "__hudi_sql_t0" AS t WHERE id = 1) '
        'SELECT * FROM t JOIN "__hudi_sql_t1" AS u ON TRUE'
    )


@pytest.mark.parametrize("dialect", ["duckdb", "datafusion", "spark", "postgres"])
def test_is_not_null_is_never_taken_for_is_null(dialect: str) -> None:
    for text in ("name IS NOT NULL", "NOT (name IS NULL)"):
        tree = sqlglot.parse_one(text, read=dialect)
        found = to_predicate(conjuncts(tree), lambda column: column.name, SCHEMA)
        assert found in (None, IsNull(column="name", negated=True))
    tree = sqlglot.parse_one("NOT (name IS NOT NULL)", read=dialect)
    assert to_predicate(conjuncts(tree), lambda column: column.name, SCHEMA) in (None, IsNull(column="name"))


@pytest.mark.parametrize("text", ["id BETWEEN SYMMETRIC 5 AND 1", "name = CAST('abcdef' AS VARCHAR(3))"])
def test_words_that_are_not_understood_prune_nothing(text: str) -> None:
    tree = sqlglot.parse_one(text, read="postgres")
    assert to_predicate(conjuncts(tree), lambda column: column.name, SCHEMA) is None
