"""The JSON lines of every view of the fixtures with variants, nested or odd columns, against what Iceberg Java reads.

Usage: text_expected.py [TABLE...]; the last line is `N passed, N failed, N skipped`. A value of a variant has no type that
either side would tell, so both are made alike: see `alike`.
"""

import json
import math
import os
import re
import struct
import sys

from canonical import in_order
from mounting import Mount, WAREHOUSES, encoded, fixtures

TIME = re.compile(r"^((?:[+-]?\d{4,}-\d\d-\d\dT)?\d\d:\d\d:\d\d)(?:\.(\d+))?(\+00:00)?$")
UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


def alike(value):
    """A JSON value without what canonical.py and the README's table of text say differently: the zeros at the end of a time
    of day, the dashes of a UUID, and the digits of a float beyond those that tell it from others."""
    if isinstance(value, dict):
        return {name: alike(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [alike(inner) for inner in value]
    if isinstance(value, str):
        time = TIME.match(value)
        if time:
            fraction = (time[2] or "").rstrip("0")
            return time[1] + (f".{fraction}" if fraction else "") + (time[3] or "")
        return value.replace("-", "") if UUID.match(value) else value
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 63):
        return single(float(value))
    return value


def single(value):
    """To the precision of a float, which Java gives as a double. Whole numbers are JSON's, whatever their type."""
    if math.isfinite(value) and abs(value) < 3.40282355e38:
        value = struct.unpack("f", struct.pack("f", value))[0]
    return int(value) if value == int(value) and math.copysign(1, value) > 0 else value


def as_text(value, kind):
    """A value in canonical form as the README's table has it in JSON lines."""
    if value is None:
        return None
    if isinstance(kind, str):
        return value["variant"] if kind == "variant" else value
    if kind["type"] == "struct":
        return {field["name"]: as_text(value[field["name"]], field["type"]) for field in kind["fields"]}
    if kind["type"] == "list":
        return [as_text(inner, kind["element"]) for inner in value]
    pairs = [(entry["key"], as_text(entry["value"], kind["value"])) for entry in value]
    return dict(pairs) if kind["key"] == "string" else [list(pair) for pair in pairs]


def in_key_order(value, kind):
    """JSON lines without the order of a map's pairs, which is the file's and no part of the value."""
    if value is None or isinstance(kind, str):
        return value
    if kind["type"] == "struct":
        return {field["name"]: in_key_order(value[field["name"]], field["type"]) for field in kind["fields"]}
    if kind["type"] == "list":
        return [in_key_order(inner, kind["element"]) for inner in value]
    if kind["key"] == "string":
        return {key: in_key_order(inner, kind["value"]) for key, inner in value.items()}
    return sorted(([key, in_key_order(inner, kind["value"])] for key, inner in value), key=json.dumps)


def geometries(fields):
    return any(isinstance(field["type"], str) and field["type"].startswith("geo") for field in fields)


def main(names):
    passed, failed = 0, 0
    unpacked = fixtures()
    for warehouse in WAREHOUSES:
        expectations = [*unpacked.glob("expected/*.json"), *(unpacked / warehouse).glob(".expected/*.json")]
        with Mount(unpacked / warehouse) as root:
            for file in sorted(expectations):
                expected = json.loads(file.read_text())
                table = expected["table"]
                if not (unpacked / warehouse / table).is_dir() or (names and table not in names):
                    continue
                for name, view in expected["views"].items():
                    fields = view["schema"]["fields"]
                    # Well-known text has tests of its own.
                    if geometries(fields):
                        continue
                    folder, _, leaf = name.partition("/")
                    directory = os.path.realpath(root / table / folder / (encoded(leaf) if leaf else ""))
                    kinds = [field["type"] for field in fields]
                    with open(f"{directory}/{encoded(table.split('/')[-1])}.jsonl", encoding="utf-8") as lines:
                        found = [list(json.loads(line).values()) for line in lines]
                    wanted = [[as_text(v, kind) for v, kind in zip(row, kinds)] for row in view["rows"]]
                    found, wanted = ([alike([in_key_order(v, kind) for v, kind in zip(row, kinds)]) for row in rows] for rows in (found, wanted))
                    found, wanted = in_order(found), in_order(wanted)
                    if found == wanted:
                        passed += 1
                        continue
                    failed += 1
                    print(f"{table}/{name}: {len(found)} rows for {len(wanted)}")
                    for one, other in [pair for pair in zip(wanted, found) if pair[0] != pair[1]][:2]:
                        print(f"    expected {json.dumps(one)[:600]}\n    found    {json.dumps(other)[:600]}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0 or passed == 0


sys.exit(main(sys.argv[1:]))
