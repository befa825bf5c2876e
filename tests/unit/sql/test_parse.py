"""Texts to statements."""

from __future__ import annotations

import pytest
from sqlglot import exp

from hudi_sql.errors import SqlSyntaxError, UnsupportedStatementError
from hudi_sql.sql.parse import split_and_parse


def test_semicolons_split_but_not_in_quotes_or_comments() -> None:
    text = "SELECT ';' AS a; -- one; two\nDELETE FROM t /* x; y */ WHERE a = 1;;\n"
    found = split_and_parse(text, "duckdb")
    assert [type(item.tree) for item in found] == [exp.Select, exp.Delete]
    assert found[0].text == "SELECT ';' AS a"
    assert found[1].text.startswith("DELETE FROM t")


def test_nothing_is_no_statement() -> None:
    assert split_and_parse(" ; -- nothing\n", "spark") == []


@pytest.mark.parametrize("text", ["SELEC 1", "SELECT FROM WHERE", "SELECT 'open"])
def test_what_cannot_be_read_shows_the_spot(text: str) -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        split_and_parse(text, "duckdb")
    error = raised.value
    assert error.sql == text
    assert 0 <= error.start <= error.end <= len(text)
    assert error.hint


def test_schema_evolution_is_refused_with_what_to_write() -> None:
    with pytest.raises(UnsupportedStatementError, match="SCHEMA EVOLUTION"):
        split_and_parse(
            "merge with schema evolution into t using s on true when matched then delete", "spark"
        )


def test_spark_literals_have_their_types() -> None:
    tree = split_and_parse("select 20L, 5.0D", "spark")[0].tree
    assert tree.sql("spark") == "SELECT CAST(20 AS BIGINT), CAST(5.0 AS DOUBLE)"
