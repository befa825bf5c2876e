"""DataFusion: an own session context, or the user's.

DataFusion 55 plans a Python dataset by its fragments, folds unquoted names to lower case, and raises bare `Exception`
and `ValueError`. It has no row numbers and no Python variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext
from sqlglot import exp

from engine_adapters.datafusion.errors import translate
from engine_adapters.datafusion.spark_rules import render
from engine_adapters.lending import LentDataset, LentErrors
from engine_adapters.protocol import Capabilities, EngineQueryError, EngineSettings, Relation
from engine_adapters.streams import guarded_reader

__all__ = ["DataFusionEngine"]


class DataFusionEngine:
    """The engine protocol over one DataFusion session context."""

    def __init__(self, context: SessionContext, *, is_owned: bool) -> None:
        self._context = context
        self._is_owned = is_owned
        self._registered: set[str] = set()

    @classmethod
    def connect(cls, settings: EngineSettings | None = None) -> DataFusionEngine:
        """Open a context of our own."""
        config = SessionConfig()
        runtime = RuntimeEnvBuilder()
        if settings is not None:
            if settings.threads is not None:
                config = config.with_target_partitions(settings.threads)
            if settings.memory_limit_bytes is not None:
                runtime = runtime.with_fair_spill_pool(settings.memory_limit_bytes)
            if settings.temp_folder is not None:
                runtime = runtime.with_disk_manager_specified(settings.temp_folder)
        return cls(SessionContext(config, runtime), is_owned=True)

    @classmethod
    def attach(cls, context: SessionContext) -> DataFusionEngine:
        """Work on the user's context: all it holds can be read, and none of it is changed."""
        return cls(context, is_owned=False)

    @property
    def name(self) -> str:
        """`datafusion`."""
        return "datafusion"

    @property
    def sql_dialect(self) -> str:
        """Name of the sqlglot dialect of this engine."""
        return "datafusion"

    @property
    def capabilities(self) -> Capabilities:
        """Quoted names match exactly; there are no Python variables and no transactions."""
        return Capabilities(has_python_variables=False, is_case_sensitive=True, has_transactions=False)

    def render(self, tree: exp.Expression, source_dialect: str) -> str:
        """Write a query in DataFusion's SQL."""
        return render(tree, source_dialect)

    def has_relation(self, parts: Sequence[str]) -> bool:
        """Whether the context has a table or view of this name."""
        *qualifier, name = parts
        if len(qualifier) > 2:
            return False
        try:
            catalog = self._context.catalog(qualifier[0]) if len(qualifier) == 2 else self._context.catalog()
            schema = catalog.schema(qualifier[-1] if qualifier else "public")
            return name in schema.table_names() or name.lower() in schema.table_names()
        except Exception:  # noqa: BLE001  # unknown catalogs and schemas are bare exceptions
            return False

    def describe(self, sql: str, *, relations: Mapping[str, Relation], parameters: Any = None) -> pa.Schema:
        """Plan a query without running it."""
        lent = LentErrors()
        self._lend(relations, lent)
        try:
            return self._plan(sql, parameters).schema()
        except Exception as error:
            raise translate(error, lent, at_bind=True) from error
        finally:
            self._take_back(relations)

    def query(
        self, sql: str, *, relations: Mapping[str, Relation], parameters: Any = None
    ) -> pa.RecordBatchReader:
        """Run a query and stream its rows."""
        lent = LentErrors()
        self._lend(relations, lent)
        try:
            frame = self._plan(sql, parameters)
            schema = frame.schema()
        except Exception as error:
            self._take_back(relations)
            raise translate(error, lent, at_bind=True) from error
        try:
            stream = frame.execute_stream()
        except Exception as error:
            self._take_back(relations)
            raise translate(error, lent, at_bind=False) from error
        return guarded_reader(
            schema,
            _batches(stream, schema),
            lent,
            on_end=lambda: self._take_back(relations),
            translate=translate,
        )

    def execute(
        self, sql: str, *, relations: Mapping[str, Relation], parameters: Any = None
    ) -> pa.RecordBatchReader:
        """Run any statement of DataFusion's own."""
        return self.query(sql, relations=relations, parameters=parameters)

    def register(self, name: str, data: Any) -> None:
        """Keep a user's object under a name, instead of one registered before. A one-shot reader is read here, once."""
        if name in self._registered:
            self.unregister(name)
        try:
            self._context.register_table(name, _as_dataset(data))
        except Exception as error:
            raise translate(error, LentErrors(), at_bind=True) from error
        self._registered.add(name)

    def unregister(self, name: str) -> None:
        """Forget a registered object."""
        self._context.deregister_table(name)
        self._registered.discard(name)

    def close(self) -> None:
        """Take back what was registered."""
        for name in tuple(self._registered):
            self.unregister(name)

    def _plan(self, sql: str, parameters: Any) -> Any:
        if parameters is None:
            return self._context.sql(sql)
        if isinstance(parameters, Mapping):
            values = {str(key): value for key, value in parameters.items()}
        else:
            # DataFusion numbers its placeholders from $1.
            values = {str(number): value for number, value in enumerate(parameters, start=1)}
        return self._context.sql(sql, param_values=values)

    def _lend(self, relations: Mapping[str, Relation], lent: LentErrors) -> None:
        done = []
        try:
            for name, relation in relations.items():
                is_lazy = isinstance(relation, Relation)
                table = LentDataset(relation, lent) if is_lazy else _as_dataset(relation)
                self._context.register_table(name, table)
                done.append(name)
        except Exception as error:
            self._take_back(done)
            raise translate(error, lent, at_bind=True) from error

    def _take_back(self, names: Sequence[str] | Mapping[str, Relation]) -> None:
        for name in names:
            self._context.deregister_table(name)


def _as_dataset(data: Any) -> Any:
    """A form that DataFusion registers: datasets stay lazy, anything with an Arrow stream is read once."""
    if isinstance(data, ds.Dataset):
        return data
    if isinstance(data, ds.Scanner):
        return ds.dataset(_plain(data.to_table()))
    package = type(data).__module__.split(".")[0]
    if package == "polars" and type(data).__name__ == "LazyFrame":
        data = data.collect()
    if package == "pandas":
        return ds.dataset(_plain(pa.Table.from_pandas(data, preserve_index=False)))
    if hasattr(data, "__arrow_c_stream__"):
        return ds.dataset(_plain(pa.table(data)))
    if hasattr(data, "__arrow_c_array__"):
        return ds.dataset(pa.Table.from_batches([pa.record_batch(data)]))
    raise EngineQueryError(
        f"A {type(data).__module__}.{type(data).__qualname__} cannot be registered: it has no Arrow stream",
        at_bind=True,
    )


def _plain(table: pa.Table) -> pa.Table:
    """Without schema metadata, which would travel into every result."""
    return table.replace_schema_metadata(None)


def _batches(stream: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for item in stream:
        batch = item.to_pyarrow()
        if batch.schema != schema:
            # Nullability may be narrower in the data than in the plan.
            batch = pa.RecordBatch.from_arrays(batch.columns, schema=schema) if batch.num_columns else batch
        yield batch
