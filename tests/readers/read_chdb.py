"""chDB, which is ClickHouse in a library."""

import chdb
import pyarrow as pa

from canonical import from_arrow_aggregates, serve, sql_aggregates


def file(path):
    quoted = path.replace("\\", "\\\\").replace("'", "\\'")
    return f"file('{quoted}', Parquet)"


def query(sql):
    answer = chdb.query(
        f"{sql} settings session_timezone = 'UTC', output_format_arrow_string_as_string = 0, "
        "output_format_arrow_low_cardinality_as_dictionary = 0, schema_inference_make_columns_nullable = 1",
        "Arrow",
    )
    return pa.ipc.open_file(pa.py_buffer(answer.bytes())).read_all()


def read(paths):
    return pa.concat_tables(query(f"select * from {file(path)}") for path in paths)


def aggregates(paths, names):
    return from_arrow_aggregates(names, query(f"select {sql_aggregates(names)} from {file(paths[0])}"))


serve(read, aggregates)
