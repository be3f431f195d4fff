"""A table of so many rows, and what its views are as text. Usage: text_table.py WAREHOUSE REFERENCE ROWS

The text is written here, by Python's own means. `first.csv` is the first snapshot, `t.csv` and `t.jsonl` the second,
which has ten rows more.
"""

import datetime
import decimal
import json
import pathlib
import shutil
import sys

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

NAMES = [None, "", "plain", "with, comma", 'with "quotes"', "two\nlines", "é"]
# Programs that work by lines and commas find one line a row and one field a column.
PLAIN = [None, "", "plain", "other", "third one"]
EPOCH = datetime.datetime(2024, 1, 1)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("half", pa.float64()),
        ("amount", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us")),
    ]
)


def row(i, names):
    return {
        "id": i,
        "name": names[i % len(names)],
        "half": None if i % 11 == 0 else i / 2,
        "amount": decimal.Decimal(i * 7 - 1000).scaleb(-2),
        "at": EPOCH + datetime.timedelta(seconds=i, microseconds=i),
    }


def field(value):
    if value is None:
        return ""
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="microseconds")
    text = str(value)
    if text == "" or any(c in text for c in ',"\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def csv(rows):
    return "".join(",".join(field(v) for v in row.values()) + "\n" for row in rows)


def json_lines(rows):
    def plain(value):
        return value if value is None or isinstance(value, (int, float, str)) else field(value)

    texts = (json.dumps({k: plain(v) for k, v in r.items()}, separators=(",", ":"), ensure_ascii=False) for r in rows)
    return "".join(text + "\n" for text in texts)


def parts(start, end):
    """Ranges that are made at once, so that six million rows fit in memory."""
    return [(at, min(at + 50_000, end)) for at in range(start, end, 50_000)]


def main(warehouse, reference, count):
    warehouse, reference = pathlib.Path(warehouse), pathlib.Path(reference)
    for directory in (warehouse, reference):
        directory.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("c", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("db")
    # Small tables have every kind of name.
    names = PLAIN if count > 1000 else NAMES
    table = catalog.create_table("db.t", SCHEMA)
    with open(reference / "t.csv", "w") as whole, open(reference / "t.jsonl", "w") as lines:
        whole.write(",".join(SCHEMA.names) + "\n")
        for snapshot in ((0, count), (count, count + 10)):
            columns = []
            for part in parts(*snapshot):
                rows = [row(i, names) for i in range(*part)]
                whole.write(csv(rows))
                lines.write(json_lines(rows))
                columns.append(pa.Table.from_pylist(rows, SCHEMA))
            table.append(pa.concat_tables(columns))
            if snapshot[0] == 0:
                whole.flush()
                shutil.copy(reference / "t.csv", reference / "first.csv")


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
