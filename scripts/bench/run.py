"""Runs the bench and prints it as Markdown.  See scripts/bench.sh, which calls this.

In each round every query is run by every engine in turn, each in a process of its own; for bergfs on a fresh mount, twice.
Every answer is compared with DuckDB's on the compacted file. The exit status is 1 if bergfs failed or answered wrong.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LINEITEM = ("clean", "posdel", "posdelp", "dv", "eqdel", "eqdel1m")
# What each peer is run by: the readers' environment, or the bench's own.
PEERS = {"duckdb-iceberg": "bench", "Polars": "readers", "chDB": "readers", "Daft": "readers", "PyIceberg": "readers",
         "iceberg-rust": "bench"}
MODULES = {"duckdb-iceberg": "duckdb, duckdb_extension_iceberg, duckdb_extension_avro, duckdb_extension_httpfs",
           "Polars": "polars, pyiceberg", "chDB": "chdb", "Daft": "daft, pyiceberg", "PyIceberg": "pyiceberg",
           "iceberg-rust": "datafusion, pyiceberg_core.datafusion"}
COUNTERS = ("manifests_read", "footers_read", "source_bytes", "pages_decoded", "chunks_transcoded")

Q3 = """select l_returnflag, l_linestatus, sum(l_quantity) as quantity, sum(l_extendedprice) as price,
    sum(l_extendedprice * (1 - l_discount)) as discounted, avg(l_quantity) as quantity_each, avg(l_extendedprice) as price_each,
    avg(l_discount) as discount_each, count(*) as rows from X where l_shipdate <= date '1998-09-02'
    group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus"""


class Query:
    """`columns` and `where` are for PyIceberg, which has no SQL; `head` has no right answer but rows that are there."""

    def __init__(self, name, sql, columns=(), where=None, head=False):
        self.name, self.sql, self.columns, self.where, self.head = name, sql, columns, where, head


def queries(name, table):
    """The queries of a table. Columns are named: views of v3 tables have two more."""
    columns = table["columns"]
    every = ", ".join(columns)
    head = Query("head", f"select {every} from X limit 10", columns, head=True)
    count = Query("Q1", "select count(*) as rows from X")
    if name == "wide":
        return [count, Query("sum", "select sum(c005) as s from X", ["c005"]), head]
    if name == "many":
        day, after = table["day"], table["next_day"]
        return [
            count,
            Query("one day", f"select sum(v) as s from X where ts >= timestamp '{day} 00:00:00' and ts < timestamp '{after} 00:00:00'",
                  ["ts", "v"], f"ts >= '{day}T00:00:00' and ts < '{after}T00:00:00'"),
            Query("sum", "select sum(v) as s from X", ["v"]),
            head,
        ]
    return [
        count,
        Query("Q2", "select sum(l_extendedprice) as s from X where l_shipdate >= date '1995-01-01' and l_shipdate < date '1995-09-01'",
              ["l_shipdate", "l_extendedprice"], "l_shipdate >= '1995-01-01' and l_shipdate < '1995-09-01'"),
        Query("Q3", Q3, ["l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice", "l_discount", "l_shipdate"],
              "l_shipdate <= '1998-09-02'"),
        Query("Q4", f"select {every} from X where l_orderkey = {table['key']} order by l_linenumber, l_partkey", columns,
              f"l_orderkey = {table['key']}"),
        head,
    ]


class Mount:
    """A fresh mount."""

    def __init__(self, bergfs, table, point, *options):
        self.bergfs, self.point = bergfs, point
        point.mkdir(parents=True, exist_ok=True)
        subprocess.run([bergfs, "mount", *options, table["root"], point], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([self.bergfs, "umount", self.point], check=True)

    def stats(self):
        lines = (self.point / ".bergfs" / "stats").read_text().splitlines()
        return {name: int(value) for name, value in (line.split() for line in lines)}

    def peak_mb(self):
        """The daemon's, by the process that has this mountpoint among its arguments."""
        for process in pathlib.Path("/proc").iterdir():
            try:
                if os.fsencode(self.point) in (process / "cmdline").read_bytes().split(b"\0"):
                    status = (process / "status").read_text()
                    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) // 1024
            except (OSError, StopIteration):
                continue
        return 0


def same(a, b):
    """Whether two answers are equal; floats up to the order of their summing."""
    def equal(x, y):
        if isinstance(x, float) and isinstance(y, float):
            # Daft keeps six digits of an average of decimals.
            return math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-5)
        return x == y
    return len(a) == len(b) and all(len(r) == len(s) and all(map(equal, r, s)) for r, s in zip(a, b))


