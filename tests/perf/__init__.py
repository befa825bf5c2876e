"""Benchmarks: ratios measured side by side in one run. `HUDI_SQL_PERF=full` runs them at full size."""
