"""Polars: `read` (eager) and `scan` (lazy, with predicate push-down)."""

import sys

import polars as pl

from canonical import from_arrow, serve


def read(paths):
    if sys.argv[1] == "scan":
        return pl.scan_parquet(paths, hive_partitioning=False).collect().to_arrow()
    return pl.concat([pl.read_parquet(path, hive_partitioning=False) for path in paths]).to_arrow()


def aggregates(paths, names):
    data = pl.scan_parquet(paths, hive_partitioning=False)
    answers = {}
    for name in names:
        column = pl.col(name)
        table = data.select(column.count().alias("c"), column.min().alias("l"), column.max().alias("u")).collect()
        nulls = data.filter(column.is_null()).select(pl.len()).collect().item()
        count, low, high = from_arrow(table.to_arrow())["rows"][0]
        answers[name] = [count, nulls, low, high]
    return answers


serve(read, aggregates if sys.argv[1] == "scan" else None)
