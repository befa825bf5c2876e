"""Lends a `Relation` to an engine as a pyarrow dataset, the one form that both engines push filters into."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from engine_adapters.protocol import EngineQueryError, Relation

__all__ = ["LentDataset", "LentErrors", "floating_columns"]


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
            floats = floating_columns(predicate, self._relation.schema)
            if floats:
                yield from self._nan_aware(columns, predicate, floats)
                return
            reader = self._relation.scan(columns, predicate)
            with reader:
                for batch in reader:
                    yield batch if columns is None else batch.select(columns)
        except GeneratorExit:
            raise
        except BaseException as error:
            self._errors.remember(error)
            raise

    def _nan_aware(
        self, columns: list[str] | None, predicate: pc.Expression | None, floats: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Filter here, with NaN as the greatest number: so it is for the engines, and not for Arrow."""
        names = list(self._relation.schema.names) if columns is None else columns
        with self._relation.scan(
            None if columns is None else _with_used(columns, predicate, self._relation), None
        ) as reader:
            for batch in reader:
                ordered = pa.table(batch)
                for name in floats:
                    index = ordered.schema.get_field_index(name)
                    column = ordered.column(index)
                    greatest = pc.if_else(pc.is_nan(column), pa.scalar(float("inf"), column.type), column)
                    ordered = ordered.set_column(index, name, greatest)
                numbered = ordered.append_column(_ROW, pa.array(np.arange(batch.num_rows)))
                kept = numbered.filter(predicate).column(_ROW).combine_chunks()
                if len(kept):
                    yield batch.take(kept).select(names)


_ROW = "__lent_row"
_EXTREME = re.compile(r"(?<![\w\"])-?(?:nan|inf)(?![\w\"])")


def floating_columns(predicate: pc.Expression | None, schema: pa.Schema) -> list[str]:
    """Floating columns of a relation that a filter is about.

    Raises:
        EngineQueryError: The filter compares one with NaN or infinity, for which Arrow has no total order.
    """
    if predicate is None:
        return []
    text = str(predicate)
    found = [
        field.name for field in schema if pa.types.is_floating(field.type) and _mentions(text, field.name)
    ]
    if found and _EXTREME.search(text):
        raise EngineQueryError(
            f"A filter compares {', '.join(found)} with NaN or infinity, which cannot be done while the table is read: "
            f"write isnan({found[0]}), or put the comparison into an outer query over a materialised one",
            at_bind=True,
        )
    return found


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _with_used(columns: Sequence[str], predicate: pc.Expression | None, relation: Relation) -> list[str]:
    """The wanted columns and those that the filter needs."""
    text = str(predicate)
    used = [name for name in relation.schema.names if name not in columns and _mentions(text, name)]
    return [*columns, *used]


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
