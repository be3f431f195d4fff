#!/usr/bin/env bats
# Catalogs in SQL databases, written by PyIceberg while they are mounted.

load mounts
load servers

teardown_file() {
    stop_servers
}

setup() {
    MNT=$BATS_TEST_TMPDIR/mnt
    mkdir -p "$MNT"
    WAREHOUSE=$BATS_TEST_TMPDIR/warehouse
    mkdir "$WAREHOUSE"
    URI=sqlite:///$BATS_TEST_TMPDIR/catalog.db
}

# Runs statements with a PyIceberg catalog.
iceberg() { # statements
    "$PYTHON" - "$URI" "$WAREHOUSE" "$@" << 'PYTHON'
import sys
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

uri, warehouse = sys.argv[1:3]
catalog = SqlCatalog("lake", uri=uri, warehouse=f"file://{warehouse}")


def rows(start, end):
    return pa.table({"id": pa.array(range(start, end), pa.int64())})


for statement in sys.argv[3:]:
    exec(statement)
PYTHON
}

new_table() {
    iceberg "catalog.create_namespace('a.b')" "catalog.create_table('a.b.t', schema=rows(0, 1).schema).append(rows(0, 3))"
}

count_is() { # table's path, rows
    [ "$(sql "select count(*) from '$MNT/$1/current/${1##*/}.parquet'")" = "$2" ]
}

@test "a catalog of PyIceberg in SQLite: its namespaces, its tables, their rows" {
    new_table
    "$BERGFS" mount "$URI" "$MNT"
    [ "$(ls "$MNT")" = a ]
    [ "$(ls "$MNT/a")" = b ]
    [ "$(ls "$MNT/a/b")" = t ]
    count_is a/b/t 3
    [ "$(sql "select sum(id) from '$MNT/a/b/t/current/t.parquet'")" = 3 ]
}

@test "commits, new tables, renamed and dropped ones are seen in a SQLite catalog" {
    new_table
    "$BERGFS" mount --refresh 500ms "$URI" "$MNT"
    count_is a/b/t 3
    iceberg "t = catalog.load_table('a.b.t'); t.append(rows(3, 9)); t.delete('id = 4')"
    eventually 10 count_is a/b/t 8
    iceberg "catalog.create_namespace('n')" "catalog.create_table('n.u', schema=rows(0, 1).schema).append(rows(0, 2))"
    eventually 10 test -d "$MNT/n/u/current/"
    count_is n/u 2
    iceberg "catalog.rename_table('n.u', 'n.v')"
    eventually 10 test -d "$MNT/n/v/current/"
    count_is n/v 2
    iceberg "catalog.drop_table('a.b.t')"
    gone() { [ -z "$(ls "$MNT/a/b")" ]; }
    eventually 10 gone
}

@test "a metadata file that lies apart from its table does not mislead" {
    new_table
    iceberg "catalog.create_table('a.b.apart', schema=rows(0, 1).schema,
        properties={'write.metadata.path': 'file://$BATS_TEST_TMPDIR/elsewhere'}).append(rows(0, 5))"
    [ -n "$(ls "$BATS_TEST_TMPDIR/elsewhere")" ]
    "$BERGFS" mount "$URI" "$MNT"
    count_is a/b/apart 5
}

@test "a table whose catalog names places that are elsewhere now is read where --map-path says" {
    new_table
    mv "$WAREHOUSE" "$BATS_TEST_TMPDIR/moved"
    run "$BERGFS" mount "$URI" "$MNT"
    [ "$status" = 0 ]
    run count_is a/b/t 3
    [ "$status" != 0 ]
    "$BERGFS" umount "$MNT"
    "$BERGFS" mount --map-path "$WAREHOUSE=$BATS_TEST_TMPDIR/moved" "$URI" "$MNT"
    count_is a/b/t 3
}

@test "a database that is gone fails looks, not pinned snapshots, and comes back" {
    new_table
    "$BERGFS" mount --refresh 100ms "$URI" "$MNT"
    local snapshot
    snapshot=$(readlink -f "$MNT/a/b/t/current")
    mv "$BATS_TEST_TMPDIR/catalog.db" "$BATS_TEST_TMPDIR/away.db"
    fails() { ! readlink -e "$MNT/a/b/t/current"; }
    eventually 10 fails
    [ "$(sql "select count(*) from '$snapshot/t.parquet'")" = 3 ]
    grep -q catalog.db "$MNT/.bergfs/errors"
    mv "$BATS_TEST_TMPDIR/away.db" "$BATS_TEST_TMPDIR/catalog.db"
    eventually 10 count_is a/b/t 3
}

@test "a relative SQLite path is found from where the command runs" {
    new_table
    cd "$BATS_TEST_TMPDIR"
    "$BERGFS" mount sqlite:///catalog.db "$MNT"
    count_is a/b/t 3
}

@test "ten thousand tables are listed and none is loaded" {
    new_table
    "$PYTHON" - "$BATS_TEST_TMPDIR/catalog.db" << 'PYTHON'
import sqlite3
import sys

with sqlite3.connect(sys.argv[1]) as db:
    db.executemany(
        "insert into iceberg_tables values ('lake', 'many', ?, 'file:///nowhere/metadata/1.metadata.json', null, 'TABLE')",
        [(f"t{i}",) for i in range(10000)],
    )
PYTHON
    "$BERGFS" mount "$URI" "$MNT"
    [ "$(ls "$MNT/many" | wc -l)" = 10000 ]
    [ "$(counter metadata_read)" = 0 ]
    [ ! -s "$MNT/.bergfs/errors" ]
}

@test "a catalog of Java's JdbcCatalog in SQLite, of both its schema versions" {
    local version directory
    for version in V0 V1; do
        directory=$BATS_TEST_TMPDIR/$version
        # The reference REST server keeps its tables in one.
        start_server rest 0 "$directory" "jdbc.schema-version=$version"
        need_server rest
        "$SERVERS_PYTHON" "$ROOT/tests/servers/pyiceberg_catalog.py" java type=rest "uri=$(server_url rest)" -- \
            "catalog.create_namespace('a'); catalog.create_namespace(('a', 'b'))" \
            "catalog.create_table(('a', 'b', 't'), schema=rows(0, 1).schema).append(rows(0, 4))"
        "$BERGFS" mount "jdbc:sqlite:$directory/catalog.sqlite" "$MNT"
        [ "$(ls "$MNT/a/b")" = t ]
        count_is a/b/t 4
        "$BERGFS" umount "$MNT"
        "$PYTHON" - "$directory/catalog.sqlite" "$version" << 'PYTHON'
import sqlite3
import sys

columns = [row[1] for row in sqlite3.connect(sys.argv[1]).execute("pragma table_info(iceberg_tables)")]
assert ("iceberg_type" in columns) == (sys.argv[2] == "V1"), columns
PYTHON
        stop_servers
    done
}
