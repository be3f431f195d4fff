#!/usr/bin/env bash
# Starts the reference implementation's REST catalog (Iceberg Java, parts of it from Maven) on 127.0.0.1.
#
#   start.sh PORT WAREHOUSE_DIR [PROPERTY=VALUE...]
#
# Prints the server's URL once it answers (PORT 0: any that is free), then serves until it is told to stop (TERM) or its
# parent ends. Tables lie below WAREHOUSE_DIR, the catalog in WAREHOUSE_DIR/catalog.sqlite, so
# a server that is started again knows them. Properties are the catalog's: warehouse=s3://bucket/dir
# io-impl=org.apache.iceberg.aws.s3.S3FileIO s3.endpoint=… include-credentials=true for tables in S3.
#
#   start.sh --install    only fetches and compiles what it needs, and what write.sh does, below target/ (about 150 MB; once)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
lib=${CARGO_TARGET_DIR:-$root/target}/rest-server
classes=$lib/classes

fixtures=$root/scripts/fixtures/java/src/main/java
# What these need of the fixtures' classes is compiled with them; the others need a later Iceberg.
sources=("$here/LoopbackServer.java" "$fixtures/bergfs/InCatalog.java")

# What was compiled, so that a change is noticed.
if ! cat "$here/pom.xml" "$here"/*.java "$fixtures"/bergfs/*.java | cmp -s - "$lib/compiled"; then
    mkdir -p "$classes"
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$lib" >&2
    javac -nowarn -Xlint:none -d "$classes" -cp "$lib/*" -sourcepath "$fixtures" "${sources[@]}" >&2
    cat "$here/pom.xml" "$here"/*.java "$fixtures"/bergfs/*.java > "$lib/compiled"
fi
if [[ ${1:-} == --install ]]; then
    exit 0
fi
port=${1:?PORT}
warehouse=$(mkdir -p "${2:?WAREHOUSE_DIR}" && cd "$2" && pwd)
shift 2

# Not every S3 server reads bodies with checksums behind them.
export AWS_REQUEST_CHECKSUM_CALCULATION=when_required
# `exec`, so that the server is what the caller's signals reach, and has the caller for its parent.
exec java -Xmx512m -cp "$classes:$lib/*" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn org.apache.iceberg.rest.LoopbackServer \
    "$port" "uri=jdbc:sqlite:$warehouse/catalog.sqlite" "warehouse=$warehouse" "$@"
