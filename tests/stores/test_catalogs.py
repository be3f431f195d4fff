"""Catalogs together with stores: the reference REST catalog that lends keys for S3, faults before it, and 10,000 tables."""

import os
import pathlib
import sqlite3
import urllib.request

import proxy as faults
import servers as start
import tables
from proxy import Proxy
from suite import STORE_TIMEOUT, cases, equal, eventually, mounted, names, rows_of, test, within
from test_credentials import holds_no_secret, in_background

# What the catalog has for its tables' store, and lends to those who load them.
LENT = {"s3.access-key-id": "lentkey", "s3.secret-access-key": "hunter2lent", "s3.session-token": "hunter2token"}


class Lake:
    """The REST catalog with tables in moto's S3, and a proxy before each."""

    def __init__(self, servers):
        self.s3 = servers.enter(start.launcher("moto"))
        urllib.request.urlopen(urllib.request.Request(f"{self.s3}/rest-lake", method="PUT"), timeout=30).read()
        self.store = Proxy(int(self.s3.rsplit(":", 1)[1]), servers.directory)
        servers.stack.callback(self.store.close)
        java = {
            "warehouse": "s3://rest-lake/wh",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": self.s3,
            "s3.path-style-access": "true",
            "client.region": "us-east-1",
            "include-credentials": "true",
            **LENT,
        }
        self.directory = servers.directory / "rest"
        self.url = url = servers.enter(start.launcher("rest", 0, self.directory, *("=".join(pair) for pair in java.items())))
        self.catalog = Proxy(int(url.rsplit(":", 1)[1]), servers.directory)
        servers.stack.callback(self.catalog.close)
        from pyiceberg.catalog.rest import RestCatalog

        self.writer = RestCatalog("test", uri=url, **self.endpoint(self.s3), **LENT)
        self.writer.create_namespace("ns")

    @staticmethod
    def endpoint(url):
        return {"s3.endpoint": url, "s3.region": "us-east-1"}

    @property
    def source(self):
        return f"rest+{self.catalog.url}"

    def properties(self):
        for proxy in (self.store, self.catalog):
            proxy.heal()
            proxy.take()
        return {**self.endpoint(self.store.url), **STORE_TIMEOUT, "rest.timeout-ms": "3000"}


def lake(servers):
    return servers.once("lake", lambda: Lake(servers))


def table(servers, name, end):
    writer = lake(servers).writer
    made = writer.create_table(f"ns.{name}", schema=tables.numbered(0, 1).schema)
    made.append(tables.numbered(0, end))
    return made


@test
def keys_that_the_catalog_lends_are_what_a_store_is_asked_with(servers):
    made = table(servers, "lent", 6)
    made.delete("id = 2")
    one = lake(servers)
    with mounted(one.source, one.properties(), ["--refresh", "500ms"]) as mount:
        view = mount / "ns/lent/current/lent.parquet"
        equal(rows_of(view), tables.answer(made))
        equal({request.key_id for request in one.store.take()}, {"lentkey"})
        made.append(tables.numbered(10, 12))
        eventually(lambda: rows_of(view) == tables.answer(made))
        # Refused once: the catalog is asked for keys again, and nobody sees it.
        one.catalog.take()
        one.store.fail(faults.expired, 1)
        made.append(tables.numbered(20, 22))
        eventually(lambda: rows_of(view) == tables.answer(made))
        assert any(request.fault for request in one.store.take()), "nothing was refused"
        assert any("/tables/lent" in request.path for request in one.catalog.take())
        equal(mount.errors(), "")


@cases(throttled="throttled", reset="reset_before_head", half="truncated", silence="black_hole", refused="expired")
def a_catalog_that_fails_takes_no_snapshot_away_and_is_found_again(servers, fault):
    name = f"away_{fault}"
    made = table(servers, name, 4)
    one = lake(servers)
    with mounted(one.source, one.properties(), ["--refresh", "500ms"]) as mount:
        current = mount / f"ns/{name}/current"
        equal(len(rows_of(current / f"{name}.parquet")), 4)
        pinned = pathlib.Path(current).resolve() / f"{name}.parquet"
        one.catalog.fail(getattr(faults, fault))

        def looked_at_in_vain():
            # The catalog is asked when somebody looks.
            within(lambda: os.path.lexists(current))
            return sum(bool(request.fault) for request in list(one.catalog.requests)) >= 2

        eventually(looked_at_in_vain)
        equal(len(rows_of(pinned)), 4, "what was read stays")
        made.append(tables.numbered(4, 5))
        one.catalog.heal()
        eventually(lambda: len(rows_of(current / f"{name}.parquet")) == 5)


@test
def no_secret_of_a_catalog_is_shown(servers):
    table(servers, "hidden", 2)
    one = lake(servers)
    properties = {**one.properties(), "token": "hunter2bearer", "header.X-Own": "hunter2header"}
    arguments = [part for pair in properties.items() for part in ("-p", "=".join(pair))]
    shown = in_background(
        one.source, arguments, {}, "ns/hidden/current/hidden.parquet", lambda: one.store.fail(faults.expired), prefix="ns/hidden"
    )
    holds_no_secret(shown, "hunter2")
    one.store.heal()


MANY = 10_000


def add_many(database, catalog):
    """Tables that have no metadata: to load one fails."""
    with sqlite3.connect(database) as connection:
        columns = [row[1] for row in connection.execute("pragma table_info(iceberg_tables)")]
        rows = [(catalog, "many", f"t{number}", f"s3://rest-lake/nowhere/{number}.metadata.json") for number in range(MANY)]
        connection.executemany(
            "insert into iceberg_tables (catalog_name, table_namespace, table_name, metadata_location) values (?, ?, ?, ?)", rows
        )
        if "iceberg_type" in columns:
            connection.execute("update iceberg_tables set iceberg_type = 'TABLE' where table_namespace = 'many'")


@test
def ten_thousand_tables_of_a_rest_catalog_are_listed_and_none_is_loaded(servers):
    one = lake(servers)
    one.writer.create_namespace("many")
    add_many(one.directory / "catalog.sqlite", "rest_backend")
    with mounted(one.source, one.properties()) as mount:
        one.catalog.take()
        equal(len(names(mount / "many")), MANY)
        asked = one.catalog.take()
        loaded = [request.target for request in asked if "/tables/" in request.path]
        equal(loaded, [])
        equal(mount.stats()["metadata_read"], 0)
        # Tables and namespaces below, a page or a few of each.
        assert len(asked) <= 30, [request.target for request in asked]