class Bench:
    def __init__(self, args, tables):
        self.args, self.tables = args, tables
        self.python = {"readers": args.readers, "bench": args.peers_python}
        self.times = collections.defaultdict(list)
        self.memory = collections.defaultdict(int)
        self.work = {}
        self.dropped = {}
        self.faults = []
        self.work_dir = args.root / "work"
        self.work_dir.mkdir(exist_ok=True)
        self.mounts = 0
        self.peers, self.skipped = [], []
        for peer in [p for p in args.peers.split(",") if p]:
            python = self.python[PEERS[peer]]
            found = subprocess.run([python, "-c", f"import {MODULES[peer]}"], capture_output=True).returncode == 0
            (self.peers if found else self.skipped).append(peer)

    def ask(self, engine, python, query, table, files=(), limit=None):
        """The answer of one engine, in a process of its own."""
        request = {"engine": engine, "sql": query.sql, "columns": list(query.columns), "filter": query.where,
                   "limit": 10 if query.head else None, "files": list(map(str, files)), "table": table}
        try:
            done = subprocess.run([python, HERE / "query.py"], input=json.dumps(request), capture_output=True, text=True,
                                  timeout=limit)
            return json.loads(done.stdout.strip().splitlines()[-1])
        except subprocess.TimeoutExpired:
            return {"error": f"> {limit} s"}
        except (IndexError, ValueError):
            return {"error": f"ended with status {done.returncode}: {done.stderr.strip()[-200:]}"}

    def duckdb(self, query, table, files):
        return self.ask("duckdb", self.args.readers, query, table, files)

    def is_right(self, query, answer, expected, table):
        if not query.head:
            return same(answer["rows"], expected)
        # Any ten rows, as long as they are there.
        key = {"l_orderkey": ("l_orderkey", "l_linenumber")}.get(query.columns[0], ("id",))
        places = [query.columns.index(name) for name in key]
        found = Query("", f"select {', '.join(query.columns)} from X where ({', '.join(key)}) in (" + ", ".join(
            "(" + ", ".join(str(int(row[i])) for i in places) + ")" for row in answer["rows"]) + ")")
        rows = self.duckdb(found, table, [table["compacted"]])["rows"] if len(answer["rows"]) == 10 else []
        return all(any(same([row], [other]) for other in rows) for row in answer["rows"]) and bool(rows)

    def note(self, name, query, subject, answer, expected, table, checked=True):
        """Keeps a measurement, or why there is none."""
        ours = subject.startswith("bergfs")
        if "error" in answer:
            reason = answer["error"].splitlines()[0][:200]
        elif checked and not self.is_right(query, answer, expected, table):
            reason = "WRONG ANSWER"
        else:
            self.times[name, query.name, subject].append(answer["seconds"])
            self.memory[name, subject] = max(self.memory[name, subject], answer["peak_mb"])
            return
        self.dropped[name, query.name, subject] = reason
        if ours:
            self.faults.append(f"{name} {query.name} {subject}: {reason}")

    def queries_of(self, name):
        table = self.tables[name]
        for query in queries(name, table):
            expected = self.duckdb(query, table, [table["compacted"]])
            self.note(name, query, "compacted", expected, [], table, checked=False)
            rows = expected["rows"]
            raw = self.duckdb(query, table, table["data"])
            self.note(name, query, "raw", raw, rows, table, checked=name in ("clean", "wide", "many"))
            for peer in self.peers:
                if (name, query.name, peer) not in self.dropped:
                    answer = self.ask(peer, self.python[PEERS[peer]], query, table, limit=self.args.limit)
                    self.note(name, query, peer, answer, rows, table)
            # Small texts are sized in the background, which would be counted with the query.
            with self.mount(table, "--no-text") as mount:
                before = mount.stats()
                for subject in ("bergfs, first", "bergfs, second"):
                    answer = self.duckdb(query, table, [mount.point / "current" / f"{name}.parquet"])
                    self.note(name, query, subject, answer, rows, table)
                    after = mount.stats()
                    self.work[name, query.name, subject] = {c: after[c] - before[c] for c in COUNTERS}
                    before = after
                if name == "many":
                    # What a plain file with as many row groups costs.
                    copy = self.work_dir / "copy.parquet"
                    shutil.copyfile(mount.point / "current" / "many.parquet", copy)
                    self.note(name, query, "a copy of it", self.duckdb(query, table, [copy]), rows, table)
                self.memory[name, "daemon"] = max(self.memory[name, "daemon"], mount.peak_mb())

    def mount(self, table, *options):
        self.mounts += 1
        return Mount(self.args.bergfs, table, self.work_dir / f"mnt{os.getpid()}-{self.mounts}", *options)

    def shell(self, name, what, command):
        started = time.perf_counter()
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        seconds = time.perf_counter() - started
        if done.returncode == 0:
            self.times[name, what, "files"].append(seconds)
        else:
            self.faults.append(f"{name} {what}: {done.stderr.strip()[:200]}")
        return done.stdout

    def copy(self, name, what, options, limit=""):
        table, out = self.tables[name], self.work_dir / "copy"
        query = Query(what, f"copy (from '{table['compacted']}' {limit}) to '{out}' ({options})")
        answer = self.ask("copy", self.args.readers, query, table)
        out.unlink(missing_ok=True)
        self.times[name, what, "files"].append(answer["seconds"])

    def files_of(self, name):
        """Whole files through ordinary programs, against DuckDB writing them."""
        table = self.tables[name]
        self.copy(name, "COPY csv", "format csv")
        with self.mount(table) as mount:
            self.shell(name, "cat csv", f"cat {mount.point}/current/{name}.csv > /dev/null")
            self.shell(name, "cat csv again", f"cat {mount.point}/current/{name}.csv > /dev/null")
            self.check_csv(name, mount)
            self.memory[name, "daemon, csv"] = max(self.memory[name, "daemon, csv"], mount.peak_mb())
        self.copy(name, "limit 5", "format csv", limit="limit 5")
        with self.mount(table) as mount:
            self.shell(name, "head -5", f"head -5 {mount.point}/current/{name}.csv > /dev/null")
        self.copy(name, "COPY parquet", "format parquet, compression uncompressed")
        with self.mount(table) as mount:
            file = mount.point / "current" / f"{name}.parquet"
            self.shell(name, "cat parquet", f"cat {file} > /dev/null")
            self.shell(name, "cat parquet again", f"cat {file} > /dev/null")
            self.memory[name, "daemon, parquet"] = max(self.memory[name, "daemon, parquet"], mount.peak_mb())
            command = [self.args.readers, HERE / "padding.py", file]
            self.work[name, "padding"] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def check_csv(self, name, mount):
        """Every column's count and number of distinct values, and the sums of numbers."""
        table = self.tables[name]
        sums = [f"count({c}), count(distinct {c})" for c in table["columns"]] + [f"sum({c})" for c in table["numbers"]]
        types = ", ".join(f"'{c}': '{t}'" for c, t in table["types"].items())
        text = f"read_csv('{mount.point}/current/{name}.csv', header = true, types = {{{types}}})"
        query = Query("csv", f"select count(*), {', '.join(sums)} from {text}")
        expected = Query("csv", f"select count(*), {', '.join(sums)} from X")
        answer = self.duckdb(query, table, [])
        right = self.duckdb(expected, table, [table["compacted"]])
        if "error" in answer or not same(answer["rows"], right["rows"]):
            self.faults.append(f"{name}: the CSV is wrong: {answer.get('error', answer)}")

    def many(self):
        """What 2,000 small files cost beside the data."""
        table = self.tables["many"]
        count = Query("count", "select count(*) as rows from X")
        answer = self.ask("plan", self.args.readers, count, table)
        if "error" not in answer:
            self.times["many", "PyIceberg plans", "files"].append(answer["seconds"])
        self.times["many", "count(*) of the bare files", "files"].append(self.duckdb(count, table, table["data"])["seconds"])
        started = time.perf_counter()
        with self.mount(table) as mount:
            os.listdir(mount.point / "current")
            self.times["many", "mount to first ls", "files"].append(time.perf_counter() - started)
            listed = self.shell("many", "ls -lR parts", f"ls -lR {mount.point}/current/parts/")
            if listed.count(".parquet") != len(table["data"]):
                self.faults.append(f"many: ls shows {listed.count('.parquet')} parts of {len(table['data'])}")

    def run(self):
        for round in range(self.args.runs):
            for name in self.tables:
                print(f"round {round + 1} of {self.args.runs}: {name}", file=sys.stderr)
                self.queries_of(name)
                if name in ("clean", "dv"):
                    self.files_of(name)
                if name == "many":
                    self.many()

    def median(self, *key):
        return statistics.median(self.times[key]) if self.times[key] else None


