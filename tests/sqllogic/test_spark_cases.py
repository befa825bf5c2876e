"""What Spark answers to the same statements, in both engines, and where we differ on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_sql
from tests.conftest import engines
from tests.sqllogic.cases import Runner, load, ordered
from tests.sqllogic.deviations import DEVIATIONS, WAITING

CASES = {case["id"]: case for case in load()}
RUN = [name for name in CASES if name not in WAITING]


def observe(
    runner: Runner, case: dict[str, Any]
) -> tuple[hudi_sql.HudiSqlError | None, list[list[Any]] | None]:
    """The first error of statements or query, and the rows that the query then gives."""
    for statement in case.get("table_setup") or ():
        runner.setup(statement)
    error = None
    for statement in case.get("statements") or ():
        try:
            runner.session.sql(runner.fill(statement))
        except hudi_sql.HudiSqlError as raised:
            error = raised
            break
    rows = None
    if case.get("query"):
        try:
            rows = runner.query(case["query"])
        except hudi_sql.HudiSqlError as raised:
            error = error or raised
    return error, rows


def answer(
    engine: str, config: dict[str, str], case: dict[str, Any], folder: Path
) -> tuple[hudi_sql.HudiSqlError | None, list[list[Any]] | None]:
    """What a session with these settings answers; a setting may be refused."""
    try:
        session = hudi_sql.connect(engine, dialect="spark", config=config)
    except hudi_sql.HudiSqlError as raised:
        return raised, None
    with session:
        return observe(Runner(session, folder), case)


@engines
@pytest.mark.parametrize("name", RUN)
def test_case(engine: str, name: str, tmp_path: Path) -> None:
    case = CASES[name]
    # With the metadata table off, as recorded, in one engine; as by default in the other, but for cases that look at it.
    plain = engine == "datafusion" or "hoodie.properties" in (case.get("query") or "")
    config = {"hoodie.metadata.enable": "false"} if plain else {}
    error, rows = answer(engine, {**config, **(case.get("conf") or {})}, case, tmp_path)
    expected = DEVIATIONS.get(name, case["expected"])
    if isinstance(expected, dict) and "row_count" in expected:
        assert error is None
        assert rows is not None
        assert len(rows) == expected["row_count"]
    elif isinstance(expected, dict):
        assert error is not None, f"no error, rows {rows}"
        after = expected.get("rows_after", case.get("rows_after"))
        if after is not None:
            assert rows is not None
            assert ordered(rows, case) == ordered(after, case)
    else:
        assert error is None, repr(error)
        if expected is not None:
            assert rows is not None
            assert ordered(rows, case) == ordered(expected, case)


def test_every_deviation_is_written_down() -> None:
    text = (Path(__file__).parents[2] / "docs" / "deviations.md").read_text()
    assert [name for name in DEVIATIONS if f"`{name}`" not in text] == []


def test_deviations_and_waiting_cases_are_cases() -> None:
    assert set(DEVIATIONS) | set(WAITING) <= set(CASES)
