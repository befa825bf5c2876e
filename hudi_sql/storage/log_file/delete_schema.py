"""Avro schema of the records in a delete block (log format notes §4)."""

from __future__ import annotations

from importlib import resources

__all__ = ["DELETE_LIST_SCHEMA"]

DELETE_LIST_SCHEMA = (
    resources.files("hudi_sql.storage.avro")
    .joinpath("schemas", "HoodieDeleteRecordList.avsc")
    .read_text(encoding="utf-8")
)
