"""How long planning takes and how much memory, by the number of data files.  planning.py ROOT BERGFS [COUNT…]

The tables have manifests of 10,000 entries each, ten columns with bounds, 200 partitions, and no data files: a listing of
`parts/` reads metadata only. Prints a Markdown table: mount and first `ls`, listing all parts, the daemon's peak memory and
what each file takes of it.
"""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import time
import uuid

import fastavro
import pyarrow as pa

from iceberg_table import Table, with_field_ids

PER_MANIFEST = 10_000
DAYS = 200
SCHEMA = with_field_ids(pa.schema([
    ("ts", pa.timestamp("us")), ("id", pa.int64()), ("user", pa.int64()), ("name", pa.string()), ("city", pa.string()),
    ("v", pa.float64()), ("w", pa.float64()), ("day", pa.date32()), ("k", pa.int32()), ("n", pa.int64())]))


class Planned(Table):
    """A table whose entries differ in nothing but path and partition, so that a million are encoded quickly."""

    def entries(self, day, names):
        directory = f"{self.root}/data/ts_day={day}"
        blank = "?" * len(f"{directory}/{names[0]}")
        every = range(1, len(SCHEMA) + 1)
        record = self.file(blank, day=day, record_count=1000, file_size_in_bytes=100_000, split_offsets=[4],
                           value_counts=[{"key": i, "value": 1000} for i in every],
                           null_value_counts=[{"key": i, "value": 0} for i in every],
                           lower_bounds=[{"key": i, "value": b"\x01" * (16 if i in (4, 5) else 8)} for i in every],
                           upper_bounds=[{"key": i, "value": b"\x02" * (16 if i in (4, 5) else 8)} for i in every])
        entry = {"status": 1, "snapshot_id": 1001, "sequence_number": None, "file_sequence_number": None, "data_file": record}
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self.entry_schema, entry)
        head, tail = out.getvalue().split(blank.encode())
        return [head + f"{directory}/{name}".encode() + tail for name in names]

    def plan(self, count):
        """One commit of `count` files."""
        first = self.file("x", day=0, record_count=0, file_size_in_bytes=0)
        for start in range(0, count, PER_MANIFEST):
            here = min(PER_MANIFEST, count - start)
            self.commit([first])
            self.snapshots.pop()
            manifest = self.manifests[-1]
            with open(manifest["manifest_path"], "rb") as file:
                codec = fastavro.reader(file).metadata
            encoded = []
            for day in range(DAYS):
                names = [f"00000-{i}-{uuid.uuid4()}-00001.parquet" for i in range(start + day, start + here, DAYS)]
                width = max(map(len, names), default=0)
                encoded += self.entries(day, [name.rjust(width, "0") for name in names]) if names else []
            write_container(manifest["manifest_path"], codec, encoded)
            manifest |= {"manifest_length": os.path.getsize(manifest["manifest_path"]), "added_files_count": here}
        # The last commit's list names them all.
        with open(self.root / "metadata" / "snap.avro", "wb") as out:
            fastavro.writer(out, self.list_schema, self.manifests, codec="deflate", metadata={"format-version": "2"})
        self.snapshots.append({
            "snapshot-id": 1001, "sequence-number": 1, "timestamp-ms": 1_767_225_660_000, "schema-id": 0,
            "manifest-list": str(self.root / "metadata" / "snap.avro"), "summary": {"operation": "append"}})
        self.save()


def write_container(path, metadata, encoded):
    """An Avro container file of these encoded entries, 1,000 to a block."""
    import zlib
    header, sync, out = io.BytesIO(), b"0123456789abcdef", open(path, "wb")
    fastavro.schemaless_writer(header, {"type": "map", "values": "bytes"}, {k: v.encode() for k, v in metadata.items()})
    out.write(b"Obj\x01" + header.getvalue() + sync)
    for start in range(0, len(encoded), 1000):
        block = encoded[start:start + 1000]
        deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
        body = deflate.compress(b"".join(block)) + deflate.flush()
        for number in (len(block), len(body)):
            fastavro_long = io.BytesIO()
            fastavro.schemaless_writer(fastavro_long, "long", number)
            out.write(fastavro_long.getvalue())
        out.write(body + sync)
    out.close()


def daemon(point):
    """The `/proc` directory of the daemon that serves a mountpoint."""
    for process in pathlib.Path("/proc").iterdir():
        try:
            if os.fsencode(point) in (process / "cmdline").read_bytes().split(b"\0"):
                return process
        except OSError:
            continue
    raise SystemExit(f"no daemon serves {point}")


def peak(process):
    status = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024


def cpu(process):
    """Seconds of processor time so far, which a busy machine changes less than the clock's."""
    fields = (process / "stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(bergfs, table, point):
    point.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    subprocess.run([bergfs, "mount", "--no-text", table, point], check=True)
    try:
        process = daemon(point)
        before = peak(process)
        os.listdir(point / "current")
        planned = time.perf_counter() - started
        started = time.perf_counter()
        parts = sum(1 for _ in os.scandir(point / "current" / "parts"))
        return planned, time.perf_counter() - started, cpu(process), parts, peak(process), before
    finally:
        subprocess.run([bergfs, "umount", point], check=True)


def main(root, bergfs, *counts):
    root = pathlib.Path(root).resolve()
    print("| data files | mount and `ls` (s) | listing `parts/` (s) | CPU (s) | peak MB | bytes a file |")
    print("| --- | --- | --- | --- | --- | --- |")
    for count in map(int, counts or ("10000", "100000", "1000000")):
        table = root / f"planning-{count}"
        if not (table / "metadata" / "version-hint.text").exists():
            shutil.rmtree(table, ignore_errors=True)
            Planned(table, SCHEMA, day="ts").plan(count)
        planned, listed, work, parts, most, before = measure(bergfs, table, root / f"mnt{os.getpid()}")
        if parts != count:
            raise SystemExit(f"{parts} parts listed of {count}")
        print(f"| {count} | {planned:.2f} | {listed:.2f} | {work:.2f} | {most >> 20} | {(most - before) // count} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
