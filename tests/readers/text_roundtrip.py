"""The text of the fixtures' views, read back by DuckDB, pandas, Polars and Python, against the views' Parquet files.

Usage: text_roundtrip.py [TABLE...]; the last line is `N passed, N failed, N skipped`.
"""

import decimal
import json
import math
import sys

import duckdb
import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
from mounting import Mount, fixtures

NULL = "\\N"


def duckdb_type(ty):
    """The type that DuckDB reads a column's text as, and how the Parquet column becomes one; nothing for nested ones."""
    simple = {
        pa.bool_(): "BOOLEAN",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.date32(): "DATE",
        pa.time64("us"): "TIME",
        pa.timestamp("us"): "TIMESTAMP",
        pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
        pa.timestamp("ns"): "TIMESTAMP_NS",
        pa.timestamp("ns", "UTC"): "TIMESTAMPTZ",
        pa.string(): "VARCHAR",
        pa.uuid(): "UUID",
    }
    if pa.types.is_decimal(ty):
        return f"DECIMAL({ty.precision}, {ty.scale})", "{}"
    if pa.types.is_binary(ty) or pa.types.is_fixed_size_binary(ty):
        return "VARCHAR", "lower(hex({}))"
    if ty in simple:
        return simple[ty], f"{{}}::{simple[ty]}"
    return None


def by_duckdb(table, parquet, csv):
    """Columns whose values differ, by DuckDB's own comparison."""
    db = duckdb.connect()
    db.execute("set timezone = 'UTC'")
    types = {field.name: duckdb_type(field.type) for field in table.schema}
    columns = {name: ty[0] if ty else "VARCHAR" for name, ty in types.items()}
    rows = db.execute(f"select count(*) from read_csv(?, header = true, columns = {columns!r}, allow_quoted_nulls = false)", [csv])
    assert rows.fetchone()[0] == table.num_rows, "rows"
    for name, ty in types.items():
        if not ty:
            continue
        quoted = '"' + name.replace('"', '""') + '"'
        differing = db.execute(
            f"select c.{quoted}, p.{quoted} from read_csv(?, header = true, columns = {columns!r}, allow_quoted_nulls = false) c "
            f"positional join read_parquet(?) p where c.{quoted} is distinct from {ty[1].format('p.' + quoted)}",
            [csv, parquet],
        ).fetchall()
        if differing:
            yield f"DuckDB: {name}: {differing[:3]}"


def units(text, ty):
    """The stored integer of a date, time or timestamp from its text; numpy knows years of any length."""
    if ty == pa.time64("us"):
        return int(numpy.datetime64(f"1970-01-01T{text}", "us").astype("int64"))
    text = text.removeprefix("+").removesuffix("+00:00")
    unit = "D" if ty == pa.date32() else ty.unit
    return int(numpy.datetime64(text, unit).astype("int64"))


def stored(array):
    """A column as Python values; dates and times as the integers that are stored, whatever Python can hold."""
    ty = array.type
    if pa.types.is_temporal(ty):
        return array.cast(pa.int32() if ty == pa.date32() else pa.int64()).to_pylist()
    if isinstance(ty, pa.BaseExtensionType):
        return [str(value) if value is not None else None for value in array.to_pylist()]
    return array.to_pylist()


def from_text(text, ty):
    """A value from its text in CSV."""
    if pa.types.is_boolean(ty):
        return {"true": True, "false": False}[text]
    if pa.types.is_integer(ty):
        return int(text)
    if pa.types.is_floating(ty):
        return float(numpy.float32(text)) if ty == pa.float32() else float(text)
    if pa.types.is_decimal(ty):
        value = decimal.Decimal(text)
        assert -value.as_tuple().exponent == ty.scale, "the scale"
        return value
    if pa.types.is_temporal(ty):
        return units(text, ty)
    if pa.types.is_binary(ty) or pa.types.is_fixed_size_binary(ty):
        return bytes.fromhex(text)
    return text


