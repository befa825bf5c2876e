"""Unpacks tables that real Spark wrote; see `tests/golden/README.md`."""

from __future__ import annotations

import calendar
import json
import os
import zipfile
from pathlib import Path

TABLES = Path(__file__).parent / "golden" / "tables"


def unpack(name: str, folder: Path) -> Path:
    """Unpack a table with its file times: version 6 timelines have no other completion times."""
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        for entry in archive.infolist():
            target = folder / archive.extract(entry, folder)
            when = calendar.timegm((*entry.date_time, 0, 0, 0))
            os.utime(target, (when, when))
    return folder / name


def expected(name: str) -> dict:
    """What a reader must see in a table, as Spark said it."""
    return json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8"))
