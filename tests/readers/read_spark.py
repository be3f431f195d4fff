"""Spark: `vectorized` and `rows`, its two Parquet readers, in one session each."""

import sys

from pyspark.sql import Row, SparkSession
from pyspark.sql.types import VariantVal

import variants
from canonical import from_arrow, from_arrow_aggregates, in_order, plain, serve, sql_aggregates

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
    data = spark.read.parquet(*paths)
    kinds = {field.name: field.dataType.typeName() for field in data.schema}
    if "variant" in kinds.values():
        # toArrow() of Spark 4.3 fails for a null variant.
        rows = [[from_variant(cell) for cell in row] for row in data.collect()]
        return {"columns": data.columns, "rows": in_order(rows)}
    # And for a null geometry.
    spatial = [f"st_asbinary({n}) {n}" if k.startswith("geo") else f"`{n}`" for n, k in kinds.items()]
    return (data.selectExpr(*spatial) if any(k.startswith("geo") for k in kinds.values()) else data).toArrow()


def from_variant(cell):
    if isinstance(cell, VariantVal):
        return {"variant": variants.decoded(bytes(cell.value), variants.names(bytes(cell.metadata)))}
    if isinstance(cell, Row):
        return {name: from_variant(inner) for name, inner in cell.asDict().items()}
    return plain(cell)


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
