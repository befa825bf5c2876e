"""MERGE: which clause acts on which row, in both engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from engine_adapters import loader
from hudi_sql.errors import CardinalityError, ConstraintError, DuplicateKeyError
from hudi_sql.planner.changes import Counts
from hudi_sql.planner.merge import plan_merge
from hudi_sql.sql.model import ClauseAction, ClauseKind
from tests.conftest import engines
from tests.unit.planner.fakes import (
    ITEM,
    FakeKeys,
    FakeSnapshot,
    after,
    clause,
    facts,
    item,
    merge,
    rows,
    run,
    sets,
    star,
    values,
)

UPDATE, DELETE, INSERT, NOTHING = (
    ClauseAction.UPDATE,
    ClauseAction.DELETE,
    ClauseAction.INSERT,
    ClauseAction.NOTHING,
)
NEW, GONE = ClauseKind.NOT_MATCHED, ClauseKind.NOT_MATCHED_BY_SOURCE
UPSERT = (clause(UPDATE, None, star()), clause(INSERT, None, star(), NEW))
A, B, C = (1, "a", 1.0, 10), (2, "b", 2.0, 10), (3, "c", 3.0, 10)


@pytest.fixture
def adapter(engine: str) -> Iterator[Any]:
    adapter = loader.connect(engine)
    yield adapter
    adapter.close()


@engines
def test_highest_ordering_value_of_a_key_wins_for_updates_and_inserts(adapter: Any) -> None:
    source = values(
        (1, "lo", 5.0, 20), (1, "hi", 6.0, 30), (1, "mid", 7.0, 25), (9, "lo", 1.0, 1), (9, "hi", 2.0, 2)
    )
    outcome = run(adapter, plan_merge, merge(source, "t.id = s.id", *UPSERT), item(), facts())
    assert after(outcome, item()) == [(1, "hi", 6.0, 30), B, C, (9, "hi", 2.0, 2)]
    assert outcome.counts == Counts(inserted=1, updated=1)


@engines
def test_only_rows_that_act_count_as_several(adapter: Any) -> None:
    plain = facts(ordering_fields=(), is_event_time=False)
    source = values((1, "x", 1.0, 1), (1, "y", 0.0, 1))
    bound = merge(source, "t.id = s.id", clause(UPDATE, "s.price > 0", sets(name="s.name")))
    outcome = run(adapter, plan_merge, bound, item(), plain)
    assert after(outcome, item()) == [(1, "x", 1.0, 10), B, C]
    outcome = run(adapter, plan_merge, merge(source, "t.id = s.id", clause(DELETE)), item(), plain)
    assert outcome.counts == Counts(deleted=1)
    with pytest.raises(CardinalityError, match="'1'") as raised:
        run(adapter, plan_merge, merge(source, "t.id = s.id", clause(UPDATE, None, star())), item(), plain)
    assert raised.value.keys == ("1",)


@engines
def test_a_tie_of_ordering_values_is_refused_unless_the_outcome_is_one(adapter: Any) -> None:
    bound = merge(values((1, "x", 1.0, 20), (1, "y", 1.0, 20)), "t.id = s.id", *UPSERT)
    with pytest.raises(CardinalityError):
        run(adapter, plan_merge, bound, item(), facts())
    bound = merge(values((1, "x", 1.0, 20), (1, "x", 1.0, 20)), "t.id = s.id", *UPSERT)
    assert run(adapter, plan_merge, bound, item(), facts()).counts == Counts(updated=1)


@engines
def test_clauses_are_tried_in_written_order(adapter: Any) -> None:
    source = values((1, "z", 5.0, 20), (2, "y", 6.0, 20))
    bound = merge(source, "t.id = s.id", clause(DELETE, "s.name = 'z'"), clause(UPDATE, None, star()))
    assert after(run(adapter, plan_merge, bound, item(), facts()), item()) == [(2, "y", 6.0, 20), C]
    bound = merge(source, "t.id = s.id", clause(NOTHING, "s.name = 'z'"), clause(UPDATE, None, star()))
    assert after(run(adapter, plan_merge, bound, item(), facts()), item()) == [A, (2, "y", 6.0, 20), C]


@engines
def test_rows_without_a_source_row(adapter: Any) -> None:
    source = values((1, "z", 5.0, 20), (7, "q", 7.0, 20))
    bound = merge(source, "t.id = s.id", clause(UPDATE, None, star()), clause(DELETE, None, (), GONE))
    assert after(run(adapter, plan_merge, bound, item(), facts()), item()) == [(1, "z", 5.0, 20)]
    by_source = clause(UPDATE, "t.id = 2", sets(name="'gone'", ts="cast(99 as bigint)"), GONE)
    bound = merge(source, "t.id = s.id", *UPSERT, by_source)
    outcome = run(adapter, plan_merge, bound, item(), facts())
    assert after(outcome, item()) == [(1, "z", 5.0, 20), (2, "gone", 2.0, 99), C, (7, "q", 7.0, 20)]
    assert outcome.counts == Counts(inserted=1, updated=2)


@engines
def test_older_rows_are_ignored_and_counted_but_still_delete(adapter: Any) -> None:
    source = values((1, "z", 5.0, 5), (2, "y", 6.0, 10))
    outcome = run(adapter, plan_merge, merge(source, "t.id = s.id", *UPSERT), item(), facts())
    assert after(outcome, item()) == [A, (2, "y", 6.0, 10), C]
    assert outcome.counts == Counts(updated=1, ignored=1)
    outcome = run(adapter, plan_merge, merge(source, "t.id = s.id", clause(DELETE)), item(), facts())
    assert outcome.counts == Counts(deleted=2)


@engines
def test_null_ordering_is_refused_in_event_time_tables_only(adapter: Any) -> None:
    bound = merge(values((1, "z", 5.0, None)), "t.id = s.id", *UPSERT)
    with pytest.raises(ConstraintError, match=r"ts .*'1'"):
        run(adapter, plan_merge, bound, item(), facts())
    new = merge(values((8, "z", 5.0, None)), "t.id = s.id", *UPSERT)
    with pytest.raises(ConstraintError, match=r"ts .*'8'"):
        run(adapter, plan_merge, new, item(), facts())
    outcome = run(adapter, plan_merge, bound, item(), facts(is_event_time=False))
    assert after(outcome, item())[0] == (1, "z", 5.0, None)


@engines
def test_partial_set_keeps_other_columns_beside_inserts(adapter: Any) -> None:
    partial = clause(UPDATE, None, sets(price="s.price + t.price"))
    source = values((1, "z", 5.0, 20), (7, "q", 7.0, 20))
    bound = merge(source, "t.id = s.id", partial, clause(INSERT, None, star(), NEW))
    outcome = run(adapter, plan_merge, bound, item(), facts())
    assert after(outcome, item()) == [(1, "a", 6.0, 10), B, C, (7, "q", 7.0, 20)]
    assert outcome.changes is not None
    assert outcome.changes.slices[0].values.column_names == ["price"]


@engines
def test_clauses_with_different_columns_keep_what_they_do_not_set(adapter: Any) -> None:
    first = clause(UPDATE, "s.id = 1", sets(name="s.name"))
    second = clause(UPDATE, None, sets(price="s.price"))
    bound = merge(values((1, "z", 5.0, 20), (2, "y", 6.0, 20)), "t.id = s.id", first, second)
    outcome = run(adapter, plan_merge, bound, item(), facts())
    assert after(outcome, item()) == [(1, "z", 1.0, 10), (2, "b", 6.0, 10), C]


@engines
def test_an_insert_of_a_key_that_did_not_match_but_exists_is_refused(adapter: Any) -> None:
    bound = merge(values((1, "z", 5.0, 20)), "t.id = s.id AND t.price > 5", *UPSERT)
    with pytest.raises(DuplicateKeyError) as raised:
        run(adapter, plan_merge, bound, item(), facts())
    assert raised.value.keys == ("1",)


@engines
def test_the_key_is_not_looked_up_when_the_condition_has_decided_it(adapter: Any) -> None:
    table, snapshot = facts(), item()
    keys = FakeKeys(snapshot, table)
    run(adapter, plan_merge, merge(values((7, "q", 7.0, 20)), "t.id = s.id", *UPSERT), snapshot, table, keys)
    assert keys.num_lookups == 0
    other = clause(INSERT, None, sets(id="s.id + 1", name="s.name", price="s.price", ts="s.ts"), NEW)
    run(adapter, plan_merge, merge(values((7, "q", 7.0, 20)), "t.id = s.id", other), snapshot, table, keys)
    assert keys.num_lookups == 1


@engines
def test_a_truncated_key_is_looked_up(adapter: Any) -> None:
    """1.5 does not match 1 and becomes 1 when stored."""
    source = "select cast(1.5 as double) id, 'z' name, cast(5.0 as double) price, cast(20 as bigint) ts"
    schema = ITEM.set(0, pa.field("id", pa.float64()))
    cut = clause(INSERT, None, (*sets(id="cast(trunc(s.id) as int)"), *star()[1:]), NEW)
    with pytest.raises(DuplicateKeyError):
        run(adapter, plan_merge, merge(source, "t.id = s.id", cut, schema=schema), item(), facts())


@engines
def test_unmatched_rows_of_one_key_that_tie_are_refused(adapter: Any) -> None:
    bound = merge(values((7, "x", 1.0, 1), (7, "y", 2.0, 1)), "t.id = s.id", *UPSERT)
    with pytest.raises(DuplicateKeyError, match="'7'"):
        run(adapter, plan_merge, bound, item(), facts())
    keyless = facts(record_key_fields=(), ordering_fields=(), is_event_time=False)
    assert run(adapter, plan_merge, bound, item(), keyless).counts == Counts(inserted=2)


@engines
def test_null_parts_of_a_composite_key_match_themselves(adapter: Any) -> None:
    schema = pa.schema([("k1", pa.int32()), ("k2", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
    snapshot = FakeSnapshot(("", rows(schema, (1, None, "a", 1))), keys=("k1", "k2"))
    table = facts(schema, record_key_fields=("k1", "k2"))
    source = "select cast(1 as int) k1, cast(null as varchar) k2, 'b' v, cast(2 as bigint) ts"
    upsert = (clause(UPDATE, None, star(schema)), clause(INSERT, None, star(schema), NEW))
    bound = merge(source, "t.k1 = s.k1 AND t.k2 = s.k2", *upsert, schema=schema)
    outcome = run(adapter, plan_merge, bound, snapshot, table)
    assert after(outcome, snapshot) == [(1, None, "b", 2)]


@engines
def test_setting_the_key_or_partition_moves_the_row(adapter: Any) -> None:
    bound = merge(
        values((1, "z", 5.0, 20)), "t.id = s.id", clause(UPDATE, None, sets(id="s.id + 100", ts="s.ts"))
    )
    outcome = run(adapter, plan_merge, bound, item(), facts())
    assert after(outcome, item()) == [(101, "a", 1.0, 20), B, C]
    assert outcome.counts == Counts(updated=1)
    taken = merge(values((1, "z", 5.0, 20)), "t.id = s.id", clause(UPDATE, None, sets(id="s.id + 1")))
    with pytest.raises(DuplicateKeyError, match="'2'"):
        run(adapter, plan_merge, taken, item(), facts())
    all_to_one = merge(
        values((1, "z", 5.0, 20), (2, "y", 5.0, 20)), "t.id = s.id", clause(UPDATE, None, sets(id="9"))
    )
    with pytest.raises(DuplicateKeyError, match="twice"):
        run(adapter, plan_merge, all_to_one, item(), facts())


@engines
def test_a_row_whose_partition_changes_is_deleted_and_inserted(adapter: Any) -> None:
    schema = pa.schema([("id", pa.int32()), ("n", pa.int32()), ("ts", pa.int64()), ("pt", pa.string())])
    snapshot = FakeSnapshot(
        ("p1", rows(schema, (1, 5, 10, "p1"), (2, 6, 10, "p1"))), ("p2", rows(schema, (3, 7, 10, "p2")))
    )
    table = facts(schema, partition_fields=("pt",))
    source = "select cast(1 as int) id, cast(50 as int) n, cast(20 as bigint) ts, 'p2' pt"
    upsert = (clause(UPDATE, None, star(schema)), clause(INSERT, None, star(schema), NEW))
    outcome = run(adapter, plan_merge, merge(source, "t.id = s.id", *upsert, schema=schema), snapshot, table)
    assert after(outcome, snapshot) == [(1, 50, 20, "p2"), (2, 6, 10, "p1"), (3, 7, 10, "p2")]
    assert outcome.counts == Counts(updated=1)
    assert outcome.changes is not None
    assert [item.deleted.tolist() for item in outcome.changes.slices] == [[0]]


@engines
def test_a_conditions_subquery_may_use_the_targets_alias_for_another_table(adapter: Any) -> None:
    condition = "s.price > (select max(t.x) from (values (1.0), (5.5)) t(x))"
    source = values((1, "z", 5.0, 20), (2, "y", 6.0, 20))
    bound = merge(source, "t.id = s.id", clause(UPDATE, condition, star()))
    assert run(adapter, plan_merge, bound, item(), facts()).counts == Counts(updated=1)


@engines
def test_rows_marked_as_deleted_are_deleted(adapter: Any) -> None:
    schema = pa.schema([("id", pa.int32()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
    snapshot = FakeSnapshot(("", rows(schema, (1, 10, False), (2, 10, False))))
    source = (
        "select cast(id as int) id, cast(20 as bigint) ts, d as _hoodie_is_deleted "
        "from (values (1, true), (2, false), (7, true)) v(id, d)"
    )
    upsert = (clause(UPDATE, None, star(schema)), clause(INSERT, None, star(schema), NEW))
    outcome = run(
        adapter, plan_merge, merge(source, "t.id = s.id", *upsert, schema=schema), snapshot, facts(schema)
    )
    assert after(outcome, snapshot) == [(2, 20, False)]
    assert outcome.counts == Counts(updated=1, deleted=1)


@engines
def test_not_null_is_checked_on_rows_written_not_on_the_join(adapter: Any) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            pa.field("v", pa.int32(), nullable=False),
            ("ts", pa.int64()),
        ]
    )
    snapshot = FakeSnapshot(("", rows(schema, *((n, n, 1) for n in range(1, 101)))))
    upsert = (clause(UPDATE, None, sets(v="s.v")), clause(INSERT, None, star(schema), NEW))

    def bound(value: str) -> Any:
        source = f"select cast(id as int) id, cast({value} as int) v, cast(2 as bigint) ts from (values (1),(101)) v(id)"
        return merge(source, "t.id = s.id", *upsert, schema=schema)

    outcome = run(adapter, plan_merge, bound("5"), snapshot, facts(schema))
    assert outcome.counts == Counts(inserted=1, updated=1)
    with pytest.raises(ConstraintError, match="NOT NULL") as raised:
        run(adapter, plan_merge, bound("null"), snapshot, facts(schema))
    assert raised.value.column == "v"


@engines
def test_returning_gives_new_rows_old_rows_and_the_action(adapter: Any) -> None:
    source = values((1, "z", 5.0, 20), (2, "y", 6.0, 20), (7, "q", 7.0, 20))
    clauses = (clause(DELETE, "s.id = 1"), *UPSERT)
    bound = merge(source, "t.id = s.id", *clauses, returning="merge_action, t.id, t.name")
    outcome = run(adapter, plan_merge, bound, item(), facts())
    assert outcome.returned is not None
    found = outcome.returned.select(["merge_action", "id", "name"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("INSERT", 7, "q"),
        ("UPDATE", 2, "y"),
        ("DELETE", 1, "a"),
    ]


@engines
def test_many_rows_in_several_batches(adapter: Any) -> None:
    """A rule that looked at one batch at a time would find duplicates that are none, or miss some."""
    size = 300_000
    table = pa.table(
        {
            "id": pa.array(range(size), pa.int32()),
            "name": pa.repeat("a", size),
            "price": pa.repeat(1.0, size),
            "ts": pa.repeat(10, size),
        },
        schema=ITEM,
    )
    snapshot = FakeSnapshot(*(("", table.slice(start, 100_000)) for start in range(0, size, 100_000)))
    changes = pa.table(
        {
            "id": pa.array(range(size // 2, size + 10), pa.int32()),
            "name": pa.repeat("z", size // 2 + 10),
            "price": pa.repeat(2.0, size // 2 + 10),
            "ts": pa.repeat(20, size // 2 + 10),
        },
        schema=ITEM,
    )
    adapter.register("many", changes)
    bound = merge("select * from many", "t.id = s.id", *UPSERT)
    outcome = run(adapter, plan_merge, bound, snapshot, facts())
    assert outcome.counts == Counts(inserted=10, updated=size // 2)
