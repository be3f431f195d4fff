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

if properties.get("type") == "hive":
    from hive_metastore.ttypes import DataOperationType

    # A metastore in test mode insists on being told what a lock is for.
    lock_request = catalog._create_lock_request

    def lock_request_with_operation(database, table):
        request = lock_request(database, table)
        for component in request.component:
            component.operationType = DataOperationType.NO_TXN
        return request

    catalog._create_lock_request = lock_request_with_operation


def rows(start, end):
    return pa.table({"id": pa.array(range(start, end), pa.int64())})


for statement in rest[end + 1 :]:
    exec(statement)
