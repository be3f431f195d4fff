#!/usr/bin/env bats
# A Hive metastore, written by PyIceberg while it is mounted.

load mounts
load servers

setup_file() {
    mkdir -p "$BATS_FILE_TMPDIR/warehouse"
    start_server hive 0 "$BATS_FILE_TMPDIR/warehouse"
}

teardown_file() {
    stop_servers
}

setup() {
    need_server hive
    URI=$(server_url hive)
    MNT=$BATS_TEST_TMPDIR/mnt
    WAREHOUSE=$BATS_FILE_TMPDIR/warehouse
    mkdir -p "$MNT"
    # Each test has a database of its own.
    DB=db$BATS_TEST_NUMBER
}

pyiceberg() { # statements
    "$SERVERS_PYTHON" "$ROOT/tests/servers/pyiceberg_catalog.py" hive type=hive "uri=$URI" "warehouse=file://$WAREHOUSE" -- "$@"
}

new_table() {
    pyiceberg "catalog.create_namespace('$DB')" "catalog.create_table('$DB.t', schema=rows(0, 1).schema).append(rows(0, 3))"
}

count_is() { # table's path, rows
    [ "$(sql "select count(*) from '$MNT/$1/current/${1##*/}.parquet'")" = "$2" ]
}

@test "databases and Iceberg tables of a metastore, and what is committed to them" {
    new_table
    # A table of another kind.
    pyiceberg "
from hive_metastore.ttypes import Table, StorageDescriptor, SerDeInfo, FieldSchema
with catalog._client as client:
    client.create_table(Table(tableName='plain', dbName='$DB', owner='o', tableType='EXTERNAL_TABLE', parameters={'EXTERNAL': 'TRUE'},
        partitionKeys=[], sd=StorageDescriptor([FieldSchema('id', 'int', None)], 'file://$WAREHOUSE/plain', serdeInfo=SerDeInfo())))"
    "$BERGFS" mount --refresh 500ms "$URI" "$MNT"
    ls "$MNT/default"
    [ "$(ls "$MNT/$DB")" = t ]
    count_is "$DB/t" 3
    pyiceberg "t = catalog.load_table('$DB.t'); t.append(rows(3, 9)); t.delete('id = 4')"
    eventually 10 count_is "$DB/t" 8
    pyiceberg "catalog.rename_table('$DB.t', '$DB.u')"
    eventually 10 test -d "$MNT/$DB/u/current/"
    count_is "$DB/u" 8
    pyiceberg "catalog.drop_table('$DB.u')"
    gone() { [ -z "$(ls "$MNT/$DB")" ]; }
    eventually 10 gone
}

@test "one database of a metastore may be the whole source" {
    new_table
    "$BERGFS" mount "$URI/$DB" "$MNT"
    [ "$(ls "$MNT")" = t ]
    count_is t 3
}

@test "a listing of a metastore is a question or two, and no table is loaded" {
    new_table
    pyiceberg "
location = catalog.load_table('$DB.t').metadata_location
for i in range(120):
    catalog.register_table(f'$DB.t{i}', location)"
    "$BERGFS" mount "$URI" "$MNT"
    local before
    before=$(counter catalog_requests)
    [ "$(ls "$MNT/$DB" | wc -l)" = 121 ]
    [ $(($(counter catalog_requests) - before)) -le 2 ]
    [ "$(counter metadata_read)" = 0 ]
}

@test "a metastore that is down: pinned snapshots go on, and it is found again" {
    new_table
    local snapshot port
    port=$(free_port)
    forward "$port" "${URI##*:}"
    "$BERGFS" mount --refresh 100ms --log-file "$BATS_TEST_TMPDIR/log" "thrift://127.0.0.1:$port" "$MNT"
    count_is "$DB/t" 3
    snapshot=$(readlink -f "$MNT/$DB/t/current")
    unforward
    fails() { ! readlink -e "$MNT/$DB/t/current"; }
    eventually 20 fails
    [ "$(sql "select count(*) from '$snapshot/t.parquet'")" = 3 ]
    forward "$port" "${URI##*:}"
    eventually 20 count_is "$DB/t" 3
    unforward
    [ "$(grep -c 'the catalog does not answer' "$BATS_TEST_TMPDIR/log")" = 1 ]
    [ "$(grep -c 'the catalog answers again' "$BATS_TEST_TMPDIR/log")" = 1 ]
}

@test "a metastore is found by its name in PyIceberg's configuration" {
    new_table
    mkdir "$BATS_TEST_TMPDIR/home"
    printf 'catalog:\n  meta:\n    uri: %s\n' "$URI" > "$BATS_TEST_TMPDIR/home/.pyiceberg.yaml"
    PYICEBERG_HOME=$BATS_TEST_TMPDIR/home "$BERGFS" mount pyiceberg:meta "$MNT"
    count_is "$DB/t" 3
    grep -q 'pyiceberg:meta' /proc/mounts
}
