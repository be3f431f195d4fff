#!/usr/bin/env bats
# How much is read: exact counts, since wall time tells nothing on a busy machine.

load mounts

@test "ls -lR reads no data page and no equality delete" {
    for table in all_deletes equality_deletes nested_deletes; do
        "$BERGFS" mount "$FIXTURES/java/$table" "$MNT"
        ls -lR "$MNT" > /dev/null
        [ "$(counter pages_decoded)" = 0 ]
        [ "$(counter chunks_transcoded)" = 0 ]
        [ "$(counter equality_deletes_read)" = 0 ]
        [ "$(counter footers_read)" -gt 0 ]
        "$BERGFS" umount "$MNT"
    done
}

@test "a query of one column transcodes the chunks of that column only" {
    copy_table java/encodings
    "$BERGFS" mount "$TABLE" "$MNT"
    # Each of the 8 files has 3 row groups, and a deleted row in each of these.
    sql "select sum(l) from '$MNT/current/encodings.parquet'" > /dev/null
    [ "$(counter chunks_transcoded)" = 24 ]
    sql "select sum(l) from '$MNT/current/encodings.parquet'" > /dev/null
    [ "$(counter chunks_transcoded)" = 24 ]
    [ "$(counter footers_read)" = 8 ]
}

@test "a table without deletes is served as its source bytes" {
    "$BERGFS" mount "$FIXTURES/java/plain" "$MNT"
    [ "$(sql "select count(*), sum(id) from '$MNT/current/plain.parquet'")" = "60|1770" ]
    cat "$MNT"/current/parts/*.parquet > /dev/null
    [ "$(counter chunks_transcoded)" = 0 ]
    [ "$(counter pages_decoded)" = 0 ]
}

@test "the counters that are promised are there" {
    "$BERGFS" mount "$FIXTURES/java/plain" "$MNT"
    for name in manifests_read footers_read source_reads source_bytes chunks_transcoded pages_decoded cache_hits \
        cache_misses memory_bytes; do
        [[ "$(counter "$name")" =~ ^[0-9]+$ ]]
    done
}
