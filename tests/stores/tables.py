"""Tables that PyIceberg writes for a store, so that what they record are the store's own URLs.

PyIceberg's uploads are those of AWS's client, whose chunks `rclone serve s3` does not take (411): what is written to
`s3://bucket/key` goes straight to where the server of `bucket` has its files.
"""

import os
import pathlib

import pyarrow as pa
import pyarrow.compute
import pyarrow.fs
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType


class Shelf(pyarrow.fs.SubTreeFileSystem):
    """A server's directory, in which directories are made as they are needed."""

    def open_output_stream(self, path, *arguments, **named):
        self.create_dir(os.path.dirname(path), recursive=True)
        return super().open_output_stream(path, *arguments, **named)


class ShelfFileIO(PyArrowFileIO):
    """Paths `scheme://bucket/key` are `bucket/key` below the directory that the property `shelf` names."""

    @staticmethod
    def parse_location(location, properties=None):
        # As it stands: a key may have what divides a URL.
        scheme, _, path = location.partition("://")
        return scheme, path.partition("/")[0], path

    def _initialize_fs(self, scheme, netloc=None):
        return Shelf(self.properties["shelf"], pyarrow.fs.LocalFileSystem())


def catalog(directory, warehouse, shelf):
    """A catalog in a file of this machine, whose tables lie in `warehouse`, a URL; `shelf` has the store's buckets."""
    pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    properties = {"py-io-impl": "tables.ShelfFileIO", "shelf": str(shelf)}
    made = SqlCatalog("test", uri=f"sqlite:///{directory}/catalog.sqlite", warehouse=warehouse, **properties)
    made.create_namespace_if_not_exists("ns")
    return made


def numbered(start, end, words=("ada", "grace", "edsger")):
    return pa.table(
        {
            "id": pa.array(range(start, end), pa.int64()),
            "word": pa.array([words[n % len(words)] for n in range(start, end)]),
            "x": pa.array([n / 4 for n in range(start, end)]),
        }
    )


def new(catalog, name, schema, **more):
    identifier = f"ns.{name}"
    if catalog.table_exists(identifier):
        catalog.drop_table(identifier)
    return catalog.create_table(identifier, schema=schema, **more)


def appended(catalog, name, start=0, end=10, times=1):
    """`times` files of rows, a commit each."""
    table = new(catalog, name, numbered(0, 1).schema)
    for number in range(times):
        table.append(numbered(start + number * (end - start), end + number * (end - start)))
    return table


def deleted(catalog):
    """Rows deleted from files that keep some, a file that loses all, and rows appended since."""
    table = appended(catalog, "deleted", 0, 20, times=3)
    table.delete(EqualTo("word", "ada"))
    table.delete(GreaterThanOrEqual("id", 40))
    table.append(numbered(100, 105))
    return table


def overwritten(catalog):
    table = appended(catalog, "overwritten", 0, 20)
    table.overwrite(numbered(200, 210), overwrite_filter=GreaterThanOrEqual("id", 12))
    return table


def upserted(catalog):
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "word", StringType()),
        identifier_field_ids=[1],
    )
    arrow = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("word", pa.string())])
    table = new(catalog, "upserted", schema)
    table.append(pa.table({"id": [1, 2, 3], "word": ["a", "b", "c"]}, schema=arrow))
    table.upsert(pa.table({"id": [2, 9], "word": ["B", "i"]}, schema=arrow))
    return table


def partitioned(catalog):
    """Partitions the names of which need escaping, one of them deleted."""
    words = ("a/b", "ü %20", "c=d")
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "word"))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "word", StringType()), NestedField(3, "x", LongType()))
    rows = numbered(0, 30, words)
    rows = rows.set_column(2, "x", rows["id"])
    table = new(catalog, "partitioned", schema, partition_spec=spec)
    table.append(rows)
    table.delete(EqualTo("word", "c=d"))
    return table


def evolved(catalog):
    """Columns added, renamed, dropped and moved between the files, and a delete after it."""
    table = appended(catalog, "evolved", 0, 8)
    with table.update_schema() as update:
        update.rename_column("word", "name")
        update.add_column("more", LongType())
        update.delete_column("x")
        update.move_first("more")
    table.append(pa.table({"more": pa.array([7, None], pa.int64()), "id": pa.array([50, 51], pa.int64()), "name": ["n", None]}))
    table.delete(EqualTo("id", 3))
    return table


MIXES = {
    "appended": lambda catalog: appended(catalog, "appended", times=3),
    "deleted": deleted,
    "overwritten": overwritten,
    "upserted": upserted,
    "partitioned": partitioned,
    "evolved": evolved,
}

# Of the wide table: 8 bytes that no encoding makes fewer for each value.
COLUMNS, FILES, ROWS = 12, 3, 40_000


def wide(catalog, name="wide"):
    """FILES files of one row group, COLUMNS columns of 320,000 bytes in each."""
    columns = [f"c{number}" for number in range(COLUMNS)]
    schema = pa.schema([pa.field(column, pa.float64()) for column in columns])
    table = new(catalog, name, schema, properties={"write.parquet.compression-codec": "uncompressed"})
    for file in range(FILES):
        values = [pyarrow.compute.random(ROWS, initializer=file * COLUMNS + column) for column in range(COLUMNS)]
        table.append(pa.table(values, schema=schema))
    return table


def answer(table):
    """What PyIceberg reads, as DuckDB gives it: a list of rows in order."""
    found = table.scan().to_arrow()
    import duckdb

    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        database.register("found", found)
        return database.execute("from found order by all").fetchall()


def key(table, bucket):
    """Where a table lies in its bucket."""
    return table.location().split(f"{bucket}/", 1)[1]
