"""Python objects as sources: variables of the caller, and values of parameters."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from sqlglot import exp

from hudi_sql.errors import BindError

__all__ = ["caller_frame", "find_objects", "is_one_shot", "with_parameters"]

_PACKAGE = __name__.split(".", maxsplit=1)[0]


def caller_frame() -> FrameType | None:
    """The frame of the code that called into this package."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # the one way to a caller's variables
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name != _PACKAGE and not name.startswith(_PACKAGE + "."):
            return frame
        frame = frame.f_back
    return None


def find_objects(names: Iterable[str], frame: FrameType) -> dict[str, Any]:
    """Variables of a frame, or globals of its module, that can be read as tables."""
    found = {}
    for name in names:
        for variables in (frame.f_locals, frame.f_globals):
            if name in variables and _is_tabular(variables[name]):
                found[name] = variables[name]
                break
    return found


def is_one_shot(data: Any) -> bool:
    """Whether an object gives its rows only once."""
    return isinstance(data, pa.RecordBatchReader | ds.Scanner) or hasattr(data, "__next__")


def _is_tabular(data: Any) -> bool:
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader | ds.Dataset | ds.Scanner):
        return True
    if hasattr(data, "__arrow_c_stream__"):
        return True
    kind = type(data)
    return f"{kind.__module__.split('.')[0]}.{kind.__name__}" in (
        "pandas.DataFrame",
        "duckdb.DuckDBPyRelation",
    )


def with_parameters(tree: exp.Expression, parameters: Any) -> exp.Expression:
    """Put values in the places of `?`, `$1` and `$name`.

    Raises:
        BindError: A parameter has no value, or a value no parameter or no SQL form.
    """
    copy = tree.copy()
    marks = list(copy.find_all(exp.Placeholder, exp.Parameter, bfs=False))
    named = parameters if isinstance(parameters, Mapping) else None
    if named is None and (isinstance(parameters, str | bytes) or not isinstance(parameters, Iterable)):
        raise BindError(
            f"Values of parameters are a list or a mapping, not {type(parameters).__name__}",
            hint="Write [value] for a single one.",
        )
    values: Sequence[Any] = () if named is not None else list(parameters)
    used: set[object] = set()
    position = 0
    for mark in marks:
        name = mark.name
        key: object
        if named is not None:
            key = name
        elif name.isdigit():
            key = int(name) - 1
        else:
            key, position = position, position + 1
        if (named is not None and key not in named) or (
            named is None and not 0 <= int(str(key)) < len(values)
        ):
            raise BindError(
                f"Parameter {name or position} has no value", hint="Give one value for each parameter."
            )
        used.add(key)
        value = named[name] if named is not None else values[int(str(key))]
        mark.replace(_literal(value))
    num_given = len(named) if named is not None else len(values)
    if len(used) != num_given:
        raise BindError(
            f"The statement has {len(used)} parameters and {num_given} values were given",
            hint="Give one value for each parameter.",
        )
    return copy


def _literal(value: Any) -> exp.Expression:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | Decimal):
        number = exp.Literal.number(str(abs(value)))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, float):
        return exp.Cast(this=exp.Literal.string(repr(value)), to=exp.DataType.build("double"))
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, dt.datetime):
        kind = "timestamp" if value.tzinfo is None else "timestamptz"
        return exp.Cast(this=exp.Literal.string(value.isoformat(" ")), to=exp.DataType.build(kind))
    if isinstance(value, dt.date):
        return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build("date"))
    if isinstance(value, bytes | bytearray):
        return exp.HexString(this=bytes(value).hex(), is_integer=False)
    raise BindError(
        f"A value of type {type(value).__name__} cannot be a parameter",
        hint="Register it as a table, or give a number, text, date, timestamp, bytes or None.",
    )
