"""INSERT: rows of a query appended, and what to do with keys that are there already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.config.write import DuplicatePolicy, InsertOperation, WriteConfig
from hudi_sql.planner.casting import cast_table, check_not_null, plain_column
from hudi_sql.planner.changes import (
    DELETED_FLAG,
    Counts,
    KeySource,
    Outcome,
    duplicate_keys,
    nested,
    reject_null_ordering,
)
from hudi_sql.planner.model import TableFacts
from hudi_sql.planner.places import slice_changes
from hudi_sql.planner.winners import compare_ordering, group_codes, pick_winners
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.write.changes import Changes

__all__ = ["Existing", "InsertRules", "Within", "insert_rules", "plan_insert_rows", "whole_rows"]

_BUFFERED_ROWS = 1_000_000
_BUFFERED_BYTES = 256 << 20


class Existing(Enum):
    """What happens to a row whose key the table has."""

    KEEP_BOTH = "keep both"
    FAIL = "fail"
    IGNORE = "ignore"
    UPDATE = "update"


class Within(Enum):
    """What happens to rows of one key inside the statement."""

    KEEP_ALL = "keep all"
    FAIL = "fail"
    FIRST = "first"
    HIGHEST = "highest"
    """The highest ordering value, of equal ones the last row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertRules:
    """How an INSERT treats keys."""

    existing: Existing
    within: Within
    operation: OperationType = OperationType.INSERT

    @property
    def is_blind(self) -> bool:
        """Whether rows can be written as they come, without a look at the table or at one another."""
        return self.existing is Existing.KEEP_BOTH and self.within is Within.KEEP_ALL


def insert_rules(
    on_conflict: str | None, facts: TableFacts, dialect: str, config: WriteConfig
) -> InsertRules:
    """Choose the rules: the statement's own words, then settings, then what the dialect is used to."""
    is_bulk = config.insert_operation is InsertOperation.BULK_INSERT
    operation = OperationType.BULK_INSERT if is_bulk else OperationType.INSERT
    if not facts.record_key_fields:
        return InsertRules(existing=Existing.KEEP_BOTH, within=Within.KEEP_ALL, operation=operation)
    if on_conflict == "ignore":
        return InsertRules(existing=Existing.IGNORE, within=Within.FIRST)
    if on_conflict == "replace" or config.insert_operation is InsertOperation.UPSERT:
        return InsertRules(existing=Existing.UPDATE, within=Within.HIGHEST, operation=OperationType.UPSERT)
    is_spark = dialect == "spark"
    policy = config.dup_policy
    if policy is None:
        policy = DuplicatePolicy.NONE if is_spark or is_bulk else DuplicatePolicy.FAIL
    existing = {
        DuplicatePolicy.NONE: Existing.KEEP_BOTH,
        DuplicatePolicy.DROP: Existing.IGNORE,
        DuplicatePolicy.FAIL: Existing.FAIL,
    }[policy]
    if config.combine_before_insert:
        within = Within.HIGHEST
    elif is_spark or policy is DuplicatePolicy.NONE:
        within = Within.KEEP_ALL
    else:
        within = Within.FAIL if policy is DuplicatePolicy.FAIL else Within.FIRST
    return InsertRules(existing=existing, within=within, operation=operation)


def whole_rows(
    reader: Iterable[pa.RecordBatch], columns: tuple[str, ...], constants: pa.Table, facts: TableFacts
) -> Iterator[pa.Table]:
    """Query rows as rows of the table: columns by position, constants, NULL for the rest; exact types."""
    schema = facts.schema
    fixed = {name: plain_column(constants[name]).combine_chunks() for name in constants.column_names}
    for batch in reader:
        given = dict(zip(columns, batch.columns, strict=True))
        arrays = []
        for field in schema:
            if field.name in given:
                arrays.append(pa.chunked_array([given[field.name]]))
            elif field.name in fixed:
                value = fixed[field.name]
                arrays.append(
                    pa.chunked_array([value.take(pa.array(np.zeros(batch.num_rows, dtype=np.int64)))])
                )
            else:
                arrays.append(pa.chunked_array([pa.nulls(batch.num_rows, field.type)]))
        names = pa.table(arrays, names=schema.names)
        rows = cast_table(names, schema, table=facts.label, by_position=facts.has_positional_structs)
        check_not_null(rows, schema, table=facts.label)
        yield rows


