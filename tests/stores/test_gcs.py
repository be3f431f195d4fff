"""Tables in Google Cloud Storage, as fake-gcs-server plays it."""

import shutil
import urllib.parse
import urllib.request

import tables
from suite import cases, digest, equal, eventually, mounted, names, rows_of, test


def properties(servers):
    return {"gcs.service.host": f"http://127.0.0.1:{servers.gcs}", "gcs.no-auth": "true"}


def upload(servers):
    """Sends what lies in the directory `glake` into the bucket of that name, but for what is there already."""
    base, shelf = f"http://127.0.0.1:{servers.gcs}", servers.gcs_directory
    sent = servers.once("gcs objects", set)

    def post(url, data, kind):
        request = urllib.request.Request(url, data, {"Content-Type": kind})
        urllib.request.urlopen(request, timeout=30).read()

    if not sent:
        post(f"{base}/storage/v1/b?project=test", b'{"name": "glake"}', "application/json")
    for file in sorted((shelf / "glake").rglob("*")):
        name = str(file.relative_to(shelf / "glake"))
        if file.is_file() and name not in sent:
            query = urllib.parse.urlencode({"uploadType": "media", "name": name})
            post(f"{base}/upload/storage/v1/b/glake/o?{query}", file.read_bytes(), "application/octet-stream")
            sent.add(name)


@cases(deleted="deleted", partitioned="partitioned", evolved="evolved")
def rows_are_what_their_writer_reads(servers, name):
    servers.gcs
    catalog = tables.catalog(servers.directory / "gcs-catalog", "gs://glake/written", servers.gcs_directory)
    table = tables.MIXES[name](catalog)
    upload(servers)
    with mounted(table.location(), properties(servers)) as mount:
        equal(rows_of(mount / f"current/{name}.parquet"), tables.answer(table), name)
        equal(mount.errors(), "")


@test
def a_warehouse_is_listed_and_tables_that_were_copied_give_the_local_bytes(servers):
    servers.gcs
    place = servers.gcs_directory / "glake/copied"
    for table in ("plain", "position_deletes"):
        shutil.copytree(servers.fixtures / "java" / table, place / table, dirs_exist_ok=True)
    upload(servers)
    with mounted("gs://glake/copied", properties(servers)) as far, mounted(servers.fixtures / "java") as near:
        equal([name for name in names(far.root) if name != ".bergfs"], ["plain", "position_deletes"])
        for table in ("plain", "position_deletes"):
            for kind in ("parquet", "jsonl"):
                equal(digest(far / f"{table}/current/{table}.{kind}"), digest(near / f"{table}/current/{table}.{kind}"), table)


@test
def a_commit_appears(servers):
    servers.gcs
    catalog = tables.catalog(servers.directory / "gcs-catalog", "gs://glake/written", servers.gcs_directory)
    table = tables.appended(catalog, "grows", 0, 3)
    upload(servers)
    with mounted(table.location(), properties(servers), ["--refresh", "500ms"]) as mount:
        view = mount / "current/grows.parquet"
        equal(len(rows_of(view)), 3)
        table.append(tables.numbered(3, 5))
        upload(servers)
        eventually(lambda: len(rows_of(view)) == 5)