def seconds(value):
    return f"{value:.3f}".lstrip("0") if value < 1 else f"{value:.2f}"


def against(value, base):
    """A time with its ratio to another."""
    if value is None:
        return "-"
    return seconds(value) + (f" ({value / base:.2f})" if base else "")


def row(cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def report(bench, scale):
    print(f"Scale {scale}, {bench.args.runs} runs, medians in seconds (× `compacted`), {os.cpu_count()} cores, warm page cache, "
          "a fresh process for each query; `first` is the first query after a mount.")
    for peer in bench.skipped:
        print(f"{peer}: SKIPPED, not installed.")
    for name, table in bench.tables.items():
        names = [query.name for query in queries(name, table)]
        print()
        row([name, *names, "peak MB"])
        row(["---"] * (len(names) + 2))
        for subject in ["raw", "compacted", "bergfs, first", "bergfs, second", "a copy of it", *bench.peers]:
            cells = []
            for query in names:
                reason = bench.dropped.get((name, query, subject))
                shown = (reason if reason.startswith((">", "WRONG")) else "fails") if reason else None
                base = None if subject == "compacted" else bench.median(name, query, "compacted")
                cells.append(shown or against(bench.median(name, query, subject), base))
            peak = bench.memory[name, subject]
            if subject.startswith("bergfs"):
                peak = f"{peak} + {bench.memory[name, 'daemon']}"
            if any(cell not in ("-", "fails") for cell in cells):
                row([subject, *cells, peak])
    reasons = {}
    for (name, query, subject), reason in bench.dropped.items():
        if not reason.startswith(">"):
            reasons.setdefault((subject, reason), []).append(f"{name} {query}")
    for (subject, reason), where in reasons.items():
        print(f"\n{subject} ({', '.join(where)}): {reason}")
    wholes = [name for name in ("clean", "dv") if name in bench.tables]
    if wholes:
        print()
        row(["whole files", "CSV: DuckDB's COPY", "`cat`, first (×)", "again", "`limit 5`", "`head -5` (×)",
             "Parquet: DuckDB's COPY", "`cat`, first (×)", "again", "padding", "daemon MB, CSV / Parquet"])
        row(["---"] * 11)
        for name in wholes:
            of = lambda what: bench.median(name, what, "files")
            padding = bench.work[name, "padding"]
            row([name, seconds(of("COPY csv")), against(of("cat csv"), of("COPY csv")), seconds(of("cat csv again")),
                 seconds(of("limit 5")), against(of("head -5"), of("limit 5")), seconds(of("COPY parquet")),
                 against(of("cat parquet"), of("COPY parquet")), seconds(of("cat parquet again")),
                 f"{padding['padding'] / padding['bytes']:.1%} of {padding['bytes'] / 1e6:.0f} MB",
                 f"{bench.memory[name, 'daemon, csv']} / {bench.memory[name, 'daemon, parquet']}"])
    if "many" in bench.tables:
        of = lambda what: bench.median("many", what, "files")
        print(f"\n`many`: {len(bench.tables['many']['data'])} files. Mount to first `ls` {seconds(of('mount to first ls'))}, "
              f"PyIceberg plans {against(of('PyIceberg plans'), None)}; `ls -lR` of the parts "
              f"{against(of('ls -lR parts'), of('count(*) of the bare files'))} × `count(*)` of the bare files.")
    print()
    row(["work", *COUNTERS])
    row(["---"] * (len(COUNTERS) + 1))
    for key, work in bench.work.items():
        if len(key) == 3 and any(work.values()):
            row([" ".join(key), *work.values()])


def describe(table, readers):
    """Names and types of a table's columns, from its compacted file."""
    script = ("import sys, json, duckdb; print(json.dumps([r[:2] for r in duckdb.execute("
              "f\"describe from '{sys.argv[1]}'\").fetchall()]))")
    done = subprocess.run([readers, "-c", script, table["compacted"]], check=True, capture_output=True, text=True)
    table["types"] = dict(json.loads(done.stdout))
    table["columns"] = list(table["types"])
    table["numbers"] = [name for name, ty in table["types"].items() if ty.startswith(("DECIMAL", "BIGINT", "INTEGER", "DOUBLE"))]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("root", type=pathlib.Path, help="where generate.py made the tables")
    arguments.add_argument("--bergfs", required=True)
    arguments.add_argument("--readers", required=True, help="the Python of the readers' environment")
    arguments.add_argument("--peers-python", required=True, help="the Python of the bench's own")
    arguments.add_argument("--tables", default="")
    arguments.add_argument("--peers", default=",".join(PEERS))
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--limit", type=float, default=60, help="seconds that a peer may take for a query")
    args = arguments.parse_args()
    args.root = args.root.resolve()
    made = json.loads((args.root / "tables.json").read_text())
    wanted = [name for name in args.tables.split(",") if name] or made["tables"]
    tables = {name: made["tables"][name] for name in wanted}
    for table in tables.values():
        describe(table, args.readers)
    bench = Bench(args, tables)
    bench.run()
    report(bench, made["scale"])
    for fault in bench.faults:
        print(f"FAULT: {fault}", file=sys.stderr)
    sys.exit(bool(bench.faults))


main()
