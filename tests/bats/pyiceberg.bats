#!/usr/bin/env bats
# Catalogs by their names in PyIceberg's configuration.

load mounts

setup() {
    MNT=$BATS_TEST_TMPDIR/mnt
    mkdir -p "$MNT" "$BATS_TEST_TMPDIR/warehouse"
    export HOME=$BATS_TEST_TMPDIR/home
    mkdir "$HOME"
    cat > "$HOME/.pyiceberg.yaml" << EOF
default-catalog: Lake
catalog:
  Lake:
    uri: sqlite:///$BATS_TEST_TMPDIR/catalog.db
    warehouse: file://$BATS_TEST_TMPDIR/warehouse
  refused:
    type: dynamodb
EOF
    cd "$BATS_TEST_TMPDIR" || return 1
    # Written with nothing but the configuration.
    "$PYTHON" - << 'PYTHON'
import pyarrow as pa
from pyiceberg.catalog import load_catalog

for name, rows in ((None, 3), ("other", 5)):
    catalog = load_catalog(name) if name is None else load_catalog(name, **load_catalog("Lake").properties)
    data = pa.table({"id": pa.array(range(rows), pa.int64())})
    catalog.create_namespace("ns")
    catalog.create_table("ns.t", schema=data.schema).append(data)
PYTHON
}

count_is() { # table's path, rows
    [ "$(sql "select count(*) from '$MNT/$1/current/${1##*/}.parquet'")" = "$2" ]
}

@test "the default catalog of PyIceberg, and one by its name" {
    "$BERGFS" mount pyiceberg: "$MNT"
    count_is ns/t 3
    "$BERGFS" umount "$MNT"
    "$BERGFS" mount pyiceberg:Lake "$MNT"
    count_is ns/t 3
}

@test "variables stand over PyIceberg's file, and options over both" {
    PYICEBERG_CATALOG__OTHER__URI=sqlite:///$BATS_TEST_TMPDIR/catalog.db "$BERGFS" mount pyiceberg:other "$MNT"
    count_is ns/t 5
    "$BERGFS" umount "$MNT"
    "$BERGFS" mount -p catalog-name=other pyiceberg:Lake "$MNT"
    count_is ns/t 5
}

@test "entries of PyIceberg that cannot be followed are refused by name" {
    run "$BERGFS" mount pyiceberg:refused "$MNT"
    [ "$status" = 1 ]
    [[ $output == *dynamodb* ]]
    run "$BERGFS" mount pyiceberg:missing "$MNT"
    [ "$status" = 1 ]
    [[ $output == *.pyiceberg.yaml*"lake, refused"* ]]
}
