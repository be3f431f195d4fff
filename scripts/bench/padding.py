"""How many of a virtual Parquet file's bytes carry nothing: closing pages, and gaps between chunks.  padding.py FILE"""

import json
import os
import sys

import pyarrow.parquet as pq
from fastparquet.cencoding import from_buffer
from fastparquet.parquet_thrift import PageHeader  # noqa: F401

# More than any page header without statistics takes; with them, the next try is longer.
HEADERS = (256, 64 << 10, 1 << 20)


def page(file, at):
    """A page header and its length."""
    import io
    from fastparquet.cencoding import NumpyIO, read_thrift
    for size in HEADERS:
        file.seek(at)
        buffer = NumpyIO(bytearray(file.read(size)))
        try:
            header = read_thrift(buffer)
        except Exception:
            continue
        return header, buffer.tell()
    raise SystemExit(f"no page header at byte {at}")


def main(path):
    size = os.path.getsize(path)
    metadata = pq.read_metadata(path)
    used, closing = 12 + metadata.serialized_size, 0
    with open(path, "rb") as file:
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for i in range(group.num_columns):
                chunk = group.column(i)
                start = min(o for o in (chunk.dictionary_page_offset, chunk.data_page_offset) if o is not None)
                used += chunk.total_compressed_size
                at, end = start, start + chunk.total_compressed_size
                while at < end:
                    header, length = page(file, at)
                    # Fields of PageHeader: 3 is the compressed size, 5 the data page's header, whose 1 is its values.
                    taken = length + header[3]
                    if header.get(5) is not None and header[5][1] == 0:
                        closing += taken
                    at += taken
    print(json.dumps({"bytes": size, "padding": closing + size - used}))


main(sys.argv[1])
