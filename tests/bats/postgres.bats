#!/usr/bin/env bats
# A catalog in PostgreSQL, written by PyIceberg while it is mounted.

load mounts
load servers

setup_file() {
    start_server postgres 0 "$BATS_FILE_TMPDIR/ca.pem"
}

teardown_file() {
    stop_servers
}

setup() {
    need_server postgres
    URI=$(server_url postgres)
    MNT=$BATS_TEST_TMPDIR/mnt
    WAREHOUSE=$BATS_TEST_TMPDIR/warehouse
    mkdir -p "$MNT" "$WAREHOUSE"
    # Each test has a catalog of its own in the one database.
    CATALOG="lake-$BATS_TEST_NUMBER"
}

pyiceberg() { # statements
    "$SERVERS_PYTHON" "$ROOT/tests/servers/pyiceberg_catalog.py" "$CATALOG" "type=sql" "uri=${URI/postgresql:/postgresql+psycopg2:}" "warehouse=file://$WAREHOUSE" -- "$@"
}

new_table() {
    pyiceberg "catalog.create_namespace('a.b')" "catalog.create_table('a.b.t', schema=rows(0, 1).schema).append(rows(0, 3))"
}

count_is() { # table's path, rows
    [ "$(sql "select count(*) from '$MNT/$1/current/${1##*/}.parquet'")" = "$2" ]
}

# A file with the password, so that no command line holds it.
properties() {
    printf 'jdbc.password = berg!secret\ncatalog-name = %s\n' "$CATALOG" > "$BATS_TEST_TMPDIR/properties"
}

# The server's URL without the password.
bare_url() { # scheme
    printf '%s' "$URI" | sed "s,^postgresql:,$1:,; s,:berg%21secret@,@,"
}

@test "a catalog of PyIceberg in PostgreSQL, and what is committed to it" {
    new_table
    "$BERGFS" mount --refresh 500ms -p catalog-name="$CATALOG" "$URI" "$MNT"
    [ "$(ls "$MNT/a/b")" = t ]
    count_is a/b/t 3
    pyiceberg "catalog.load_table('a.b.t').append(rows(3, 9))"
    eventually 10 count_is a/b/t 9
    pyiceberg "catalog.drop_table('a.b.t')"
    gone() { [ -z "$(ls "$MNT/a/b")" ]; }
    eventually 10 gone
}

@test "drivers' names in a URL, JDBC's form, and a password from a file" {
    new_table
    properties
    local url
    for url in "$(bare_url postgresql+psycopg2)" "$(bare_url postgres)" "$(bare_url jdbc:postgresql | sed 's,iceberg@,,')?user=iceberg"; do
        "$BERGFS" mount --properties "$BATS_TEST_TMPDIR/properties" "$url" "$MNT"
        count_is a/b/t 3
        "$BERGFS" umount "$MNT"
    done
}

@test "of several catalogs in a database one must be chosen" {
    new_table
    CATALOG=other new_table
    run "$BERGFS" mount "$URI" "$MNT"
    [ "$status" = 1 ]
    [[ $output == *"catalog-name=NAME"*other* ]]
}

@test "sslmode says what the server must prove" {
    new_table
    properties
    local url ca=$BATS_FILE_TMPDIR/ca.pem
    url=$(bare_url postgresql)
    mounts() { "$BERGFS" mount --properties "$BATS_TEST_TMPDIR/properties" "$1" "$MNT" && count_is a/b/t 3 && "$BERGFS" umount "$MNT"; }
    refused() { ! "$BERGFS" mount --properties "$BATS_TEST_TMPDIR/properties" "$1" "$MNT" 2> "$BATS_TEST_TMPDIR/why"; }
    mounts "$url?sslmode=disable"
    mounts "$url?sslmode=require"
    # The certificate is for `localhost`, and signed by an authority that this machine does not know.
    mounts "$url?sslmode=verify-ca&sslrootcert=$ca"
    refused "$url?sslmode=verify-ca"
    grep -q UnknownIssuer "$BATS_TEST_TMPDIR/why"
    refused "$url?sslmode=verify-full&sslrootcert=$ca"
    grep -q 'not valid for name' "$BATS_TEST_TMPDIR/why"
    mounts "${url/127.0.0.1/localhost}?sslmode=verify-full&sslrootcert=$ca"
}

@test "a wrong password is refused, and neither is shown" {
    new_table
    run "$BERGFS" mount "${URI/secret/wrong}" "$MNT"
    [ "$status" = 1 ]
    [[ $output == *"password authentication failed"* ]]
    [[ $output != *wrong* ]]
    "$BERGFS" mount -vv --log-file "$BATS_TEST_TMPDIR/log" -p catalog-name="$CATALOG" "$URI" "$MNT"
    count_is a/b/t 3
    # shellcheck disable=SC2009
    ! { cat "$BATS_TEST_TMPDIR/log" "$MNT"/.bergfs/* /proc/mounts; ps -ef | grep -v grep; } | grep -e 'berg!secret' -e 'berg%21secret'
}

@test "a connection that was lost is made again" {
    new_table
    "$BERGFS" mount --refresh 100ms --log-file "$BATS_TEST_TMPDIR/log" -p catalog-name="$CATALOG" "$URI" "$MNT"
    count_is a/b/t 3
    "$SERVERS_PYTHON" - "$URI" << 'PYTHON'
import sys
import psycopg2

with psycopg2.connect(sys.argv[1]) as connection, connection.cursor() as cursor:
    cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'bergfs'")
    assert cursor.rowcount >= 1
PYTHON
    pyiceberg "catalog.load_table('a.b.t').append(rows(3, 4))"
    eventually 10 count_is a/b/t 4
    [ ! -s "$MNT/.bergfs/errors" ]
}

@test "a server that is down: pinned snapshots go on, and it is found again" {
    new_table
    local snapshot port target=${URI##*:}
    target=${target%%/*} port=$(free_port)
    forward "$port" "$target"
    "$BERGFS" mount --refresh 100ms --log-file "$BATS_TEST_TMPDIR/log" -p catalog-name="$CATALOG" "${URI/:$target/:$port}" "$MNT"
    count_is a/b/t 3
    snapshot=$(readlink -f "$MNT/a/b/t/current")
    unforward
    fails() { ! readlink -e "$MNT/a/b/t/current"; }
    eventually 20 fails
    [ "$(sql "select count(*) from '$snapshot/t.parquet'")" = 3 ]
    forward "$port" "$target"
    eventually 20 count_is a/b/t 3
    unforward
    [ "$(grep -c 'the catalog does not answer' "$BATS_TEST_TMPDIR/log")" = 1 ]
    [ "$(grep -c 'the catalog answers again' "$BATS_TEST_TMPDIR/log")" = 1 ]
}
