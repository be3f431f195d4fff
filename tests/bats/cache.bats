#!/usr/bin/env bats
# The cache on disk, through mounts: what survives a mount, what several share, and what becomes of a damaged one.

load mounts

mount_cached() { # table [mountpoint]
    "$BERGFS" mount --cache-dir "$BATS_TEST_TMPDIR/cache" "$FIXTURES/java/$1" "${2:-$MNT}"
}

entries() { # kind
    "$BERGFS" cache --cache-dir "$BATS_TEST_TMPDIR/cache" show | awk -v kind="$1" '$1 == kind { print $2 }'
}

# The daemon of a mount.
daemon_of() { # mountpoint
    pgrep -f -- "mount --daemon -- .* $1\$"
}

is_written() { # kind count
    [ "$(entries "$1")" = "$2" ]
}

sums() { # mountpoint
    (cd "$1/current" && md5sum large.parquet large.csv large.jsonl)
}

@test "sizes and contents are kept for later mounts" {
    mount_cached large
    local size sums
    size=$(stat -Lc %s "$MNT/current/large.csv")
    sums=$(sums "$MNT")
    [ "$(counter texts_sized)" = 2 ]
    "$BERGFS" umount "$MNT"
    eventually 30 is_written text-index 2

    mount_cached large
    [ "$(stat -Lc %s "$MNT/current/large.csv")" = "$size" ]
    [ "$(sums "$MNT")" = "$sums" ]
    for name in texts_sized text_pieces_rendered chunks_transcoded disk_cache_damaged; do
        [ "$(counter $name)" = 0 ]
    done
    [ "$(counter disk_cache_hits)" -gt 0 ]
}

@test "where nobody says where to keep it nothing is kept, and nowhere is looked" {
    HOME=$BATS_TEST_TMPDIR "$BERGFS" mount "$FIXTURES/java/large" "$MNT"
    sums "$MNT"
    [ "$(counter disk_cache_writes)" = 0 ]
    [ ! -e "$BATS_TEST_TMPDIR/.cache" ]
    run "$BERGFS" cache show
    [ "$status" != 0 ]
    [[ "$output" == *"--cache-dir"* ]]
}

@test "the environment says to mounts and to cache alike where it lies" {
    export BERGFS_CACHE_DIR=$BATS_TEST_TMPDIR/kept
    run "$BERGFS" cache show
    [ "$status" = 1 ]
    [[ "$output" == *"/kept/bergfs-cache-1: no mount has kept anything here" ]]
    "$BERGFS" mount --cache-size 1G "$FIXTURES/java/large" "$MNT"
    sums "$MNT"
    "$BERGFS" umount "$MNT"
    kept() { "$BERGFS" cache show | grep -q '^text-index  *2 '; }
    eventually 30 kept
    # An option stands before it.
    run "$BERGFS" cache --cache-dir "$BATS_TEST_TMPDIR/other" show
    [[ "$output" == *"/other/bergfs-cache-1: no mount has kept anything here" ]]
    [[ "$("$BERGFS" cache clear)" == *" bytes freed" ]]
}

@test "Avro and ORC files are converted once for all mounts" {
    local table=orc_evolved
    mount_cached "../java_formats/$table"
    local made
    made=$(md5sum < "$MNT/current/$table.parquet")
    [ "$(counter files_converted)" -gt 0 ]
    local converted
    converted=$(counter files_converted)
    "$BERGFS" umount "$MNT"
    eventually 30 is_written as-parquet "$converted"
    mount_cached "../java_formats/$table"
    [ "$(md5sum < "$MNT/current/$table.parquet")" = "$made" ]
    [ "$(counter files_converted)" = 0 ]
}

@test "a daemon that is killed while it writes leaves a cache that is right" {
    "$BERGFS" mount "$FIXTURES/java/large" "$MNT"
    local right
    right=$(sums "$MNT")
    "$BERGFS" umount "$MNT"
    for moment in 0.02 0.05 0.1 0.2 0.4; do
        "$BERGFS" cache --cache-dir "$BATS_TEST_TMPDIR/cache" clear || true
        mount_cached large
        local pid
        pid=$(daemon_of "$MNT")
        sums "$MNT" > "$BATS_TEST_TMPDIR/partial" 2>&1 &
        sleep "$moment"
        kill -9 "$pid"
        wait || true
        # What a writer that is dead has left half written.
        echo half > "$BATS_TEST_TMPDIR/cache/bergfs-cache-1/new/left"
        mount_cached large
        [ "$(sums "$MNT")" = "$right" ]
        [ "$(counter disk_cache_damaged)" = 0 ]
        eventually 10 test ! -e "$BATS_TEST_TMPDIR/cache/bergfs-cache-1/new/left"
        "$BERGFS" umount "$MNT"
    done
}

