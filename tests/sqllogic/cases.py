"""Runs the recorded Spark cases: placeholders, cells as JSON, files read as text."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_sql

HERE = Path(__file__).parent
WRITES = ("commit", "deltacommit", "replacecommit")


def load() -> list[dict[str, Any]]:
    """The given cases, and neighbours of theirs that Spark answered the same way."""
    files = (HERE / "cases_cow.jsonl", HERE / "cases_own.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def write_instants(location: Path) -> list[tuple[str, str]]:
    """(requested, completed) of finished writes, oldest first."""
    folder = location / ".hoodie" / "timeline"
    found = []
    for name in sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []:
        match = re.match(r"(\d+)_(\d+)\.(\w+)$", name)
        if match and match.group(3) in WRITES:
            found.append((match.group(1), match.group(2)))
    return found


def instant_form(time: str, form: str) -> str:
    moment = dt.datetime.strptime(time[:14], "%Y%m%d%H%M%S")
    iso = moment.strftime("%Y-%m-%d %H:%M:%S")
    return {"": time, "iso": f"{iso}.{time[14:17]}", "iso_s": iso, "date": iso[:10], "s": time[:14]}[form]


def cell(value: Any, kind: pa.DataType) -> Any:
    """One result cell as the recording has it."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(cell(k, kind.key_type)): cell(v, kind.item_type) for k, v in value}
    if pa.types.is_struct(kind):
        return {field.name: cell(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [cell(item, kind.value_type) for item in value]
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return str(value)
    return value


class Runner:
    """One case in one session."""

    def __init__(self, session: hudi_sql.Session, root: Path) -> None:
        self.session = session
        self.names = {"t2": "case_u", "t": "case_t", "loc2": str(root / "b"), "loc": str(root / "a")}

    def fill(self, text: str) -> str:
        for key, value in self.names.items():
            text = text.replace("{" + key + "}", value)

        def instant(match: re.Match[str]) -> str:
            pair = write_instants(Path(self.names["loc"]))[int(match.group(2)) - 1]
            return instant_form(pair[0 if match.group(1) == "c" else 1], match.group(3) or "")

        return re.sub(r"\{([ce])(\d+)(?::(\w+))?\}", instant, text)

    def setup(self, statement: str) -> None:
        """Setting up may use tables of other formats, which here are files."""
        text = self.fill(statement)
        if re.search(r"using parquet", text, re.IGNORECASE):
            Path(self.names["loc"]).mkdir(parents=True)
        elif re.match(r"insert into case_u values \(1\)$", text):
            pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), Path(self.names["loc"]) / "x.parquet")
        else:
            self.session.sql(text)

    def query(self, text: str) -> list[list[Any]]:
        text = self.fill(text)
        file = re.search(r"from text\.`([^`]+)`", text)
        if file:
            path = Path(file.group(1))
            lines = path.read_text().splitlines() if path.exists() else []
            rows = [[line] for line in lines if _keeps(text, line)]
        else:
            table = self.session.sql(text).to_arrow_table()
            columns = [[cell(value, column.type) for value in column.to_pylist()] for column in table.columns]
            rows = [list(row) for row in zip(*columns, strict=True)]
        written = json.dumps(rows, default=str)
        for key, value in self.names.items():
            written = written.replace(value, "{" + key + "}")
        return json.loads(written)


def _keeps(query: str, line: str) -> bool:
    """The LIKE conditions of a query over a text file."""
    where = query.split(" where ", 1)[1]
    tests = re.findall(r"value (not )?like '([^']*)'", where)
    results = [
        bool(re.fullmatch(re.escape(pattern).replace("%", ".*"), line, re.DOTALL)) != bool(negated)
        for negated, pattern in tests
    ]
    return any(results) if " or " in where else all(results)


def ordered(rows: list[list[Any]], case: dict[str, Any]) -> list[list[Any]]:
    return rows if case.get("ordered") else sorted(rows, key=lambda row: json.dumps(row, default=str))
