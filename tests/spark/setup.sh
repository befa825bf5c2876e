#!/bin/sh
# Installs what the Spark tests need under $HUDI_SQL_SPARK_HOME (default ~/.cache/hudi-sql-spark): a Python with
# pinned pyspark, and the Hudi bundle from Maven Central. Safe to run again; adds only what is missing.
set -eu
home="${HUDI_SQL_SPARK_HOME:-$HOME/.cache/hudi-sql-spark}"
hudi="${HUDI_SQL_HUDI_VERSION:-1.1.1}"
jar="hudi-spark3.5-bundle_2.12-$hudi.jar"
mkdir -p "$home/jars"

if [ ! -x "$home/venv/bin/spark-submit" ]; then
  rm -rf "$home/venv"
  "${PYTHON:-python3}" -m venv "$home/venv"
  "$home/venv/bin/python" -m pip install -q --disable-pip-version-check pyspark==3.5.7
fi
if [ ! -f "$home/jars/$jar" ]; then
  # Into a scratch folder first: an interrupted download must not look complete.
  part="$(mktemp -d "$home/jars/part.XXXXXX")"
  mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact="org.apache.hudi:hudi-spark3.5-bundle_2.12:$hudi" -DoutputDirectory="$part"
  mv "$part/$jar" "$home/jars/$jar"
  rm -rf "$part"
fi
