"""Copy-on-write tables of Spark through a session: the same rows from both engines, now and in the past."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_sql
from hudi_sql.errors import UnsupportedTableError
from tests.conftest import engines
from tests.golden.test_golden_cow import NAMES, READ_AS_TEXT, _encoded, _expected, _sorted
from tests.golden_tables import expected, unpack


def rows_of(name: str, result: pa.Table, schema: list[dict[str, str]]) -> list[list[object]]:
    table = result
    for column in READ_AS_TEXT.get(name, ()):
        index = table.column_names.index(column)
        table = table.set_column(index, column, table[column].cast(pa.string()))
    return _sorted(
        [[_encoded(row[column["name"]], column["type"]) for column in schema] for row in table.to_pylist()]
    )


@engines
@pytest.mark.parametrize("name", NAMES)
def test_a_session_gives_the_rows_of_spark(engine: str, name: str, tmp_path: Path) -> None:
    table = expected(name)
    root = unpack(name, tmp_path)
    reads = [("", table["snapshot"])]
    reads += [
        (f" TIMESTAMP AS OF '{past['as_of']}'", past) for past in table["time_travel"] if "rows" in past
    ]
    with hudi_sql.connect(engine=engine) as session:
        session.sql(f"CREATE TABLE golden USING hudi LOCATION '{root}'")
        for when, wanted in reads:
            schema = wanted.get("schema", table["snapshot"]["schema"])
            columns = ", ".join(f'"{column["name"]}"' for column in schema)
            got = session.sql(f"SELECT {columns} FROM golden{when}").to_arrow_table()
            assert rows_of(name, got, schema) == _sorted(
                [
                    [_expected(value, schema[i]["type"]) for i, value in enumerate(row)]
                    for row in wanted["rows"]
                ]
            ), when


@engines
def test_columns_that_go_by_ids_are_refused(engine: str, tmp_path: Path) -> None:
    root = unpack("v9_cow_schema_on_read", tmp_path)
    text = f"CREATE TABLE golden USING hudi LOCATION '{root}'; SELECT * FROM golden"
    with hudi_sql.connect(engine=engine) as session, pytest.raises(UnsupportedTableError):
        session.sql(text)
