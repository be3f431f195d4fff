#!/usr/bin/env bats
# The REST catalog: the reference implementation's server, to which PyIceberg writes.

load mounts

SERVER_START=$BATS_TEST_DIRNAME/../servers/rest/start.sh

# One server for all but those tests that stop theirs. Fetched once; a machine without Maven has none.
setup_file() {
    if command -v mvn > /dev/null && command -v javac > /dev/null && "$SERVER_START" --install > "$BATS_FILE_TMPDIR/install.log" 2>&1; then
        : > "$BATS_FILE_TMPDIR/installed"
        start_server "$BATS_FILE_TMPDIR/server"
        export SHARED_SERVER=$SERVER SHARED_URL=$URL
    else
        echo "# the REST catalog's server is NOT INSTALLED: its tests are skipped" >&3
    fi
}

teardown_file() {
    [ -z "${SHARED_SERVER:-}" ] || kill "$SHARED_SERVER"
}

# Starts the server on a warehouse that it may have served before.
start_server() { # directory [port]
    mkdir -p "$1"
    "$SERVER_START" "${2:-0}" "$1/warehouse" > "$1/log" 2>&1 3>&- &
    SERVER=$!
    eventually 60 grep -q '^http' "$1/log"
    URL=$(grep -m1 '^http' "$1/log")
}

shared_server() {
    needs_server
    URL=$SHARED_URL
}

needs_server() {
    [ -e "$BATS_FILE_TMPDIR/installed" ] || skip "no Maven or no JDK, or the server could not be fetched"
}

# Python statements with a PyIceberg catalog over the server.
write() { # statement...
    "$PYTHON" - "$URL" "$@" << 'PYTHON'
import sys
import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog

catalog = RestCatalog("test", uri=sys.argv[1])


def rows(start, end):
    return pa.table({"id": pa.array(range(start, end), pa.int64())})


for statement in sys.argv[2:]:
    exec(statement)
PYTHON
}

one_table() { # namespace
    write "catalog.create_namespace('$1')" "catalog.create_table('$1.t', schema=rows(0, 1).schema).append(rows(0, 3))"
}

count_is() { # path rows
    [ "$(sql "select count(*) from '$MNT/$1'")" = "$2" ]
}

@test "namespaces of every level and their tables are shown, and no views" {
    shared_server
    write "catalog.create_namespace('a')" "catalog.create_namespace(('a', 'b c'))" "catalog.create_namespace('empty')" \
        "catalog.create_table(('a', 'b c', 't%/ü'), schema=rows(0, 1).schema).append(rows(0, 4))" \
        "catalog.create_table('a.t', schema=rows(0, 1).schema)"
    curl -sf -X POST "$URL/v1/namespaces/a/views" -H 'Content-Type: application/json' -d '{"name": "v",
        "schema": {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": false, "type": "long"}]},
        "view-version": {"version-id": 1, "schema-id": 0, "timestamp-ms": 1700000000000, "summary": {"engine-name": "x"},
            "default-namespace": ["a"], "representations": [{"type": "sql", "sql": "select 1 x", "dialect": "spark"}]},
        "properties": {}}' > /dev/null
    "$BERGFS" mount "rest+$URL" "$MNT"
    [ "$(cd "$MNT" && ls -d a empty)" = $'a\nempty' ]
    [ "$(ls "$MNT/a")" = $'b c\nt' ]
    [ "$(ls "$MNT/empty")" = "" ]
    # Nothing has been loaded to list it.
    [ "$(counter metadata_read)" = 0 ]
    [ "$(ls "$MNT/a/b c")" = "t%25%2Fü" ]
    count_is "a/b c/t%25%2Fü/current/t%25%2Fü.parquet" 4
    count_is "a/t/current/t.parquet" 0
    run ls "$MNT/a/v"
    [ "$status" -ne 0 ]
    grep -q "^rest+$URL " /proc/mounts
}

@test "one table of a catalog is the whole mount" {
    shared_server
    one_table one
    "$BERGFS" mount "rest+$URL#one.t" "$MNT"
    count_is current/t.parquet 3
    # The metadata came with the table's place.
    [ "$(jq -r .location "$MNT/metadata/table.json")" = "$BATS_FILE_TMPDIR/server/warehouse/one/t" ]
}

@test "a commit appears, a table that is dropped goes, and what is open goes on" {
    shared_server
    one_table commits
    "$BERGFS" mount --refresh 500ms "rest+$URL" "$MNT"
    count_is commits/t/current/t.parquet 3
    exec 7< "$(readlink -f "$MNT/commits/t/current")/t.parquet"
    write "catalog.load_table('commits.t').append(rows(3, 5))"
    eventually 20 count_is commits/t/current/t.parquet 5
    [ "$(head -c 4 <&7)" = PAR1 ]
    exec 7<&-
    write "catalog.create_table('commits.u', schema=rows(0, 1).schema).append(rows(0, 2))"
    eventually 20 count_is commits/u/current/u.parquet 2
    write "catalog.drop_table('commits.t')"
    eventually 20 bash -c "! test -e '$MNT/commits/t'"
    [ "$(ls "$MNT/commits")" = u ]
}

@test "a catalog that is away takes no snapshot away that was read, and is found again" {
    needs_server
    start_server "$BATS_TEST_TMPDIR/server"
    one_table ns
    "$BERGFS" mount --refresh 500ms -p rest.timeout-ms=1000 --log-file "$BATS_TEST_TMPDIR/log" "rest+$URL" "$MNT"
    count_is ns/t/current/t.parquet 3
    local pinned
    pinned=$(readlink -f "$MNT/ns/t/current")
    kill "$SERVER"
    wait "$SERVER" || true
    # Longer than anything is remembered.
    eventually 20 bash -c "! readlink '$MNT/ns/t/current'"
    local sum
    sum=$(md5sum < "$pinned/t.parquet")
    [ "$(sql "select count(*) from '$pinned/t.parquet'")" = 3 ]
    [ "$(ls "$pinned/parts" | wc -l)" = 1 ]
    grep -q "cannot be reached" "$MNT/.bergfs/errors"
    [ "$(grep -c "the catalog does not answer" "$BATS_TEST_TMPDIR/log")" = 1 ]
    start_server "$BATS_TEST_TMPDIR/server" "${URL##*:}"
    write "catalog.load_table('ns.t').append(rows(3, 5))"
    eventually 30 count_is ns/t/current/t.parquet 5
    [ "$(md5sum < "$pinned/t.parquet")" = "$sum" ]
    [ "$(grep -c "the catalog does not answer" "$BATS_TEST_TMPDIR/log")" = 1 ]
    [ "$(grep -c "the catalog answers again" "$BATS_TEST_TMPDIR/log")" = 1 ]
}

@test "a catalog that cannot be had is not mounted, and says why without secrets" {
    run "$BERGFS" mount -p rest.timeout-ms=300 -p token=hunter2hunter2 rest+http://127.0.0.1:9 "$MNT"
    [ "$status" -eq 1 ]
    [[ $output == *"rest+http://127.0.0.1:9: cannot be reached"* ]]
    [[ $output != *hunter2* ]]
    run "$BERGFS" mount "rest+http://me:hunter2hunter2@127.0.0.1:9/" "$MNT"
    [ "$status" -eq 1 ]
    [[ $output != *hunter2* && $output == *rest.auth.basic.password* ]]
}
