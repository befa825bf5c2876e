"""Values and conditions under the `spark` dialect, whose meaning hangs on types that only the engine knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from hudi_sql.errors import BindError
from hudi_sql.sql.context import BindContext
from hudi_sql.sql.model import Assignment
from hudi_sql.sql.types import spark_cast_for_store

__all__ = ["SparkTyper"]


class SparkTyper:
    """Asks the engine once for the types of all values and conditions of a statement.

    Args:
        target: The target as the statement names it.
        alias: How the statement's columns call it.
        beside: Relations beside it: FROM, USING, the source of a MERGE.
        with_: The statement's common table expressions.
        schema: Columns of the target.
        table: How messages call it.
    """

    def __init__(
        self,
        target: exp.Expression,
        alias: str,
        beside: Sequence[exp.Expression],
        *,
        with_: exp.Expression | None,
        schema: pa.Schema,
        table: str,
        context: BindContext,
    ) -> None:
        self._target, self._beside, self._with = target.copy(), beside, with_
        self._target.set("alias", exp.TableAlias(this=exp.Identifier(this=alias, quoted=True)))
        self._schema, self._table, self._context = schema, table, context

    def check(
        self, groups: Sequence[tuple[Assignment, ...]], conditions: Sequence[tuple[str, exp.Expression]]
    ) -> list[tuple[Assignment, ...]]:
        """The assignments with Spark's casts to what stores them.

        Args:
            groups: Assignments of each clause, their values as the statement has them.
            conditions: (part of the statement, condition).

        Raises:
            BindError: A condition is no boolean.
        """
        flat = [item for group in groups for item in group]
        tested = [node for _, node in conditions]
        given = self._types([item.value for item in flat] + tested)
        for (part, node), kind in zip(conditions, given[len(flat) :], strict=True):
            if not pa.types.is_boolean(kind) and not pa.types.is_null(kind):
                raise BindError(
                    f"{part} is no condition: {node.sql('spark')} has type {kind}",
                    hint="Write a boolean expression.",
                    table=self._table,
                    part=part,
                )
        cast = iter(
            replace(item, value=spark_cast_for_store(item.value, self._stored(item), kind))
            for item, kind in zip(flat, given, strict=False)
        )
        return [tuple(next(cast) for _ in group) for group in groups]

    def _types(self, nodes: Sequence[exp.Expression]) -> list[pa.DataType]:
        if not nodes:
            return []
        names = [exp.Identifier(this=f"v{number}", quoted=True) for number in range(len(nodes))]
        items = [exp.Alias(this=node.copy(), alias=name) for node, name in zip(nodes, names, strict=True)]
        query = exp.Select(expressions=items).from_(self._target)
        for relation in self._beside:
            query.append("joins", exp.Join(this=relation.copy(), kind="CROSS"))
        if self._with is not None:
            query.set("with_", self._with.copy())
        return list(self._context.describe(query).types)

    def _stored(self, item: Assignment) -> pa.DataType:
        kind = self._schema.field(item.column).type
        for name in item.path:
            kind = kind.field(name).type
        return kind
