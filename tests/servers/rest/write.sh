#!/usr/bin/env bash
# Writes the fixtures' tables with deletes through a catalog, by Iceberg Java, and what that reads from them.
#
#   write.sh NAMESPACE EXPECTED_DIR PROPERTY=VALUE...     the catalog's properties, as CatalogUtil has them
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bash "$here/start.sh" --install
lib=${CARGO_TARGET_DIR:-$here/../../../target}/rest-server
# Not every S3 server reads bodies with checksums behind them. ORC's writer has the zone of the machine in its timestamps.
export AWS_REQUEST_CHECKSUM_CALCULATION=when_required TZ=UTC
exec java -Xmx768m -cp "$lib/classes:$lib/*" -Dorg.slf4j.simpleLogger.defaultLogLevel=error bergfs.InCatalog "$@"
