"""The tests' side of one real Spark session."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
HOME = Path(os.environ.get("HUDI_SQL_SPARK_HOME") or Path.home() / ".cache" / "hudi-sql-spark")
JAR = HOME / "jars" / "hudi-spark3.5-bundle_2.12-1.1.1.jar"
PYTHON = HOME / "venv" / "bin" / "python"


class SparkError(Exception):
    """Spark refused or failed; the text is its own."""


def missing() -> str | None:
    """What keeps Spark from running here, or None."""
    java = shutil.which("java")
    if java is None:
        return "no java on the path"
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    if '"17' not in text and '"11' not in text:
        return f"Java 17 is needed, found: {text.splitlines()[0] if text else 'nothing'}"
    if not JAR.exists() or not PYTHON.exists():
        if shutil.which("mvn") is None:
            return "no Maven to fetch the Hudi bundle with"
        done = subprocess.run(["sh", str(HERE / "setup.sh")], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"tests/spark/setup.sh failed: {done.stderr[-500:]}"
    return None


class Spark:
    """One JVM, many requests, one at a time."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [str(PYTHON), str(HERE / "oracle" / "server.py"), str(JAR)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "PYTHONPATH": "", "TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        if json.loads(self._process.stdout.readline() or "{}") != {"ready": True}:
            raise SparkError(f"Spark did not start; see {log}")

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)
        self._log.close()

    def ask(self, command: str, **arguments: Any) -> Any:
        """Send one request and wait for its answer."""
        print(json.dumps({"command": command, **arguments}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SparkError(f"Spark died; see {self._log.name}")
        reply = json.loads(line)
        if "error" in reply:
            raise SparkError(reply["error"])
        return reply["result"]

    def rows(self, path: Path | str, **arguments: Any) -> dict[str, Any]:
        """The snapshot in the exact JSON form of the golden tables."""
        return self.ask("rows", path=str(path), **arguments)

    def table(self, path: Path | str, scratch: Path, *, metadata: bool, **arguments: Any) -> pa.Table:
        """The snapshot as Arrow, meta columns included, through the metadata table or with it off."""
        target = scratch / "dump"
        options = {"hoodie.metadata.enable": str(metadata).lower()}
        self.ask("dump", path=str(path), target=str(target), options=options, **arguments)
        return pq.read_table(target)

    def sql(
        self,
        *statements: str,
        tables: Mapping[str, Path | str] | None = None,
        conf: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """Run statements; one answer each."""
        named = {name: str(path) for name, path in (tables or {}).items()}
        return self.ask("sql", statements=list(statements), tables=named, conf=dict(conf or {}))

    def write(
        self,
        path: Path | str,
        rows: pa.Table,
        scratch: Path,
        options: Mapping[str, str],
        mode: str = "append",
    ) -> None:
        """Write rows with Spark's DataFrame writer."""
        source = scratch / "rows.parquet"
        pq.write_table(rows, source)
        self.ask("write", path=str(path), parquet=str(source), options=dict(options), mode=mode)

    def validate(self, path: Path | str) -> dict[str, Any]:
        """Compare the metadata table with the files; `ok` and the checks."""
        return self.ask("validate", path=str(path))


def problems(report: Mapping[str, Any]) -> Sequence[str]:
    """The failed checks of a validation, as text."""
    return [
        f"{check['check']}: {problem}"
        for check in report["checks"]
        for problem in check.get("problems", [])
        if check["result"] == "FAILED"
    ]


def require_or_skip() -> str | None:
    """The reason to skip, or None to run; a failure where Spark is mandatory."""
    reason = missing()
    if reason and os.environ.get("HUDI_SQL_REQUIRE_SPARK") == "1":
        raise RuntimeError(f"Spark is required here: {reason}")
    if reason:
        print(f"\nSPARK TESTS ARE SKIPPED: {reason}", file=sys.stderr)
    return reason
