"""Small files of the fixtures as what the fuzz targets begin with: python3 fuzz/seeds.py, after the fixtures are there."""

import hashlib
import json
import struct
from pathlib import Path

HERE = Path(__file__).parent
TREES = [HERE.parent / "target/fixtures", HERE.parent / "tests/fixtures"]
# A longer file is tried less often, and its interesting bytes more rarely.
MOST = 12_000
FORMATS = {".parquet": 0, ".avro": 1, ".orc": 2}
NAMES = """rest+https://host/base#a.b
glue://123/db
pyiceberg:a
sqlite:///a/b.db
jdbc:postgresql://u:p@h:1/d?sslmode=require
postgresql://u@h/d
thrift://a:1,b:2/d
s3://bucket/t=/t
/t/f
file:///t/../t/./f
catalog: {a: {type: sql, uri: "sqlite:///x", s3.endpoint: "http://h"}}
default-catalog: a""".splitlines()


def keep(target: str, seed: bytes) -> None:
    directory = HERE / "corpus" / target
    directory.mkdir(parents=True, exist_ok=True)
    (directory / hashlib.sha1(seed).hexdigest()[:16]).write_bytes(seed)


def metadata_of(data: Path) -> bytes | None:
    """The metadata of a data file's table, without its history."""
    for above in data.parents:
        found = sorted(above.glob("metadata/*.metadata.json"), key=lambda path: path.stat().st_mtime)
        if found:
            metadata = json.loads(found[-1].read_text())
            for history in ("snapshots", "snapshot-log", "metadata-log", "statistics", "partition-statistics"):
                metadata[history] = []
            metadata.pop("current-snapshot-id", None)
            metadata.pop("refs", None)
            return json.dumps(metadata, separators=(",", ":")).encode()
    return None


def seeds_of(file: Path) -> None:
    content = file.read_bytes()
    if file.name.endswith(".metadata.json"):
        keep("metadata_json", content)
    elif file.suffix == ".avro" and file.parent.name == "metadata":
        keep("manifest", content)
    elif file.suffix == ".puffin":
        # The first blob: length, magic, vector, checksum.
        (length,) = struct.unpack(">I", content[4:8])
        keep("deletion_vector", struct.pack("<Q", 1) + content[12 : 8 + length])
    elif file.suffix in FORMATS:
        keep("data_file", content)
        metadata = metadata_of(file)
        if metadata and len(metadata) < MOST:
            for how in (0, len(FORMATS), 2 * len(FORMATS), 0x80):
                keep("view", metadata + bytes([0, FORMATS[file.suffix] + how]) + content)


for tree in TREES:
    for file in sorted(tree.rglob("*")):
        if file.is_file() and file.stat().st_size < MOST:
            seeds_of(file)
for name in NAMES:
    keep("names", name.encode())
# An object of a name "a" that is 1, then the length of the names, which the fuzzer takes from the end.
keep("variant", bytes([1, 1, 0, 1, 97, 2, 1, 0, 0, 2, 12, 1, 5]))
