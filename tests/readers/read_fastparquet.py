"""fastparquet. It reads into pandas, which knows neither decimals nor nested columns: matrix.py says what that leaves out."""

import datetime

import fastparquet
import pandas as pd

from canonical import date, in_order, number, serve, time, timestamp


def value(cell, kind):
    if isinstance(cell, (list, dict)):
        return cell
    # pandas holds the nulls of text columns as a float.
    if cell is None or cell is pd.NaT or cell is pd.NA or (kind == "BYTES" and isinstance(cell, float)):
        return None
    if isinstance(cell, pd.Timestamp):
        nanos = cell.as_unit("ns").value
        return date(nanos // (86400 * 10**9)) if kind == "DATE" else timestamp(nanos, 9, cell.tz is not None)
    if isinstance(cell, (pd.Timedelta, datetime.timedelta)):
        return time(pd.Timedelta(cell).as_unit("ns").value, 9)
    if isinstance(cell, datetime.date):
        return cell.isoformat()
    if isinstance(cell, bytes):
        return cell.hex()
    if hasattr(cell, "item"):
        cell = cell.item()
    return number(cell) if isinstance(cell, float) else cell


def read(paths):
    columns, rows = None, []
    for path in paths:
        file = fastparquet.ParquetFile(path)
        columns = [name for name, node in file.schema.root["children"].items() if not node.num_children]
        frame = file.to_pandas(columns=columns)
        kinds = []
        for name in columns:
            element = file.schema.schema_element(name)
            logical = element.logicalType
            is_date = logical is not None and logical.DATE is not None
            kinds.append("DATE" if is_date else "BYTES" if element.type in (6, 7) and element.scale is None else "")
        cells = [[value(cell, kind) for cell in frame[name]] for name, kind in zip(columns, kinds)]
        rows.extend(list(row) for row in zip(*cells))
    return {"columns": columns, "rows": in_order(rows)}


serve(read)
