"""What every adapter must do, as checks that any test runner can call: `for check in CHECKS: check(connect())`.

Each takes a fresh engine of its own and raises `AssertionError`.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from engine_adapters.protocol import Engine, EngineQueryError

__all__ = [
    "ALL_TYPES",
    "CHECKS",
    "TableRelation",
    "check_an_empty_relation_has_its_columns",
    "check_describe_reads_nothing",
    "check_errors_are_one_line_about_the_cause",
    "check_errors_say_when_they_came_up",
    "check_every_type_comes_through",
    "check_filters_are_exact",
    "check_many_batches_and_a_self_join",
    "check_nothing_lent_remains",
    "check_parameters_are_bound",
    "check_projection_reaches_the_relation",
    "check_registered_objects_are_sources",
    "check_rows_can_be_counted_without_columns",
]

_ROWS = 300_000


class TableRelation:
    """A lazy relation over an Arrow table that records what was asked of it."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.asked: list[tuple[list[str] | None, str | None]] = []

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        return self._table.schema

    def scan(self, columns: Sequence[str] | None, predicate: pc.Expression | None) -> pa.RecordBatchReader:
        """Filter and project exactly."""
        self.asked.append(
            (None if columns is None else list(columns), None if predicate is None else str(predicate))
        )
        return ds.dataset(self._table).scanner(columns=columns, filter=predicate).to_reader()


class _FailingRelation(TableRelation):
    """Gives one batch, then an error of its own."""

    def scan(self, columns: Sequence[str] | None, predicate: pc.Expression | None) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from super(_FailingRelation, self).scan(columns, predicate)
            raise LookupError("the store is gone")

        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.RecordBatchReader.from_batches(schema, batches())


ALL_TYPES = pa.table(
    {
        "b": pa.array([True, False, None]),
        "i": pa.array([1, -(2**31), None], pa.int32()),
        "l": pa.array([2**63 - 1, -1, None], pa.int64()),
        "f": pa.array([1.5, float("nan"), None], pa.float32()),
        "d": pa.array([1e300, -0.0, None], pa.float64()),
        "dec": pa.array([decimal.Decimal("123.45"), decimal.Decimal("-0.01"), None], pa.decimal128(38, 2)),
        "s": pa.array(["é'\"x", "", None]),
        "raw": pa.array([b"\x00\xff", b"", None]),
        "day": pa.array([dt.date(1969, 12, 31), dt.date(9999, 12, 31), None]),
        "at": pa.array([1_700_000_000_123_456, -1, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "ntz": pa.array([1_700_000_000_123_456, -1, None], pa.int64()).cast(pa.timestamp("us")),
        "xs": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "m": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int32())),
        "st": pa.array(
            [{"a": 1, "b": None}, {"a": None, "b": "x"}, None],
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
        ),
        "id": pa.array([1, 2, 3], pa.int64()),
    }
)


def check_every_type_comes_through(engine: Engine) -> None:
    """Values and types are the same on the way through a query, in a form that casts back without loss."""
    relation = TableRelation(ALL_TYPES)
    for name in ALL_TYPES.column_names:
        got = engine.query(f'SELECT "{name}" FROM lent ORDER BY id', relations={"lent": relation}).read_all()
        expected = ALL_TYPES.column(name)
        assert repr(got.column(0).cast(expected.type).to_pylist()) == repr(expected.to_pylist()), name


def check_filters_are_exact(engine: Engine) -> None:
    """Whatever the engine pushes down or keeps, the rows are the right ones."""
    relation = TableRelation(ALL_TYPES)
    for condition, ids in {
        "l > 0": [1],
        "l <> 0": [1, 2],
        "l IS NULL": [3],
        "i IN (1, 7)": [1],
        "i = 1 OR s = ''": [1, 2],
        "NOT b": [2],
        "d < 0.5": [2],
        "f > 1": [1, 2],  # NaN is the greatest number
        "f <= 1.5": [1],
        "NOT (f > 2) AND l IS NOT NULL": [1],
        "f BETWEEN 1 AND 2 OR f IS NULL": [1, 3],
        "dec = 123.45": [1],
        "day < DATE '1970-01-01'": [1],
        "ntz < TIMESTAMP '1970-01-01 00:00:00'": [2],
        "s LIKE 'é%'": [1],
        "id BETWEEN 2 AND 3 AND b IS NOT NULL": [2],
    }.items():
        got = engine.query(f"SELECT id FROM lent WHERE {condition}", relations={"lent": relation}).read_all()
        assert sorted(got.column(0).to_pylist()) == ids, condition


def check_projection_reaches_the_relation(engine: Engine) -> None:
    """Only the columns that the query needs are asked for."""
    relation = TableRelation(ALL_TYPES)
    engine.query("SELECT s FROM lent", relations={"lent": relation}).read_all()
    assert relation.asked[-1][0] == ["s"], relation.asked


def check_rows_can_be_counted_without_columns(engine: Engine) -> None:
    """`count(*)` works, whatever columns it asks for."""
    got = engine.query("SELECT count(*) FROM lent", relations={"lent": TableRelation(ALL_TYPES)}).read_all()
    assert got.column(0).to_pylist() == [3]


