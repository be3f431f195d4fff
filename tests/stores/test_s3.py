"""Tables in S3: the rows, and that every byte is what the same table gives from this machine's disk."""

import pathlib

import tables
from suite import cases, digest, equal, eventually, mounted, names, refused, rows_of, sql, test

# Every kind of delete, schema change and encoding that the fixtures have, of Iceberg Java; recorded elsewhere, as `file:`.
MOVED = {
    "java": ("all_types", "branched", "deletion_vectors", "equality_deletes", "evolved_nested", "lineage",
             "partition_transforms", "position_deletes", "upgraded"),
    "java_formats": ("avro_position_deletes", "orc_equality_deletes"),
}  # fmt: skip


def written(servers):
    """The tables of PyIceberg, in the store."""

    def write():
        catalog = tables.catalog(servers.directory / "s3-catalog", "s3://lake/written", servers.s3_directory)
        return {name: make(catalog) for name, make in tables.MIXES.items()}

    return servers.once("written", write)


@cases(**{name: {"name": name} for name in tables.MIXES})
def rows_are_what_their_writer_reads(servers, name):
    table = written(servers)[name]
    with mounted(table.location(), servers.s3.properties()) as mount:
        title = pathlib.PurePath(table.location()).name
        equal(rows_of(mount / f"current/{title}.parquet"), tables.answer(table), name)
        for snapshot in table.snapshots():
            view = mount / f"snapshots/{snapshot.snapshot_id}/{title}.parquet"
            count = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows
            equal(sql(f"select count(*) from '{view}'"), [(count,)], snapshot.snapshot_id)
        equal(mount.errors(), "")


def views(mount, table):
    """Names of the files of a table's snapshots, and of `parts`."""
    found = []
    for snapshot in names(mount / "snapshots"):
        below = f"snapshots/{snapshot}"
        found += [f"{below}/{table}.{kind}" for kind in ("parquet", "csv", "jsonl")]
        found += [f"{below}/parts/{part}" for part in names(mount / below / "parts")]
    return found


@cases(**{f"{warehouse} {table}": {"warehouse": warehouse, "table": table} for warehouse, all in MOVED.items() for table in all})
def a_table_that_was_copied_into_the_store_gives_the_bytes_of_the_local_one(servers, warehouse, table):
    local = servers.fixtures / warehouse / table
    servers.upload(local, f"copied/{table}")
    with mounted(f"s3://lake/copied/{table}", servers.s3.properties()) as far, mounted(local) as near:
        there = views(near, table)
        equal(views(far, table), there, table)
        for view in there:
            try:
                expected = digest(near / view)
            except OSError as error:
                # Refused from the disk: so too from the store.
                expected = error.errno
            try:
                found = digest(far / view)
            except OSError as error:
                found = error.errno
            equal(found, expected, view)


@test
def a_warehouse_is_listed_and_what_is_committed_appears(servers):
    catalog = tables.catalog(servers.directory / "s3-catalog", "s3://lake/written", servers.s3_directory)
    catalog.create_namespace_if_not_exists("grows")
    table = catalog.create_table("grows.t", schema=tables.numbered(0, 1).schema, location="s3://lake/grows/db/t")
    table.append(tables.numbered(0, 3))
    with mounted("s3a://lake/grows", servers.s3.properties(), ["--refresh", "500ms"]) as mount:
        equal(names(mount / "db"), ["t"])
        view = mount / "db/t/current/t.parquet"
        equal(len(rows_of(view)), 3)
        table.append(tables.numbered(3, 5))
        eventually(lambda: len(rows_of(view)) == 5)
        servers.upload(servers.fixtures / "java/plain", "grows/db/u")
        eventually(lambda: names(mount / "db") == ["t", "u"])


@test
def a_file_that_is_replaced_is_an_error_and_no_mixture(servers):
    catalog = tables.catalog(servers.directory / "s3-catalog", "s3://lake/written", servers.s3_directory)
    table = tables.wide(catalog, "replaced")
    data = servers.s3_directory / "lake" / tables.key(table, "lake") / "data"
    with mounted(table.location(), servers.s3.properties()) as mount:
        view = mount / "current/replaced.parquet"
        # The footers are known, and the chunks of one column.
        before = sql(f"select round(sum(c0), 6) from '{view}'")
        for file in data.iterdir():
            old = file.read_bytes()
            # The same length: every byte of the values another.
            new = old[:4] + bytes(byte ^ 0x0F for byte in old[4:-16384]) + old[-16384:]
            file.with_suffix(".new").write_bytes(new)
            file.with_suffix(".new").rename(file)
        try:
            found = sql(f"select sum(c5) from '{view}'")
        except Exception as error:
            equal("IO Error" in str(error) or "nput/output" in str(error), True, str(error))
        else:
            raise AssertionError(f"{found} of replaced files")
        assert "changed since it was first read" in mount.errors(), mount.errors()
        equal(sql(f"select round(sum(c0), 6) from '{view}'"), before, "what was read before")


@test
def a_table_that_is_not_there_and_wrong_keys_are_refused(servers):
    properties = servers.s3.properties()
    message = refused("s3://lake/nothing/here", properties)
    assert "no Iceberg table" in message, message
    message = refused("s3://lake/written", {**properties, "s3.secret-access-key": "hunter2wrong"})
    assert "s3://lake" in message and "hunter2" not in message, message
    message = refused("s3://lake/written", {**properties, "s3.access-key-id": "nobody"})
    assert "hunter2" not in message, message
