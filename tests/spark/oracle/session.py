"""One local Spark session with the Hudi bundle, in UTC everywhere (JVM, SQL session, Python)."""

import os
import tempfile
import time


def start(jar, memory="3g"):
    os.environ["TZ"] = "UTC"
    time.tzset()
    from pyspark.sql import SparkSession

    conf = {
        "spark.jars": jar,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(prefix="hudi-sql-spark-"),
        "spark.sql.session.timeZone": "UTC",
        # Dumps are read back by pyarrow: no INT96.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        # Compiling code for tiny queries costs more than running them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # A busy machine may stall for minutes; a local session that misses heartbeats ends itself.
        "spark.executor.heartbeatInterval": "600s",
        "spark.network.timeout": "3600s",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "hoodie.embed.timeline.server": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("hudi-sql-tests")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.conf.set("hoodie.embed.timeline.server", "false")
    spark.sparkContext.setLogLevel("OFF")
    return spark
