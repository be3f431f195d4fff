#!/usr/bin/env bash
# A Hive metastore on 127.0.0.1, with a database of its own. Prints its URL when it answers; ends when it is told to, or with
# whoever started it.
#
#   start.sh [PORT [WAREHOUSE]]
#
# The metastore is Hive's own (2.3), which PySpark brings along for its tables; it takes half a minute to start.
set -uo pipefail
# shellcheck source=tests/servers/serving.bash
source "$(dirname "${BASH_SOURCE[0]}")/../serving.bash"

port=${1:-0}
[[ $port == 0 ]] && port=$(free_port)
warehouse=${2:-$scratch/warehouse}
mkdir -p "$warehouse"
target=${CARGO_TARGET_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/target}
jars=$(compgen -G "$target/venv/lib/python3*/site-packages/pyspark/jars") || fail "PySpark is not installed (scripts/install.sh --tests)"
command -v java > /dev/null || fail "Java is not installed"

# `hive.in.tez.test` makes it prepare the tables of its locks, which a commit takes.
{
    printf '<configuration>\n'
    while read -r name value; do
        printf '<property><name>%s</name><value>%s</value></property>\n' "$name" "$value"
    done << EOF
javax.jdo.option.ConnectionURL jdbc:derby:;databaseName=$scratch/derby;create=true
datanucleus.connectionPoolingType HikariCP
datanucleus.schema.autoCreateAll true
hive.metastore.schema.verification false
hive.metastore.warehouse.dir file://$warehouse
hive.async.log.enabled false
hive.in.tez.test true
EOF
    printf '</configuration>\n'
} > "$scratch/hive-site.xml"
cd "$scratch" || exit 1
java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dhive.log.dir="$scratch" -Dderby.system.durability=test -cp "$scratch:$jars/*" \
    org.apache.hadoop.hive.metastore.HiveMetaStore -p "$port" > "$scratch/log" 2>&1 &
server=$!
until_answers 120 port_answers "$port"
printf 'thrift://127.0.0.1:%s\n' "$port"
serve
