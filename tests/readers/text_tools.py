"""Ways to read a text file from Python, each printing something that tells whether it was read right.

Usage: text_tools.py WAY FILE
"""

import hashlib
import mmap
import os
import sys


def digest(data):
    return hashlib.md5(data).hexdigest()


def read(path):
    with open(path, "rb") as file:
        return digest(file.read())


def mapped(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        return digest(data), len(data)


def size(path):
    with open(path, "rb"):
        return os.path.getsize(path)


def seek(path):
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        places = [0, end // 2, end - 100, end // 3, end]
        return end, [digest(file.read(50)) for place in places if file.seek(place) >= 0]


def pandas(path):
    import pandas

    return pandas.read_csv(path, keep_default_na=False).to_csv()[-200:]


def polars(path):
    import polars

    frame = polars.read_csv(path, infer_schema_length=None)
    return frame.null_count().row(0), frame.hash_rows().sum(), frame.height


def polars_scan(path):
    import polars

    frame = polars.scan_csv(path, infer_schema_length=None)
    return frame.select(polars.len(), polars.col("id").sum(), polars.col("half").sum()).collect().row(0)


def duckdb(path):
    import duckdb

    question = """select count(*), sum(id), sum(half), count(name), count(*) filter (where name = ''), min("at"), max("at"),
        typeof(any_value("at")), typeof(any_value(amount))"""
    return duckdb.sql(f"{question} from read_csv('{path}', allow_quoted_nulls = false, strict_mode = true)").fetchall()


def pandas_json(path):
    import pandas

    # Decimals as they stand, which are strings.
    frame = pandas.read_json(path, lines=True, dtype=False)
    return frame.to_csv()[-200:], len(frame), int(frame["id"].sum()), frame["name"].isna().sum()


def polars_json(path):
    import polars

    frame = polars.read_ndjson(path, infer_schema_length=None)
    return frame.null_count().row(0), frame.hash_rows().sum(), frame.height, frame.schema


def polars_scan_json(path):
    import polars

    frame = polars.scan_ndjson(path, infer_schema_length=None)
    return frame.select(polars.len(), polars.col("id").sum(), polars.col("half").sum()).collect().row(0)


def duckdb_json(path):
    import duckdb

    question = """select count(*), sum(id), sum(half), count(name), count(*) filter (where name = ''), min("at"), max("at"),
        sum(amount::decimal(12, 2)) from read_json"""
    return duckdb.sql(f"{question}('{path}', format = 'newline_delimited')").fetchall()


print(globals()[sys.argv[1]](sys.argv[2]))
