#!/usr/bin/env bats
# Tables in a store that only their REST catalog opens: by credentials that it lends and renews, and by its signature.

load mounts
load servers

setup_file() {
    start_server moto
}

teardown_file() {
    stop_servers
}

# A table of three rows in S3, in a catalog that lends; its URL in $URL.
lend() { # mode
    need_server moto
    local endpoint bucket=$1
    endpoint=$(server_url moto)
    curl -sf -X PUT "$endpoint/$bucket" > /dev/null
    local metadata
    metadata=$("$SERVERS_PYTHON" "$ROOT/tests/servers/pyiceberg_catalog.py" test type=sql "uri=sqlite:///$BATS_TEST_TMPDIR/c.db" \
        "warehouse=s3://$bucket/wh" "s3.endpoint=$endpoint" s3.access-key-id=k s3.secret-access-key=s s3.region=us-east-1 -- \
        "catalog.create_namespace('s')" "catalog.create_table('s.t', schema=rows(0, 1).schema).append(rows(0, 3))" \
        "print(catalog.load_table('s.t').metadata_location)")
    "$SERVERS_PYTHON" "$ROOT/tests/servers/rest/lending.py" 0 "$1" "$endpoint" "$metadata" > "$BATS_TEST_TMPDIR/url" 3>&- &
    echo $! > "$BATS_FILE_TMPDIR/lending.$1.pid"
    eventually 20 test -s "$BATS_TEST_TMPDIR/url"
    URL=$(cat "$BATS_TEST_TMPDIR/url")
}

# How often something was asked of the catalog.
asked() { # end of the line
    curl -sf "$URL/asked" | jq --arg what "$1" '[.[] | select(endswith($what))] | length'
}

mount_without_keys() {
    env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY AWS_EC2_METADATA_DISABLED=true HOME="$BATS_TEST_TMPDIR" \
        "$BERGFS" mount -v --log-file "$BATS_TEST_TMPDIR/log" "rest+$URL" "$MNT"
}

@test "credentials that a catalog lends are renewed before they run out" {
    lend credentials
    mount_without_keys
    [ "$(ls "$MNT/s")" = t ]
    [ "$(asked /credentials)" = 0 ]
    [ "$(sql "select count(*), max(id) from '$MNT/s/t/current/t.parquet'")" = "3|2" ]
    [ "$(asked /credentials)" -ge 1 ]
    [ "$(asked 'tables/t?snapshots=all')" -ge 1 ]
    run grep -E "secret|token" "$BATS_TEST_TMPDIR/log" "$MNT/.bergfs/errors"
    [ "$status" -eq 1 ]
}

@test "a catalog that lends only its signature is asked for one for each file" {
    lend sign
    mount_without_keys
    [ "$(sql "select count(*), max(id) from '$MNT/s/t/current/t.parquet'")" = "3|2" ]
    [ "$(asked /sign)" = "$(counter store_requests)" ]
    [ "$(asked /credentials)" = 0 ]
}
