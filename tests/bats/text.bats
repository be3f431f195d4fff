#!/usr/bin/env bats
# Views as text under ordinary programs: every program on every size of text, the first time and later, and two at once.
# What each says of the file in the mount is what it says of the same text in an ordinary file, which Python wrote.

load mounts

# Six million take hours: BERGFS_TEXT_ROWS=6000000 with a release binary in $BERGFS. BERGFS_TEXT_TOOLS names the
# commands (a regular expression) if not all are wanted.
ROWS=${BERGFS_TEXT_ROWS:-100000}
TOOLS_WANTED=${BERGFS_TEXT_TOOLS:-.}

setup_file() {
    load mounts
    local rows
    for rows in 100 "$ROWS"; do
        "$PYTHON" "$ROOT/tests/readers/text_table.py" "$BATS_FILE_TMPDIR/$rows" "$BATS_FILE_TMPDIR/reference-$rows" "$rows"
    done
}

# Commands for any text, one a line; $F is the file, $T a directory to write in, $TOOLS the ways of Python.
any_commands() {
    cat << 'COMMANDS'
cat "$F"
head -n 5 "$F"
head -n 70000 "$F"
head -c 1000 "$F"
tail -n 5 "$F"
tail -n +50 "$F"
tail -c 1000 "$F"
wc -l < "$F"
wc -c < "$F"
stat -c %s "$F"
grep -c 7 "$F"
sort "$F" | uniq -c
awk 'NR == 3 { print; exit }' "$F"
sed -n 20,40p "$F"
sed -n '$p' "$F"
cp "$F" "$T/copy" && cat "$T/copy"
rsync "$F" "$T/copy" && cat "$T/copy"
tar -C "${F%/*}" -cf - "${F##*/}" | tar -xOf -
md5sum < "$F"
split -b 100K --filter=md5sum "$F"
dd if="$F" bs=512 skip=3 count=5 status=none
dd if="$F" bs=1000 status=none | tail -c 100
"$PYTHON" "$TOOLS" read "$F"
"$PYTHON" "$TOOLS" mapped "$F"
"$PYTHON" "$TOOLS" size "$F"
"$PYTHON" "$TOOLS" seek "$F"
COMMANDS
}

csv_commands() {
    cat << 'COMMANDS'
awk -F, '{ sum += $1 } END { print NR, sum }' "$F"
cut -d, -f1,4 "$F"
"$PYTHON" "$TOOLS" pandas "$F"
"$PYTHON" "$TOOLS" polars "$F"
"$PYTHON" "$TOOLS" polars_scan "$F"
"$PYTHON" "$TOOLS" duckdb "$F"
COMMANDS
}

jsonl_commands() {
    cat << 'COMMANDS'
awk -F'[:,]' '{ sum += $2 } END { print NR, sum }' "$F"
cut -d: -f2 "$F"
jq -c '[.id, .amount]' "$F"
"$PYTHON" "$TOOLS" pandas_json "$F"
"$PYTHON" "$TOOLS" polars_json "$F"
"$PYTHON" "$TOOLS" polars_scan_json "$F"
"$PYTHON" "$TOOLS" duckdb_json "$F"
COMMANDS
}

# Runs a command on a file, and gives what identifies its output; the output itself where it failed.
outcome() { # command file directory
    mkdir -p "$3"
    local status=0
    F=$2 T=$3 TOOLS=$ROOT/tests/readers/text_tools.py bash -c "$1" > "$3/output" 2>&1 || status=$?
    ((status == 0)) || cat "$3/output"
    md5sum < "$3/output"
}

# The same for an ordinary file, found out once.
expected() { # command file
    local kept
    kept=$BATS_FILE_TMPDIR/expected-$(md5sum <<< "$1 $2" | cut -c1-32)
    [ -s "$kept" ] || outcome "$1" "$2" "$BATS_TEST_TMPDIR/0" > "$kept"
    cat "$kept"
}

# Each command in a fresh mount: the first time by two at once, then again.
check_commands() { # rows csv|jsonl options...
    local rows=$1 form=$2 command expected failed=0 first second again
    shift 2
    local reference=$BATS_FILE_TMPDIR/reference-$rows/t.$form file=$MNT/current/t.$form scratch=$BATS_TEST_TMPDIR
    while IFS= read -r command; do
        expected=$(expected "$command" "$reference")
        [[ $expected != *$'\n'* ]] || { echo "$command: $expected"; failed=1; }
        "$BERGFS" mount "$@" "$BATS_FILE_TMPDIR/$rows/db/t" "$MNT"
        outcome "$command" "$file" "$scratch/1" > "$scratch/second" &
        first=$(outcome "$command" "$file" "$scratch/2")
        wait $!
        second=$(< "$scratch/second")
        again=$(outcome "$command" "$file" "$scratch/1")
        if [[ $first != "$expected" || $second != "$expected" || $again != "$expected" ]]; then
            echo "$rows rows, $form, $*: $command: first $first, at once $second, again $again, expected $expected"
            failed=1
        fi
        [ -z "$(< "$MNT/.bergfs/errors")" ]
        "$BERGFS" umount "$MNT"
    done < <({ any_commands; "${form}_commands"; } | grep -E "$TOOLS_WANTED")
    [ "$failed" = 0 ]
}

