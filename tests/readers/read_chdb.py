"""chDB, which is ClickHouse in a library."""

import chdb
import pyarrow as pa

from canonical import from_arrow_aggregates, serve, sql_aggregates


def query(paths, select):
    files = ",".join(paths)
    files = f"{{{files}}}" if len(paths) > 1 else files
    quoted = files.replace("\\", "\\\\").replace("'", "\\'")
    answer = chdb.query(
        f"select {select} from file('{quoted}', Parquet) settings session_timezone = 'UTC', "
        "output_format_arrow_string_as_string = 0, output_format_arrow_low_cardinality_as_dictionary = 0, "
        "schema_inference_make_columns_nullable = 1, allow_suspicious_types_in_order_by = 1",
        "Arrow",
    )
    return pa.ipc.open_file(pa.py_buffer(answer.bytes())).read_all()


def read(paths):
    return query(paths, "*")


def aggregates(paths, names):
    return from_arrow_aggregates(names, query(paths, sql_aggregates(names)))


serve(read, aggregates)
