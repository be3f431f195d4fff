"""DataFusion, which answers min() and max() from a file's statistics where it can."""

import pyarrow as pa
from datafusion import SessionContext

from canonical import from_arrow_aggregates, serve, sql_aggregates


def context(paths):
    session = SessionContext()
    for i, path in enumerate(paths):
        session.register_parquet(f"t{i}", path)
    return session, " union all ".join(f"select * from t{i}" for i in range(len(paths)))


def arrow(frame):
    return pa.Table.from_batches(frame.collect(), schema=frame.schema())


def read(paths):
    session, query = context(paths)
    return arrow(session.sql(query))


def aggregates(paths, names):
    session, query = context(paths)
    source = "t0" if len(paths) == 1 else f"({query})"
    answers = from_arrow_aggregates(names, arrow(session.sql(f"select {sql_aggregates(names)} from {source}")))
    for name in names:
        column = '"' + name.replace('"', '""') + '"'
        nulls = arrow(session.sql(f"select count(*) n from {source} where {column} is null"))["n"][0].as_py()
        if nulls != answers[name][1]:
            raise AssertionError(f"{name}: {nulls} rows where it is null, but {answers[name]}")
    return answers


serve(read, aggregates)
