"""The corpus: tables that other engines wrote, each mounted, each view's rows against what Iceberg Java reads from it.

    corpus.py [NAME PART]...        only the tables whose name has one of the parts in it

The corpus is no part of this repository. It is looked for in $BERGFS_CORPUS, else in ../shared/corpus beside the checkout:
INDEX.tsv says what there is, MAPS.json where a table's recorded paths lie now, and a table's EXPECTED.java.json has for each
snapshot its row count and up to 2,000 of its rows.
"""

import concurrent.futures
import csv
import decimal
import json
import os
import pathlib
import struct
import sys
import traceback

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "readers"))
from canonical import entries, from_arrow, number  # noqa: E402
from mounting import ROOT, Mount  # noqa: E402

LINEAGE = ["_row_id", "_last_updated_sequence_number"]

# What to know about single tables: why a view may be refused, or what differs from EXPECTED.java.json and why.
REFUSED = {
    "dremio/internal_metadata_inconsistent_partitions": (
        "no field ids, and columns in another order than the table's ids: the reference takes the third column, EXPR$2, for EXPR$0"
    ),
    "duckdb-iceberg/timestamptz_ns": "non-conformant: see its EXPECTED.md",
    "duckdb-iceberg/equality_delete_extra_column": "non-conformant: its snapshot ids overflow a long",
    "impala/iceberg_migrated_complex_test_orc": "its name mapping gives other ids than its schema has",
    "impala/iceberg_v2_null_delete_record": "non-conformant: a null path in a position delete file",
    "impala/iceberg_v2_null_delete_record__hdfsfix": "non-conformant: a null path in a position delete file",
}

# Columns that the reference's generic reader gets wrong: it finds no nested field by the name mapping, a uuid stored as text
# comes out as a Java object's address, and every row of an Avro or ORC file gets the file's first row id. A variant it
# prints as the Java object, which bergfs shows as the two binaries it is.
REFERENCE_WRONG = {
    "duckdb-iceberg/add_columns_with_defaults": {"col_uuid"},
    "duckdb-iceberg/column_mapping": {"profile"},
    "iceberg-java-local/avro_default_values_a": {"_row_id"},
    "iceberg-java-local/variant_type_a": {"v"},
    "impala/trino_variant": {"v"},
    "spark-local/avro_deletion_vectors_a": {"_row_id"},
    "spark-local/name_mapping_add_files_a": {"n"},
    "spark-local/orc_deletion_vectors_a": {"_row_id"},
}

# Row counts of snapshots that the reference fails on, from the tables' EXPECTED.md.
BY_HAND = {
    "duckdb-iceberg/big_query_error": {"5128775320967886225": 2},
    "duckdb-iceberg/partition_fixed_length_binary": {"8035702046957338196": 2},
    "impala/iceberg_v3_default_value_orc": {"4321940050961723411": 2},
    "iceberg-java-local/eq_deletes_dropped_column_a": {"8115660069752296365": 6, "6879818493370292574": 5},
}


def corpus():
    for candidate in (os.environ.get("BERGFS_CORPUS"), ROOT.parent / "shared/corpus"):
        if candidate and (pathlib.Path(candidate) / "INDEX.tsv").is_file():
            return pathlib.Path(candidate)
    return None


def mappings(directory, entry):
    """--map-path for each place that the table's paths name, if that is not its own location."""
    options = []
    for old, new in entry.get("maps", {}).items():
        target = (directory / new).resolve()
        options += ["--map-path", f"{old.rstrip('/')}={target}"]
    return options


