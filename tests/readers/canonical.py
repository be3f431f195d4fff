"""The one form in which all readers' rows are compared.

A reader program takes jobs on standard input, one JSON object a line, and answers each with one JSON line:

    {"paths": ["a.parquet", ...]}                        -> {"columns": [...], "rows": [[...], ...]}
    {"paths": [...], "aggregates": ["id", ...]}          -> {"aggregates": {"id": [count, nulls, min, max], ...}}
    anything that fails                                  -> {"error": "..."}

Values, by Iceberg type:

    boolean, int, long          JSON true/false, number
    float, double               JSON number, or "NaN", "Infinity", "-Infinity"; -0.0 is kept apart from 0.0
    decimal                     string with the scale of the type, "1.50"
    string                      string
    uuid, fixed, binary         lower-case hex ("f79c3e09677c4bbda479512f878fc45e": readers disagree on the dashes)
    date                        "2024-02-29"
    time                        "12:34:56.5"; trailing zeros of the fraction, and an empty fraction, are left out
    timestamp[_ns]              "2024-02-29T12:34:56.5"
    timestamptz[_ns]            the same with "+00:00"
    struct                      object
    list                        array
    variant                     see variants.py
    geometry, geography         well-known binary in hex
    unknown                     null
    map                         array of {"key", "value"} objects in the order of their JSON (some readers know no maps,
                                so a list of such structs is the same thing)

Rows are sorted by their JSON text: Iceberg promises no order, and readers take row groups in any.
"""

import decimal
import json
import math
import sys

import variants


def number(value):
    """A float as JSON can carry it."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def fraction(amount, digits):
    """The part of a second, `amount` in units of 10^-digits, with its point; nothing where it is zero."""
    text = f"{amount:0{digits}d}".rstrip("0") if digits else ""
    return f".{text}" if text else ""


def date(days):
    """Days since 1970-01-01, by the proleptic Gregorian calendar (datetime stops at the years 1 and 9999)."""
    days += 719468
    era, day_of_era = divmod(days, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    return f"{year:04d}-{month:02d}-{day:02d}"


def time(amount, digits):
    """`amount` units of 10^-digits seconds since midnight."""
    seconds, rest = divmod(amount, 10**digits)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction(rest, digits)}"


def timestamp(amount, digits, zone):
    """`amount` units of 10^-digits seconds since 1970."""
    days, rest = divmod(amount, 86400 * 10**digits)
    return f"{date(days)}T{time(rest, digits)}{'+00:00' if zone else ''}"


DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def entries(pairs):
    """A map, or a list of structs that looks like one."""
    return sorted(pairs, key=lambda entry: json.dumps(entry, sort_keys=True))


def from_arrow_type(kind):
    """A function that brings the values of one Arrow column, as plain integers, bytes and so on, into canonical form."""
    import pyarrow.types as t

    if t.is_null(kind):
        return lambda value: None
    if t.is_dictionary(kind):
        return from_arrow_type(kind.value_type)
    if getattr(kind, "extension_name", "") == "arrow.bool8":
        return lambda scalar: bool(scalar.as_py())
    if hasattr(kind, "storage_type"):
        inner = from_arrow_type(kind.storage_type)
        return lambda scalar: inner(unwrapped(scalar))
    if t.is_floating(kind):
        return lambda scalar: number(scalar.as_py())
    if t.is_decimal(kind):
        return lambda scalar: f"{scalar.as_py():.{kind.scale}f}"
    if t.is_date32(kind):
        return lambda scalar: date(scalar.value)
    if t.is_date64(kind):
        return lambda scalar: date(scalar.value // 86400000)
    if t.is_time(kind):
        return lambda scalar: time(scalar.value, DIGITS[kind.unit])
    if t.is_timestamp(kind):
        return lambda scalar: timestamp(scalar.value, DIGITS[kind.unit], kind.tz is not None)
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind) or "binary_view" in str(kind):
        return lambda scalar: scalar.as_py().hex()
    if t.is_struct(kind):
        if variants.is_variant(kind.field(i).name for i in range(kind.num_fields)):
            return variants.from_scalar
        fields = [(kind.field(i).name, or_null(from_arrow_type(kind.field(i).type))) for i in range(kind.num_fields)]
        return lambda scalar: {name: inner(scalar[i]) for i, (name, inner) in enumerate(fields)}
    if t.is_map(kind):
        key, item = or_null(from_arrow_type(kind.key_type)), or_null(from_arrow_type(kind.item_type))
        return lambda scalar: entries({"key": key(e[0]), "value": item(e[1])} for e in scalar.values)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or "list" in str(kind):
        inner = or_null(from_arrow_type(kind.value_type))
        pairs = t.is_struct(kind.value_type) and {f.name for f in kind.value_type} == {"key", "value"}
        return lambda scalar: (entries if pairs else list)(inner(v) for v in (scalar.values or ()))
    return lambda scalar: scalar.as_py()


def or_null(convert):
    return lambda scalar: convert(scalar) if scalar.is_valid else None


def unwrapped(scalar):
    """Extension values (uuid, say) are what they are stored as."""
    return scalar.value if hasattr(scalar, "type") and hasattr(scalar.type, "storage_type") else scalar


def from_arrow(table):
    """Column names and canonical rows of a pyarrow Table."""
    columns = []
    for column in table.columns:
        convert = or_null(from_arrow_type(column.type))
        columns.append([convert(unwrapped(v) if v.is_valid else v) for chunk in column.chunks for v in storage(chunk)])
    rows = [list(row) for row in zip(*columns)] if columns else []
    return {"columns": table.column_names, "rows": in_order(rows)}


def storage(chunk):
    return chunk.storage if hasattr(chunk, "storage") else chunk


def plain(value):
    """A Python value as an engine's `min()` gives it, in canonical form."""
    import datetime

    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return number(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        zone = value.tzinfo is not None
        if zone:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        delta = value - datetime.datetime(1970, 1, 1)
        return timestamp((delta.days * 86400 + delta.seconds) * 10**6 + delta.microseconds, 6, zone)
    if isinstance(value, datetime.date):
        return date((value - datetime.date(1970, 1, 1)).days)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    raise TypeError(f"no canonical form for {type(value)}")


def from_arrow_aggregates(names, table):
    """One row of count, nulls, min, max per column, in that order, as canonical values by column name."""
    values = from_arrow(table)["rows"][0]
    return {name: values[4 * i : 4 * i + 4] for i, name in enumerate(names)}


def in_order(rows):
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def sql_aggregates(names, quote='"'):
    """The select list whose one row `from_arrow_aggregates` takes apart: the questions that statistics can answer."""
    columns = (quote + name.replace(quote, quote * 2) + quote for name in names)
    return ", ".join(
        f"count({c}) c{i}, count(*) - count({c}) n{i}, min({c}) l{i}, max({c}) u{i}" for i, c in enumerate(columns)
    )


def serve(read, aggregates=None):
    """Answers the jobs on standard input: `read(paths)` gives a pyarrow Table or a finished answer, `aggregates(paths,
    names)` the answer's dictionary."""
    for line in sys.stdin:
        job = json.loads(line)
        try:
            if "aggregates" in job:
                answer = {"aggregates": aggregates(job["paths"], job["aggregates"])} if aggregates else {"skipped": True}
            else:
                table = read(job["paths"])
                answer = table if isinstance(table, dict) else from_arrow(table)
        except BaseException as error:  # pylint: disable=broad-except  # Rust panics are BaseExceptions
            if isinstance(error, KeyboardInterrupt):
                raise
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(answer), flush=True)
