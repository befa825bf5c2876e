"""Conditions on columns by which files are left out.

They are true of every row that is wanted; rows of which they are not true may be read all the same. A comparison with
NULL is not true.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import reduce

import pyarrow as pa

__all__ = ["And", "Compare", "CompareOp", "IsIn", "IsNull", "Or", "Predicate", "referenced_columns"]


class CompareOp(Enum):
    """How a column stands to a value."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """`column op value`. The value is not NULL and should have the column's type; others prune nothing."""

    column: str
    op: CompareOp
    value: pa.Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class IsIn:
    """`column IN (values)`."""

    column: str
    values: tuple[pa.Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    """`column IS NULL`, or IS NOT NULL when negated."""

    column: str
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    """All parts hold."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    """One part holds."""

    parts: tuple[Predicate, ...]


Predicate = Compare | IsIn | IsNull | And | Or


def referenced_columns(predicate: Predicate) -> frozenset[str]:
    """Columns that a predicate is about.

    Example:
        >>> sorted(referenced_columns(Or(parts=(IsNull(column="a"), IsNull(column="b")))))
        ['a', 'b']
    """
    if isinstance(predicate, And | Or):
        none: frozenset[str] = frozenset()
        return reduce(frozenset.union, map(referenced_columns, predicate.parts), none)
    return frozenset({predicate.column})