@test "two daemons use one directory at once, while it is cleared" {
    local other=$BATS_TEST_TMPDIR/mnt2
    mkdir "$other"
    mount_cached large
    mount_cached large "$other"
    local right
    right=$(sums "$MNT")
    for _ in 1 2 3; do
        sums "$other" > "$BATS_TEST_TMPDIR/other" &
        "$BERGFS" cache --cache-dir "$BATS_TEST_TMPDIR/cache" clear
        [ "$(sums "$MNT")" = "$right" ]
        wait
        [ "$(cat "$BATS_TEST_TMPDIR/other")" = "$right" ]
    done
    [ "$(counter disk_cache_damaged)" = 0 ]
}

@test "altered and torn entries are made again" {
    mount_cached large
    local right
    right=$(sums "$MNT")
    "$BERGFS" umount "$MNT"
    eventually 30 is_written text-index 2
    local entry turn=0
    for entry in "$BATS_TEST_TMPDIR"/cache/bergfs-cache-1/??/*; do
        if ((turn++ % 2)); then
            truncate -s -7 "$entry"
        else
            printf 'X' | dd of="$entry" bs=1 seek=$(($(stat -c %s "$entry") / 2)) conv=notrunc status=none
        fi
    done
    mount_cached large
    [ "$(sums "$MNT")" = "$right" ]
    [ "$(counter disk_cache_damaged)" -gt 0 ]
}

@test "what is kept is shown by kind, and cleared" {
    mount_cached large
    sums "$MNT"
    "$BERGFS" umount "$MNT"
    eventually 30 is_written text-index 2
    [ "$(entries chunk)" -gt 0 ]
    [ "$(entries text)" -gt 0 ]
    local total
    total=$("$BERGFS" cache --cache-dir "$BATS_TEST_TMPDIR/cache" show | awk '$1 == "total" { print $3 }')
    [ "$("$BERGFS" cache --cache-dir "$BATS_TEST_TMPDIR/cache" clear)" = "$total bytes freed" ]
    [ "$(entries total)" = 0 ]
    mount_cached large
    sums "$MNT"
    [ "$(counter chunks_transcoded)" -gt 0 ]
}

@test "the directory is of the given size at most" {
    "$BERGFS" mount --cache-dir "$BATS_TEST_TMPDIR/cache" --cache-size 2M "$FIXTURES/java/large" "$MNT"
    sums "$MNT"
    "$BERGFS" umount "$MNT"
    [ "$(du -s -B1 "$BATS_TEST_TMPDIR/cache" --exclude=bergfs-cache-1 | cut -f1)" -lt 65536 ]
    local total
    total=$("$BERGFS" cache --cache-dir "$BATS_TEST_TMPDIR/cache" show | awk '$1 == "total" { print $3 }')
    ((total <= 2 << 20))
}

@test "a directory that is a link, or others may look into, is refused" {
    mkdir "$BATS_TEST_TMPDIR/cache" "$BATS_TEST_TMPDIR/elsewhere"
    ln -s ../elsewhere "$BATS_TEST_TMPDIR/cache/bergfs-cache-1"
    run mount_cached plain
    [ "$status" = 1 ]
    [[ "$output" == *"--cache-dir: "*"/bergfs-cache-1: not a directory of its own"* ]]
    rm "$BATS_TEST_TMPDIR/cache/bergfs-cache-1"
    mkdir -m 755 "$BATS_TEST_TMPDIR/cache/bergfs-cache-1"
    run mount_cached plain
    [ "$status" = 1 ]
    [[ "$output" == *"others may look into it (mode 755; expected 700)"* ]]
    run mount_cached plain "$BATS_TEST_TMPDIR/cache"
    [ "$status" = 1 ]
    [[ "$output" == *"lies below the mountpoint"* ]]
}
