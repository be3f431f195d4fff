"""Every reader over every view of the fixtures, through a mount, against what the reference implementation reads.

    matrix.py [--readers NAME,...] [--tables NAME,...] [--mounted DIRECTORY]

A view is read as its one file, as its parts, and by the questions that readers answer from statistics. Rows must be those
of tests/fixtures/expected*, which Iceberg Java and PyIceberg wrote. What a reader cannot do, by itself and with any writer,
stands in READERS and CANNOT, with the reason; it is counted, and everything else must agree. `--mounted` takes a directory
that holds the WAREHOUSES instead of mounting them.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

from canonical import date, entries, in_order, number, time as clock, timestamp
from mounting import Mount, TARGET, WAREHOUSES, encoded, fixtures

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = sys.executable

# What a reader cannot tell apart. Both sides of a comparison are made coarser in the same way.
LOOSE = {
    "string as binary": "strings and binary are one type; text is compared as bytes",
    "no zones": "timestamps with and without a zone are one type",
    "time is a timestamp": "a time of day comes as that time on 1970-01-01",
    "no null nesting": "a null list, map or struct cannot be told from an empty one",
    "decimal is float": "decimals come as floats",
    "NaN is null": "pandas floats have one value for both",
    "trailing zero bytes": "NumPy's fixed-length bytes drop the zero bytes at their end",
    "variant null is null": "the variant null cannot be told from the null of the column",
    "time is a number": "a time of day comes as its microseconds",
}

# name: (command, what it cannot tell apart, kinds of columns that it does not read)
READERS = {
    "pyarrow table": (["read_pyarrow.py", "table"], (), {}),
    "pyarrow mmap": (["read_pyarrow.py", "mmap"], (), {}),
    "pyarrow dataset": (["read_pyarrow.py", "dataset"], (), {}),
    "duckdb": (["read_duckdb.py"], ("variant null is null",), {}),
    "polars read": (["read_polars.py", "read"], (), {}),
    "polars scan": (["read_polars.py", "scan"], (), {}),
    "datafusion": (["read_datafusion.py"], (), {}),
    "daft": (["read_daft.py"], (), {}),
    "chdb": (
        ["read_chdb.py"],
        ("string as binary", "no zones", "time is a timestamp", "no null nesting"),
        {},
    ),
    "fastparquet": (
        ["read_fastparquet.py"],
        ("decimal is float", "NaN is null", "time is a number", "no zones", "trailing zero bytes"),
        {"nested": "it flattens structs and drops what lists and maps hold"},
    ),
    "hyparquet": (["read_hyparquet.mjs"], ("decimal is float",), {}),
    "spark vectorized": (["read_spark.py", "vectorized"], (), {}),
    "spark rows": (["read_spark.py", "rows"], (), {}),
}

# (reader, table, what): why it cannot read that, whoever wrote the Parquet file. What is `whole`, `parts` or `aggregates`,
# `clean` for the views without deletes, which have the bytes as their writer encoded them, or `any`.
NO_NANOS = "Spark takes no nanosecond timestamps"
NO_LOGICAL = "it takes logical types newer than UUID for damage (so too in the table's own files)"
NESTED_VARIANTS = ("variant_primitives", "variant_nanos", "variant_objects", "variants_nested")
VARIANTS = ("variants", "variants_shredded", "variants_mixed", "avro_variants", *NESTED_VARIANTS)
CANNOT = {
    ("fastparquet", "codecs", "any"): "it takes Hadoop's framing of LZ4 for a raw block",
    ("fastparquet", "odd_names", "any"): "it takes a dot in a column's name for a path",
    ("fastparquet", "defaults", "any"): "it knows no struct of one integer column that has nulls",
    ("fastparquet", "avro_defaults", "any"): "it knows no struct of one integer column that has nulls",
    **{
        ("fastparquet", table, "any"): "it fails on what follows a struct of integers with nulls (so too in a file that pyarrow wrote)"
        for table in ("unknown", "avro_unknown", "orc_unknown")
    },
    ("fastparquet", "encodings", "any"): "it knows neither DELTA_BYTE_ARRAY nor BYTE_STREAM_SPLIT",
    ("fastparquet", "encodings_v3", "any"): "it knows neither DELTA_BYTE_ARRAY nor BYTE_STREAM_SPLIT",
    ("fastparquet", "equality_deletes", "whole"): "it reads plain text as null where another row group has a dictionary (so too in a file that DuckDB wrote)",
    ("fastparquet", "partition_transforms", "whole"): "it reads plain text as null where another row group has a dictionary (so too in a file that DuckDB wrote)",
    **{
        (f"polars {kind}", table, "any"): NO_LOGICAL
        for kind in ("read", "scan")
        for table in ("geospatial", *VARIANTS)
    },
    **{("fastparquet", table, "any"): NO_LOGICAL for table in ("geospatial", *VARIANTS)},
    ("chdb", "geospatial", "any"): "it refuses GEOMETRY and GEOGRAPHY (so too in the table's own files)",
    ("chdb", "variants_shredded", "any"): "strings and binary are one type, which a variant keeps apart",
    ("daft", "variants", "any"): "it cannot hand its variants to Arrow (so too those of the table's own files)",
    ("daft", "avro_variants", "any"): "it cannot hand its variants to Arrow",
    ("daft", "variants_shredded", "any"): "it knows no shredded variants (so too those of the table's own files)",
    **{
        (reader, table, "parts"): "a variant is a struct to it, and each of the parts has another"
        for reader in ("pyarrow table", "pyarrow mmap", "pyarrow dataset", "datafusion", "chdb")
        for table in ("variants_mixed", *NESTED_VARIANTS)
    },
    **{("daft", table, "any"): "it knows no shredded variants (so too those of the table's own files)" for table in NESTED_VARIANTS},
    **{("chdb", table, "any"): "a missing list is an empty one to it, which a variant keeps apart (so too in the table's own files)" for table in NESTED_VARIANTS},
    **{("hyparquet", table, "any"): "it gives null for what these hold (so too in the table's own files)" for table in NESTED_VARIANTS},
    ("duckdb", "variant_nanos", "any"): "it has no variant of a timestamp in nanoseconds with a zone (so too in the table's own files)",
    **{
        (f"spark {kind}", table, what): reason
        for kind in ("vectorized", "rows")
        for table, what, reason in (
            ("variant_nanos", "any", NO_NANOS),
            ("variant_primitives", "parts", NO_NANOS),
            ("variants_nested", "any", "it cannot hand a list with nulls among variants to Arrow"),
        )
    },
    ("fastparquet", "structs_anew", "any"): "it knows no struct of one integer column that has nulls",
    **{
        ("fastparquet", f"imported_by_{by}", "any"): "it knows no times before 1677 and no delta encodings of columns with nulls"
        for by in ("id", "name")
    },
    ("fastparquet", "writers", "any"): "it knows neither DELTA_BYTE_ARRAY nor BYTE_STREAM_SPLIT",
    ("chdb", "writers", "clean"): "it fails at pages of version 2 by gzip (so too in the table's own files)",
    ("hyparquet", "writers", "clean"): "it fails at empty pages by LZ4_RAW (so too in the table's own files)",
    ("daft", "variants_mixed", "any"): "it cannot hand its variants to Arrow (so too those of the table's own files)",
    **{
        ("hyparquet", table, "any"): "a map is an object to it, whose keys are strings"
        for table in ("avro_map_keys", "orc_map_keys")
    },
    ("hyparquet", "avro_variants", "any"): "it turns a variant's decimals, dates and times into numbers and instants",
    ("hyparquet", "variants_mixed", "any"): "it turns a variant's decimals, dates and times into numbers and instants",
    ("hyparquet", "variants", "any"): "it turns a variant's decimals, dates and times into numbers and instants",
    ("hyparquet", "variants_shredded", "any"): "it gives null for a shredded field that an object does not have",
    **{
        (f"spark {kind}", table, "any"): reason
        for kind in ("vectorized", "rows")
        for table, reason in (
            ("all_types", NO_NANOS),
            ("extremes", NO_NANOS),
            *((f"{form}_{table}", NO_NANOS) for form in ("avro", "orc") for table in ("all_types", "extremes", "nested_types")),
            ("defaults", "Spark takes no uuid columns"),
            ("avro_defaults", "Spark takes no uuid columns"),
            ("avro_imported", "Spark takes no uuid columns"),
        )
    },
    **{
        (f"spark {kind}", table, "aggregates"): "Spark answers a count by null for a file without row groups"
        for kind in ("vectorized", "rows")
        for table in ("empty", "ns.nested/empty")
    },
}


def cannot(reader, table, what, head):
    """The reason why a reader cannot read a table that way, or None."""
    for word in ("any", what, *([] if head else ["clean"])):
        if (reader, table, word) in CANNOT:
            return CANNOT[reader, table, word]
    return None


# Readers that take seconds for a view are asked for those only that a branch or a tag leads to.
HEADS_ONLY = {"spark vectorized", "spark rows"}

COMPARABLE = {"int", "long", "date", "string", "timestamp", "timestamptz"}


class Reader:
    """A reader program, answering one job after another."""

    def __init__(self, name):
        script, *arguments = READERS[name][0]
        program = ["node", str(HERE / script), str(TARGET / "node")] if script.endswith(".mjs") else [PYTHON, str(HERE / script)]
        self.process = subprocess.Popen(
            program + arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=HERE
        )

    def ask(self, **job):
        # A reader that hangs on a mount would hang the test run: it gets a minute.
        timer = threading.Timer(120, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            return {"error": f"the reader died (exit status {self.process.wait()})"}
        try:
            return untagged(json.loads(line))
        except json.JSONDecodeError:
            # What else a reader's library prints there; the answer's place is lost with it.
            self.process.kill()
            self.process.wait()
            return {"error": f"not an answer: {line[:300]}"}

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def untagged(value):
    """What read_hyparquet.mjs marks, since JavaScript's JSON has one kind of number."""
    if isinstance(value, list):
        return [untagged(v) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (tag, inner), = value.items()
        if tag == "$int":
            return int(inner)
        if tag == "$float":
            return number(float(inner.replace("Infinity", "inf")))
        if tag == "$date":
            return date(int(inner))
        if tag == "$time":
            return clock(int(inner), 6)
        if tag == "$timestamp":
            return timestamp(int(inner[0]), inner[1], inner[2])
        if tag == "$map":
            return entries({"key": untagged(k), "value": untagged(v)} for k, v in inner)
    return {key: untagged(inner) for key, inner in value.items()}


def loosened(value, kind, loose):
    """A canonical value of an Iceberg type, without what a reader cannot tell."""
    if isinstance(kind, dict):
        nulls = "no null nesting" in loose
        if kind["type"] == "struct":
            if value is None and not nulls:
                return None
            value = value or {}
            return {f["name"]: loosened(value.get(f["name"]), f["type"], loose) for f in kind["fields"]}
        if value is None:
            return [] if nulls else None
        if kind["type"] == "list":
            inner = [loosened(v, kind["element"], loose) for v in value]
            return entries(inner) if is_pair(kind["element"]) else inner
        return entries(
            {"key": loosened(e["key"], kind["key"], loose), "value": loosened(e["value"], kind["value"], loose)} for e in value
        )
    if value is None:
        return None
    if kind == "string" and "string as binary" in loose:
        return value.encode().hex()
    if kind == "variant" and value == {"variant": None} and "variant null is null" in loose:
        return None
    if kind.startswith("timestamp") and "no zones" in loose:
        return value.removesuffix("+00:00")
    if (kind == "uuid" or kind.startswith("fixed")) and "trailing zero bytes" in loose:
        return bytes.fromhex(value).rstrip(b"\0").hex()
    if kind == "time" and "time is a number" in loose:
        return clock(value, 6) if isinstance(value, int) else value
    if kind == "time" and "time is a timestamp" in loose:
        return value.removeprefix("1970-01-01T").removesuffix("+00:00")
    if kind.startswith("decimal") and "decimal is float" in loose:
        return float(f"{float(value):.9g}")
    if kind in ("float", "double"):
        if value == "NaN" and "NaN is null" in loose:
            return None
        return number(float(value.replace("Infinity", "inf") if isinstance(value, str) else value))
    return value


def is_pair(kind):
    return isinstance(kind, dict) and kind["type"] == "struct" and {f["name"] for f in kind["fields"]} == {"key", "value"}


def as_read(value, kind, loose):
    """The same for the reader's own answer, in which strings may be hex already and NaN may be any null."""
    if kind == "string" and "string as binary" in loose:
        return value
    if isinstance(kind, dict) and value is not None:
        if kind["type"] == "struct":
            return {f["name"]: as_read(value.get(f["name"]), f["type"], loose) for f in kind["fields"]}
        if kind["type"] == "list":
            return [as_read(v, kind["element"], loose) for v in value]
        return [
            {"key": as_read(e["key"], kind["key"], loose), "value": as_read(e["value"], kind["value"], loose)} for e in value
        ]
    if isinstance(kind, str) and kind.startswith("decimal") and "decimal is float" in loose:
        return None if value in ("NaN", None) else float(f"{value:.9g}")
    without = [rule for rule in loose if rule not in ("string as binary", "no null nesting")]
    return loosened(value, kind, without)


def fitted(rows, fields, loose, expected):
    change = loosened if expected else as_read
    kinds = [field["type"] for field in fields]
    changed = [[change(v, kind, loose) for v, kind in zip(row, kinds)] for row in rows]
    if not expected and "no null nesting" in loose:
        changed = [[loosened_nulls(v, kind) for v, kind in zip(row, kinds)] for row in changed]
    return in_order(changed)


def loosened_nulls(value, kind):
    if not isinstance(kind, dict):
        return value
    if kind["type"] == "struct":
        return {f["name"]: loosened_nulls((value or {}).get(f["name"]), f["type"]) for f in kind["fields"]}
    if kind["type"] == "list":
        inner = [loosened_nulls(v, kind["element"]) for v in value or []]
        return entries(inner) if is_pair(kind["element"]) else inner
    return entries(
        {"key": loosened_nulls(e["key"], kind["key"]), "value": loosened_nulls(e["value"], kind["value"])} for e in value or []
    )


def questions(view):
    """Count, nulls, minimum and maximum of each column whose order all engines agree on."""
    answers = {}
    for at, field in enumerate(view["schema"]["fields"]):
        if isinstance(field["type"], str) and field["type"] in COMPARABLE:
            values = [row[at] for row in view["rows"]]
            present = [v for v in values if v is not None]
            # Canonical text of one type sorts as its values do; strings as their UTF-8.
            low, high = (min(present), max(present)) if present else (None, None)
            answers[field["name"]] = [len(present), len(values) - len(present), low, high]
    return answers


def difference(wanted, found):
    missing = [row for row in wanted if row not in found]
    extra = [row for row in found if row not in wanted]
    return (
        f"{len(found)} rows for {len(wanted)}; {len(missing)} missing, {len(extra)} not expected"
        + "".join(f"\n      missing: {json.dumps(row)[:400]}" for row in missing[:2])
        + "".join(f"\n      found:   {json.dumps(row)[:400]}" for row in extra[:2])
    )


def check_rows(name, view, answer):
    """None if the answer is right, else what is wrong."""
    if "error" in answer:
        return answer["error"]
    _, loose, leaves_out = READERS[name]
    fields = view["schema"]["fields"]
    names = [field["name"] for field in fields]
    keep = [at for at, field in enumerate(fields) if not (isinstance(field["type"], dict) and "nested" in leaves_out)]
    if len(keep) == len(fields) and answer["columns"] != names:
        return f"columns {answer['columns']} instead of {names}"
    if not set(names[at] for at in keep) <= set(answer["columns"]):
        return f"columns {answer['columns']} instead of {names}"
    picked = [fields[at] for at in keep]
    wanted = fitted([[row[at] for at in keep] for row in view["rows"]], picked, loose, True)
    columns = [answer["columns"].index(field["name"]) for field in picked]
    found = fitted([[row[at] for at in columns] for row in answer["rows"]], picked, loose, False)
    if [json.dumps(row, sort_keys=True) for row in wanted] != [json.dumps(row, sort_keys=True) for row in found]:
        return difference(wanted, found)
    return None


def check_aggregates(name, view, answer, wanted):
    if "error" in answer:
        return answer["error"]
    _, loose, _ = READERS[name]
    kinds = {field["name"]: field["type"] for field in view["schema"]["fields"]}
    wrong = []
    for column, (count, nulls, low, high) in wanted.items():
        bounds = [loosened(v, kinds[column], loose) for v in (low, high)]
        found = answer["aggregates"][column]
        found = found[:2] + [as_read(v, kinds[column], loose) for v in found[2:]]
        if found != [count, nulls, *bounds]:
            wrong.append(f"{column}: count, nulls, min, max are {found} instead of {[count, nulls, *bounds]}")
    return "; ".join(wrong) or None


def views(mounts, tables):
    """(table, view, expectation, directory, whether a branch or tag leads there), each directory once."""
    found = {}
    for file in sorted([*fixtures().glob("expected/*.json"), *fixtures().glob("*/.expected/*.json")]):
        expected = json.loads(file.read_text())
        table = expected["table"]
        if tables and table not in tables:
            continue
        warehouse = next(name for name in WAREHOUSES if (fixtures() / name / table).is_dir())
        for name, view in expected["views"].items():
            folder, _, leaf = name.partition("/")
            directory = os.path.realpath(mounts[warehouse] / table / folder / (encoded(leaf) if leaf else ""))
            head = folder != "snapshots" or found.get((directory, json.dumps(view["rows"])), [False])[-1]
            found[directory, json.dumps(view["rows"])] = [table, name, view, pathlib.Path(directory), head]
    return list(found.values())


def run(name, everything):
    """All views by one reader: (checks passed, skipped, failures)."""
    started = time.monotonic()
    passed, skipped, failures = 0, [], []
    reader = Reader(name)
    for table, label, view, directory, head in everything:
        if not head and name in HEADS_ONLY:
            continue
        if reader.process.poll() is not None:
            reader = Reader(name)
        whole = str(directory / f"{encoded(table.split('/')[-1])}.parquet")
        parts = sorted(str(path) for path in (directory / "parts").glob("*.parquet"))
        wanted = questions(view)
        jobs = [("whole", {"paths": [whole]})]
        if parts:
            jobs.append(("parts", {"paths": parts}))
        if wanted:
            jobs.append(("aggregates", {"paths": [whole], "aggregates": list(wanted)}))
        for what, job in jobs:
            reason = cannot(name, table, what, head)
            if reason:
                skipped.append((table, reason))
                continue
            answer = reader.ask(**job)
            if answer.get("skipped"):
                continue
            wrong = check_aggregates(name, view, answer, wanted) if what == "aggregates" else check_rows(name, view, answer)
            if wrong:
                failures.append(f"{name}: {table}/{label} ({what}): {wrong}")
            else:
                passed += 1
            if reader.process.poll() is not None:
                reader = Reader(name)
    reader.close()
    return name, passed, skipped, failures, time.monotonic() - started


def available(name):
    script = READERS[name][0][0]
    if script.endswith(".mjs"):
        return (TARGET / "node/node_modules/hyparquet").is_dir()
    module = script.removeprefix("read_").removesuffix(".py").replace("spark", "pyspark")
    found = subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
    return found and (module != "pyspark" or subprocess.run(["java", "-version"], capture_output=True, check=False).returncode == 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=lambda text: text.split(","), default=list(READERS))
    parser.add_argument("--tables", type=lambda text: text.split(","))
    parser.add_argument("--mounted", type=pathlib.Path)
    options = parser.parse_args()
    unpacked = fixtures()
    missing = [name for name in options.readers if not available(name)]
    with contextlib.ExitStack() as stack:
        mounts = {
            name: options.mounted / name if options.mounted else stack.enter_context(Mount(unpacked / name))
            for name in WAREHOUSES
        }
        everything = views(mounts, options.tables)
        # Two at a time, the slow Spark sessions first.
        order = sorted((n for n in options.readers if n not in missing), key=lambda n: not n.startswith("spark"))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda name: run(name, everything), order))
    for _, _, _, failures, _ in results:
        for failure in failures:
            print(f"  DISAGREES {failure}")
    print(f"{len(everything)} views of {len({table for table, *_ in everything})} tables")
    print(f"{'reader':18} {'agree':>7} {'wrong':>7} {'skipped':>7} {'seconds':>8}")
    for name, passed, skipped, failures, seconds in sorted(results):
        print(f"{name:18} {passed:7} {len(failures):7} {len(skipped):7} {seconds:8.1f}")
    for name, _, skipped, _, _ in sorted(results):
        for table, reason in sorted(set(skipped)):
            print(f"  {name} skips {table}: {reason}")
        for rule in READERS[name][1]:
            print(f"  {name}: {LOOSE[rule]}")
        for kind, reason in READERS[name][2].items():
            print(f"  {name} is not asked for {kind} columns: {reason}")
        if name in HEADS_ONLY:
            print(f"  {name} reads the heads of branches and tags only, for time")
    for name in missing:
        print(f"  SKIPPED: {name} is not installed")
    good = sum(passed for _, passed, _, _, _ in results)
    bad = sum(len(failures) for _, _, _, failures, _ in results)
    left = sum(len(skipped) for _, _, skipped, _, _ in results) + len(missing) * len(everything)
    print(f"readers: {good} passed, {bad} failed, {left} skipped")
    sys.exit(1 if bad or not good else 0)


if __name__ == "__main__":
    main()
