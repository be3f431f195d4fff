"""Runs statements with a catalog of PyIceberg, called `catalog`.

    pyiceberg_catalog.py NAME PROPERTY=VALUE... -- STATEMENT...
"""

import sys

import pyarrow as pa
from pyiceberg.catalog import load_catalog

name, *rest = sys.argv[1:]
end = rest.index("--")
properties = dict(text.split("=", 1) for text in rest[:end])
catalog = load_catalog(name, **properties)


def rows(start, end):
    return pa.table({"id": pa.array(range(start, end), pa.int64())})


for statement in rest[end + 1 :]:
    exec(statement)
