#!/usr/bin/env bats
# Virtual files under ordinary programs: any way of reading gives the same bytes.

load mounts

@test "cat, cp, dd, tail, rsync and tar read the same bytes" {
    "$BERGFS" mount "$FIXTURES/java/nested_deletes" "$MNT"
    local file=$MNT/current/nested_deletes.parquet size sum copy=$BATS_TEST_TMPDIR/copy
    mkdir "$copy"
    size=$(stat -c %s "$file")
    sum=$(md5sum < "$file")
    # shellcheck disable=SC2002  # cat is what is tried
    [ "$(cat "$file" | md5sum)" = "$sum" ]
    [ "$(wc -c < "$file")" -eq "$size" ]
    cp "$file" "$copy/cp"
    [ "$(md5sum < "$copy/cp")" = "$sum" ]
    dd if="$file" bs=777 status=none | md5sum | grep -qF "$sum"
    # The tail first, then the head: reads in any order.
    dd if="$file" of="$copy/dd" bs=1000 skip=3 seek=3 status=none
    dd if="$file" of="$copy/dd" bs=1000 count=3 conv=notrunc status=none
    cmp "$file" "$copy/dd"
    [ "$(tail -c 4 "$file")" = PAR1 ]
    [ "$(head -c 4 "$file")" = PAR1 ]
    rsync -rL "$MNT/current/" "$copy/rsync"
    cmp "$file" "$copy/rsync/nested_deletes.parquet"
    tar -C "$MNT" -chf - current | tar -C "$copy" -xf -
    cmp "$file" "$copy/current/nested_deletes.parquet"
    diff -r "$MNT/current/parts" "$copy/current/parts"
}

@test "rows: deletes are applied, in the whole file and in the parts" {
    "$BERGFS" mount "$FIXTURES/java" "$MNT"
    for table in position_deletes deletion_vectors equality_deletes all_deletes; do
        local wanted
        wanted=$(jq '.views."branches/main".rows | length' "$FIXTURES/expected/$table.json")
        [ "$(sql "select count(*) from '$MNT/$table/current/$table.parquet'")" = "$wanted" ]
        [ "$(sql "select count(*) from '$MNT/$table/current/parts/*.parquet'")" = "$wanted" ]
    done
}

@test "time travel: each snapshot, tag and branch has its own rows" {
    "$BERGFS" mount "$FIXTURES/java/branched" "$MNT"
    [ "$(sql "select count(*) from '$MNT/tags/first/branched.parquet'")" = 10 ]
    [ "$(sql "select count(*) from '$MNT/current/branched.parquet'")" = 18 ]
    [ "$(sql "select count(*) from '$MNT/branches/feature%2Fx/branched.parquet'")" = 14 ]
    [ "$(sql "select max(id), max(more) from '$MNT/branches/feature%2Fx/branched.parquet'")" = "104|104" ]
    for id in $(of_table java/branched '[s["snapshot-id"] for s in m["snapshots"]]'); do
        [ "$(sql "select count(*) from '$MNT/snapshots/$id/branched.parquet'")" \
            = "$(jq ".views.\"snapshots/$id\".rows | length" "$FIXTURES/expected/branched.json")" ]
    done
}

@test "lineage: row ids stay with their rows when they move" {
    "$BERGFS" mount "$FIXTURES/java/lineage" "$MNT"
    # Row 7 was updated in the compaction, row 9 moved as it was, row 99 is new there.
    lineage_of() { sql "select _row_id, _last_updated_sequence_number from '$MNT/current/lineage.parquet' where id = $1"; }
    [ "$(lineage_of 7)" = "7|5" ]
    [ "$(lineage_of 9)" = "9|1" ]
    [ "$(lineage_of 12)" = "12|2" ]
    [ "$(lineage_of 99 | cut -d'|' -f2)" = 5 ]
    "$BERGFS" umount "$MNT"
    "$BERGFS" mount --lineage never "$FIXTURES/java/lineage" "$MNT"
    run sql "select _row_id from '$MNT/current/lineage.parquet'"
    [ "$status" -ne 0 ]
}

@test "metadata columns tell where a row is stored" {
    "$BERGFS" mount --metadata-columns "$FIXTURES/java/position_deletes" "$MNT"
    # Row 22 is the 23rd of its file: deleted rows before it count.
    [ "$(sql "select _pos from '$MNT/current/position_deletes.parquet' where id = 22")" = 22 ]
    [ "$(sql "select count(distinct _file) from '$MNT/current/position_deletes.parquet'")" -ge 2 ]
}

@test "the files of .bergfs have the time of the mount, and tar takes a whole mount" {
    local before file seconds
    before=$(date +%s)
    "$BERGFS" mount "$FIXTURES/java/deletion_vectors" "$MNT"
    for file in "$MNT/.bergfs" "$MNT"/.bergfs/*; do
        seconds=$(stat -c %Y "$file")
        [ "$seconds" -ge "$((before - 2))" ]
        [ "$seconds" -le "$(($(date +%s) + 2))" ]
    done
    tar -C "$MNT" -cf "$BATS_TEST_TMPDIR/all.tar" . 2> "$BATS_TEST_TMPDIR/said"
    [ ! -s "$BATS_TEST_TMPDIR/said" ]
    tar -tf "$BATS_TEST_TMPDIR/all.tar" | grep -q '^./\.bergfs/stats$'
    tar -tf "$BATS_TEST_TMPDIR/all.tar" | grep -q '/deletion_vectors\.parquet$'
}
