#!/usr/bin/env bats
# Commits by another program while the table is mounted.

load mounts

# A PyIceberg catalog in a file, with one table `ns.t` of three rows.
new_table() {
    WAREHOUSE=$BATS_TEST_TMPDIR/warehouse
    mkdir "$WAREHOUSE"
    commit "catalog.create_namespace('ns'); table = catalog.create_table('ns.t', schema=rows(0, 1).schema)" "table.append(rows(0, 3))"
}

commit() { # statements
    "$PYTHON" - "$WAREHOUSE" "$@" << 'PYTHON'
import sys
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

warehouse = sys.argv[1]
catalog = SqlCatalog("test", uri=f"sqlite:///{warehouse}.db", warehouse=f"file://{warehouse}")


def rows(start, end):
    return pa.table({"id": pa.array(range(start, end), pa.int64())})


for statement in sys.argv[2:]:
    exec(statement)
PYTHON
}

count_is() { # view rows
    [ "$(sql "select count(*) from '$MNT/ns/t/$1/t.parquet'")" = "$2" ]
}

@test "a commit appears under current, and open files and snapshots go on" {
    new_table
    "$BERGFS" mount --refresh 500ms "$WAREHOUSE" "$MNT"
    count_is current 3
    local before
    before=$(readlink -f "$MNT/ns/t/current")
    exec 7< "$before/t.parquet"
    local sum
    sum=$(md5sum < "$before/t.parquet")
    commit "catalog.load_table('ns.t').append(rows(3, 5))"
    eventually 10 count_is current 5
    [ "$(readlink -f "$MNT/ns/t/current")" != "$before" ]
    [ "$(md5sum <&7)" = "$sum" ]
    [ "$(md5sum < "$before/t.parquet")" = "$sum" ]
    exec 7<&-
}

@test "a table that is added appears, one that is removed goes" {
    new_table
    "$BERGFS" mount --refresh 500ms "$WAREHOUSE" "$MNT"
    count_is current 3
    commit "catalog.create_table('ns.u', schema=rows(0, 1).schema).append(rows(0, 2))"
    eventually 10 test -d "$MNT/ns/u/current/"
    [ "$(sql "select count(*) from '$MNT/ns/u/current/u.parquet'")" = 2 ]
    rm -r "$WAREHOUSE/ns/u"
    eventually 10 bash -c "! ls '$MNT/ns' | grep -qx u"
    count_is current 3
}

@test "a schema change shows in branches at once, and not in old snapshots" {
    new_table
    "$BERGFS" mount --refresh 500ms "$WAREHOUSE" "$MNT"
    local old
    old=$(readlink -f "$MNT/ns/t/current")
    commit "from pyiceberg.types import StringType" "
table = catalog.load_table('ns.t')
with table.update_schema() as update:
    update.rename_column('id', 'key')
    update.add_column('note', __import__('pyiceberg.types').types.StringType())
"
    columns() { sql "describe select * from '$1/t.parquet'" | cut -d'|' -f1 | paste -sd' '; }
    shown() { [ "$(columns "$MNT/ns/t/current")" = "key note" ]; }
    eventually 10 shown
    [ "$(columns "$old")" = id ]
    count_is current 3
}
