"""Runs files in DuckDB's sqllogictest form.

    statement ok | statement error [KindOfError]
    SQL …

    query [rowsort]
    SQL …
    ----
    tab-separated rows, NULL for NULL

`${dir}` is a fresh folder. A line `dialect spark` at the top chooses the dialect; `# …` is a comment.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hudi_sql

__all__ = ["Step", "dialect_of", "read_steps", "run_step"]


@dataclass(frozen=True)
class Step:
    line: int
    kind: str
    words: tuple[str, ...]
    sql: str
    expected: tuple[str, ...] = ()


def dialect_of(path: Path) -> str | None:
    for line in path.read_text().splitlines():
        if line.startswith("dialect "):
            return line.split()[1]
    return None


def read_steps(path: Path) -> Iterator[Step]:
    blocks: list[tuple[int, list[str]]] = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if line.startswith(("#", "dialect ")):
            continue
        if not line.strip():
            blocks.append((number + 1, []))
        elif not blocks or not blocks[-1][1]:
            blocks.append((number, [line]))
        else:
            blocks[-1][1].append(line)
    for number, lines in blocks:
        if not lines:
            continue
        kind, *words = lines[0].split()
        body = lines[1:]
        at = body.index("----") if "----" in body else len(body)
        yield Step(number, kind, tuple(words), "\n".join(body[:at]), tuple(body[at + 1 :]))


def run_step(session: hudi_sql.Session, step: Step, folder: Path) -> None:
    sql = step.sql.replace("${dir}", str(folder))
    where = f"line {step.line}: {sql}"
    if step.kind == "statement":
        error = failure(session, sql)
        if step.words[0] == "ok":
            assert error is None, f"{where}\n{error!r}"
            return
        assert error is not None, f"{where}\nno error"
        if len(step.words) > 1:
            names = [kind.__name__ for kind in type(error).__mro__]
            assert step.words[1] in names, f"{where}\n{error!r}"
        return
    assert step.kind == "query", where
    found = ["\t".join(text(value) for value in row) for row in session.sql(sql).fetchall()]
    wanted = list(step.expected)
    if "rowsort" in step.words:
        found, wanted = sorted(found), sorted(wanted)
    assert found == wanted, where


def failure(session: hudi_sql.Session, sql: str) -> hudi_sql.HudiSqlError | None:
    try:
        session.sql(sql)
    except hudi_sql.HudiSqlError as error:
        return error
    return None


def text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    return str(value)
