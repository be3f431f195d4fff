# Shared by the launchers: a server that ends with its launcher, and a launcher that ends with whoever started it.
# shellcheck shell=bash

parent=$PPID
server=
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bergfs-server.XXXXXX")

stop() {
    if [[ -n $server ]]; then
        kill "$server" 2> /dev/null
        wait "$server" 2> /dev/null
    fi
    rm -rf "$scratch"
}
trap stop EXIT
trap 'exit 0' TERM INT HUP

fail() { # message
    printf '%s: %s\n' "$0" "$1" >&2
    exit 1
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Waits until a command succeeds while the server lives.
until_answers() { # seconds command...
    local deadline=$((SECONDS + $1))
    shift
    until "$@" > /dev/null 2>&1; do
        kill -0 "$server" 2> /dev/null || fail "the server ended: $(tail -n 20 "$scratch/log")"
        ((SECONDS < deadline)) || fail "no answer: $(tail -n 20 "$scratch/log")"
        sleep 0.2
    done
}

port_answers() { # port
    (exec 3<> "/dev/tcp/127.0.0.1/$1")
}

# Goes on for as long as the server and whoever started this do.
serve() {
    while kill -0 "$server" 2> /dev/null && kill -0 "$parent" 2> /dev/null; do
        sleep 0.5
    done
}
