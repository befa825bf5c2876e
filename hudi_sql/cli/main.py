"""The `hudi-sql` command: runs SQL text or a file of it and prints the last result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hudi_sql.errors import ConfigError, HudiSqlError, MissingDependencyError
from hudi_sql.session import DIALECTS, connect

__all__ = ["main"]

_OK, _FAILED, _USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code: 0, 1 when a statement failed, 2 when the call was wrong."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else _USAGE
    try:
        text = (
            options.command if options.command is not None else Path(options.file).read_text(encoding="utf-8")
        )
        config = dict(_setting(item) for item in options.config)
    except (OSError, UnicodeDecodeError) as exc:
        _complain(f"Cannot read {options.file}: {exc}")
        return _USAGE
    except ValueError as exc:
        _complain(str(exc))
        return _USAGE
    try:
        session = connect(options.engine, dialect=options.dialect, config=config)
    except (ConfigError, MissingDependencyError) as exc:
        _report(exc)
        return _USAGE
    with session:
        try:
            result = session.sql(text)
            if result.columns:
                print(result.format(options.max_rows))  # noqa: T201  # the output of the command
            for notice in result.write.notices if result.write is not None else ():
                print(f"notice: {notice}", file=sys.stderr)  # noqa: T201
        except HudiSqlError as exc:
            _report(exc)
            return _FAILED
        except BrokenPipeError:
            return _OK
    return _OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hudi-sql", description="Run SQL on Apache Hudi tables with DuckDB or DataFusion."
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-c", dest="command", metavar="SQL", help="statements to run")
    what.add_argument("-f", dest="file", metavar="FILE", help="file with statements to run")
    parser.add_argument("--engine", default="duckdb", help="duckdb (default) or datafusion")
    parser.add_argument(
        "--dialect", default=None, help=f"{', '.join(DIALECTS)}; the engine's own unless given"
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting; may be given several times",
    )
    parser.add_argument("--max-rows", type=int, default=1000, help="rows to print (default 1000)")
    return parser


def _setting(item: str) -> tuple[str, str]:
    key, separator, value = item.partition("=")
    if not separator or not key.strip():
        raise ValueError(f"--config {item}: write KEY=VALUE")
    return key.strip(), value.strip()


def _report(error: HudiSqlError) -> None:
    lines = [f"{type(error).__name__}: {error.message}"]
    lines.extend(
        f"  {label}: {value}" for label, value in (("table", error.table), ("in", error.part)) if value
    )
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    _complain("\n".join(lines))


def _complain(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201  # the error stream of the command
