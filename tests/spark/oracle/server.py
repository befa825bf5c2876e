"""Answers requests, one JSON line each: {"command": name, ...arguments} gives {"result": ...} or {"error": text}.

Started by `tests/spark/client.py` under Spark's own Python: `python server.py BUNDLE_JAR`.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from oracle import mdt, rows, session, timeline, validate  # noqa: E402


def do_rows(spark, path, as_of=None, options=None, meta=False, incremental=None):
    frame = rows.read(spark, path, as_of=as_of, options=options, incremental=incremental)
    return rows.collect(frame, meta=meta)


def do_dump(spark, path, target, options=None, meta=True, as_of=None):
    """The snapshot as plain parquet files in `target`: for tables too large for JSON."""
    frame = rows.read(spark, path, as_of=as_of, options=options)
    if not meta:
        frame = frame.drop(*rows.META_COLUMNS)
    frame.coalesce(1).write.mode("overwrite").parquet(target)
    return None


def do_sql(spark, statements, tables=None, conf=None):
    """Run statements against tables at paths, in the database that the tables name as theirs."""
    tables, conf = tables or {}, conf or {}
    catalog = spark._jsparkSession.sharedState().externalCatalog()
    database = database_of(spark, tables.values())
    before = {key: spark.conf.get(key, None) for key in conf}
    spark.sql(f"create database if not exists `{database}`")
    results = []
    try:
        spark.sql(f"use `{database}`")
        for key, value in conf.items():
            spark.conf.set(key, value)
        for name, path in tables.items():
            spark.sql(f"create table `{name}` using hudi location '{path}'")
        for statement in statements:
            results.append(rows.collect(spark.sql(statement), meta=True))
    finally:
        spark.sql("use default")
        found = catalog.listTables(database)
        for i in range(found.size()):
            # Straight from the catalog, so that no table's files are touched.
            catalog.dropTable(database, found.apply(i), True, False)
        spark.catalog.clearCache()
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)
    return results


def database_of(spark, paths):
    """The database the tables say they are in: Hudi refuses to write to them under another."""
    named = {timeline.table_config(timeline.meta_client(spark, p)).get("hoodie.database.name") for p in paths}
    named -= {None, ""}
    if len(named) > 1:
        raise ValueError(f"the tables name different databases: {sorted(named)}")
    return named.pop() if named else "default"


def do_write(spark, path, parquet, options, mode="append"):
    """The DataFrame writer over rows in plain parquet files."""
    spark.read.parquet(parquet).write.format("hudi").options(**options).mode(mode).save(path)


def do_timeline(spark, path):
    client = timeline.meta_client(spark, path)
    return {"properties": timeline.table_config(client), "instants": timeline.instants(spark, path, client=client)}


def do_metadata(spark, path, partition):
    return mdt.contents(spark, path, partition)


def do_validate(spark, path):
    return validate.run(spark, path)


COMMANDS = {name[3:]: run for name, run in list(globals().items()) if name.startswith("do_")}


def error_text(error):
    return str(getattr(error, "java_exception", None) or error).strip()


def main():
    # Standard output is for answers alone: whatever the JVM prints there goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = session.start(sys.argv[1])
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"result": COMMANDS[request.pop("command")](spark, **request)}
        except Exception as error:
            reply = {"error": error_text(error)}
        print(json.dumps(reply, ensure_ascii=False), file=answers, flush=True)


if __name__ == "__main__":
    main()
