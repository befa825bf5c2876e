"""Sessions: SQL text in, results out."""

from __future__ import annotations

import difflib
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import RLock
from types import FrameType, TracebackType
from typing import Any

import pyarrow as pa
from sqlglot import exp

from engine_adapters import loader
from engine_adapters.protocol import Engine, EngineQueryError
from hudi_sql.catalog.session_catalog import SessionCatalog
from hudi_sql.config.arguments import check_name, choose, mapping, setting_text
from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import (
    ConfigError,
    EngineFailureError,
    HudiSqlError,
    MissingDependencyError,
    SqlSyntaxError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedStatementError,
)
from hudi_sql.planner.ddl import CreateContext, run_create, run_drop
from hudi_sql.planner.diagnose import explain_refusal, missing_target, missing_values, unknown_table
from hudi_sql.planner.execute import DmlOutcome, run_dml, run_select
from hudi_sql.planner.lending import Lender
from hudi_sql.planner.objects import caller_frame, find_objects, is_one_shot, with_parameters
from hudi_sql.planner.scope import StatementScope
from hudi_sql.result import Result, WriteResult, engine_errors
from hudi_sql.sql.bind import bind
from hudi_sql.sql.context import TableInfo
from hudi_sql.sql.model import (
    BoundCreateTable,
    BoundDelete,
    BoundDropTable,
    BoundInsert,
    BoundMerge,
    BoundPassThrough,
    BoundSelect,
    BoundSet,
    BoundStatement,
    BoundUpdate,
    TableName,
)
from hudi_sql.sql.names import named_tables, table_name
from hudi_sql.sql.parse import Parsed, split_and_parse
from hudi_sql.storage.table import HudiTable

__all__ = ["DIALECTS", "Session", "attach", "connect"]

DIALECTS = ("duckdb", "datafusion", "spark")
_WAREHOUSE = "hudi_sql.warehouse"


