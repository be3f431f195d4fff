#!/usr/bin/env bash
# PostgreSQL on 127.0.0.1, with a user and a database `iceberg` and encryption if asked for. Prints its URL when it answers; ends
# when it is told to, or with whoever started it.
#
#   start.sh [PORT [CERTIFICATE]]    the authority that signs the server's certificate is written to CERTIFICATE
set -uo pipefail
# shellcheck source=tests/servers/serving.bash
source "$(dirname "${BASH_SOURCE[0]}")/../serving.bash"

port=${1:-$(free_port)}
authority=${2:-}
[[ $port == 0 ]] && port=$(free_port)
bin=$(find /usr/lib/postgresql /usr/local/pgsql -name initdb -printf '%h\n' 2> /dev/null | sort -V | tail -1)
[[ -n $bin ]] || bin=$(dirname "$(command -v initdb)") 2> /dev/null || fail "PostgreSQL is not installed (Debian: postgresql)"

# It does not run as root.
as_user=()
if [[ $(id -u) == 0 ]]; then
    as_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi
data=$scratch/data
mkdir "$data"
chmod 755 "$scratch"
printf 'berg!secret' > "$scratch/password"
if ((${#as_user[@]})); then
    chown -R nobody:nogroup "$data" "$scratch/password"
fi
"${as_user[@]}" "$bin/initdb" -D "$data" -U iceberg -A scram-sha-256 --pwfile="$scratch/password" -N -E UTF8 --locale=C.UTF-8 \
    > "$scratch/log" 2>&1 || fail "initdb: $(tail -n 5 "$scratch/log")"

settings=(-c listen_addresses=127.0.0.1 -c port="$port" -c unix_socket_directories="$data" -c fsync=off)
if [[ -n $authority ]]; then
    tls() { openssl "$@" >> "$scratch/log" 2>&1 || fail "openssl: $(tail -n 5 "$scratch/log")"; }
    tls req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=bergfs tests" -keyout "$scratch/ca.key" -out "$authority"
    tls req -newkey rsa:2048 -nodes -subj "/CN=localhost" -keyout "$data/server.key" -out "$scratch/server.csr"
    printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n' > "$scratch/names"
    tls x509 -req -in "$scratch/server.csr" -CA "$authority" -CAkey "$scratch/ca.key" -CAcreateserial -days 2 \
        -extfile "$scratch/names" -out "$data/server.crt"
    chmod 600 "$data/server.key"
    ((${#as_user[@]})) && chown nobody:nogroup "$data/server.key" "$data/server.crt"
    settings+=(-c ssl=on -c ssl_cert_file=server.crt -c ssl_key_file=server.key)
fi
"${as_user[@]}" "$bin/postgres" -D "$data" "${settings[@]}" >> "$scratch/log" 2>&1 &
server=$!
export PGPASSWORD='berg!secret'
until_answers 60 "$bin/psql" -h 127.0.0.1 -p "$port" -U iceberg -d postgres -c 'select 1'
"$bin/createdb" -h 127.0.0.1 -p "$port" -U iceberg iceberg || fail "createdb failed"
printf 'postgresql://iceberg:berg%%21secret@127.0.0.1:%s/iceberg\n' "$port"
serve
