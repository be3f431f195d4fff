"""DuckDB."""

import duckdb

from canonical import from_arrow_aggregates, serve, sql_aggregates

db = duckdb.connect()
db.execute("set timezone = 'UTC'; set threads = 2; set arrow_lossless_conversion = true")


def arrow(sql, paths):
    return db.execute(sql, [paths]).to_arrow_table()


def read(paths):
    return arrow("select * from read_parquet($1, hive_partitioning = false)", paths)


def aggregates(paths, names):
    source = "from read_parquet($1, hive_partitioning = false)"
    answers = from_arrow_aggregates(names, arrow(f"select {sql_aggregates(names)} {source}", paths))
    for name in names:
        # The filter is pushed down to the row groups' null counts and bounds; the aggregates above may be, too.
        column = '"' + name.replace('"', '""') + '"'
        filtered = db.execute(f"select count(*) {source} where {column} is null", [paths]).fetchone()[0]
        least = db.execute(
            f"select count(*) {source} where {column} <= (select min({column}) {source})", [paths]
        ).fetchone()[0]
        if filtered != answers[name][1] or (least == 0) != (answers[name][2] is None):
            raise AssertionError(f"{name}: {filtered} rows where it is null, {least} at its minimum: {answers[name]}")
    return answers


serve(read, aggregates)
