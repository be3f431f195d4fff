"""Tables whose keys have characters that URLs and stores treat in their own ways, in real servers: found by their URL, in which
such characters are encoded, and through a catalog, which records them as they are."""

import shutil
import urllib.parse

import tables
import test_azure
import test_gcs
from suite import cases, equal, mounted, rows_of

ODD = "a b+c%20d=e&f#g?h~ü'(x)!,;@$%"


def s3(servers):
    return "s3://lake", servers.s3_directory, lambda: None, servers.s3.properties()


def gcs(servers):
    servers.gcs
    return "gs://glake", servers.gcs_directory, lambda: test_gcs.upload(servers), test_gcs.properties(servers)


def azure(servers):
    shelf = servers.azure_directory / "odd-shelf"

    def upload():
        shutil.copytree(shelf / test_azure.PLACE.removeprefix("abfss://"), servers.azure_directory / "alake", dirs_exist_ok=True)
        test_azure.upload(servers)

    return test_azure.PLACE, shelf, upload, test_azure.CREDENTIALS["key"](servers.azure)


@cases(s3={"store": s3}, gcs={"store": gcs}, azure={"store": azure})
def a_table_below_an_odd_name_is_what_its_writer_reads(servers, store):
    base, shelf, upload, properties = store(servers)
    directory = servers.directory / f"odd-{store.__name__}"
    catalog = tables.catalog(directory, base, shelf)
    table = tables.new(catalog, "odd", tables.numbered(0, 1).schema, location=f"{base}/{ODD}/t")
    table.append(tables.numbered(0, 20))
    table.delete("word = 'ada'")
    upload()
    equal(table.location(), f"{base}/{ODD}/t")
    with mounted(f"{base}/{urllib.parse.quote(ODD)}/t", properties) as mount:
        equal(rows_of(mount / "current/t.parquet"), tables.answer(table))
        equal(mount.errors(), "")
    with mounted(f"sqlite:///{directory}/catalog.sqlite", properties) as mount:
        equal(rows_of(mount / "ns/odd/current/odd.parquet"), tables.answer(table))
        equal(mount.errors(), "")


@cases(web="web")
def a_web_servers_files_are_asked_for_as_urls_have_them(servers, server):
    catalog = tables.catalog(servers.directory / "odd-web", "s3://lake", servers.s3_directory)
    table = tables.new(catalog, "odd_web", tables.numbered(0, 1).schema, location=f"s3://lake/{ODD}/web")
    table.append(tables.numbered(0, 20))
    table.delete("word = 'ada'")
    path = table.metadata_location.removeprefix("s3:/")
    with mounted(f"http://127.0.0.1:{servers.web}{urllib.parse.quote(path)}") as mount:
        equal(rows_of(mount / "current/web.parquet"), tables.answer(table))
        equal(mount.errors(), "")
