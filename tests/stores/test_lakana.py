"""A REST catalog that shares no code with the reference implementation: Lakana, with tables on this machine and in S3."""

import json
import urllib.request

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog

import servers as start
import tables
from suite import cases, equal, eventually, mounted, names, refused, rows_of, test
from test_catalogs import LENT, lake


class Lakana:
    def __init__(self, servers):
        directory = servers.directory / "lakana"
        self.url = servers.enter(start.launcher("lakana", 0, directory))
        self.token = (directory / "token").read_text().strip()
        self.s3 = {"s3.endpoint": lake(servers).s3, "s3.region": "us-east-1", **LENT}
        self.environment("disk", {"scheme": "file", "root": f"file://{directory}/warehouse", "options": {}})
        known = {"s3.endpoint": "endpoint", "s3.access-key-id": "access_key_id", "s3.secret-access-key": "secret_access_key"}
        self.environment("s3", {"scheme": "s3", "root": "s3://rest-lake/lakana", "options": {name: self.s3[name] for name in known}})
        for name in ("disk", "s3"):
            writer = self.writer(name)
            for namespace in ("gold.sales", "gold.sales.eu"):
                writer.create_namespace(namespace)

    def environment(self, name, storage):
        """What Lakana has for a warehouse: the prefix of its paths."""
        said = json.dumps({"name": name, "storage": storage}).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/api/v1/environments", said, headers), timeout=30).read()

    def properties(self, name):
        return {"prefix": name, "token": self.token, **self.s3}

    def writer(self, name):
        return RestCatalog("test", uri=self.url, **self.properties(name))


def lakana(servers):
    return servers.once("lakana", lambda: Lakana(servers))


@cases(disk="disk", s3="s3")
def tables_of_every_level_are_what_their_writer_reads(servers, where):
    one = lakana(servers)
    writer = one.writer(where)
    made = {}
    for namespace in ("gold", "gold.sales", "gold.sales.eu"):
        table = made[namespace] = writer.create_table(f"{namespace}.t", schema=tables.numbered(0, 1).schema)
        table.append(tables.numbered(0, 20))
        table.delete("word = 'ada'")
        with table.update_schema() as update:
            update.rename_column("word", "name")
        table.append(pa.table({"id": [100], "name": ["new"], "x": [0.5]}))
    with mounted(f"rest+{one.url}", one.properties(where), ["--refresh", "500ms"]) as mount:
        equal(names(mount / "gold"), ["sales", "t"])
        for namespace, table in made.items():
            view = mount / namespace.replace(".", "/") / "t/current/t.parquet"
            equal(rows_of(view), tables.answer(table), namespace)
        # What is committed, made and dropped is seen.
        view = mount / "gold/sales/t/current/t.parquet"
        made["gold.sales"].delete("id > 10")
        eventually(lambda: rows_of(view) == tables.answer(made["gold.sales"]))
        writer.create_table("gold.sales.later", schema=tables.numbered(0, 1).schema)
        writer.drop_table("gold.sales.eu.t")
        eventually(lambda: names(mount / "gold/sales") == ["eu", "later", "t"])
        eventually(lambda: names(mount / "gold/sales/eu") == [])
        equal(mount.errors(), "")


@test
def a_token_that_is_none_is_refused(servers):
    one = lakana(servers)
    message = refused(f"rest+{one.url}", {**one.properties("disk"), "token": "hunter2wrong"})
    assert "401" in message and "hunter2" not in message, message