def connect(
    engine: str = "duckdb",
    *,
    dialect: str | None = None,
    config: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Session:
    """Open a session over an engine of its own, in memory.

    Args:
        engine: `duckdb` or `datafusion`.
        dialect: In which statements are written: `duckdb`, `datafusion` or `spark`; the engine's own unless given.
        config: `hoodie.*` settings, and `hudi_sql.warehouse`, the folder of tables created without a location.
        storage_options: Credentials and endpoints of object stores.

    Raises:
        ConfigError: No such engine, dialect or setting.
        MissingDependencyError: The engine is not installed.
    """
    choose("engine", engine, tuple(loader.ENGINES))
    try:
        adapter = loader.connect(engine)
    except ImportError as exc:
        raise MissingDependencyError(
            f"The engine {engine} is not installed", hint=f"Install hudi_sql[{engine}].", package=engine
        ) from exc
    return Session(adapter, dialect=dialect, config=config, storage_options=storage_options)


def attach(
    connection: Any,
    *,
    dialect: str | None = None,
    config: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Session:
    """Open a session over the user's DuckDB connection or DataFusion session context.

    Its tables, views and settings can be used in statements and stay as they are; closing the session leaves it open.

    Raises:
        ConfigError: It is no connection of a known engine.
    """
    try:
        adapter = loader.attach(connection)
    except TypeError as exc:
        raise ConfigError(
            str(exc), hint="Attach a duckdb.DuckDBPyConnection or a datafusion.SessionContext."
        ) from exc
    return Session(adapter, dialect=dialect, config=config, storage_options=storage_options)


class Session:
    """Runs statements over Hudi tables and the engine's own, for one thread at a time.

    Each statement that changes a table is atomic: one commit, or no trace of it.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        dialect: str | None = None,
        config: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._engine = engine
        self._dialect = choose("dialect", dialect or engine.name, DIALECTS)
        if self._dialect == "datafusion":
            # sqlglot knows this dialect once its module is imported; that needs no engine.
            import_module("engine_adapters.datafusion.dialect")
        self._config: dict[str, str] = {}
        for key, value in mapping("config", config).items():
            self._set(str(key), setting_text(value))
        self._storage_options = dict(mapping("storage_options", storage_options))
        self._busy = RLock()
        self._is_closed = False
        self._catalog = SessionCatalog(self._config.get(_WAREHOUSE))
        self._one_shot: set[str] = set()
        self._open_result: weakref.ref[Result] | None = None

    @property
    def dialect(self) -> str:
        """In which statements are written."""
        return self._dialect

    def sql(self, text: str, parameters: Any = None) -> Result:
        """Run one or more statements and give the result of the last one.

        Args:
            text: Statements, separated by semicolons.
            parameters: Values of `?` or `$name` in the last statement: a list or a mapping.

        Raises:
            HudiSqlError: Any of its kinds; statements before the failing one have taken effect.
        """
        if not isinstance(text, str):
            raise SqlSyntaxError(
                f"A statement is a text, not {type(text).__name__}", hint="Give SQL text to sql()."
            )
        frame = caller_frame()
        result = Result.of_table(pa.table({}))
        with self._alone():
            statements = split_and_parse(text, self._dialect)
            for number, parsed in enumerate(statements):
                is_last = number == len(statements) - 1
                try:
                    result = self._run(parsed, parameters if is_last else None, frame)
                except RecursionError as exc:
                    raise UnsupportedStatementError(
                        "An expression of the statement is nested too deeply",
                        hint="Write id IN (…) for id = 1 OR id = 2 …, or register long lists as a table and join it.",
                    ) from exc
        return result

    def register(self, name: str, data: Any) -> None:
        """Keep an Arrow, pandas or polars object, a reader or a dataset under a name of this session."""
        check_name(name)
        if self._catalog.find((name,)) is not None:
            raise TableExistsError(
                f"There is a Hudi table {name} in this session", hint="Choose another name.", table=name
            )
        with self._alone(), engine_errors():
            self._release_engine()
            self._engine.register(name, data)
        self._one_shot.discard(name.lower())
        if is_one_shot(data):
            self._one_shot.add(name.lower())

    def unregister(self, name: str) -> None:
        """Forget a registered object."""
        check_name(name)
        with self._alone(), engine_errors():
            self._release_engine()
            self._engine.unregister(name)
        self._one_shot.discard(name.lower())

    def table(self, name: str) -> HudiTable:
        """Open the table of a name at the level of storage.

        Raises:
            TableNotFoundError: This session has no such table.
        """
        check_name(name)
        with self._alone():
            return self._open(TableName(parts=tuple(name.split("."))))

    def close(self) -> None:
        """End the session: our engine is closed, a user's connection is left as it was."""
        if self._is_closed:
            return
        with self._alone():
            try:
                self._release_engine()
            finally:
                self._is_closed = True
                with engine_errors():
                    self._engine.close()
                self._catalog.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- one statement

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a closed session, and a thread that comes while another one is here: an engine serves one."""
        if self._is_closed:
            raise EngineFailureError(
                "This session is closed", hint="Open another one with connect() or attach()."
            )
        if not self._busy.acquire(blocking=False):
            raise EngineFailureError(
                "This session is at work for another thread", hint="Open a session for each thread."
            )
        try:
            yield
        finally:
            self._busy.release()

    def _run(self, parsed: Parsed, parameters: Any, frame: FrameType | None) -> Result:
        self._release_engine()
        tree = parsed.tree
        if parameters is not None:
            tree = with_parameters(tree, parameters)
            parsed = parsed.with_tree(tree)
        elif (error := missing_values(tree)) is not None:
            raise error
        with engine_errors():
            objects = self._objects(tree, frame)
            scope = self._new_scope(objects)
            try:
                bound = bind(parsed, _Context(self, scope))
                result = self._dispatch(bound, scope, has_values=parameters is not None)
                if not isinstance(tree, exp.Query):
                    # An engine may do the work of a statement only when its (few) rows are read.
                    result.hold()
            except (EngineQueryError, UnsupportedStatementError) as exc:
                better = self._better_error(exc, parsed)
                if better is None:
                    raise
                raise better from exc
            return result

    def _better_error(
        self, error: EngineQueryError | UnsupportedStatementError, parsed: Parsed
    ) -> HudiSqlError | None:
        names = self._catalog.names()
        if isinstance(error, UnsupportedStatementError):
            target = missing_target(parsed.tree, self._is_known)
            return None if target is None else unknown_table(target, names, is_target=True)
        if not error.at_bind:
            return None
        return explain_refusal(parsed.text, parsed.tree, str(error), is_known=self._is_known, names=names)

    def _is_known(self, parts: Sequence[str]) -> bool:
        return self._catalog.find(parts) is not None or self._engine.has_relation(parts)

    def _dispatch(self, bound: BoundStatement, scope: StatementScope, *, has_values: bool) -> Result:
        if isinstance(bound, BoundSelect):
            return self._lazy(run_select(bound.query, scope, bound.tables))
        if isinstance(bound, BoundInsert | BoundUpdate | BoundDelete | BoundMerge):
            return self._change(bound, scope)
        if isinstance(bound, BoundPassThrough):
            tree = bound.rendered if bound.rendered is not None or not has_values else bound.tree
            text = bound.text if tree is None else self._engine.render(tree, self._dialect)
            return self._lazy(self._engine.execute(text, relations=scope.objects))
        if isinstance(bound, BoundSet):
            self._set(bound.key, bound.value)
        elif isinstance(bound, BoundCreateTable):
            self._check_free(bound.name)
            notices = run_create(bound, self._create_context())
            return Result.of_table(pa.table({}), WriteResult(notices=notices))
        elif isinstance(bound, BoundDropTable):
            run_drop(bound, self._create_context())
        else:
            raise UnsupportedStatementError(
                f"{type(bound).__name__} is not carried out", hint="See the reference."
            )
        return Result.of_table(pa.table({}))

    def _change(
        self, bound: BoundInsert | BoundUpdate | BoundDelete | BoundMerge, scope: StatementScope
    ) -> Result:
        entry = self._catalog.find(bound.target.parts) if bound.target.location is None else None
        settings = {**(entry.settings if entry is not None else {}), **self._hoodie_settings()}
        scopes = [scope]

        def new_scope() -> StatementScope:
            return scopes.pop() if scopes else self._new_scope(scope.objects)

        try:
            outcome = run_dml(
                bound,
                new_scope=new_scope,
                config=WriteConfig.parse(settings),
                can_repeat=not self._mentions_one_shot(bound, scope),
            )
        except HudiSqlError as exc:
            # Storage knows keys and files; which table the statement was about is known here.
            exc.table = exc.table or str(bound.target)
            raise
        write = _write_result(outcome)
        return Result.of_table(write.to_row() if outcome.returned is None else outcome.returned, write)

    def _lazy(self, reader: pa.RecordBatchReader) -> Result:
        result = Result.of_reader(reader)
        if not reader.schema.names:
            result.hold()
        else:
            self._open_result = weakref.ref(result)
        return result

    def _release_engine(self) -> None:
        """An engine holds one open result: what the user has not read yet is read into memory."""
        result = self._open_result() if self._open_result is not None else None
        self._open_result = None
        if result is not None:
            result.hold()

    # -- names

    def _check_free(self, name: TableName) -> None:
        """A Hudi table would hide a table of the engine: statements meant for that one would change the other."""
        if (
            len(name.parts) == 1
            and self._catalog.find(name.parts) is None
            and self._engine.has_relation(name.parts)
        ):
            raise TableExistsError(
                f"The engine has a table, view or registered object {name}",
                hint="Choose another name for the Hudi table.",
                table=str(name),
            )

    def _create_context(self) -> CreateContext:
        return CreateContext(
            catalog=self._catalog,
            dialect=self._dialect,
            settings=self._hoodie_settings(),
            storage_options=self._storage_options,
            open_table=self._open,
        )

    def _new_scope(self, objects: Mapping[str, Any]) -> StatementScope:
        return StatementScope(
            engine=self._engine, dialect=self._dialect, open_table=self._open, objects=objects
        )

    def _objects(self, tree: exp.Expression | None, frame: FrameType | None) -> dict[str, Any]:
        if tree is None or frame is None or not self._engine.capabilities.has_python_variables:
            return {}
        names = [
            table.name
            for table in named_tables(tree)
            if len(table.parts) == 1 and self._catalog.find((table.name,)) is None
        ]
        unknown = [name for name in dict.fromkeys(names) if not self._engine.has_relation((name,))]
        return find_objects(unknown, frame)

    def _mentions_one_shot(self, bound: BoundStatement, scope: StatementScope) -> bool:
        if any(is_one_shot(value) for value in scope.objects.values()):
            return True
        text = bound.text.lower()
        return any(name in text for name in self._one_shot)

    def _open(self, name: TableName) -> HudiTable:
        if name.location is not None:
            return HudiTable.open(name.location, storage_options=self._storage_options)
        entry = self._catalog.find(name.parts)
        if entry is None:
            near = difflib.get_close_matches(str(name), self._catalog.names(), n=3)
            raise TableNotFoundError(
                f"There is no Hudi table {name}",
                hint=f"Did you mean {' or '.join(near)}?"
                if near
                else f"Name it: CREATE TABLE {name} USING hudi LOCATION '…'.",
                table=str(name),
            )
        return HudiTable.open(entry.location, storage_options=self._storage_options)

    # -- settings

    def _set(self, key: str, value: str) -> None:
        if key.startswith("hoodie."):
            WriteConfig.parse({key: value})
        elif key != _WAREHOUSE and not key.startswith("spark."):
            near = difflib.get_close_matches(key, [_WAREHOUSE], n=1)
            raise ConfigError(
                f"There is no setting {key}",
                hint=f"Did you mean {near[0]}?" if near else "Settings begin with hoodie.",
                setting=key,
                near=tuple(near),
            )
        self._config[key] = value

    def _hoodie_settings(self) -> dict[str, str]:
        return {key: value for key, value in self._config.items() if key.startswith("hoodie.")}


class _Context:
    """What binding asks of the session."""

    def __init__(self, session: Session, scope: StatementScope) -> None:
        self._session = session
        self._scope = scope

    @property
    def dialect(self) -> str:
        return self._session.dialect

    def table_schema(self, name: TableName) -> TableInfo | None:
        if name.location is None and self._session._catalog.find(name.parts) is None:  # noqa: SLF001
            return None
        snapshot = self._scope.snapshot(name)
        config = snapshot.config
        return TableInfo(
            schema=snapshot.table_schema,
            record_key_fields=tuple(config.record_key_fields),
            partition_fields=tuple(config.partition_fields),
            ordering_fields=tuple(config.ordering_fields),
        )

    def describe(self, query: exp.Expression) -> pa.Schema:
        tables = {}
        for table in named_tables(query):
            name = table_name(table)
            if name.location is not None or self._session._catalog.find(name.parts) is not None:  # noqa: SLF001
                tables[name.key] = name
        scope = self._scope
        lender = Lender(tables, scope.schemas(tables))
        tree = lender.lend(query)
        sql = scope.engine.render(tree, scope.dialect)
        return scope.engine.describe(sql, relations=scope.relations(lender.lent, tables))


def _write_result(outcome: DmlOutcome) -> WriteResult:
    commit, counts = outcome.commit, outcome.counts
    return WriteResult(
        num_inserted_rows=counts.inserted,
        num_updated_rows=counts.updated,
        num_deleted_rows=counts.deleted,
        num_ignored_rows=counts.ignored,
        instant=None if commit.instant is None else commit.instant.value,
        num_files=len(commit.files),
        num_bytes=commit.bytes_written,
        partitions=tuple(commit.partitions),
        phases_ms={"evaluate": outcome.evaluate_ms, **commit.phases_ms},
        lock_held_ms=commit.lock_held_ms,
        num_attempts=outcome.num_attempts,
    )
