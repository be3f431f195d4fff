"""Tables with deletes that Iceberg Java writes straight into stores, through the reference REST catalog: what they record are the
store's own paths, and what is expected is what Java reads there."""

import json
import pathlib
import subprocess

import matrix
from mounting import encoded
from servers import LOGS, ROOT, Missing
from suite import TARGET, equal, mounted, names, test, within
from test_catalogs import LENT, lake


class Written:
    """A namespace of the tables, and what Java reads from them: a dictionary of views for each."""

    namespace = "java"

    def __init__(self, servers):
        directory = servers.directory / "java-expected"
        one = lake(servers)
        properties = {"type": "rest", "uri": one.url, "io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.endpoint": one.s3, "s3.path-style-access": "true",
                      "client.region": "us-east-1", **LENT}  # fmt: skip
        command = [ROOT / "tests/servers/rest/write.sh", self.namespace, directory, *("=".join(pair) for pair in properties.items())]
        LOGS.mkdir(parents=True, exist_ok=True)
        with open(LOGS / "java.log", "wb") as log:
            done = subprocess.run([str(part) for part in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=300)
        if not (TARGET / "rest-server/classes/bergfs/InCatalog.class").exists():
            raise Missing("Iceberg Java is not installed")
        equal(done.returncode, 0, (LOGS / "java.log").read_text()[-2000:])
        self.expected = {}
        for file in sorted(directory.glob("*.json")):
            said = json.loads(file.read_text())
            self.expected[said["table"]] = said["views"]
        assert len(self.expected) == 11, self.expected.keys()


def written(servers):
    return servers.once("java", lambda: Written(servers))


def agrees(directory, expected):
    """Every view of a table, as one file and by its parts, is what Java reads."""
    reader = matrix.Reader("duckdb")
    try:
        for view, wanted in expected.items():
            folder, _, leaf = view.partition("/")
            place = directory / folder / encoded(leaf) if leaf else directory / folder
            whole = [str(place / f"{directory.name}.parquet")]
            parts = [str(place / "parts" / part) for part in names(place / "parts")]
            for paths in filter(None, (whole, parts)):
                answer = within(lambda paths=paths: reader.ask(paths=paths))
                equal(matrix.check_rows("duckdb", wanted, answer), None, f"{directory.name} {view}")
    finally:
        reader.close()


@test
def tables_with_deletes_are_what_java_reads_through_the_catalog(servers):
    made = written(servers)
    one = lake(servers)
    with mounted(one.source, one.properties()) as mount:
        equal(names(mount / made.namespace), sorted(made.expected))
        for table, expected in made.expected.items():
            agrees(mount / made.namespace / table, expected)
        equal(mount.errors(), "")


@test
def tables_with_deletes_are_what_java_reads_without_the_catalog(servers):
    """Found in the bucket by a listing, and read with the paths that they record."""
    made = written(servers)
    one = lake(servers)
    with mounted(f"s3://rest-lake/wh/{made.namespace}", {**one.properties(), **LENT}) as mount:
        equal([name for name in names(mount.root) if name != ".bergfs"], sorted(made.expected))
        for table, expected in made.expected.items():
            agrees(mount / table, expected)
        equal(mount.errors(), "")


@test
def what_java_records_are_the_stores_paths(servers):
    """What the tests above are about: not a single local path, and deletes of every kind."""
    made = written(servers)
    one = lake(servers)
    kinds = set()
    for table in made.expected:
        loaded = one.writer.load_table(f"{made.namespace}.{table}")
        assert loaded.metadata_location.startswith("s3://rest-lake/wh/"), loaded.metadata_location
        for row in loaded.inspect.all_files().to_pylist() if table != "evolved" else []:
            assert row["file_path"].startswith("s3://rest-lake/wh/"), row
            kinds.add((row["content"], pathlib.PurePath(row["file_path"]).suffix))
    assert {(1, ".parquet"), (2, ".parquet"), (1, ".orc"), (2, ".avro"), (1, ".puffin")} <= kinds, kinds
