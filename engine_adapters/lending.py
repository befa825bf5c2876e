"""Lends a `Relation` to an engine as a pyarrow dataset, the one form that both engines push filters into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from engine_adapters.protocol import Relation

__all__ = ["LentDataset", "LentErrors"]


class LentErrors:
    """Remembers what lent relations raised during one query: engines turn it into text of their own."""

    def __init__(self) -> None:
        self.first: BaseException | None = None

    def remember(self, error: BaseException) -> None:
        """Keep the first error; what follows is its consequence."""
        if self.first is None:
            self.first = error


class LentDataset(ds.InMemoryDataset):  # type: ignore[misc]  # pyarrow is untyped
    """A dataset without data that asks its relation for rows when a query scans it.

    The engine does not filter again what it has pushed down: the relation's filter is exact.
    """

    def __init__(self, relation: Relation, errors: LentErrors) -> None:
        super().__init__(relation.schema.empty_table())
        self._relation = relation
        self._errors = errors

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
        **_: Any,
    ) -> ds.Scanner:
        """Scan lazily: nothing is read until the engine pulls the first batch."""
        return self._lazy_scanner(columns, filter)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[Any]:  # noqa: A002
        """DataFusion plans by fragments; the relation is one (it reads in parallel on its own)."""
        yield _LentFragment(self, filter)

    def _lazy_scanner(self, columns: Sequence[str] | None, predicate: pc.Expression | None) -> ds.Scanner:
        schema = self._relation.schema
        wanted = None if columns is None else list(columns)
        if wanted is not None:
            schema = pa.schema([schema.field(name) for name in wanted])
        return ds.Scanner.from_batches(self._batches(wanted, predicate), schema=schema)

    def _batches(
        self, columns: list[str] | None, predicate: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        try:
            reader = self._relation.scan(columns, predicate)
            with reader:
                for batch in reader:
                    yield batch if columns is None else batch.select(columns)
        except GeneratorExit:
            raise
        except BaseException as error:
            self._errors.remember(error)
            raise


class _LentFragment:
    """The whole relation as one fragment; only `scanner` is ever asked of it."""

    def __init__(self, dataset: LentDataset, predicate: pc.Expression | None) -> None:
        self._dataset = dataset
        self._predicate = predicate

    def scanner(
        self,
        schema: pa.Schema | None = None,  # noqa: ARG002
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
        **_: Any,
    ) -> ds.Scanner:
        return self._dataset._lazy_scanner(columns, filter if filter is not None else self._predicate)  # noqa: SLF001
