# Servers that a suite starts once, by the launchers in tests/servers, and stops at its end.
# shellcheck shell=bash

SERVERS_PYTHON=${CARGO_TARGET_DIR:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/target}/venv-servers/bin/python
export SERVERS_PYTHON

# Starts a launcher; whether it answers is asked by `need_server`.
start_server() { # launcher arguments...
    local name=$1 seconds=0
    shift
    # What an earlier server said is not this one's answer.
    rm -f "$BATS_FILE_TMPDIR/$name.url"
    "$BATS_TEST_DIRNAME/../servers/$name/start.sh" "$@" > "$BATS_FILE_TMPDIR/$name.url" 2> "$BATS_FILE_TMPDIR/$name.log" 3>&- &
    local launcher=$!
    echo "$launcher" > "$BATS_FILE_TMPDIR/$name.pid"
    until [[ -s $BATS_FILE_TMPDIR/$name.url ]] || ! kill -0 "$launcher" 2> /dev/null || ((seconds >= 1200)); do
        sleep 0.1
        seconds=$((seconds + 1))
    done
}

# A server that could not be started fails no test, loudly.
need_server() { # launcher
    [[ -s $BATS_FILE_TMPDIR/$1.url ]] || skip "NO SERVER $1: $(tail -n 3 "$BATS_FILE_TMPDIR/$1.log" | tr '\n' ' ')"
}

server_url() { # launcher
    head -n 1 "$BATS_FILE_TMPDIR/$1.url"
}

stop_servers() {
    local pid
    for pid in "$BATS_FILE_TMPDIR"/*.pid; do
        [[ -e $pid ]] || continue
        kill "$(< "$pid")" 2> /dev/null || true
        rm -f "$pid"
    done
}

# Makes a port of this machine lead to another one, until `unforward`.
forward() { # port target
    "$SERVERS_PYTHON" "$BATS_TEST_DIRNAME/../servers/forward.py" "$1" "$2" 3>&- &
    FORWARDER=$!
    eventually 10 bash -c "exec 4<> /dev/tcp/127.0.0.1/$1"
}

unforward() {
    kill "$FORWARDER" 2> /dev/null || true
    wait "$FORWARDER" 2> /dev/null || true
}

free_port() {
    "$SERVERS_PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
