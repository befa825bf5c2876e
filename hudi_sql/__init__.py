"""SQL writes on Apache Hudi tables without Spark: INSERT, UPDATE, DELETE and MERGE from DuckDB and DataFusion."""

from __future__ import annotations

from hudi_sql.errors import HudiSqlError
from hudi_sql.result import Result, WriteResult
from hudi_sql.session import Session, attach, connect

__all__ = ["HudiSqlError", "Result", "Session", "WriteResult", "attach", "connect"]
