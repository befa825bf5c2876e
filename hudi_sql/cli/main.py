"""The `hudi-sql` command: runs SQL text or a file of it and prints the last result."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hudi_sql.errors import ConfigError, HudiSqlError, MissingDependencyError
from hudi_sql.session import DIALECTS, Session, connect

__all__ = ["main"]

_OK, _FAILED, _USAGE = 0, 1, 2
_INTERRUPTED = 130
"""What a shell gives for a command that Ctrl-C ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code: 0, 1 a statement failed, 2 the call was wrong, 130 after Ctrl-C."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else _USAGE
    try:
        text = options.command if options.command is not None else _read(options.file)
        config = dict(_setting(item) for item in options.config)
    except OSError as exc:
        _complain(f"Cannot read {options.file}: {exc.strerror or exc}")
        return _USAGE
    except UnicodeDecodeError as exc:
        _complain(f"Cannot read {options.file}: it is no UTF-8 text (byte {exc.start})")
        return _USAGE
    except ValueError as exc:
        _complain(str(exc))
        return _USAGE
    try:
        session = connect(options.engine, dialect=options.dialect, config=config)
    except (ConfigError, MissingDependencyError) as exc:
        _report(exc)
        return _USAGE
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter gets its number; the statement has run all the same.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with session:
        return _run(session, text, options.max_rows)


def _run(session: Session, text: str, max_rows: int) -> int:
    try:
        result = session.sql(text)
        if result.columns:
            print(result.format(max_rows), flush=True)  # noqa: T201  # the output of the command
        for notice in result.write.notices if result.write is not None else ():
            print(f"notice: {notice}", file=sys.stderr)  # noqa: T201
    except HudiSqlError as exc:
        _report(exc)
        return _FAILED
    except KeyboardInterrupt:
        _complain("Interrupted; a statement that had not committed has changed nothing.")
        return _INTERRUPTED
    except BrokenPipeError:
        # Python would complain about what it cannot write when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hudi-sql", description="Run SQL on Apache Hudi tables with DuckDB or DataFusion."
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-c", dest="command", metavar="SQL", help="statements to run")
    what.add_argument(
        "-f", dest="file", metavar="FILE", help="file with statements to run; - is the standard input"
    )
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
    parser.add_argument("--max-rows", type=_count, default=1000, help="rows to print (default 1000)")
    return parser


def _read(file: str) -> str:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    # Some editors begin a file with a byte order mark, which is no SQL.
    return data.decode("utf-8-sig")


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


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


if __name__ == "__main__":
    sys.exit(main())
