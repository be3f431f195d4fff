"""Spark: `vectorized` and `rows`, its two Parquet readers, in one session each."""

import sys

from pyspark.sql import SparkSession

from canonical import from_arrow, from_arrow_aggregates, serve, sql_aggregates

vectorized = str(sys.argv[1] == "vectorized").lower()
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.memory", "1500m")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.parquet.enableVectorizedReader", vectorized)
    .config("spark.sql.parquet.enableNestedColumnVectorizedReader", vectorized)
    .config("spark.sql.sources.useV1SourceList", "")
    .config("spark.sql.legacy.parquet.nanosAsLong", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "0")
    .getOrCreate()
)


def read(paths):
    return spark.read.parquet(*paths).toArrow()


def aggregates(paths, names):
    spark.read.parquet(*paths).createOrReplaceTempView("t")
    spark.conf.set("spark.sql.parquet.aggregatePushdown", "false")
    answers = from_arrow_aggregates(names, spark.sql(f"select {sql_aggregates(names, '`')} from t").toArrow())
    # Once more from the footers, where each row group has statistics; without them Spark gives an error that says so.
    columns = ["`" + name.replace("`", "``") + "`" for name in names]
    bounds = ", ".join(f"count({c}) c{i}, min({c}) l{i}, max({c}) u{i}" for i, c in enumerate(columns))
    spark.conf.set("spark.sql.parquet.aggregatePushdown", "true")
    try:
        pushed = from_arrow(spark.sql(f"select {bounds} from t").toArrow())["rows"][0]
    except Exception as error:  # pylint: disable=broad-except
        if "aggregatePushdown" in str(error):
            return answers
        raise
    for i, name in enumerate(names):
        count, _, low, high = answers[name]
        if pushed[3 * i : 3 * i + 3] != [count, low, high]:
            raise AssertionError(f"{name}: pushed down {pushed[3 * i : 3 * i + 3]}, else {answers[name]}")
    return answers


serve(read, aggregates)
