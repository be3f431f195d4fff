#!/usr/bin/env bats
# Broken tables: an error for what depends on the broken file, its name in .bergfs/errors, and everything else goes on.

load mounts

# Cuts a file to its first bytes.
truncated() { # file bytes
    truncate -s "$2" "$1"
}

refused() { # path
    run cat "$1"
    [ "$status" -ne 0 ]
    [[ "$output" == *"Input/output error"* || "$output" == *"not supported"* ]]
}

reported() { # words...
    local word
    for word in "$@"; do
        grep -qF -- "$word" "$MNT/.bergfs/errors"
    done
}

@test "a data file with a torn footer" {
    copy_table java/plain
    local file
    file=$(ls "$TABLE"/data/*.parquet | head -1)
    truncated "$file" 100
    "$BERGFS" mount "$TABLE" "$MNT"
    refused "$MNT/current/plain.parquet"
    reported "$(basename "$file")"
    # The other parts are read.
    local good=0 part
    for part in "$MNT"/current/parts/*.parquet; do
        cat "$part" > /dev/null 2>&1 && good=$((good + 1))
    done
    [ "$good" = 3 ]
}

@test "a data file that is gone is an error, not fewer rows" {
    copy_table java/plain
    local file
    file=$(ls "$TABLE"/data/*.parquet | tail -1)
    rm "$file"
    "$BERGFS" mount "$TABLE" "$MNT"
    refused "$MNT/current/plain.parquet"
    reported "$(basename "$file")"
    # The first snapshot does not need it.
    local first
    first=$(ls -tr "$MNT/snapshots" | head -1)
    [ "$(sql "select count(*) from '$MNT/snapshots/$first/plain.parquet'")" = 20 ]
}

@test "a torn manifest" {
    copy_table java/plain
    local newest
    newest=$(ls -t "$TABLE"/metadata/*-m0.avro | head -1)
    truncated "$newest" 200
    "$BERGFS" mount "$TABLE" "$MNT"
    run ls -l "$MNT/current/"
    refused "$MNT/current/plain.parquet" || [ "$status" -ne 0 ]
    [ -s "$MNT/.bergfs/errors" ]
    local first
    first=$(ls -tr "$MNT/snapshots" | head -1)
    [ "$(sql "select count(*) from '$MNT/snapshots/$first/plain.parquet'")" = 20 ]
}

@test "a damaged deletion vector" {
    copy_table java/deletion_vectors
    local puffin
    puffin=$(ls -t "$TABLE"/data/*.puffin | tail -1)
    # A byte of the bitmap: its checksum is wrong then.
    printf '\xee' | dd of="$puffin" bs=1 seek=30 conv=notrunc status=none
    "$BERGFS" mount "$TABLE" "$MNT"
    local bad=0 id
    for id in "$MNT"/snapshots/*; do
        cat "$id/deletion_vectors.parquet" > /dev/null 2>&1 || bad=$((bad + 1))
    done
    [ "$bad" -ge 1 ]
    reported "$(basename "$puffin")"
    id=$(ls -tr "$MNT/snapshots" | head -1)
    [ "$(sql "select count(*) from '$MNT/snapshots/$id/deletion_vectors.parquet'")" = 100 ]
}

@test "a torn delete file" {
    copy_table java/position_deletes
    local file
    file=$(ls "$TABLE"/data/pos-deletes-*.parquet | head -1)
    truncated "$file" 60
    "$BERGFS" mount "$TABLE" "$MNT"
    refused "$MNT/current/position_deletes.parquet"
    reported "$(basename "$file")"
}

@test "format version 4 is refused with a message" {
    copy_table java/plain
    local metadata
    metadata=$(ls -v "$TABLE"/metadata/v*.metadata.json | tail -1)
    jq '."format-version" = 4' "$metadata" > "$metadata.new"
    mv "$metadata.new" "$metadata"
    run "$BERGFS" mount "$TABLE" "$MNT"
    if [ "$status" -eq 0 ]; then
        refused "$MNT/current/plain.parquet"
        reported version
    else
        [[ "$output" == *version*4* || "$output" == *4*version* ]]
    fi
}

@test "one broken table leaves the others of a warehouse alone" {
    mkdir "$BATS_TEST_TMPDIR/warehouse"
    cp -r "$FIXTURES/java/plain" "$FIXTURES/java/lineage" "$BATS_TEST_TMPDIR/warehouse/"
    for metadata in "$BATS_TEST_TMPDIR"/warehouse/lineage/metadata/v*.metadata.json; do
        truncated "$metadata" 50
    done
    "$BERGFS" mount "$BATS_TEST_TMPDIR/warehouse" "$MNT"
    [ "$(sql "select count(*) from '$MNT/plain/current/plain.parquet'")" = 60 ]
    run cat "$MNT/lineage/current/lineage.parquet"
    [ "$status" -ne 0 ]
    reported lineage
}

@test "a data path that leads out of the table is refused" {
    copy_table java/plain
    local file
    file=$(ls "$TABLE"/data/*.parquet | head -1)
    mv "$file" "$BATS_TEST_TMPDIR/outside.parquet"
    ln -s "$BATS_TEST_TMPDIR/outside.parquet" "$file"
    "$BERGFS" mount "$TABLE" "$MNT"
    refused "$MNT/current/plain.parquet"
    reported "$(basename "$file")"
}

@test "a directory for temporary files that is not there is named where one is needed" {
    TMPDIR=/no/such/directory "$BERGFS" mount "$FIXTURES/java_formats/avro_evolved" "$MNT"
    run cat "$MNT/current/avro_evolved.parquet"
    [ "$status" -ne 0 ]
    grep -q "avro: its conversion to Parquet: /no/such/directory: No such file" "$MNT/.bergfs/errors"
}