def from_json(value, ty):
    """A value from JSON lines."""
    if value is None:
        return None
    if pa.types.is_struct(ty):
        assert list(value) == [field.name for field in ty], "the fields"
        return {field.name: from_json(value[field.name], field.type) for field in ty}
    if pa.types.is_list(ty):
        return [from_json(item, ty.value_type) for item in value]
    if pa.types.is_map(ty):
        pairs = value.items() if ty.key_type == pa.string() else value
        return [(from_json(key, ty.key_type), from_json(item, ty.item_type)) for key, item in pairs]
    if pa.types.is_boolean(ty) or pa.types.is_integer(ty):
        return value
    if pa.types.is_floating(ty):
        return from_text(repr(value) if isinstance(value, float) else value, ty)
    return from_text(value, ty)


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def compare(who, name, found, expected):
    if len(found) != len(expected):
        yield f"{who}: {name}: {len(found)} rows, {len(expected)} expected"
    differing = [(f, e) for f, e in zip(found, expected) if not same(f, e)]
    if differing:
        yield f"{who}: {name}: {differing[:3]}"


def flat(table):
    """The columns that are not nested: index, field, values."""
    return [(i, field, stored(table.column(i).combine_chunks())) for i, field in enumerate(table.schema) if not pa.types.is_nested(field.type)]


def by_polars(table, csv):
    frame = polars.read_csv(csv, infer_schema=False)
    for index, field, expected in flat(table):
        # Polars leaves quotes in a header doubled.
        texts = frame.to_series(index).to_list()
        found = [None if text is None else from_text(text, field.type) for text in texts]
        yield from compare("Polars", field.name, found, expected)


def by_pandas(table, csv):
    """With a text for null; numbers are pandas' own, the rest is text."""
    numbers = {pa.int32(): "Int32", pa.int64(): "Int64", pa.float64(): "float64", pa.bool_(): "boolean"}
    types = {field.name: numbers.get(field.type, "str") for field in table.schema}
    # Told nothing, pandas takes the text NA for null in every column; told this much, NaN only where it is a number.
    nulls = {name: [NULL, "NaN"] if ty == "float64" else [NULL] for name, ty in types.items()}
    frame = pandas.read_csv(csv, dtype=types, na_values=nulls, keep_default_na=False)
    for _, field, expected in flat(table):
        column = frame[field.name]
        if field.type == pa.float64():
            # pandas has no null beside NaN in these.
            expected = [math.nan if value is None else value for value in expected]
            found = column.to_list()
        elif field.type in numbers:
            found = [None if pandas.isna(value) else value for value in column]
        else:
            found = [None if pandas.isna(text) else from_text(text, field.type) for text in column]
        yield from compare("pandas", field.name, found, expected)


def by_json(table, lines):
    with open(lines) as file:
        rows = [json.loads(line) for line in file]
    for _, field, expected in flat(table):
        found = [from_json(row[field.name], field.type) for row in rows]
        yield from compare("JSON lines", field.name, found, expected)
    for index, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            column = table.column(index).combine_chunks()
            found = pa.array([from_json(row[field.name], field.type) for row in rows], field.type)
            if not found.equals(column):
                yield f"JSON lines: {field.name}: {found.to_pylist()[:3]}, {column.to_pylist()[:3]} expected"


def main(names):
    warehouse = fixtures() / "java"
    passed, failed = 0, 0
    for source in sorted(path for path in warehouse.iterdir() if path.is_dir() and (not names or path.name in names)):
        problems = []
        with Mount(source) as plain, Mount(source, ["--csv-null", NULL]) as marked:
            view = plain / "current" / source.name
            table = pq.read_table(f"{view}.parquet")
            problems += by_duckdb(table, f"{view}.parquet", f"{view}.csv")
            if len(table.schema) > 1 and table.num_rows:
                problems += by_polars(table, f"{view}.csv")
            problems += by_pandas(table, f"{marked / 'current' / source.name}.csv")
            problems += by_json(table, f"{view}.jsonl")
        for problem in problems:
            print(f"{source.name}: {problem}")
        passed, failed = passed + (not problems), failed + bool(problems)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main(sys.argv[1:]))
