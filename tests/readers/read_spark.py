"""Spark: `vectorized` and `rows`, its two Parquet readers, in one session each."""

import sys

from pyspark.sql import SparkSession

from canonical import from_arrow_aggregates, serve, sql_aggregates

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
    .config("spark.sql.parquet.aggregatePushdown", "true")
    .config("spark.sql.sources.useV1SourceList", "")
    .config("spark.sql.legacy.parquet.nanosAsLong", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "0")
    .getOrCreate()
)


def read(paths):
    return spark.read.parquet(*paths).toArrow()


def aggregates(paths, names):
    data = spark.read.parquet(*paths)
    data.createOrReplaceTempView("t")
    answers = from_arrow_aggregates(names, spark.sql(f"select {sql_aggregates(names, '`')} from t").toArrow())
    # Alone, without a group by, count, min and max are pushed down to the footers.
    columns = ["`" + name.replace("`", "``") + "`" for name in names]
    bounds = ", ".join(f"count({c}), min({c}), max({c})" for c in columns)
    if names:
        pushed = spark.sql(f"select {bounds} from t").toArrow()
        pushed = pushed.rename_columns([str(i) for i in range(pushed.num_columns)])
        from canonical import from_arrow

        values = from_arrow(pushed)["rows"][0]
        for i, name in enumerate(names):
            count, _, low, high = answers[name]
            if values[3 * i : 3 * i + 3] != [count, low, high]:
                raise AssertionError(f"{name}: pushed down {values[3 * i : 3 * i + 3]}, else {answers[name]}")
    return answers


serve(read, aggregates)