def check_an_empty_relation_has_its_columns(engine: Engine) -> None:
    """No rows, but a schema."""
    empty = TableRelation(ALL_TYPES.schema.empty_table())
    got = engine.query("SELECT id, s FROM lent", relations={"lent": empty}).read_all()
    assert (got.num_rows, got.column_names) == (0, ["id", "s"])


def check_many_batches_and_a_self_join(engine: Engine) -> None:
    """More rows than any engine's batch, scanned twice in one query."""
    table = pa.table({"id": pa.array(range(_ROWS), pa.int64())})
    got = engine.query(
        "SELECT count(*), sum(a.id) FROM lent a JOIN lent b ON a.id = b.id",
        relations={"lent": TableRelation(table)},
    ).read_all()
    assert [got.column(0)[0].as_py(), int(got.column(1)[0].as_py())] == [_ROWS, _ROWS * (_ROWS - 1) // 2]


def check_nothing_lent_remains(engine: Engine) -> None:
    """Not after success, nor after a failure at bind or while running, nor when the reader is dropped."""
    relation = TableRelation(ALL_TYPES)
    engine.query("SELECT 1 FROM lent", relations={"lent": relation}).read_all()
    assert not engine.has_relation(["lent"])
    _fails(engine, "SELECT nope FROM lent", relation, EngineQueryError)
    assert not engine.has_relation(["lent"])
    _fails(engine, "SELECT * FROM lent", _FailingRelation(ALL_TYPES), LookupError)
    assert not engine.has_relation(["lent"])
    dropped = engine.query("SELECT * FROM lent", relations={"lent": relation})
    del dropped
    assert not engine.has_relation(["lent"])
    engine.describe("SELECT * FROM lent", relations={"lent": relation})
    assert not engine.has_relation(["lent"])


def check_errors_say_when_they_came_up(engine: Engine) -> None:
    """Names and syntax fail at bind; values fail while running."""
    relation = TableRelation(ALL_TYPES)
    for query in ("SELECT nope FROM lent", "SELECT FROM WHERE", "SELECT * FROM no_such_table"):
        assert _fails(engine, query, relation, EngineQueryError).at_bind, query
    error = _fails(engine, "SELECT CAST(s || 'x' AS INT) FROM lent", relation, EngineQueryError)
    assert not error.at_bind


def check_errors_are_one_line_about_the_cause(engine: Engine) -> None:
    """The text of the query is the caller's, not the user's: no message points into it."""
    relation = TableRelation(ALL_TYPES)
    for query in (
        "SELECT nope FROM lent",
        "SELECT s + day FROM lent",
        "SELECT no_such_function(id) FROM lent",
        "SELECT CAST('x' AS INT) FROM lent",
        "SELECT CAST(s || 'x' AS INT) FROM lent",
        "SELECT (SELECT id FROM lent) FROM lent",
    ):
        message = str(_fails(engine, query, relation, EngineQueryError))
        assert message, query
        assert not any(
            part in message for part in ("\n", "LINE 1", "^", "SELECT", "caused by", "Optimizer")
        ), message
    assert _fails(engine, "SELECT ( FROM lent", relation, EngineQueryError).is_syntax


def check_describe_reads_nothing(engine: Engine) -> None:
    """Columns and types without a scan, and none of a one-shot reader."""
    relation = TableRelation(ALL_TYPES)
    schema = engine.describe("SELECT id, s AS t FROM lent", relations={"lent": relation})
    assert schema.names == ["id", "t"]
    assert relation.asked == []


def check_registered_objects_are_sources(engine: Engine) -> None:
    """Arrow tables, and readers that can be read only once."""
    reader = ALL_TYPES.select(["id"]).to_reader()
    engine.register("kept", reader)
    engine.describe("SELECT * FROM kept", relations={})
    got = engine.query("SELECT id FROM kept ORDER BY id", relations={}).read_all()
    assert got.column(0).to_pylist() == [1, 2, 3]
    engine.register("kept", ALL_TYPES.slice(0, 1).select(["id"]))
    assert engine.query("SELECT id FROM kept", relations={}).read_all().num_rows == 1, (
        "the newer object counts"
    )
    engine.unregister("kept")
    assert not engine.has_relation(["kept"])


def check_parameters_are_bound(engine: Engine) -> None:
    """By position."""
    got = engine.query(
        "SELECT id FROM lent WHERE id = $1", relations={"lent": TableRelation(ALL_TYPES)}, parameters=[2]
    )
    assert got.read_all().column(0).to_pylist() == [2]


def _fails(engine: Engine, sql: str, relation: TableRelation, kind: type[Exception]) -> EngineQueryError:
    try:
        engine.query(sql, relations={"lent": relation}).read_all()
    except kind as error:
        return error  # type: ignore[return-value]  # callers that look at it asked for this kind
    raise AssertionError(f"{sql} did not fail")


CHECKS: tuple[Callable[[Engine], None], ...] = tuple(
    value for name, value in list(globals().items()) if name.startswith("check_")
)
"""All checks."""