@test "a small CSV, by every program" {
    check_commands 100 csv
}

@test "small JSON lines, by every program" {
    check_commands 100 jsonl
}

@test "a CSV of many pieces, by every program" {
    check_commands "$ROWS" csv
}

@test "JSON lines of many pieces, by every program" {
    check_commands "$ROWS" jsonl
}

@test "a CSV above --text-limit, by every program" {
    check_commands "$ROWS" csv --text-limit 1M
}

@test "JSON lines above --text-limit, by every program" {
    check_commands "$ROWS" jsonl --text-limit 1M
}

@test "what DuckDB, pandas, Polars and Python read back are the rows of the Parquet file" {
    "$PYTHON" "$ROOT/tests/readers/text_roundtrip.py"
}

@test "JSON lines of every fixture are what the reference implementation reads" {
    "$PYTHON" "$ROOT/tests/readers/text_expected.py"
}

@test "jq reads JSON lines" {
    local rows
    for rows in 100 "$ROWS"; do
        "$BERGFS" mount "$BATS_FILE_TMPDIR/$rows/db/t" "$MNT"
        jq -c . "$MNT/current/t.jsonl" | cmp - <(jq -c . "$BATS_FILE_TMPDIR/reference-$rows/t.jsonl")
        cmp "$MNT/current/t.jsonl" "$BATS_FILE_TMPDIR/reference-$rows/t.jsonl"
        "$BERGFS" umount "$MNT"
    done
}

@test "diff of two snapshots shows the rows that came" {
    "$BERGFS" mount "$BATS_FILE_TMPDIR/$ROWS/db/t" "$MNT"
    local first
    first=$(readlink -f "$(printf '%s\n' "$MNT"/at/* | head -1)")
    cmp "$first/t.csv" "$BATS_FILE_TMPDIR/reference-$ROWS/first.csv"
    [ "$(diff "$first/t.csv" "$MNT/current/t.csv" | grep -c '^>')" = 10 ]
    [ "$(diff "$first/t.csv" "$MNT/current/t.csv" | grep -c '^<')" = 0 ]
}

@test "less shows the end and the beginning" {
    command -v tmux > /dev/null || skip "no tmux"
    "$BERGFS" mount "$BATS_FILE_TMPDIR/$ROWS/db/t" "$MNT"
    local session=bergfs-$$
    shows() { tmux -L "$session" capture-pane -p | grep -qF "$1"; }
    tmux -L "$session" new-session -d -x 100 -y 20 "less '$MNT/current/t.csv'"
    eventually 20 shows "id,name,half,amount,at"
    tmux -L "$session" send-keys G
    eventually 20 shows "$(tail -1 "$BATS_FILE_TMPDIR/reference-$ROWS/t.csv")"
    tmux -L "$session" send-keys g
    eventually 20 shows "id,name,half,amount,at"
    tmux -L "$session" send-keys q
    tmux -L "$session" kill-server 2> /dev/null || true
}

@test "the first lines of a long text render one piece" {
    "$BERGFS" mount "$BATS_FILE_TMPDIR/$ROWS/db/t" "$MNT"
    [ "$(head -5 "$MNT/current/t.csv" | md5sum)" = "$(head -5 "$BATS_FILE_TMPDIR/reference-$ROWS/t.csv" | md5sum)" ]
    [ "$(counter text_pieces_rendered)" = 1 ]
    [ "$(counter texts_sized)" = 0 ]
}

@test "a reader that seeks and readers that do not go on together" {
    "$BERGFS" mount --text-limit 1M "$BATS_FILE_TMPDIR/$ROWS/db/t" "$MNT"
    local reference=$BATS_FILE_TMPDIR/reference-$ROWS/t.csv file=$MNT/current/t.csv jobs=() job
    for job in 1 2 3; do
        cmp "$file" "$reference" &
        jobs+=($!)
    done
    for job in 900 10 500 3 700; do
        cmp <(dd if="$file" bs=4096 skip="$job" count=1 status=none) <(dd if="$reference" bs=4096 skip="$job" count=1 status=none)
    done
    for job in "${jobs[@]}"; do wait "$job"; done
    # All of them shared one rendering.
    [ "$(counter texts_sized)" = 1 ]
    # The first snapshot's rows, and the ten that came.
    [ "$(counter text_pieces_rendered)" = "$(((ROWS + 8191) / 8192 + 1))" ]
}
