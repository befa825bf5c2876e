"""UPDATE and DELETE plans, in both engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from engine_adapters import loader
from hudi_sql.errors import CardinalityError, ConstraintError, DuplicateKeyError
from hudi_sql.planner.changes import Counts
from hudi_sql.planner.delete import plan_delete
from hudi_sql.planner.update import plan_update
from hudi_sql.sql.model import Assignment, BoundDelete, BoundUpdate
from tests.conftest import engines
from tests.unit.planner.fakes import TARGET, FakeSnapshot, after, facts, item, parse, rows, run, sets

A, B, C = (1, "a", 1.0, 10), (2, "b", 2.0, 10), (3, "c", 3.0, 10)
PAIRS = "(values (1, 1.0), (1, 2.0)) s(id, d)"


@pytest.fixture
def adapter(engine: str) -> Iterator[Any]:
    adapter = loader.connect(engine)
    yield adapter
    adapter.close()


def update(where: str | None = None, source: str | None = None, **values: str) -> BoundUpdate:
    return BoundUpdate(
        text="",
        tables={"item": TARGET},
        target=TARGET,
        alias="item",
        assignments=sets(**values),
        where=None if where is None else parse(where),
        from_=None if source is None else parse(f"select * from {source}").args["from_"],
    )


def delete(where: str | None = None, source: str | None = None) -> BoundDelete:
    return BoundDelete(
        text="",
        tables={"item": TARGET},
        target=TARGET,
        alias="item",
        where=None if where is None else parse(where),
        using=None if source is None else parse(f"select * from {source}").args["from_"].this,
    )


@engines
def test_right_hand_sides_see_stored_values(adapter: Any) -> None:
    bound = update("item.id = 1", price="cast(item.ts as double)", ts="cast(item.price * 100 as bigint)")
    assert after(run(adapter, plan_update, bound, item(), facts()), item()) == [(1, "a", 10.0, 100), B, C]


@engines
def test_only_assigned_columns_are_rewritten(adapter: Any) -> None:
    outcome = run(adapter, plan_update, update(None, price="item.price * 2"), item(), facts())
    assert outcome.changes is not None
    assert [part.values.column_names for part in outcome.changes.slices] == [["price"], ["price"]]
    assert outcome.counts == Counts(updated=3)


@engines
def test_a_subquery_reads_the_target_as_it_was(adapter: Any) -> None:
    bound = update("item.price = (select max(price) from item)", price="cast(9 as double)")
    assert after(run(adapter, plan_update, bound, item(), facts()), item()) == [A, B, (3, "c", 9.0, 10)]


@engines
def test_several_from_rows_for_one_row_are_refused(adapter: Any) -> None:
    several = update("item.id = s.id", PAIRS, price="cast(item.price + s.d as double)")
    with pytest.raises(CardinalityError):
        run(adapter, plan_update, several, item(), facts())
    bound = update("item.id = s.id", PAIRS, price="cast(s.d as double)", ts="cast(10 + s.d as bigint)")
    outcome = run(adapter, plan_update, bound, item(), facts())
    assert after(outcome, item())[0] == (1, "a", 2.0, 12)


@engines
def test_older_updates_are_ignored_in_event_time_tables(adapter: Any) -> None:
    bound = update(
        "item.id <= 2", name="'z'", ts="case when item.id = 1 then cast(1 as bigint) else item.ts end"
    )
    outcome = run(adapter, plan_update, bound, item(), facts())
    assert outcome.counts == Counts(updated=1, ignored=1)
    assert after(outcome, item()) == [A, (2, "z", 2.0, 10), C]
    assert run(adapter, plan_update, bound, item(), facts(is_event_time=False)).counts == Counts(updated=2)


@engines
def test_null_for_the_ordering_field_names_the_key(adapter: Any) -> None:
    with pytest.raises(ConstraintError, match=r"'1'"):
        run(adapter, plan_update, update("item.id = 1", ts="null"), item(), facts())


@engines
def test_keys_may_be_shifted_but_not_doubled(adapter: Any) -> None:
    shifted = run(adapter, plan_update, update(None, id="cast(item.id + 1 as int)"), item(), facts())
    assert [row[0] for row in after(shifted, item())] == [2, 3, 4]
    with pytest.raises(DuplicateKeyError, match="'3'"):
        run(adapter, plan_update, update("item.id = 1", id="cast(3 as int)"), item(), facts())
    same = run(adapter, plan_update, update("item.id = 1", id="cast(1 as int)"), item(), facts())
    assert same.counts == Counts(updated=1)


@engines
def test_a_field_of_a_struct_is_assigned_alone(adapter: Any) -> None:
    inner = pa.struct([("a", pa.int32()), ("b", pa.string())])
    schema = pa.schema([("id", pa.int32()), ("st", inner), ("ts", pa.int64())])
    snapshot = FakeSnapshot(("", rows(schema, (1, {"a": 1, "b": "x"}, 10), (2, None, 10))))
    bound = BoundUpdate(
        text="",
        target=TARGET,
        alias="item",
        assignments=(Assignment(column="st", path=("a",), value=parse("cast(5 as int)")),),
    )
    outcome = run(adapter, plan_update, bound, snapshot, facts(schema))
    assert after(outcome, snapshot) == [(1, {"a": 5, "b": "x"}, 10), (2, {"a": 5, "b": None}, 10)]


@engines
def test_rows_are_deleted_once_whatever_matches_them(adapter: Any) -> None:
    outcome = run(adapter, plan_delete, delete("item.id = s.id", PAIRS), item(), facts())
    assert outcome.counts == Counts(deleted=1)
    assert after(outcome, item()) == [B, C]


@engines
def test_a_delete_without_condition_deletes_all(adapter: Any) -> None:
    outcome = run(adapter, plan_delete, delete(), item(), facts())
    assert outcome.counts == Counts(deleted=3)
    assert after(outcome, item()) == []


@engines
def test_nothing_to_change_makes_no_change_set(adapter: Any) -> None:
    outcome = run(adapter, plan_delete, delete("item.id = 99"), item(), facts())
    assert outcome.changes is None
    assert outcome.counts == Counts()


@engines
def test_a_subquery_may_name_the_targets_columns_alone(adapter: Any) -> None:
    bound = delete("exists (select 1 from (values (1), (3)) x(v) where v = id)")
    assert run(adapter, plan_delete, bound, item(), facts()).counts == Counts(deleted=2)


@engines
def test_not_in_with_null_deletes_nothing(adapter: Any) -> None:
    bound = delete("item.id not in (select v from (values (1), (null)) x(v))")
    assert run(adapter, plan_delete, bound, item(), facts()).counts == Counts()
