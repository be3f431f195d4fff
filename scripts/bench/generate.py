"""Makes the bench's tables.  generate.py ROOT [--scale 1.0] [--seed 42] [--tables clean,dv,…] [--dbgen PYTHON]

`clean`, `posdel`, `posdelp`, `dv`, `eqdel` and `eqdel1m` are TPC-H lineitem in the same eight files (hard links):

    posdel    a position-delete file for each data file          the same random 1 % of the rows
    posdelp   one position-delete file for all
    dv        v3: a Puffin file of deletion vectors
    eqdel     equality deletes of 1 % of the order keys in four files, then a tenth of those inserted again
    eqdel1m   the same with two thirds of the order keys (1,000,000 at scale 1)
    wide      200 columns of 500,000 rows in eight files
    many      2,000 files, 1,000,000 rows, 200 daily partitions, 20 snapshots (fewer files at a small scale)

Beside each, `compacted/<table>.parquet` has the same rows, picked by NumPy: what every answer is checked against.
`tables.json` says where all is. `--dbgen` names a Python with DuckDB and its extension `tpch` as packages.
"""

import argparse
import json
import os
import pathlib
import shutil
import struct
import subprocess
import uuid
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from iceberg_table import EQUALITY_DELETES, FIELD_ID, POSITION_DELETES, Table, with_field_ids

LINEITEM = ("clean", "posdel", "posdelp", "dv", "eqdel", "eqdel1m")
FILES = 8
DBGEN = """
import sys, importlib.util, duckdb
place = list(importlib.util.find_spec("duckdb_extension_tpch").submodule_search_locations)[0]
db = duckdb.connect()
db.execute(f"load '{place}/extensions/v{duckdb.__version__}/tpch.duckdb_extension'")
db.execute(f"call dbgen(sf={sys.argv[1]})")
db.execute(f"copy lineitem to '{sys.argv[2]}' (format parquet, compression zstd)")
"""
# The reserved columns of position deletes (spec, "Position Delete Files").
DELETES = pa.schema([
    pa.field("file_path", pa.string(), False, {FIELD_ID: b"2147483546"}),
    pa.field("pos", pa.int64(), False, {FIELD_ID: b"2147483545"}),
])
DAY_US = 86_400_000_000
FIRST_DAY = 20_089  # 2025-01-01


def write(table, path, **options):
    pq.write_table(table, path, compression="zstd", store_decimal_as_integer=True, **options)


def position_deletes(table, pairs, referenced=None):
    """A position-delete file, from (path, positions) in the order of paths."""
    paths = pa.array([path for path, positions in pairs for _ in positions])
    positions = pa.array(np.concatenate([positions for _, positions in pairs]))
    path = table.root / "data" / f"{uuid.uuid4()}-deletes.parquet"
    write(pa.table([paths, positions], schema=DELETES), path)
    record = table.file(path)
    # What the footer says, and for one path the exact bounds that name it.
    return record | {"content": POSITION_DELETES, "referenced_data_file": referenced, "split_offsets": None}


def deletion_vectors(table, pairs):
    """A Puffin file with a vector for each (path, positions)."""
    path = table.root / "data" / f"{uuid.uuid4()}-deletes.puffin"
    body, blobs = bytearray(b"PFA1"), []
    for data_file, positions in pairs:
        bitmap = BitMap(positions.tolist())
        bitmap.run_optimize()
        vector = b"\xd1\xd3\x39\x64" + struct.pack("<qi", 1, 0) + bitmap.serialize()
        blob = struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
        blobs.append({
            "type": "deletion-vector-v1", "fields": [2147483545], "snapshot-id": -1, "sequence-number": -1,
            "offset": len(body), "length": len(blob),
            "properties": {"referenced-data-file": data_file, "cardinality": str(len(positions))},
        })
        body += blob
    footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
    body += b"PFA1" + footer + struct.pack("<ii", len(footer), 0) + b"PFA1"
    path.write_bytes(body)
    return [
        table.file(path, content=POSITION_DELETES, file_format="PUFFIN", record_count=len(positions),
                   file_size_in_bytes=len(body), referenced_data_file=data_file, content_offset=blob["offset"],
                   content_size_in_bytes=blob["length"])
        for (data_file, positions), blob in zip(pairs, blobs)
    ]


