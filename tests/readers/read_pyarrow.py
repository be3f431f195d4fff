"""pyarrow, three ways: `table` (read_table), `mmap` (memory-mapped) and `dataset` (the scanner, which prunes by statistics)."""

import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from canonical import from_arrow, serve


def read(paths):
    how = sys.argv[1]
    if how == "dataset":
        return ds.dataset(paths, format="parquet").to_table()
    tables = (pq.ParquetFile(path, memory_map=how == "mmap").read() for path in paths)
    # One part may have a column as optional that another has as required.
    return pa.concat_tables(tables, promote_options="default")


def aggregates(paths, names):
    data = ds.dataset(paths, format="parquet")
    answers = {}
    for name in names:
        rows = data.count_rows()
        nulls = data.count_rows(filter=pc.field(name).is_null())
        bounds = pc.min_max(data.to_table(columns=[name])[name])
        pair = from_arrow(pa.table({"l": pa.array([bounds["min"]]), "u": pa.array([bounds["max"]])}))["rows"][0]
        answers[name] = [rows - nulls, nulls, *pair]
    return answers


serve(read, aggregates if sys.argv[1] == "dataset" else None)
