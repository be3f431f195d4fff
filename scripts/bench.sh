#!/usr/bin/env bash
# Measures bergfs against plain files and against other readers of Iceberg, in one run on one machine; every answer is
# checked. Prints Markdown; the exit status says whether bergfs answered right.
#
#   scripts/bench.sh                      every table at scale 1: an hour or so, and 2 GB below target/bench
#   scripts/bench.sh --scale 0.01 --runs 1 --peers Polars
#   scripts/bench.sh --tables dv,eqdel    of clean posdel posdelp dv eqdel eqdel1m wide many
#   scripts/bench.sh --limit 20           seconds that a peer may take for a query (60)
#
# Peers are what is installed of: duckdb-iceberg Polars chDB Daft PyIceberg iceberg-rust (`--peers ''`: none). With
# BERGFS=PROGRAM in the environment that program is measured, and nothing is built. See scripts/bench/.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
scale=1 options=()
while (($#)); do
    case $1 in
        --scale)
            scale=$2
            shift 2
            ;;
        --tables | --runs | --peers | --limit)
            options+=("$1" "$2")
            shift 2
            ;;
        *)
            sed -n '2,/^set/ { /^#/ s/^# \{0,1\}//p }' "${BASH_SOURCE[0]}"
            exit 2
            ;;
    esac
done

readers=$target/venv/bin/python
[[ -x $readers ]] || bash "$root/scripts/install.sh" --tests >&2
peers=$target/venv-bench
wanted=$(grep -v '^#' "$root/scripts/bench/requirements.txt")
if [[ ! -f $peers/.installed || $(< "$peers/.installed") != "$wanted" ]]; then
    [[ -x $peers/bin/python ]] || python3 -m venv "$peers"
    for requirement in $wanted; do
        "$peers/bin/pip" install -q --disable-pip-version-check "$requirement" >&2 || echo "bench: NOT INSTALLED: $requirement" >&2
    done
    printf '%s' "$wanted" > "$peers/.installed"
fi

tables=$target/bench/$scale
if [[ ! -f $tables/tables.json || $root/scripts/bench/generate.py -nt $tables/tables.json ]]; then
    echo "bench: making the tables of scale $scale below ${tables#"$root"/}" >&2
    mkdir -p "$tables"
    "$readers" "$root/scripts/bench/generate.py" "$tables" --scale "$scale" --dbgen "$peers/bin/python" >&2
fi

if [[ -z ${BERGFS:-} ]]; then
    cargo build --manifest-path "$root/Cargo.toml" --release --locked >&2
    BERGFS=$target/release/bergfs
fi
"$readers" "$root/scripts/bench/run.py" "$tables" --bergfs "$BERGFS" --readers "$readers" \
    --peers-python "$peers/bin/python" "${options[@]}"
