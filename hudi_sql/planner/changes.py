"""Change rows of a statement → the change set that storage commits.

All rules that SQL and Hudi put between the two are here, for every engine alike: which of several source rows acts on a
target row, which key may be inserted, which row is older than the stored one (Semantics table of the design).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import CardinalityError, ConstraintError, DuplicateKeyError
from hudi_sql.planner.casting import cast_column, check_not_null, plain_column
from hudi_sql.planner.model import (
    CLAUSE_COLUMN,
    DmlPlan,
    TableFacts,
    ranking_name,
    returned_name,
    stored_name,
    value_name,
)
from hudi_sql.planner.places import PlaceCodes, slice_changes
from hudi_sql.planner.winners import compare_ordering, group_codes, pick_winners, same_values
from hudi_sql.sql.model import ClauseAction
from hudi_sql.storage.model.files import FileSlice
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.write.changes import Changes

__all__ = [
    "DELETED_FLAG",
    "MERGE_ACTION",
    "Counts",
    "KeySource",
    "Outcome",
    "decide_changes",
    "duplicate_keys",
    "nested",
    "reject_null_ordering",
]

DELETED_FLAG = "_hoodie_is_deleted"
"""A boolean column of this name marks rows that are to be deleted (`HoodieRecord.HOODIE_IS_DELETED_FIELD`)."""
MERGE_ACTION = "merge_action"
"""Column that RETURNING of a MERGE may name."""

Indices = npt.NDArray[np.int64]


class KeySource(Protocol):
    """What the rules must know of keys, new and stored."""

    def record_keys(self, rows: pa.Table) -> pa.Array:
        """Key texts of rows with all table columns. Raises `NullKeyError`."""

    def partition_paths(self, rows: pa.Table) -> pa.Array:
        """Partition paths of rows with all table columns."""

    def locate(
        self,
        keys: pa.Array,
        partitions: pa.Array,
        *,
        extra: Sequence[str] = (),
        ranges: pa.Table | None = None,
    ) -> pa.Table:
        """Stored rows that have one of the keys, in the scope in which keys are unique.

        Columns `slice`, `position`, `key`, `partition` and the extra ones; slices counted in `slices`. `ranges` are
        the new rows, by which files may be left out.
        """

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """The slices that `locate` and `keys_at` count in."""

    def keys_at(self, places: Sequence[tuple[FileSlice, int]]) -> list[str]:
        """Stored keys of a few rows, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a statement did, in rows."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    ignored: int = 0

    @property
    def affected(self) -> int:
        """Rows that changed."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A change set (None when nothing changes) and what to tell the user."""

    changes: Changes | None
    counts: Counts
    returned: pa.Table | None = None
    """Whole rows for RETURNING: new ones of inserts and updates, old ones of deletes."""


def decide_changes(rows: pa.Table, plan: DmlPlan, facts: TableFacts, keys: KeySource) -> Outcome:
    """Apply all rules to the rows that a plan's query answered.

    Raises:
        CardinalityError: Several source rows act on one target row and nothing decides between them.
        DuplicateKeyError: A key would stand twice.
        ConstraintError: NULL where the table allows none.
    """
    return _Decision(rows, plan, facts, keys).run()


def reject_null_ordering(
    rows: pa.Table, facts: TableFacts, keys: pa.Array | None, names: Sequence[str] | None = None
) -> None:
    """Refuse NULL ordering values in an event-time table: they make Spark's next upsert of the key fail.

    Raises:
        ConstraintError: With the column and, where known, the key.
    """
    if not facts.is_event_time:
        return
    for name in names if names is not None else facts.ordering_fields:
        column = nested(rows, name)
        if not column.null_count:
            continue
        key = None
        if keys is not None:
            key = keys[pc.index(pc.is_null(column), value=True).as_py()].as_py()
        raise ConstraintError(
            f"Ordering field {name} would be NULL"
            + (f" in the row with key {key!r}" if key is not None else ""),
            hint=f"Rows of this table are ordered by {name}: give it a value.",
            table=facts.label,
            column=name,
            key=key,
        )


