#!/usr/bin/env bash
# From a fresh checkout to a mounted warehouse: installs what is needed, builds bergfs, mounts sample tables and looks into
# them. Run it again as often as you like.
#
#   scripts/quickstart.sh [MOUNTPOINT]     the default is target/mnt
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
mnt=${1:-$CARGO_TARGET_DIR/mnt}
warehouse=$CARGO_TARGET_DIR/warehouse
bergfs=$CARGO_TARGET_DIR/release/bergfs

# Paths are shown from here, where that is shorter.
short() { printf '%s' "${1#"$root"/}"; }

heading() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# Shows a command, then runs it.
show() {
    local words=$*
    printf '\n\033[2m$\033[0m %s\n' "${words//"$root/"/}"
    "$@"
}

sql() {
    printf '\n\033[2mduckdb>\033[0m %s\n' "${1//"$root/"/}"
    "$python" - "$1" << 'PYTHON'
import sys
import duckdb
duckdb.sql("set timezone = 'UTC'")
duckdb.sql(sys.argv[1]).show()
PYTHON
}

heading "1. Install"
scripts/install.sh
python=$CARGO_TARGET_DIR/venv/bin/python
[[ -x $python ]] || python=$CARGO_TARGET_DIR/venv-duckdb/bin/python

heading "2. Build"
cargo build --release --locked

heading "3. A sample warehouse"
# Tables that Iceberg's own Java library wrote: see scripts/fixtures.
if [[ ! -d $warehouse/shop ]]; then
    mkdir -p "$warehouse/unpacked"
    tar -C "$warehouse/unpacked" -xzf tests/fixtures/java.tar.gz
    mkdir -p "$warehouse/shop"
    for table in plain position_deletes equality_deletes deletion_vectors evolved branched lineage; do
        mv "$warehouse/unpacked/java/$table" "$warehouse/shop/"
    done
    rm -r "$warehouse/unpacked"
fi
show ls "$warehouse/shop"

heading "4. Mount it"
mkdir -p "$mnt"
mountpoint -q "$mnt" && "$bergfs" umount "$mnt"
show "$bergfs" mount "$warehouse" "$mnt"

heading "5. Look around"
table=$mnt/shop/deletion_vectors
show ls "$mnt/shop"
show ls "$table" "$table/snapshots"
show ls -l "$table/current/" "$table/current/parts"
show readlink "$table/current" "$mnt/shop/branched/branches/feature%2Fx"

heading "6. Read it: the deletes are applied"
raw=$warehouse/shop/deletion_vectors/data
sql "select count(*) as rows_in_the_bare_files from '$raw/*.parquet'"
sql "select count(*) as rows_now, min(id), max(id) from '$table/current/deletion_vectors.parquet'"
sql "select * from '$table/current/deletion_vectors.parquet' order by id limit 5"

heading "7. Travel in time"
first=$(find "$table/snapshots" -mindepth 1 -maxdepth 1 -printf '%T@ %f\n' | sort -n | head -1 | cut -d' ' -f2)
sql "select count(*) as rows_then from '$table/snapshots/$first/deletion_vectors.parquet'"
sql "select * from '$mnt/shop/branched/tags/first/branched.parquet' order by id limit 3"
sql "select * from '$mnt/shop/branched/branches/feature%2Fx/branched.parquet' order by id desc limit 3"

heading "8. Done"
cat << END
It is mounted at $(short "$mnt"): look into it with any program. To unmount it:

  $(short "$bergfs") umount $(short "$mnt")

To mount tables of your own:

  $(short "$bergfs") mount /path/to/warehouse $(short "$mnt")
END
