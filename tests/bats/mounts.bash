# Shared by the suites: the binary, unpacked fixtures, and mounts that are gone after each test.
# shellcheck shell=bash

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
BERGFS=${BERGFS:-$TARGET/debug/bergfs}
PYTHON=$TARGET/venv/bin/python
FIXTURES=$TARGET/fixtures
export ROOT TARGET BERGFS PYTHON FIXTURES

# Unpacks the fixtures once (mounting.py does it), and makes the directory to mount on.
setup() {
    PYTHONPATH=$ROOT/tests/readers "$PYTHON" -c 'import mounting; mounting.fixtures()'
    MNT=$BATS_TEST_TMPDIR/mnt
    mkdir -p "$MNT"
}

teardown() {
    local point
    for point in "$BATS_TEST_TMPDIR"/mnt*; do
        mountpoint -q "$point" || continue
        "$BERGFS" umount "$point" || fusermount3 -u -z "$point"
    done
}

# A writable copy of one fixture table; the mount finds it where it lies.
copy_table() { # warehouse/table
    cp -r "$FIXTURES/$1" "$BATS_TEST_TMPDIR/"
    export TABLE=$BATS_TEST_TMPDIR/${1##*/}
}

# The value of one counter.
counter() { # name
    awk -v name="$1" '$1 == name { print $2 }' "$MNT/.bergfs/stats"
}

# What a Python expression says of a fixture's newest metadata `m` (jq rounds snapshot ids).
of_table() { # table expression
    "$PYTHON" - "$FIXTURES/$1/metadata" "$2" << 'PYTHON'
import json
import pathlib
import sys

newest = max(pathlib.Path(sys.argv[1]).glob("v*.metadata.json"), key=lambda path: int(path.name.split(".")[0][1:]))
m = json.loads(newest.read_text())
answer = eval(sys.argv[2])
print(" ".join(map(str, answer)) if isinstance(answer, list) else answer)
PYTHON
}

# DuckDB's answer, one row a line, fields separated by a bar.
sql() { # statement
    "$PYTHON" - "$1" << 'PYTHON'
import sys
import duckdb
db = duckdb.connect()
db.execute("set timezone = 'UTC'")
for row in db.execute(sys.argv[1]).fetchall():
    print("|".join("" if value is None else str(value) for value in row))
PYTHON
}

# Waits until a command succeeds; gives up after some seconds.
eventually() { # seconds command...
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}
