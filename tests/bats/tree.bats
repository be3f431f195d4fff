#!/usr/bin/env bats
# The tree: what is listed, where the links lead.

load mounts

@test "a table shows its branches, tags, snapshots and times" {
    "$BERGFS" mount "$FIXTURES/java/branched" "$MNT"
    for name in at branches current metadata snapshots tags; do
        [ -e "$MNT/$name" ]
    done
    [ "$(ls "$MNT/branches" | sort | paste -sd' ')" = "feature%2Fx main" ]
    [ "$(ls "$MNT/tags" | sort | paste -sd' ')" = "first v1.0 (final)" ]
    [ "$(readlink "$MNT/current")" = branches/main ]
    "$PYTHON" -m json.tool "$MNT/metadata/table.json" > /dev/null
    [ -s "$MNT/.bergfs/stats" ]
    [ -e "$MNT/.bergfs/errors" ]
}

@test "readlink -f tells which snapshot is read" {
    "$BERGFS" mount "$FIXTURES/java/branched" "$MNT"
    [ "$(basename "$(readlink -f "$MNT/current")")" = "$(of_table java/branched 'm["current-snapshot-id"]')" ]
    [ "$(basename "$(readlink -f "$MNT/tags/first")")" = "$(of_table java/branched 'm["refs"]["first"]["snapshot-id"]')" ]
    # The branch's head was written under an older schema than the table's: its view says so.
    [[ "$(basename "$(readlink -f "$MNT/branches/feature%2Fx")")" == *@schema-* ]]
}

@test "ls -lt snapshots is the table's history" {
    "$BERGFS" mount "$FIXTURES/java/position_deletes" "$MNT"
    local wanted
    wanted=$(of_table java/position_deletes \
        '[s["snapshot-id"] for s in sorted(m["snapshots"], key=lambda s: -s["timestamp-ms"])]')
    [ "$(ls -t "$MNT/snapshots" | paste -sd' ')" = "$wanted" ]
}

@test "at/ finds the snapshot of any time, and none before the first" {
    "$BERGFS" mount "$FIXTURES/java/plain" "$MNT"
    local first last moment
    first=$(of_table java/plain 'm["snapshot-log"][0]["snapshot-id"]')
    last=$(of_table java/plain 'm["snapshot-log"][-1]["snapshot-id"]')
    [ "$(basename "$(readlink -f "$MNT/at/2100-01-01")")" = "$last" ]
    moment=$(of_table java/plain 'm["snapshot-log"][0]["timestamp-ms"]')
    moment=$(date -u -d "@${moment:0:-3}" +%Y-%m-%dT%H:%M:%S).${moment: -3}Z
    [ "$(basename "$(readlink -f "$MNT/at/$moment")")" = "$first" ]
    run readlink "$MNT/at/1999-01-01"
    [ "$status" -ne 0 ]
    [ "$(ls "$MNT/at" | wc -l)" -eq "$(of_table java/plain 'len(m["snapshot-log"])')" ]
}

@test "a warehouse shows its tables below their namespaces" {
    "$BERGFS" mount "$FIXTURES" "$MNT"
    [ -d "$MNT/java/plain/current/" ]
    [ -d "$MNT/pyiceberg/ns/snapshots/current/" ]
    [ -d "$MNT/pyiceberg/ns.nested/empty/current/" ]
    [ ! -e "$MNT/expected" ]
}

@test "an empty table has an empty view with its columns" {
    "$BERGFS" mount "$FIXTURES/java/empty" "$MNT"
    [ "$(sql "select count(*) from '$MNT/current/empty.parquet'")" = 0 ]
    [ "$(sql "describe select * from '$MNT/current/empty.parquet'" | cut -d'|' -f1,2 | paste -sd' ')" \
        = "id|BIGINT price|DECIMAL(9,2) tags|VARCHAR[]" ]
}

@test "names that are dangerous as file names are escaped" {
    "$BERGFS" mount "$FIXTURES/java/odd_names" "$MNT"
    [ "$(ls -A "$MNT/branches" | LC_ALL=C sort | paste -sd'|')" = "%2E.|%2Ehidden|a%252Fb|k%3Dv|main|with space" ]
}

@test "a view describes itself" {
    "$BERGFS" mount "$FIXTURES/java/branched" "$MNT"
    [ "$(jq -r '[.fields[].name] | join(" ")' "$MNT/tags/first/schema.json")" = "id s x" ]
    [ "$(jq -r '[.fields[].name] | join(" ")' "$MNT/current/schema.json")" = "id s more" ]
    grep -qE "\"snapshot-id\": ?\"?$(basename "$(readlink -f "$MNT/current")")\b" "$MNT/current/snapshot.json"
}

@test "two mounts of one table give the same bytes" {
    mkdir "$BATS_TEST_TMPDIR/mnt2"
    for table in all_deletes nested_deletes encodings_v3 lineage evolved_nested; do
        "$BERGFS" mount "$FIXTURES/java/$table" "$MNT"
        "$BERGFS" mount "$FIXTURES/java/$table" "$BATS_TEST_TMPDIR/mnt2"
        (cd "$MNT" && find . -name .bergfs -prune -o -type f -print0 | sort -z | xargs -0 sha256sum) > "$BATS_TEST_TMPDIR/one"
        # The other way round, so that nothing depends on what was read before.
        (cd "$BATS_TEST_TMPDIR/mnt2" && find . -name .bergfs -prune -o -type f -print0 | sort -zr | xargs -0 sha256sum) \
            > "$BATS_TEST_TMPDIR/two"
        diff <(sort "$BATS_TEST_TMPDIR/one") <(sort "$BATS_TEST_TMPDIR/two")
        [ "$(grep -c parquet "$BATS_TEST_TMPDIR/one")" -gt 3 ]
        "$BERGFS" umount "$MNT"
        "$BERGFS" umount "$BATS_TEST_TMPDIR/mnt2"
    done
}
