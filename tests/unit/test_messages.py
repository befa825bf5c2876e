"""What users read when names or values are wrong: the same kind of error from both engines, in our words."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_sql
from hudi_sql.errors import (
    BindError,
    ConfigError,
    EngineFailureError,
    HudiSqlError,
    TableNotFoundError,
)
from tests.conftest import engines


@pytest.fixture
def session(engine: str, tmp_path: Path) -> hudi_sql.Session:
    made = hudi_sql.connect(engine)
    made.sql(
        "CREATE TABLE t (id INT, name VARCHAR, price DOUBLE) USING hudi TBLPROPERTIES (primaryKey='id') "
        f"LOCATION '{tmp_path}/t'"
    )
    made.sql("INSERT INTO t VALUES (1, 'a', 1.0), (2, 'b', 2.0)")
    return made


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@engines
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM nope",
        "INSERT INTO nope VALUES (1)",
        "INSERT INTO t SELECT * FROM nope",
        "UPDATE nope SET a = 1",
        "UPDATE t SET price = (SELECT max(x) FROM nope)",
        "DELETE FROM nope",
        "DELETE FROM t WHERE id IN (SELECT id FROM nope)",
        "MERGE INTO t USING nope s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "DROP TABLE nope",
    ],
)
def test_a_table_that_nobody_knows(session: hudi_sql.Session, tmp_path: Path, text: str) -> None:
    before = files(tmp_path)
    with pytest.raises((BindError, TableNotFoundError), match="There is no table nope") as caught:
        session.sql(text).fetchall()
    assert caught.value.table == "nope"
    assert files(tmp_path) == before


@engines
@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES ('x', 'a', 1.0)",
        "UPDATE t SET price = 'abc' WHERE id = 1",
        "UPDATE t SET price = CAST(name AS DOUBLE)",
        "SELECT CAST(name AS INT) FROM t",
    ],
)
def test_values_that_cannot_be_cast(session: hudi_sql.Session, tmp_path: Path, text: str) -> None:
    before = files(tmp_path)
    with pytest.raises(EngineFailureError, match=r"(?i)(convert|cast) string") as caught:
        session.sql(text).fetchall()
    assert "LINE" not in str(caught.value)
    assert "^" not in str(caught.value)
    assert files(tmp_path) == before


@engines
@pytest.mark.parametrize(
    "text",
    [
        "SELECT nope FROM t",
        "SELECT nofunc(id) FROM t",
        "SELECT sum(name) FROM t",
        "UPDATE t SET price = nofunc(1)",
    ],
)
def test_no_picture_of_what_the_user_did_not_write(session: hudi_sql.Session, text: str) -> None:
    with pytest.raises(HudiSqlError) as caught:
        session.sql(text)
    assert "LINE" not in str(caught.value)
    assert "__hudi_sql" not in str(caught.value)


@engines
@pytest.mark.parametrize(
    ("key", "value", "want"),
    [
        ("hoodie.parquet.max.file.size", "abc", "whole number"),
        ("hoodie.parquet.max.file.size", "-1", "below zero"),
        ("hoodie.metadata.enable", "perhaps", "true or false"),
    ],
)
def test_settings_say_what_they_take(session: hudi_sql.Session, key: str, value: str, want: str) -> None:
    with pytest.raises(ConfigError, match=want) as caught:
        session.sql(f"SET {key} = {value}")
    assert key in str(caught.value)
