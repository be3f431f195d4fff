"""The corpus: tables that other engines wrote, each mounted, each view's rows against what Iceberg Java reads from it.

    corpus.py [NAME PART]...        only the tables whose name has one of the parts in it

The corpus is no part of this repository. It is looked for in $BERGFS_CORPUS, else in ../shared/corpus beside the checkout:
INDEX.tsv says what there is, MAPS.json where a table's recorded paths lie now, and a table's EXPECTED.java.json has for each
snapshot its row count and up to 2,000 of its rows.
"""

import concurrent.futures
import csv
import json
import os
import pathlib
import re
import sys
import traceback

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "readers"))
from canonical import from_arrow, number  # noqa: E402
from mounting import ROOT, Mount  # noqa: E402

LINEAGE = ["_row_id", "_last_updated_sequence_number"]

# Features of INDEX.tsv that bergfs does not read yet: the views that need them are refused, never shown wrong.
UNSUPPORTED = ("data-avro", "data-orc", "deletes-avro", "deletes-orc", "type-variant", "type-geometry", "type-geography")

# What to know about single tables: why a view may be refused, or what differs from EXPECTED.java.json and why.
REFUSED = {
    "duckdb-iceberg/partition_fixed_length_binary": "non-conformant: see its EXPECTED.md",
    "duckdb-iceberg/timestamptz_ns": "non-conformant: see its EXPECTED.md",
    "duckdb-iceberg/equality_delete_extra_column": "non-conformant: its snapshot ids overflow a long",
    "impala/iceberg_v2_null_delete_record": "non-conformant: a null path in a position delete file",
    "impala/iceberg_v2_null_delete_record__hdfsfix": "non-conformant: a null path in a position delete file",
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


def comparable(value):
    """A value of a reader or of EXPECTED.java.json in a form that both can be brought to."""
    if isinstance(value, dict):
        # The file has maps as objects; a reader's map is a list of key and value.
        return {key: comparable(inner) for key, inner in sorted(value.items())}
    if isinstance(value, list):
        if value and all(isinstance(v, dict) and set(v) == {"key", "value"} for v in value):
            return {as_key(v["key"]): comparable(v["value"]) for v in sorted(value, key=lambda v: as_key(v["key"]))}
        return [comparable(v) for v in value]
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        # Java's JSON has 1.0E10 and 1 where the other has 10000000000.0 and 1.0.
        return f"#{float(value):.9g}" if isinstance(value, float) or abs(value) < 2**53 else f"#{value}"
    return value


def as_key(value):
    value = comparable(value)
    return value.removeprefix("#") if isinstance(value, str) else json.dumps(value)


MOMENT = re.compile(r"^([-+]?\d{4,}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(\.\d+)?(Z|\+00:00)?$")
CLOCK = re.compile(r"^(\d\d:\d\d)(:\d\d)?(\.\d+)?$")
UUID = re.compile(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
DECIMAL = re.compile(r"^-?\d+(\.\d+)?$")


def text(value):
    """Java leaves out seconds that are zero and writes Z; uuids have dashes; binary may be marked."""
    moment = MOMENT.match(value)
    if moment:
        day, minutes, seconds, fraction, zone = moment.groups()
        return f"{day}T{minutes}{seconds or ':00'}{(fraction or '').rstrip('0').rstrip('.')}{'+00:00' if zone else ''}"
    clock = CLOCK.match(value)
    if clock:
        minutes, seconds, fraction = clock.groups()
        return f"{minutes}{seconds or ':00'}{(fraction or '').rstrip('0').rstrip('.')}"
    if UUID.match(value):
        return value.replace("-", "").lower()
    if value in ("NaN", "Infinity", "-Infinity"):
        return value
    if DECIMAL.match(value) and len(value) < 16:
        return f"#{float(value):.9g}"
    return value


def lines(rows, names):
    return sorted(json.dumps([comparable(row.get(name)) for name in names], sort_keys=True, ensure_ascii=False) for row in rows)


def read(path, columns=None):
    answer = from_arrow(pq.ParquetFile(path).read(columns=columns))
    return answer["columns"], [dict(zip(answer["columns"], row)) for row in answer["rows"]]


def check_view(directory, table, snapshot):
    """None if the view agrees, else what is wrong; OSError where the view is refused."""
    path = directory / "snapshots" / str(snapshot["id"])
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
    columns, found = read(files[0])
    names = list(columns)
    if rows:
        known = set().union(*(row.keys() for row in rows))
        if set(names) - known - set(LINEAGE) or known - set(names) - set(LINEAGE):
            return f"columns {sorted(names)} instead of {sorted(known)}"
        names = [name for name in names if name in known]
    # The reference of that day took the file's sequence number for a row's; the data sequence number is right.
    names = [name for name in names if name != LINEAGE[1]]
    wanted, got = lines(rows, names), lines(found, names)
    if wanted != got:
        missing = [row for row in wanted if row not in got][:2]
        extra = [row for row in got if row not in wanted][:2]
        return f"rows differ\n      missing: {missing}\n      found:   {extra}"[:1500]
    return None


def check_table(root, entry, maps):
    """(outcome, message) of one table: agree, refused, wrong."""
    name, features = entry["name"], entry["features"]
    directory = root / name
    expected = directory / "EXPECTED.java.json"
    wanted = json.loads(expected.read_text()) if expected.is_file() else None
    if wanted is None and name not in REFUSED:
        return "skipped", "no expected rows"
    may_refuse = name in REFUSED or any(f in features for f in UNSUPPORTED) or int(entry["missing_refs"]) > 0
    metadata = directory / maps.get(name, {}).get("metadata", "")
    source = metadata if metadata.is_file() and "no-version-hint" in features else directory
    refusals, agreed = [], 0
    try:
        with Mount(source, mappings(directory, maps.get(name, {}))) as point:
            for snapshot in wanted["snapshots"] if wanted else []:
                try:
                    wrong = check_view(point, name, snapshot)
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
                columns, rows = read(files[0])
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
