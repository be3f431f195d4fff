#!/usr/bin/env bats
# The command line: mounting, unmounting, and what it says when it cannot.

bats_require_minimum_version 1.5.0
load mounts

@test "mount returns once the mount answers, and umount takes it away" {
    run "$BERGFS" mount "$FIXTURES/java/plain" "$MNT"
    [ "$status" -eq 0 ]
    mountpoint -q "$MNT"
    [ -e "$MNT/current/plain.parquet" ]
    run "$BERGFS" umount "$MNT"
    [ "$status" -eq 0 ]
    run ! mountpoint -q "$MNT"
}

@test "--foreground stays until it is told to end, and unmounts" {
    "$BERGFS" mount --foreground "$FIXTURES/java/plain" "$MNT" 3>&- &
    local daemon=$!
    eventually 20 mountpoint -q "$MNT"
    kill -0 "$daemon"
    kill -TERM "$daemon"
    wait "$daemon" || true
    run ! mountpoint -q "$MNT"
}

@test "no source: exit status 1 and the path in the message" {
    run "$BERGFS" mount "$BATS_TEST_TMPDIR/nothing" "$MNT"
    [ "$status" -eq 1 ]
    [[ "$output" == *nothing* ]]
    run ! mountpoint -q "$MNT"
}

@test "a source that is mistyped is refused by what is wrong with it, which is said once" {
    # SOURCE, then what the message has.
    local refused=(
        "sqlite:///nope.db" "nope.db"
        "rest+ftp://x" "rest+ftp: is no kind of source (there are paths, s3://"
        "s4://bucket/t" "s4: is no kind of source (there are paths, s3://"
        "s3:/bucket/t" "a URL begins with s3://"
        "s3://" "names no bucket"
        "abfss://files/t" "abfss://CONTAINER@ACCOUNT"
        "pyiceberg:nope" "pyiceberg:nope: there is no .pyiceberg.yaml in "
        "thrift:localhost" "thrift://host:port"
        "sqlite://" "names no file"
    )
    cd "$BATS_TEST_TMPDIR"
    local at
    for ((at = 0; at < ${#refused[@]}; at += 2)); do
        HOME=$BATS_TEST_TMPDIR run "$BERGFS" mount "${refused[at]}" "$MNT"
        [ "$status" -eq 1 ]
        [[ "$output" == *"${refused[at + 1]}"* ]] || { echo "${refused[at]}: $output" && false; }
        [[ "$output" != *"local storage"* ]]
        [ "$(grep -o "No such file" <<< "$output" | wc -l)" -le 1 ]
    done
}

@test "credentials that cannot be used are named" {
    run "$BERGFS" mount -p "gcs.credentials-file=$BATS_TEST_TMPDIR/none" gs://bucket/t "$MNT"
    [ "$status" -eq 1 ]
    [[ "$output" == *"gcs.credentials-file: $BATS_TEST_TMPDIR/none: No such file"* ]]
    # Half a pair of keys is not filled up with those of somebody else.
    AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b run "$BERGFS" mount -p s3.access-key-id=c s3://bucket/t "$MNT"
    [ "$status" -eq 1 ]
    [[ "$output" == *"s3.secret-access-key: is not set"* ]]
}

@test "no mountpoint: exit status 1 and the path in the message" {
    run "$BERGFS" mount "$FIXTURES/java/plain" "$BATS_TEST_TMPDIR/nowhere"
    [ "$status" -eq 1 ]
    [[ "$output" == *nowhere* ]]
}

@test "a directory without tables is no source of tables that later ones could not join" {
    mkdir "$BATS_TEST_TMPDIR/empty"
    run "$BERGFS" mount --refresh 500ms "$BATS_TEST_TMPDIR/empty" "$MNT"
    if [ "$status" -eq 0 ]; then
        cp -r "$FIXTURES/java/plain" "$BATS_TEST_TMPDIR/empty/"
        eventually 10 test -d "$MNT/plain/current/"
    else
        [ "$status" -eq 1 ]
        [[ "$output" == *empty* ]]
    fi
}

@test "wrong usage: exit status 2" {
    run "$BERGFS" mount
    [ "$status" -eq 2 ]
    run "$BERGFS" mount --refresh never "$FIXTURES/java/plain" "$MNT"
    [ "$status" -eq 2 ]
    [[ "$output" == *"ms, s, m"* ]]
}

@test "umount of what is no mount: exit status 1" {
    run "$BERGFS" umount "$MNT"
    [ "$status" -eq 1 ]
    [[ "$output" == *"$MNT"* ]]
}

@test "--help and --version" {
    run "$BERGFS" --version
    [ "$status" -eq 0 ]
    [[ "$output" =~ ^bergfs\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    run "$BERGFS" mount --help
    [ "$status" -eq 0 ]
    [[ "$output" == *--map-path* ]]
}

@test "a metadata file is a source" {
    local metadata
    metadata=$(ls "$FIXTURES"/java/branched/metadata/v2.metadata.json)
    "$BERGFS" mount "$metadata" "$MNT"
    [ "$(sql "select count(*) from '$(echo "$MNT"/current/*.parquet)'")" = 10 ]
}

@test "the mount is read-only" {
    "$BERGFS" mount "$FIXTURES/java/plain" "$MNT"
    run touch "$MNT/new"
    [[ "$output" == *"Read-only file system"* ]]
    run rm "$MNT/current/plain.parquet"
    [[ "$output" == *"Read-only file system"* ]]
    run mkdir "$MNT/snapshots/x"
    [[ "$output" == *"Read-only file system"* ]]
    run bash -c "echo x > '$MNT/current/plain.parquet'"
    [[ "$output" == *"Read-only file system"* ]]
    findmnt -no OPTIONS "$MNT" | grep -qw ro
    findmnt -no OPTIONS "$MNT" | grep -qw nosuid
    findmnt -no OPTIONS "$MNT" | grep -qw nodev
}
