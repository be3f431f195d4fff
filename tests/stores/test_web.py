"""Tables on a web server, which lists nothing: found by their version hint or by the URL of a metadata file."""

import re

import tables
from suite import cases, digest, equal, eventually, mounted, refused, rows_of, test
from test_s3 import written


def hinted(servers, table):
    """A fixture's table where the web server has it; what its newest version is stands beside the metadata."""
    place = servers.upload(servers.fixtures / "java" / table, f"web/{table}")
    versions = [int(re.match(r"v(\d+)\.", file.name)[1]) for file in (place / "metadata").glob("v*.metadata.json")]
    (place / "metadata/version-hint.text").write_text(str(max(versions)))
    return f"/lake/web/{table}"


@cases(position_deletes="position_deletes", deletion_vectors="deletion_vectors", evolved="evolved", upgraded="upgraded")
def a_table_gives_the_bytes_of_the_local_one(servers, table):
    url = f"http://127.0.0.1:{servers.web}{hinted(servers, table)}"
    with mounted(url) as far, mounted(servers.fixtures / "java" / table) as near:
        for kind in ("parquet", "csv", "jsonl"):
            equal(digest(far / f"current/{table}.{kind}"), digest(near / f"current/{table}.{kind}"), kind)


@test
def a_metadata_file_is_a_table(servers):
    table = written(servers)["deleted"]
    path = table.metadata_location.removeprefix("s3:/")
    with mounted(f"http://127.0.0.1:{servers.web}{path}") as mount:
        equal(rows_of(mount / "current/deleted.parquet"), tables.answer(table))


@test
def a_server_without_ranges_gives_the_same(servers):
    table = hinted(servers, "position_deletes")
    with mounted(f"http://127.0.0.1:{servers.plain_web}{table}") as far, mounted(servers.fixtures / "java/position_deletes") as near:
        for kind in ("parquet", "csv"):
            equal(digest(far / f"current/position_deletes.{kind}"), digest(near / f"current/position_deletes.{kind}"), kind)


@test
def a_metadata_file_that_is_replaced_is_the_table_it_says_then(servers):
    """By another file of the same name, as those have it who publish a table on a web server."""
    catalog = tables.catalog(servers.directory / "s3-catalog", "s3://lake/written", servers.s3_directory)
    table = tables.appended(catalog, "published", 0, 5)

    def publish():
        there = servers.s3_directory / table.metadata_location.removeprefix("s3://")
        there.with_name("published.new").write_bytes(there.read_bytes())
        there.with_name("published.new").rename(there.with_name("published.metadata.json"))
        return there.with_name("published.metadata.json").relative_to(servers.s3_directory)

    with mounted(f"http://127.0.0.1:{servers.web}/{publish()}", options=["--refresh", "500ms"]) as mount:
        view = mount / "current/published.parquet"
        equal(rows_of(view), tables.answer(table))
        pinned = view.resolve()
        before = tables.answer(table)
        table.append(tables.numbered(100, 105))
        table.delete("id = 2")
        publish()
        eventually(lambda: rows_of(view) == tables.answer(table))
        equal(rows_of(pinned), before, "a snapshot stays what it was")


@test
def what_is_no_table_is_refused(servers):
    message = refused(f"http://127.0.0.1:{servers.web}/lake/web")
    assert "no Iceberg table" in message, message
