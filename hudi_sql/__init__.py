"""SQL writes on Apache Hudi tables without Spark: INSERT, UPDATE, DELETE and MERGE from DuckDB and DataFusion."""
