#!/usr/bin/env bash
# AWS as moto plays it, Glue and S3 among its services, on 127.0.0.1. Prints its URL when it answers; ends when it is told to, or
# with whoever started it. Keys are of no account.
#
#   start.sh [PORT]
set -uo pipefail
# shellcheck source=tests/servers/serving.bash
source "$(dirname "${BASH_SOURCE[0]}")/../serving.bash"

port=${1:-0}
[[ $port == 0 ]] && port=$(free_port)
target=${CARGO_TARGET_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/target}
moto=$target/venv-servers/bin/moto_server
[[ -x $moto ]] || fail "moto is not installed (scripts/install.sh --tests)"
"$moto" -H 127.0.0.1 -p "$port" > "$scratch/log" 2>&1 &
server=$!
until_answers 60 port_answers "$port"
printf 'http://127.0.0.1:%s\n' "$port"
serve
