"""Copy-on-write tables of Spark read as Spark reads them: rows now and in the past, by metadata table and by listing."""

from __future__ import annotations

import base64
import json
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_sql.errors import UnsupportedTableError
from hudi_sql.storage.file_system_view import StoreLister
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.metadata.reader import MetadataTable
from hudi_sql.storage.properties.table_config import load_table_config
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.read.snapshot import Snapshot
from hudi_sql.storage.timeline.timeline import load_timeline
from tests.golden_tables import TABLES, expected, unpack

NAMES = sorted(path.stem for path in TABLES.glob("*_cow*.zip") if path.stem != "v9_cow_schema_on_read")
# Spark takes the column of a timestamp key generator for text; the files hold numbers.
READ_AS_TEXT = {"v9_cow_timestamp_key_millis": {"at"}}


@pytest.fixture(params=["metadata", "listing"])
def by_listing(request: pytest.FixtureRequest) -> bool:
    return request.param == "listing"


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_that_spark_reads(name: str, tmp_path: Path, by_listing: bool) -> None:
    table = expected(name)
    root = unpack(name, tmp_path)
    now = table["snapshot"]
    snapshot = _snapshot(root, by_listing)
    if snapshot is None:
        pytest.skip("the table has no metadata table")
    assert snapshot.table_schema.names == [column["name"] for column in now["schema"]]
    _check(name, snapshot, now["rows"], now["schema"])
    keys = snapshot.scan(["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"]).read_all()
    if "record_keys" in table:  # a table with virtual keys stores none
        assert _sorted([list(row.values()) for row in keys.to_pylist()]) == table["record_keys"]["rows"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_the_past_are_those_that_spark_reads(name: str, tmp_path: Path, by_listing: bool) -> None:
    table = expected(name)
    root = unpack(name, tmp_path)
    for past in table["time_travel"]:
        if "rows" not in past:
            continue
        snapshot = _snapshot(root, by_listing, past["as_of"])
        if snapshot is None:
            pytest.skip("the table has no metadata table")
        _check(name, snapshot, past["rows"], past.get("schema", table["snapshot"]["schema"]))


def test_columns_that_go_by_ids_are_refused(tmp_path: Path) -> None:
    root = unpack("v9_cow_schema_on_read", tmp_path)
    with pytest.raises(UnsupportedTableError) as caught:
        _snapshot(root, by_listing=True)
    assert caught.value.property == "hoodie.schema.on.read.enable"


def _snapshot(root: Path, by_listing: bool, as_of: str | None = None) -> Snapshot | None:
    store = open_store(str(root))
    config = load_table_config(store)
    timeline = load_timeline(store, config)
    seen = timeline if as_of is None else timeline.as_of(as_of)
    if by_listing:
        return Snapshot.load(store, config, seen, lister=StoreLister(store))
    metadata = MetadataTable.open(store, config, timeline)
    if metadata is None:
        return None
    return Snapshot.load(store, config, seen, lister=metadata, statistics=metadata)


def _check(name: str, snapshot: Snapshot, rows: list[list[Any]], schema: list[dict[str, str]]) -> None:
    columns = [column["name"] for column in schema]
    as_text = READ_AS_TEXT.get(name, set())
    wanted = _sorted([[_expected(value, schema[i]["type"]) for i, value in enumerate(row)] for row in rows])

    def encoded(table: pa.Table) -> list[list[Any]]:
        types = [column["type"] for column in schema]
        for column in as_text:
            index = table.column_names.index(column)
            table = table.set_column(index, column, table[column].cast(pa.string()))
        return _sorted(
            [[_encoded(row[c], t) for c, t in zip(columns, types, strict=True)] for row in table.to_pylist()]
        )

    assert encoded(snapshot.scan(columns).read_all()) == wanted
    slices = snapshot.slices()
    placed = snapshot.scan_positions(columns, slices=slices).read_all()
    assert encoded(placed.drop_columns([SLICE_COLUMN, POSITION_COLUMN])) == wanted
    _check_places(snapshot, placed, slices)


def _check_places(snapshot: Snapshot, placed: pa.Table, slices: tuple[Any, ...]) -> None:
    """Every slice has the positions from 0 on, once each."""
    for index in range(len(slices)):
        mask = pa.compute.equal(placed[SLICE_COLUMN], index)
        positions = sorted(placed.filter(mask)[POSITION_COLUMN].to_pylist())
        assert positions == list(range(len(positions)))


def _sorted(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, ensure_ascii=False, sort_keys=True))


def _expected(value: Any, kind: str) -> Any:
    """The JSON value, but for decimals, of which only the number counts."""
    if isinstance(value, str) and kind.startswith("decimal"):
        return _number(Decimal(value))
    return value


def _number(value: Decimal) -> str:
    return format(value.normalize(), "f")


def _encoded(value: Any, kind: str, *, is_nested: bool = False) -> Any:
    if value is None:
        return None
    if kind.startswith("array<"):
        return [_encoded(item, kind[6:-1], is_nested=True) for item in value]
    if kind.startswith("map<"):
        key, _, item = kind[4:-1].partition(",")
        return [[_encoded(k, key, is_nested=True), _encoded(v, item, is_nested=True)] for k, v in value]
    if kind.startswith("struct<"):
        fields = [field.partition(":") for field in _split(kind[7:-1])]
        return {name: _encoded(value[name], inner, is_nested=True) for name, _, inner in fields}
    if kind.startswith("decimal"):
        return format(value, "f") if is_nested else _number(value)
    if kind in ("float", "double") and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if kind == "timestamp":
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if kind == "timestamp_ntz":
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f")
    if kind == "date":
        return value.isoformat()
    if kind == "binary":
        return base64.b64encode(value).decode()
    return value


def _split(fields: str) -> list[str]:
    """Fields of a struct type, cut at commas outside of brackets."""
    cut, depth, start = [], 0, 0
    for match in re.finditer(r"[<>(),]", fields):
        if match[0] in "<(":
            depth += 1
        elif match[0] in ">)":
            depth -= 1
        elif depth == 0:
            cut.append(fields[start : match.start()])
            start = match.end()
    return [*cut, fields[start:]]
