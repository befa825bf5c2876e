"""INSERT: what happens to keys that are there already, or twice in the statement."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import ConstraintError, DuplicateKeyError
from hudi_sql.planner import insert
from hudi_sql.planner.changes import Counts, Outcome
from hudi_sql.planner.insert import Existing, InsertRules, Within, insert_rules, plan_insert_rows, whole_rows
from hudi_sql.planner.model import TableFacts
from hudi_sql.storage.model.commit import OperationType
from tests.unit.planner.fakes import ITEM, FakeKeys, FakeSnapshot, after, facts, item, rows

A, B, C = (1, "a", 1.0, 10), (2, "b", 2.0, 10), (3, "c", 3.0, 10)
KEYLESS = facts(record_key_fields=(), ordering_fields=(), is_event_time=False)


def rules(
    dialect: str, table: TableFacts | None = None, conflict: str | None = None, **settings: str
) -> InsertRules:
    named = {f"hoodie.{key.replace('__', '.')}": value for key, value in settings.items()}
    return insert_rules(conflict, table or facts(), dialect, WriteConfig.parse(named))


def apply(rule: InsertRules, *given: tuple[Any, ...], table: TableFacts | None = None) -> Outcome:
    table = table or facts()
    return plan_insert_rows(
        iter([rows(ITEM, *given)]), rule, table, FakeKeys(item(), table), reads_target=False
    )


def test_each_dialect_has_its_own_rules_for_existing_keys() -> None:
    assert rules("spark").is_blind
    ours = rules("duckdb")
    assert (ours.existing, ours.within) == (Existing.FAIL, Within.FAIL)
    assert rules("datafusion") == ours
    assert rules("datafusion", KEYLESS).is_blind


def test_settings_choose_other_rules() -> None:
    assert rules("spark", datasource__insert__dup__policy="fail").existing is Existing.FAIL
    assert rules("spark", datasource__insert__dup__policy="drop").within is Within.KEEP_ALL
    assert rules("duckdb", datasource__insert__dup__policy="none").is_blind
    upsert = rules("spark", spark__sql__insert__into__operation="upsert")
    assert (upsert.existing, upsert.within) == (Existing.UPDATE, Within.HIGHEST)
    assert upsert.operation is OperationType.UPSERT
    assert rules("spark", combine__before__insert="true").within is Within.HIGHEST
    assert (
        rules("spark", spark__sql__insert__into__operation="bulk_insert").operation
        is OperationType.BULK_INSERT
    )


def test_the_statements_own_words_come_first() -> None:
    assert rules("duckdb", conflict="ignore").existing is Existing.IGNORE
    assert rules("duckdb", conflict="replace").existing is Existing.UPDATE


def test_spark_keeps_both_rows_of_a_key() -> None:
    outcome = apply(rules("spark"), (1, "z", 5.0, 20), (7, "q", 7.0, 20), (7, "q", 7.0, 20))
    assert outcome.counts == Counts(inserted=3)
    assert outcome.changes is not None
    assert outcome.changes.reads_nothing


def test_a_key_that_exists_or_comes_twice_is_refused_elsewhere() -> None:
    with pytest.raises(DuplicateKeyError) as raised:
        apply(rules("duckdb"), (1, "z", 5.0, 20), (7, "q", 7.0, 20))
    assert raised.value.keys == ("1",)
    with pytest.raises(DuplicateKeyError) as raised:
        apply(rules("duckdb"), (7, "z", 5.0, 20), (7, "q", 7.0, 30))
    assert raised.value.keys == ("7",)
    outcome = apply(rules("duckdb"), (7, "z", 5.0, 20))
    assert outcome.changes is not None
    assert outcome.changes.keys_are_new
    assert not outcome.changes.reads_nothing
    assert outcome.changes.read_partitions == ("",)


def test_existing_keys_are_ignored_where_the_statement_says_so() -> None:
    outcome = apply(
        rules("duckdb", conflict="ignore"), (1, "z", 5.0, 20), (7, "q", 7.0, 20), (7, "r", 7.0, 20)
    )
    assert after(outcome, item()) == [A, B, C, (7, "q", 7.0, 20)]
    assert outcome.counts == Counts(inserted=1, ignored=1)


def test_an_upsert_keeps_the_newest_row() -> None:
    upsert = rules("spark", spark__sql__insert__into__operation="upsert")
    outcome = apply(
        upsert,
        (1, "z", 5.0, 20),
        (2, "old", 5.0, 5),
        (7, "hi", 7.0, 30),
        (7, "lo", 7.0, 20),
        (3, "x", 1.0, 10),
    )
    assert after(outcome, item()) == [(1, "z", 5.0, 20), B, (3, "x", 1.0, 10), (7, "hi", 7.0, 30)]
    assert outcome.counts == Counts(inserted=1, updated=2, ignored=1)


def test_an_upsert_without_ordering_takes_the_last_row() -> None:
    plain = facts(ordering_fields=(), is_event_time=False)
    upsert = rules("spark", plain, spark__sql__insert__into__operation="upsert")
    outcome = apply(
        upsert, (1, "x", 5.0, 1), (7, "lo", 7.0, 30), (1, "y", 5.0, 0), (7, "hi", 7.0, 20), table=plain
    )
    assert after(outcome, item()) == [(1, "y", 5.0, 0), B, C, (7, "hi", 7.0, 20)]


def test_an_upsert_changes_every_physical_row_of_a_key() -> None:
    snapshot = FakeSnapshot(("", rows(ITEM, A, A)))
    upsert = rules("spark", spark__sql__insert__into__operation="upsert")
    keys = FakeKeys(snapshot, facts())
    outcome = plan_insert_rows(
        iter([rows(ITEM, (1, "z", 5.0, 20))]), upsert, facts(), keys, reads_target=False
    )
    assert after(outcome, snapshot) == [(1, "z", 5.0, 20)] * 2


def test_null_ordering_is_refused_with_its_key() -> None:
    with pytest.raises(ConstraintError, match=r"ts .*'7'"):
        apply(rules("spark"), (7, "z", 5.0, None))


def test_no_rows_make_no_change_set() -> None:
    for dialect in ("spark", "duckdb"):
        assert apply(rules(dialect)).changes is None


def test_long_inserts_are_streamed_and_checked_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insert, "_BUFFERED_ROWS", 2)
    parts = [rows(ITEM, (n, "x", 1.0, 1 if n < 6 else None)) for n in range(4, 8)]
    outcome = plan_insert_rows(
        iter(parts), rules("spark"), facts(), FakeKeys(item(), facts()), reads_target=False
    )
    assert outcome.counts == Counts()
    assert outcome.changes is not None
    assert outcome.changes.inserts is not None
    with pytest.raises(ConstraintError):
        outcome.changes.inserts.read_all()


def test_query_columns_go_to_table_columns_by_position() -> None:
    source = pa.table({"a": pa.array([20], pa.int32()), "b": pa.array([7], pa.int64())})
    constants = pa.table({"name": ["p1"]})
    (found,) = whole_rows(source.to_reader(), ("ts", "id"), constants, facts())
    assert found.schema == ITEM
    assert found.to_pylist() == [{"id": 7, "name": "p1", "price": None, "ts": 20}]


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63) + 1, 253_402_300_800_000_000])
def test_infinite_times_and_years_above_9999_are_refused(value: int) -> None:
    schema = pa.schema([("id", pa.int32()), ("at", pa.timestamp("us"))])
    given = pa.table(
        {"id": pa.array([1, 2], pa.int32()), "at": pa.array([0, value], pa.int64()).cast(pa.timestamp("us"))}
    )
    with pytest.raises(ConstraintError, match="9999"):
        list(whole_rows(given.to_reader(), ("id", "at"), pa.table({}), facts(schema)))


def test_values_that_do_not_fit_are_refused() -> None:
    source = pa.table({"a": pa.array([2**40], pa.int64())})
    with pytest.raises(ConstraintError, match="id") as raised:
        list(whole_rows(source.to_reader(), ("id",), pa.table({}), facts()))
    assert raised.value.column == "id"
