"""Daft."""

import daft
from daft import col

from canonical import from_arrow, serve


def read(paths):
    return daft.read_parquet(paths).to_arrow()


def aggregates(paths, names):
    data = daft.read_parquet(paths)
    answers = {}
    for name in names:
        column = col(name)
        table = data.agg(column.count().alias("c"), column.min().alias("l"), column.max().alias("u")).to_arrow()
        nulls = data.where(column.is_null()).count_rows()
        count, low, high = from_arrow(table)["rows"][0]
        answers[name] = [count, nulls, low, high]
    return answers


serve(read, aggregates)