def nested(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """Column of a dotted name."""
    top, *rest = name.split(".")
    column = rows[top]
    if not rest:
        return column
    return pc.struct_field(column, [*rest])


class _Decision:
    """One run of the rules; holds what all steps look at."""

    def __init__(self, rows: pa.Table, plan: DmlPlan, facts: TableFacts, keys: KeySource) -> None:
        self.plan, self.layout, self.facts, self.keys = plan, plan.layout, facts, keys
        self.rows = self._typed(rows).combine_chunks()
        self.clause = self.rows[CLAUSE_COLUMN].to_numpy().astype(np.int64)
        self.is_target = np.asarray(pc.is_valid(self.rows[POSITION_COLUMN]).to_numpy(), dtype=bool)
        self.num_ignored = 0

    def run(self) -> Outcome:
        matched = self._winners(np.flatnonzero(self.is_target))
        inserted = self._inserted(np.flatnonzero(~self.is_target))
        deletes = self._acts(matched, ClauseAction.DELETE)
        updates = self._newer(self._acts(matched, ClauseAction.UPDATE))
        flagged = self._flagged(updates)
        deletes, updates = np.concatenate([deletes, updates[flagged]]), updates[~flagged]
        moved = self._moved(updates)
        moves, stays = updates[moved], updates[~moved]
        new_rows = self._new_rows(inserted, moves)
        gone = np.concatenate([deletes, moves])
        if new_rows.num_rows and self.facts.record_key_fields:
            self._check_keys(new_rows, num_inserted=len(inserted), gone=gone)
        updated = self._update_values(stays)
        counts = Counts(
            inserted=len(inserted),
            updated=len(updates),
            deleted=len(deletes),
            ignored=self.num_ignored,
        )
        return Outcome(
            changes=self._changes(gone, stays, updated, new_rows) if counts.affected else None,
            counts=counts,
            returned=self._returned(inserted, updates, deletes) if self.plan.returning else None,
        )

    def _typed(self, rows: pa.Table) -> pa.Table:
        """Cast what belongs to a column of the table to its exact type."""
        fields = {value_name(n): self._field(name) for n, name in enumerate(self.layout.values)}
        fields |= {stored_name(n): self._field(name) for n, name in enumerate(self.layout.stored)}
        if self.layout.has_ranking:
            fields |= {
                ranking_name(n): self._field(name) for n, name in enumerate(self.facts.ordering_fields)
            }
        columns = [
            cast_column(
                column,
                fields[name],
                table=self.facts.label,
                by_position=self.facts.has_positional_structs,
            )
            if name in fields
            else plain_column(column)
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        ]
        return pa.table(columns, names=rows.column_names)

    # -- which rows act

    def _acts(self, indices: Indices, action: ClauseAction) -> Indices:
        wanted = [number for number, spec in enumerate(self.layout.clauses) if spec.action is action]
        return indices[np.isin(self.clause[indices], wanted)]

    def _winners(self, indices: Indices) -> Indices:
        if len(indices) == 0:
            return indices
        slices, positions = self._places(indices)
        codes = slices * (int(positions.max()) + 1) + positions
        ranking = self._ranking(indices) if self.layout.has_ranking else []
        winners = pick_winners(codes, ranking)
        if len(winners.tied):
            self._check_ties(indices[winners.tied], indices[winners.tied_with])
        return indices[winners.kept]

    def _ranking(self, indices: Indices) -> list[pa.ChunkedArray]:
        chosen = self.rows.take(pa.array(indices))
        return [chosen[ranking_name(number)] for number in range(len(self.facts.ordering_fields))]

    def _check_ties(self, tied: Indices, with_: Indices) -> None:
        """Several rows on one place are fine when all do the same to it."""
        deletes = [n for n, spec in enumerate(self.layout.clauses) if spec.action is ClauseAction.DELETE]
        same = np.isin(self.clause[tied], deletes) & np.isin(self.clause[with_], deletes)
        both_update = ~np.isin(self.clause[tied], deletes) & ~np.isin(self.clause[with_], deletes)
        if both_update.any() and self.layout.values:
            a, b = self.rows.take(pa.array(tied)), self.rows.take(pa.array(with_))
            for number in range(len(self.layout.values)):
                both_update &= same_values(a[value_name(number)], b[value_name(number)])
            same |= both_update
        if same.all():
            return
        bad = np.unique(with_[~same])
        rows = self.rows.take(pa.array(bad[:5]))
        places = [
            (self.plan.slices[number], position)
            for number, position in zip(
                rows[SLICE_COLUMN].to_pylist(), rows[POSITION_COLUMN].to_pylist(), strict=True
            )
        ]
        found = self.keys.keys_at(places)
        raise CardinalityError(
            f"Several source rows act on one row of the table, and nothing decides between them: "
            f"{len(bad)} such rows, with keys {', '.join(map(repr, found))}",
            hint="Make the source unique, or give the rows different ordering values."
            if self.facts.ordering_fields
            else "Make the source unique: the table has no ordering field.",
            table=self.facts.label,
            keys=tuple(found),
        )

    # -- updated rows

    def _field(self, name: str) -> pa.Field:
        top, *rest = name.split(".")
        found = self.facts.schema.field(top)
        for part in rest:
            found = found.type.field(part)
        return found

    def _value(self, name: str, indices: Indices) -> pa.ChunkedArray:
        number = self.layout.values.index(name)
        return self.rows[value_name(number)].take(pa.array(indices))

    def _stored(self, name: str, indices: Indices) -> pa.ChunkedArray:
        number = self.layout.stored.index(name)
        return self.rows[stored_name(number)].take(pa.array(indices))

    def _newer(self, indices: Indices) -> Indices:
        """Leave out updates that are older than the stored row; refuse those without an ordering value."""
        names = self.facts.ordering_fields
        tops = {name.split(".")[0] for name in names}
        if not self.facts.is_event_time or not len(indices) or not tops <= set(self.layout.stored):
            return indices
        new = pa.table({name: self._value(name, indices) for name in tops})
        self._check_ordering_given(new, indices)
        old = pa.table({name: self._stored(name, indices) for name in tops})
        lower = compare_ordering([nested(new, name) for name in names], [nested(old, name) for name in names])
        self.num_ignored += int(lower.sum())
        return indices[~lower]

    def _check_ordering_given(self, new: pa.Table, indices: Indices) -> None:
        for name in self.facts.ordering_fields:
            column = nested(new, name)
            if not column.null_count:
                continue
            row = int(indices[pc.index(pc.is_null(column), value=True).as_py()])
            place = (
                self.plan.slices[self.rows[SLICE_COLUMN][row].as_py()],
                self.rows[POSITION_COLUMN][row].as_py(),
            )
            key = self.keys.keys_at([place])[0]
            raise ConstraintError(
                f"Ordering field {name} would be NULL in the row with key {key!r}",
                hint=f"Rows of this table are ordered by {name}: give it a value.",
                table=self.facts.label,
                column=name,
                key=key,
            )

    def _flagged(self, indices: Indices) -> npt.NDArray[np.bool_]:
        none = np.zeros(len(indices), dtype=bool)
        if not len(indices) or DELETED_FLAG not in self.layout.values:
            return none
        if not any(DELETED_FLAG in spec.assigned for spec in self.layout.clauses):
            return none
        if not pa.types.is_boolean(self.facts.schema.field(DELETED_FLAG).type):
            return none
        flag = pc.fill_null(self._value(DELETED_FLAG, indices), fill_value=False)
        return np.asarray(flag.to_numpy(), dtype=bool)

    def _moved(self, indices: Indices) -> npt.NDArray[np.bool_]:
        """Tell which updates give a row another key or partition."""
        moved = np.zeros(len(indices), dtype=bool)
        for name in self.facts.identity_columns & set(self.layout.stored):
            if name in self.layout.values:
                moved |= ~same_values(self._value(name, indices), self._stored(name, indices))
        return moved

    def _update_values(self, indices: Indices) -> pa.Table:
        assigned: set[str] = set()
        for spec in self.layout.clauses:
            if spec.action is ClauseAction.UPDATE:
                assigned |= spec.assigned
        names = [n for n in self.layout.values if n in assigned and n not in self.facts.identity_columns]
        values = pa.table(
            [self._value(name, indices) for name in names],
            schema=pa.schema([self.facts.schema.field(name) for name in names]),
        )
        check_not_null(values, self.facts.schema, table=self.facts.label)
        return values

    # -- new rows

    def _whole(self, indices: Indices) -> pa.Table:
        columns = [self._value(name, indices) for name in self.facts.schema.names]
        return pa.Table.from_arrays(columns, schema=self.facts.schema)

    def _inserted(self, indices: Indices) -> Indices:
        if not len(indices):
            return indices
        indices = indices[~self._flagged(indices)]
        if not len(indices):
            return indices
        rows = self._whole(indices)
        if not self.facts.record_key_fields:
            reject_null_ordering(rows, self.facts, None)
            return indices
        keys = self.keys.record_keys(rows)
        reject_null_ordering(rows, self.facts, keys)
        scope = [keys] if self.facts.has_global_index else [keys, self.keys.partition_paths(rows)]
        ranking = [nested(rows, name) for name in self.facts.ordering_fields]
        winners = pick_winners(group_codes(scope), ranking)
        if len(winners.tied):
            raise duplicate_keys(
                keys.take(pa.array(np.unique(winners.tied_with)[:5])), self.facts, "are given more than once"
            )
        return indices[winners.kept]

    def _new_rows(self, inserted: Indices, moves: Indices) -> pa.Table:
        if not len(inserted) and not len(moves):
            return self.facts.schema.empty_table()
        rows = self._whole(np.concatenate([inserted, moves]))
        check_not_null(rows, self.facts.schema, table=self.facts.label)
        return rows

    def _check_keys(self, rows: pa.Table, *, num_inserted: int, gone: Indices) -> None:
        keys, partitions = self.keys.record_keys(rows), self.keys.partition_paths(rows)
        has_moves = rows.num_rows > num_inserted
        if has_moves:
            scope = [keys] if self.facts.has_global_index else [keys, partitions]
            clash = pick_winners(group_codes(scope), []).tied_with
            if len(clash):
                raise duplicate_keys(
                    keys.take(pa.array(np.unique(clash)[:5])), self.facts, "would stand twice"
                )
        if self.plan.keys_checked_by_on and not has_moves:
            return
        stored = self.keys.locate(keys, partitions, ranges=rows)
        if not stored.num_rows:
            return
        codes = PlaceCodes()
        there = codes.codes(
            stored["slice"].to_numpy().astype(np.int64), stored["position"].to_numpy(), self.keys.slices
        )
        stays = ~np.isin(there, codes.codes(*self._places(gone), self.plan.slices))
        if stays.any():
            taken = stored["key"].filter(pa.array(stays)).unique()
            raise duplicate_keys(taken.slice(0, 5), self.facts, "are in the table already")

    def _places(self, indices: Indices) -> tuple[Indices, Indices]:
        rows = self.rows.select([SLICE_COLUMN, POSITION_COLUMN]).take(pa.array(indices))
        return (
            rows[SLICE_COLUMN].to_numpy().astype(np.int64),
            rows[POSITION_COLUMN].to_numpy().astype(np.int64),
        )

    # -- what storage gets

    def _changes(self, gone: Indices, stays: Indices, updated: pa.Table, new_rows: pa.Table) -> Changes:
        return Changes(
            operation=self.plan.operation,
            slices=slice_changes(self.plan.slices, self._places(gone), self._places(stays), updated),
            inserts=new_rows.to_reader() if new_rows.num_rows else None,
            num_rows_hint=new_rows.num_rows,
            read_partitions=self.plan.read_partitions,
            keys_are_new=bool(self.facts.record_key_fields) and new_rows.num_rows > 0,
        )

    def _returned(self, inserted: Indices, updates: Indices, deletes: Indices) -> pa.Table:
        chosen = np.concatenate([inserted, updates, deletes])
        rows = self._whole(chosen)
        words = np.repeat(["INSERT", "UPDATE", "DELETE"], [len(inserted), len(updates), len(deletes)])
        if MERGE_ACTION not in rows.column_names:
            rows = rows.append_column(MERGE_ACTION, pa.array(words, type=pa.string()))
        for number in range(len(self.layout.returned)):
            name = returned_name(number)
            rows = rows.append_column(name, self.rows[name].take(pa.array(chosen)))
        return rows


def duplicate_keys(keys: pa.Array | pa.ChunkedArray, facts: TableFacts, what: str) -> DuplicateKeyError:
    """The error for keys that would stand twice, naming a few of them."""
    found = tuple(keys.to_pylist())
    return DuplicateKeyError(
        f"Record keys {what}: {', '.join(map(repr, found))}",
        hint="Use MERGE to change rows that exist; keep one row of each key in the source.",
        table=facts.label,
        keys=found,
    )
