"""Runs in Spark's own Python: one session that answers requests about Hudi tables at local paths."""