def coerce(value, kind):
    """A value of EXPECTED.java.json as canonical.py has it, by the Arrow type of the column that bergfs shows."""
    if value is None or pa.types.is_null(kind):
        return None
    if hasattr(kind, "storage_type"):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        return {field.name: coerce(value.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, dict) else value
        return entries({"key": coerce(k, kind.key_type), "value": coerce(v, kind.item_type)} for k, v in pairs)
    if pa.types.is_list(kind):
        return [coerce(v, kind.value_type) for v in value]
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else value == "true"
    if pa.types.is_integer(kind):
        return int(value)
    if pa.types.is_float32(kind):
        return number(struct.unpack("f", struct.pack("f", float(value)))[0])
    if pa.types.is_floating(kind):
        return number(float(value))
    if pa.types.is_decimal(kind):
        return f"{decimal.Decimal(str(value)):.{kind.scale}f}"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return value.removeprefix("0x").replace("-", "").lower()
    if pa.types.is_temporal(kind):
        return moment(value)
    return value


def moment(value):
    """Java leaves out seconds that are zero, and writes Z."""
    day, _, clock = value.rpartition("T") if "T" in value else ("", "", value) if ":" in value else (value, "", "")
    zone = "+00:00" if clock.endswith(("Z", "+00:00")) else ""
    clock = clock.removesuffix("Z").removesuffix("+00:00")
    if clock.count(":") == 1:
        clock += ":00"
    if "." in clock:
        clock = clock.rstrip("0").rstrip(".")
    return f"{day}T{clock}{zone}" if day and clock else day or clock


def lines(rows, names):
    return sorted(json.dumps([row.get(name) for name in names], sort_keys=True, ensure_ascii=False) for row in rows)


def read(path):
    """Column names, their types, and rows by name."""
    table = pq.ParquetFile(path).read()
    answer = from_arrow(table)
    types = {field.name: field.type for field in table.schema}
    return answer["columns"], types, [dict(zip(answer["columns"], row)) for row in answer["rows"]]


def check_view(directory, name, expected, snapshot):
    """None if the view agrees, else what is wrong; OSError where the view is refused."""
    # The reference read the current snapshot by the table's schema, the others by their own.
    current = str(snapshot["id"]) == str(expected["currentSnapshot"])
    path = directory / "current" if current else directory / "snapshots" / str(snapshot["id"])
    files = list(path.glob("*.parquet"))
    if not path.is_dir() or len(files) != 1:
        os.listdir(path)
        return f"{len(files)} files in {path}"
    metadata = pq.read_metadata(files[0])
    if metadata.num_rows != snapshot["count"]:
        return f"{metadata.num_rows} rows instead of {snapshot['count']}"
    rows = snapshot.get("rows")
    if rows is None or len(rows) != snapshot["count"]:
        # Too many to list: their number, and that all columns can be read.
        count = sum(batch.num_rows for batch in pq.ParquetFile(files[0]).iter_batches())
        return None if count == snapshot["count"] else f"{count} rows read instead of {snapshot['count']}"
    columns, types, found = read(files[0])
    names = list(columns)
    if rows:
        known = set().union(*(row.keys() for row in rows))
        if set(names) ^ known:
            return f"columns {sorted(names)} instead of {sorted(known)}"
    # The reference of that day took the file's sequence number for a row's; the data sequence number is right.
    wrong = {LINEAGE[1], *REFERENCE_WRONG.get(name, {})}
    names = [column for column in names if column not in wrong]
    rows = [{column: coerce(row.get(column), types[column]) for column in names} for row in rows]
    wanted, got = lines(rows, names), lines(found, names)
    if wanted != got:
        missing = [row for row in wanted if row not in got][:2]
        extra = [row for row in got if row not in wanted][:2]
        return f"rows differ in {names}\n      missing: {missing}\n      found:   {extra}"[:1500]
    return None


def check_table(root, entry, maps):
    """(outcome, message) of one table: agree, refused, wrong."""
    name, features = entry["name"], entry["features"]
    directory = root / name
    # Tables edited by hand have a twin with their paths made equal: what is read from that is right for both.
    twin = root / f"{name}__hdfsfix"
    expected = (twin if twin.is_dir() else directory) / "EXPECTED.java.json"
    wanted = json.loads(expected.read_text()) if expected.is_file() else None
    if wanted is None and name not in REFUSED:
        return "skipped", "no expected rows"
    may_refuse = name in REFUSED or int(entry["missing_refs"]) > 0
    metadata = directory / maps.get(name, {}).get("metadata", "")
    source = metadata if metadata.is_file() and "no-version-hint" in features else directory
    refusals, agreed = [], 0
    try:
        with Mount(source, mappings(directory, maps.get(name, {}))) as point:
            for snapshot in wanted["snapshots"] if wanted else []:
                if "count" not in snapshot:
                    # The reference failed; what is right was worked out from the table's own tests.
                    if str(snapshot["id"]) not in BY_HAND.get(name, {}):
                        continue
                    snapshot = {**snapshot, "count": BY_HAND[name][str(snapshot["id"])], "rows": None}
                try:
                    wrong = check_view(point, name, wanted, snapshot)
                except (OSError, pa.ArrowException) as error:
                    reason = errors_of(point, snapshot["id"])
                    if not may_refuse or not reason:
                        return "wrong", f"snapshot {snapshot['id']}: {error} (.bergfs/errors: {reason})"
                    refusals.append(f"snapshot {snapshot['id']}: {reason}")
                    continue
                if wrong:
                    return "wrong", f"snapshot {snapshot['id']}: {wrong}"
                agreed += 1
            if wanted and not wanted["snapshots"]:
                files = list((point / "current").glob("*.parquet"))
                columns, _, rows = read(files[0])
                fields = [field["name"] for field in wanted["schema"]["fields"]]
                if rows or [c for c in columns if c not in LINEAGE] != fields:
                    return "wrong", f"an empty table with columns {fields} shows {len(rows)} rows of {columns}"
                agreed += 1
    except RuntimeError as error:
        if may_refuse:
            return "refused", str(error).strip().splitlines()[-1]
        return "wrong", f"not mounted: {error}"
    if refusals:
        return "refused", refusals[0] + (f" ({agreed} other views agree)" if agreed else "")
    return "agree", f"{agreed} views"


def errors_of(point, snapshot):
    """What .bergfs/errors says, first of the snapshot."""
    reported = (point / ".bergfs/errors").read_text().splitlines()
    about = [line for line in reported if str(snapshot) in line] or reported
    return about[0][:300] if about else ""


def main():
    root = corpus()
    if root is None:
        print("corpus: NOT RUN: there is none in $BERGFS_CORPUS or ../shared/corpus")
        print("corpus: 0 passed, 0 failed, 1 skipped")
        return 0
    maps = json.loads((root / "MAPS.json").read_text())
    with open(root / "INDEX.tsv", newline="", encoding="utf-8") as index:
        entries = list(csv.DictReader(index, delimiter="\t", quoting=csv.QUOTE_NONE))
    if sys.argv[1:]:
        entries = [entry for entry in entries if any(part in entry["name"] for part in sys.argv[1:])]

    def checked(entry):
        try:
            return entry["name"], *check_table(root, entry, maps)
        except Exception:  # pylint: disable=broad-except  # one table must not end the run
            return entry["name"], "wrong", traceback.format_exc()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        outcomes = list(pool.map(checked, entries))
    for outcome in ("refused", "skipped", "wrong"):
        for name, what, message in outcomes:
            if what == outcome:
                print(f"  {outcome.upper():8} {name}: {message}")
    count = {what: sum(1 for _, w, _ in outcomes if w == what) for what in ("agree", "refused", "skipped", "wrong")}
    print(f"corpus: {count['agree']} tables read and agree, {count['refused']} refused as expected, "
          f"{count['skipped']} skipped, {count['wrong']} disagree")
    print(f"corpus: {count['agree'] + count['refused']} passed, {count['wrong']} failed, {count['skipped']} skipped")
    return 1 if count["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
