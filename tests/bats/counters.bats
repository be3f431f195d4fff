#!/usr/bin/env bats
# How much is read: exact counts, since wall time tells nothing on a busy machine.

load mounts

@test "ls -lR reads no data page and no equality delete" {
    for table in all_deletes equality_deletes nested_deletes large; do
        # The size of a text is known once its rows have been read.
        "$BERGFS" mount --no-text --no-ahead "$FIXTURES/java/$table" "$MNT"
        ls -lR "$MNT" > /dev/null
        [ "$(counter pages_decoded)" = 0 ]
        [ "$(counter chunks_transcoded)" = 0 ]
        [ "$(counter equality_deletes_read)" = 0 ]
        [ "$(counter footers_read)" -gt 0 ]
        "$BERGFS" umount "$MNT"
    done
}

@test "a query of one column transcodes the chunks of that column only" {
    # Four files of one row group each, with a deleted row, the eleventh, in each; x3 is (id * 7919 % 1000 + 3) / 8.
    "$BERGFS" mount --no-ahead "$FIXTURES/java/large" "$MNT"
    local file=$MNT/current/large.parquet
    [ "$(sql "select sum(x3) = (select sum((id * 7919 % 1000 + 3) / 8.0) from range(120000) t(id) where id % 30000 != 10) from '$file'")" = True ]
    [ "$(counter chunks_transcoded)" = 4 ]
    [ "$(counter footers_read)" = 4 ]
    # Once more, with nothing to do.
    sql "select sum(x3) from '$file'" > /dev/null
    [ "$(counter chunks_transcoded)" = 4 ]
    sql "select sum(x3), sum(x5) from '$file'" > /dev/null
    [ "$(counter chunks_transcoded)" = 8 ]
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
