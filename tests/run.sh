#!/bin/sh
# Runs the tests in an environment of their own: sh tests/run.sh [all|fast|spark|crash|perf] [pytest arguments]
#   fast   everything that needs neither Spark, crashes nor benchmarks, lint and types included; what both engines
#          must do runs once for each, with the other's import blocked
#   spark  both directions with real Spark and Hudi (Java 17 and Maven; skipped loudly without them)
#   crash  failing stores and several writers
#   perf   the benchmarks in their short form
#   all    (default) all of these, and what is too slow for fast
# HUDI_SQL_REQUIRE_SPARK=1 turns the loud skip into a failure.
set -eu
cd "$(dirname "$0")/.."
what="${1:-all}"
[ $# -gt 0 ] && shift
case "$what" in all|fast|spark|crash|perf) ;; *) echo "usage: sh tests/run.sh [all|fast|spark|crash|perf]" >&2; exit 2 ;; esac

. sql_examples/environment.sh
make_environment "${HUDI_SQL_TEST_VENV:-.venv-tests}" "-e .[all] --group test --group lint"
py="$venv/bin/python"
failed=""

step() {  # step NAME COMMAND...: run all steps, remember which failed
  name="$1"; shift
  echo "== $name"
  "$@" || failed="$failed $name"
}

lint() {
  step ruff "$venv/bin/ruff" check .
  step format "$venv/bin/ruff" format --check .
  step types "$venv/bin/mypy"
  step imports "$venv/bin/lint-imports" --no-cache
  step spelling "$venv/bin/codespell" hudi_sql engine_adapters tests docs README.md sql_examples
}

fast() {
  step tests "$py" -m pytest -q -n 2 -m "not spark and not perf and not slow" \
    --ignore=tests/conformance --ignore=tests/sqllogic --ignore=tests/golden \
    --ignore=tests/crash --ignore=tests/concurrency tests "$@"
  for engine in duckdb datafusion; do
    [ "$engine" = duckdb ] && other=datafusion || other=duckdb
    step "$engine-alone" env HUDI_SQL_BLOCKED_ENGINE="$other" "$py" -m pytest -q -n 2 \
      -m "not spark and not perf and not slow and not $other" tests/conformance tests/sqllogic tests/golden "$@"
  done
}

slow() { step slow "$py" -m pytest -q -n 2 -m "slow and not spark" tests "$@"; }
spark() { step spark "$py" -m pytest -q -m spark tests/spark "$@"; }
crash() { step crash "$py" -m pytest -q -n 2 -m "not spark" tests/crash tests/concurrency "$@"; }
perf() { step perf "$py" -m pytest -q -m perf tests/perf "$@"; }

case "$what" in
  fast) lint; fast "$@" ;;
  spark) spark "$@" ;;
  crash) crash "$@" ;;
  perf) perf "$@" ;;
  all) lint; fast "$@"; slow "$@"; crash "$@"; spark "$@"; perf "$@" ;;
esac

if [ -n "$failed" ]; then
  echo "FAILED:$failed"
  exit 1
fi
echo "all steps passed"