def equality_deletes(table, keys):
    schema = pa.schema([pa.field("l_orderkey", pa.int64(), True, {FIELD_ID: b"1"})])
    records = []
    for part in np.array_split(keys, 4):
        path = table.root / "data" / f"{uuid.uuid4()}-deletes.parquet"
        write(pa.table([np.sort(part)], schema=schema), path)
        records.append(table.file(path) | {"content": EQUALITY_DELETES, "equality_ids": [1]})
    return records


class Bench:
    def __init__(self, root, scale, seed, dbgen):
        self.root, self.scale, self.seed, self.dbgen = root, scale, seed, dbgen
        self.tables = {}
        for name in ("warehouse", "compacted", "lineitem"):
            (root / name).mkdir(parents=True, exist_ok=True)

    def save(self, name, table, compacted, **facts):
        rows_per_group = max(1, len(compacted) // FILES)
        path = self.root / "compacted" / f"{name}.parquet"
        write(compacted, path, row_group_size=rows_per_group)
        metadata = table.save()
        data = sorted(str(p) for p in (table.root / "data").iterdir() if not p.stem.endswith("-deletes"))
        self.tables[name] = {"metadata": str(metadata), "root": str(table.root), "compacted": str(path), "data": data} | facts

    def lineitem(self, wanted):
        source = self.root / "lineitem" / f"{self.scale}.parquet"
        if not source.exists():
            subprocess.check_call([self.dbgen, "-c", DBGEN, str(self.scale), f"{source}.part"])
            os.rename(f"{source}.part", source)
        rows = pq.read_table(source).combine_chunks()
        rows = rows.cast(with_field_ids(rows.schema))
        starts = [len(rows) * i // FILES for i in range(FILES + 1)]
        files = []
        for i in range(FILES):
            files.append(self.root / "lineitem" / f"{self.scale}-{i}.parquet")
            write(rows.slice(starts[i], starts[i + 1] - starts[i]), files[-1])
        rng = np.random.default_rng(self.seed)
        deleted = [np.sort(rng.choice(end - start, (end - start) // 100, replace=False)) for start, end in zip(starts, starts[1:])]
        kept = np.ones(len(rows), bool)
        for start, positions in zip(starts, deleted):
            kept[start + positions] = False
        orders = rows["l_orderkey"].to_numpy()
        # An order that lost a row and kept some: a wrong answer about it is seen.
        count = dict(zip(*np.unique(orders, return_counts=True)))
        hit = dict(zip(*np.unique(orders[~kept], return_counts=True)))
        key = int(next((k for k in list(hit)[len(hit) // 2:] if hit[k] < count[k]), orders[0]))
        without = rows.filter(pa.array(kept))

        for name in (name for name in LINEITEM if name in wanted):
            table = Table(self.root / "warehouse" / name, rows.schema, version=3 if name == "dv" else 2)
            paths = [table.root / "data" / f"{i:05}-{name}.parquet" for i in range(FILES)]
            for file, path in zip(files, paths):
                os.link(file, path)
            table.commit([table.file(path) for path in paths])
            pairs = list(zip(map(str, paths), deleted))
            if name == "posdel":
                table.commit([position_deletes(table, [pair], referenced=pair[0]) for pair in pairs], deletes=True)
            elif name == "posdelp":
                table.commit([position_deletes(table, pairs)], deletes=True)
            elif name == "dv":
                table.commit(deletion_vectors(table, pairs), deletes=True)
            if name in ("clean", "posdel", "posdelp", "dv"):
                self.save(name, table, rows if name == "clean" else without, key=key)
                continue
            known = np.unique(orders)
            share = len(known) // 100 if name == "eqdel" else len(known) * 2 // 3
            keys = np.random.default_rng(self.seed + 1).choice(known, max(share, 10), replace=False)
            again = np.sort(keys[:max(1, len(keys) // 10)])
            reinserted = rows.filter(pa.array(np.isin(orders, again)))
            path = table.root / "data" / f"{FILES:05}-{name}.parquet"
            write(reinserted, path)
            table.commit(equality_deletes(table, keys), deletes=True)
            table.commit([table.file(path)])
            compacted = pa.concat_tables([rows.filter(pa.array(~np.isin(orders, keys))), reinserted])
            self.save(name, table, compacted, key=int(again[len(again) // 2]))

    def wide(self):
        count = max(FILES, int(500_000 * self.scale))
        rng = np.random.default_rng(self.seed + 2)
        words = np.array([f"value-{i:04}" for i in range(1000)])
        columns = {"id": np.arange(count)}
        for i in range(1, 200):
            columns[f"c{i:03}"] = [
                lambda: rng.integers(0, 10 ** (2 + i % 6), count),
                lambda: np.round(rng.normal(0, 100, count), 2),
                lambda: pa.array(words[rng.integers(0, 10 + 5 * i, count) % 1000]),
                lambda: pa.array(1_700_000_000_000_000 + rng.integers(0, 365 * DAY_US, count), pa.timestamp("us")),
                lambda: pa.array(rng.integers(0, 50, count), pa.int32(), mask=rng.random(count) < 0.1),
            ][i % 5]()
        rows = pa.table(columns)
        rows = rows.cast(with_field_ids(rows.schema))
        table = Table(self.root / "warehouse" / "wide", rows.schema)
        files = []
        for i in range(FILES):
            start, end = count * i // FILES, count * (i + 1) // FILES
            path = table.root / "data" / f"{i:05}-wide.parquet"
            write(rows.slice(start, end - start), path)
            files.append(table.file(path))
        table.commit(files)
        self.save("wide", table, rows)

    def many(self):
        days, per_file = max(5, min(100, int(100 * self.scale))), max(1, int(500 * self.scale))
        schema = with_field_ids(pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("k", pa.int32()), ("name", pa.string()),
                                           ("v", pa.float64()), ("w", pa.int64())]))
        table = Table(self.root / "warehouse" / "many", schema, day="ts")
        rng = np.random.default_rng(self.seed + 3)
        words = np.array([f"value-{i:04}" for i in range(1000)])
        all_rows, next_id = [], 0
        for snapshot in range(20):
            files = []
            for day in range(FIRST_DAY + days * (snapshot % 2), FIRST_DAY + days * (snapshot % 2 + 1)):
                rows = pa.table([
                    pa.array(day * DAY_US + rng.integers(0, DAY_US, per_file), pa.timestamp("us")), np.arange(next_id, next_id + per_file),
                    pa.array(rng.integers(0, 1000, per_file), pa.int32()), pa.array(words[rng.integers(0, 1000, per_file)]),
                    np.round(rng.normal(10, 3, per_file), 3), rng.integers(0, 10 ** 9, per_file),
                ], schema=schema)
                next_id += per_file
                path = table.root / "data" / f"{snapshot:02}-{day}.parquet"
                write(rows, path)
                files.append(table.file(path, day=day))
                all_rows.append(rows)
            table.commit(files)
        day = FIRST_DAY + days + days // 2
        rows = pa.concat_tables(all_rows).sort_by("ts")
        self.save("many", table, rows, day=str(np.datetime64(day, "D")), next_day=str(np.datetime64(day + 1, "D")))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("root", type=pathlib.Path)
    arguments.add_argument("--scale", type=float, default=1.0)
    arguments.add_argument("--seed", type=int, default=42)
    arguments.add_argument("--tables", default=",".join((*LINEITEM, "wide", "many")))
    arguments.add_argument("--dbgen", default="python3")
    args = arguments.parse_args()
    wanted = args.tables.split(",")
    root = args.root.resolve()
    for stale in ("warehouse", "compacted"):
        shutil.rmtree(root / stale, ignore_errors=True)
    bench = Bench(root, args.scale, args.seed, args.dbgen)
    if set(wanted) & set(LINEITEM):
        bench.lineitem(wanted)
    if "wide" in wanted:
        bench.wide()
    if "many" in wanted:
        bench.many()
    (root / "tables.json").write_text(json.dumps({"scale": args.scale, "tables": bench.tables}, indent=1))


if __name__ == "__main__":
    main()