def plan_insert_rows(
    tables: Iterator[pa.Table],
    rules: InsertRules,
    facts: TableFacts,
    keys: KeySource,
    *,
    reads_target: bool,
) -> Outcome:
    """Turn the rows of an INSERT into changes.

    Rows that need no look at the table are streamed, after a first part that is checked before anything is written;
    otherwise all rows are held.
    """
    if not rules.is_blind:
        rows = _concat(list(tables), facts)
        return _checked(rows, rules, facts, keys)
    first: list[pa.Table] = []
    num_rows = num_bytes = 0
    for table in tables:
        first.append(table)
        num_rows += table.num_rows
        num_bytes += table.nbytes
        if num_rows >= _BUFFERED_ROWS or num_bytes >= _BUFFERED_BYTES:
            break
    head = _concat(first, facts)
    check = _row_check(facts, keys)
    check(head)
    rest = next(tables, None)
    if rest is None:
        return _appended(head, rules, reads_target=reads_target)
    stream = _checked_batches(head, chain([rest], tables), check)
    changes = Changes(
        operation=rules.operation,
        inserts=pa.RecordBatchReader.from_batches(facts.schema, stream),
        reads_nothing=not reads_target,
    )
    return Outcome(changes=changes, counts=Counts())


def _row_check(facts: TableFacts, keys: KeySource) -> Callable[[pa.Table], None]:
    def check(rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        found = keys.record_keys(rows) if facts.record_key_fields else None
        reject_null_ordering(rows, facts, found)

    return check


def _checked_batches(
    head: pa.Table, rest: Iterator[pa.Table], check: Callable[[pa.Table], None]
) -> Iterator[pa.RecordBatch]:
    yield from head.to_batches()
    for table in rest:
        check(table)
        yield from table.to_batches()


def _appended(rows: pa.Table, rules: InsertRules, *, reads_target: bool) -> Outcome:
    if not rows.num_rows:
        return Outcome(changes=None, counts=Counts())
    changes = Changes(
        operation=rules.operation,
        inserts=rows.to_reader(),
        num_rows_hint=rows.num_rows,
        reads_nothing=not reads_target,
    )
    return Outcome(changes=changes, counts=Counts(inserted=rows.num_rows))


def _concat(tables: list[pa.Table], facts: TableFacts) -> pa.Table:
    return pa.concat_tables([facts.schema.empty_table(), *tables])


def _checked(rows: pa.Table, rules: InsertRules, facts: TableFacts, keys: KeySource) -> Outcome:
    if not rows.num_rows:
        return Outcome(changes=None, counts=Counts())
    rows = rows.combine_chunks()
    found = keys.record_keys(rows)
    reject_null_ordering(rows, facts, found)
    paths = keys.partition_paths(rows)
    kept = _within(rows, found, paths, rules.within, facts)
    if len(kept) < rows.num_rows:
        chosen = pa.array(kept)
        rows, found, paths = rows.take(chosen), found.take(chosen), paths.take(chosen)
    if rules.existing is Existing.KEEP_BOTH:
        return _appended(rows, rules, reads_target=False)
    return _against_stored(rows, found, paths, rules, facts=facts, keys=keys)


def _within(
    rows: pa.Table, found: pa.Array, paths: pa.Array, within: Within, facts: TableFacts
) -> npt.NDArray[np.int64]:
    """Which rows stay when rows of one key are reduced."""
    if within is Within.KEEP_ALL:
        return np.arange(rows.num_rows)
    codes = _scope_codes(found, paths, facts)
    if within is Within.HIGHEST:
        last_first = np.arange(rows.num_rows - 1, -1, -1)
        order = pa.array(last_first)
        ranking = [nested(rows, name).take(order) for name in facts.ordering_fields]
        return np.sort(last_first[pick_winners(codes[last_first], ranking).kept])
    winners = pick_winners(codes, [])
    if within is Within.FAIL and len(winners.tied):
        raise duplicate_keys(
            found.take(pa.array(np.unique(winners.tied_with)[:5])), facts, "are given more than once"
        )
    return winners.kept


def _scope_codes(found: pa.Array, paths: pa.Array, facts: TableFacts) -> npt.NDArray[np.int64]:
    return group_codes([found] if facts.has_global_index else [found, paths])


def _against_stored(
    rows: pa.Table,
    found: pa.Array,
    paths: pa.Array,
    rules: InsertRules,
    *,
    facts: TableFacts,
    keys: KeySource,
) -> Outcome:
    tops = tuple(dict.fromkeys(name.split(".")[0] for name in facts.ordering_fields))
    extra = tops if facts.is_event_time and rules.existing is Existing.UPDATE else ()
    stored = keys.locate(found, paths, extra=extra, ranges=rows)
    partitions = None if facts.has_global_index else tuple(pc.unique(paths).to_pylist())
    at = _matching_row(stored, found, paths, facts)
    is_there = np.zeros(rows.num_rows, dtype=bool)
    is_there[at] = True
    if rules.existing is Existing.FAIL and is_there.any():
        raise duplicate_keys(found.filter(pa.array(is_there)).slice(0, 5), facts, "are in the table already")
    flagged = _flagged(rows)
    new = rows.filter(pa.array(~is_there & ~(flagged & (rules.existing is Existing.UPDATE))))
    counts = Counts(inserted=new.num_rows)
    places: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] = (
        stored["slice"].to_numpy().astype(np.int64),
        stored["position"].to_numpy().astype(np.int64),
    )
    stays = np.zeros(len(at), dtype=bool)
    gone = np.zeros(len(at), dtype=bool)
    if rules.existing is Existing.UPDATE:
        applied = np.ones(len(at), dtype=bool)
        if extra:
            mine = rows.select(list(extra)).take(pa.array(at))
            applied = ~compare_ordering(
                [nested(mine, name) for name in facts.ordering_fields],
                [nested(stored, name) for name in facts.ordering_fields],
            )
        gone, stays = applied & flagged[at], applied & ~flagged[at]
        counts = Counts(
            inserted=new.num_rows,
            updated=int(stays.sum()),
            deleted=int(gone.sum()),
            ignored=int((~applied).sum()),
        )
    else:
        counts = Counts(inserted=new.num_rows, ignored=int(is_there.sum()))
    if not counts.affected:
        return Outcome(changes=None, counts=counts)
    names = [name for name in facts.schema.names if name not in facts.identity_columns]
    values = rows.select(names).take(pa.array(at[stays]))
    return Outcome(
        changes=Changes(
            operation=rules.operation,
            slices=slice_changes(
                keys.slices,
                (places[0][gone], places[1][gone]),
                (places[0][stays], places[1][stays]),
                values,
            ),
            inserts=new.to_reader() if new.num_rows else None,
            num_rows_hint=new.num_rows,
            read_partitions=partitions,
            keys_are_new=new.num_rows > 0,
        ),
        counts=counts,
    )


def _matching_row(
    stored: pa.Table, found: pa.Array, paths: pa.Array, facts: TableFacts
) -> npt.NDArray[np.int64]:
    """For each stored row, which new row has its key."""
    if not stored.num_rows:
        return np.empty(0, dtype=np.int64)
    keys = pa.chunked_array([*stored["key"].cast(pa.string()).chunks, found.cast(pa.string())])
    scope = [keys]
    if not facts.has_global_index:
        scope.append(
            pa.chunked_array([*stored["partition"].cast(pa.string()).chunks, paths.cast(pa.string())])
        )
    codes = group_codes(scope)
    mine, theirs = codes[: stored.num_rows], codes[stored.num_rows :]
    order = np.argsort(theirs, kind="stable")
    return order[np.searchsorted(theirs[order], mine)].astype(np.int64)


def _flagged(rows: pa.Table) -> npt.NDArray[np.bool_]:
    if DELETED_FLAG not in rows.column_names or not pa.types.is_boolean(rows[DELETED_FLAG].type):
        return np.zeros(rows.num_rows, dtype=bool)
    flag = pc.fill_null(rows[DELETED_FLAG], fill_value=False)
    return np.asarray(flag.to_numpy(), dtype=bool)
