"""One query by one engine in this process.  A request as JSON on stdin, the answer as JSON on stdout.

request: {"engine": …, "sql": "select … from X …", "columns": […], "filter": …, "limit": …, "files": […], "table": {…}}
answer:  {"seconds": …, "rows": [[…]], "peak_mb": …}   or   {"error": …}

Imports and connections are made before the clock starts; opening the table is part of the query.
"""

import datetime
import decimal
import json
import os
import re
import sys
import time

THREADS = str(os.cpu_count())


def canonical(value):
    """A value as every engine can be compared by: a number as a float, a time as ISO 8601 text."""
    if isinstance(value, (bool, int, float, decimal.Decimal)):
        return float(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        value = value.isoformat()
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[ T]", value):
        value = value.replace(" ", "T").removesuffix("T00:00:00").removesuffix(".000000")
    return value


def by_columns(columns):
    return list(zip(*columns.values()))


def duckdb(request):
    import duckdb
    connection = duckdb.connect(config={"threads": THREADS})
    files = ", ".join(f"'{path}'" for path in request["files"])
    sql = request["sql"].replace("X", f"read_parquet([{files}], hive_partitioning = false)")
    return lambda: connection.execute(sql).fetchall()


def duckdb_iceberg(request):
    import importlib.util
    import duckdb
    config = {"threads": THREADS, "autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(config=config)
    for name in ("avro", "httpfs", "iceberg"):
        place = next(iter(importlib.util.find_spec(f"duckdb_extension_{name}").submodule_search_locations))
        connection.execute(f"load '{place}/extensions/v{duckdb.__version__}/{name}.duckdb_extension'")
    sql = request["sql"].replace("X", f"iceberg_scan('{request['table']['metadata']}')")
    return lambda: connection.execute(sql).fetchall()


def polars(request):
    import polars as pl
    import pyiceberg.io.pyarrow  # noqa: F401  (what it imports when it first opens a table)
    import pyiceberg.table  # noqa: F401
    metadata = request["table"]["metadata"]
    return lambda: pl.SQLContext(X=pl.scan_iceberg(metadata)).execute(request["sql"], eager=True).rows()


def chdb(request):
    import chdb
    os.chdir("/")  # It reads files below the working directory only.
    table = f"icebergLocal('{request['table']['root']}')"
    settings = " settings output_format_json_quote_decimals = 1"
    def answer():
        text = str(chdb.query(request["sql"].replace("X", table) + settings, "JSONCompact"))
        rows = json.loads(text)
        numeric = [bool(re.search("Int|Float|Decimal", column["type"])) for column in rows["meta"]]
        return [[float(v) if n and v is not None else v for v, n in zip(row, numeric)] for row in rows["data"]]
    return answer


def daft(request):
    import daft
    import pyiceberg.io.pyarrow  # noqa: F401  (what it imports when it first opens a table)
    from pyiceberg.table import StaticTable
    metadata = request["table"]["metadata"]
    def answer():
        X = daft.read_iceberg(StaticTable.from_metadata(metadata))
        return by_columns(daft.sql(request["sql"], X=X).to_pydict())
    return answer


def pyiceberg(request):
    import duckdb
    import pyiceberg.io.pyarrow  # noqa: F401  (what it imports when it first opens a table)
    from pyiceberg.table import StaticTable
    connection = duckdb.connect(config={"threads": THREADS})
    def answer():
        table = StaticTable.from_metadata(request["table"]["metadata"])
        scan = table.scan(row_filter=request["filter"] or "True", selected_fields=tuple(request["columns"]) or ("*",),
                          limit=request["limit"])
        if not request["columns"]:
            return [[scan.count()]]
        X = scan.to_arrow()
        return connection.execute(request["sql"]).fetchall()
    return answer


def iceberg_rust(request):
    import datafusion
    from pyiceberg_core.datafusion import IcebergDataFusionTable
    metadata = request["table"]["metadata"]
    def answer():
        context = datafusion.SessionContext()
        context.register_table("x", IcebergDataFusionTable(["b", "x"], metadata, {}))
        return by_columns(context.sql(request["sql"].replace("X", "x")).to_pydict())
    return answer


def pyiceberg_plan(request):
    """Not a query: what PyIceberg takes to plan a scan of the whole table."""
    import pyiceberg.io.pyarrow  # noqa: F401  (what it imports when it first opens a table)
    from pyiceberg.table import StaticTable
    def answer():
        table = StaticTable.from_metadata(request["table"]["metadata"])
        return [[len(list(table.scan().plan_files()))]]
    return answer


def duckdb_copy(request):
    """Not a query: DuckDB rewrites a file."""
    import duckdb
    connection = duckdb.connect(config={"threads": THREADS})
    def answer():
        connection.execute(request["sql"])
        return []
    return answer


ENGINES = {
    "duckdb": duckdb, "duckdb-iceberg": duckdb_iceberg, "Polars": polars, "chDB": chdb, "Daft": daft, "PyIceberg": pyiceberg,
    "iceberg-rust": iceberg_rust, "plan": pyiceberg_plan, "copy": duckdb_copy,
}


def peak_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024


def main():
    request = json.load(sys.stdin)
    try:
        run = ENGINES[request["engine"]](request)
        started = time.perf_counter()
        rows = run()
        seconds = time.perf_counter() - started
        answer = {"seconds": seconds, "rows": [[canonical(v) for v in row] for row in rows], "peak_mb": peak_mb()}
    except BaseException as error:  # Some engines panic, with exceptions that are no Exception.
        answer = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.flush()
    print("\n" + json.dumps(answer), flush=True)
    # Some engines end badly once all is said.
    os._exit(0)


main()
