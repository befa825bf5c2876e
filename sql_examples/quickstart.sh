#!/bin/sh
# The main job in one command: a table that Spark wrote is changed by MERGE from a DuckDB session, no JVM.
# Makes its own environment on the first run (a minute or so), reuses it afterwards.
set -eu
cd "$(dirname "$0")/.."
. sql_examples/environment.sh
make_environment "${HUDI_SQL_VENV:-.venv}" "-e .[duckdb]"
exec "$venv/bin/python" sql_examples/quickstart.py "$@"
