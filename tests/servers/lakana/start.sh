#!/usr/bin/env bash
# Lakana, a REST catalog that shares no code with the reference implementation, on 127.0.0.1. Prints its URL when it answers; ends
# when it is told to, or with whoever started it. What it knows lies below DIRECTORY, and its administrator's token in
# DIRECTORY/token.
#
#   start.sh PORT DIRECTORY
set -uo pipefail
# shellcheck source=tests/servers/serving.bash
source "$(dirname "${BASH_SOURCE[0]}")/../serving.bash"

port=${1:?PORT}
[[ $port == 0 ]] && port=$(free_port)
directory=$(mkdir -p "${2:?DIRECTORY}" && cd "$2" && pwd)
target=${CARGO_TARGET_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/target}
lakana=$target/venv-lakana/bin/lakana-server
[[ -x $lakana ]] || fail "Lakana is not installed (scripts/install.sh --tests)"

export LAKANA_DATABASE__URL=sqlite:///$directory/catalog.sqlite LAKANA_PORT=$port LAKANA_BOOTSTRAP_TOKEN_FILE=$directory/token
"$lakana" migrate > "$scratch/log" 2>&1 || fail "$(tail -n 20 "$scratch/log")"
"$lakana" >> "$scratch/log" 2>&1 &
server=$!
until_answers 60 port_answers "$port"
printf 'http://127.0.0.1:%s\n' "$port"
serve
