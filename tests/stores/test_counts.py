"""What reading costs, counted outside of bergfs: by the proxy that its requests go through."""

import contextlib

import pyarrow.parquet

import tables
from suite import digest, equal, mounted, names, read, sql, test
from test_s3 import written

# Bytes of the blocks in which bergfs keeps what it fetched: a range costs at most one too many at each end.
BLOCK = 16 << 10


@contextlib.contextmanager
def wide(servers):
    """The wide table, its mount through a proxy where every request takes 50 ms, and the proxy."""

    def write():
        catalog = tables.catalog(servers.directory / "s3-catalog", "s3://lake/written", servers.s3_directory)
        return tables.wide(catalog)

    table, proxy = servers.once("wide", write), servers.proxied
    proxy.latency = 0.05
    with mounted(table.location(), servers.s3.properties(proxy.url), UNWATCHED) as mount:
        yield mount, proxy


# The table is looked at once, when it is mounted.
UNWATCHED = ["--refresh", "1h"]


def stored(servers):
    """The wide table's data files, where the server has them."""
    return sorted((servers.s3_directory / "lake/written/ns/wide/data").iterdir())


def chunk(file, column):
    return pyarrow.parquet.ParquetFile(file).metadata.row_group(0).column(column).total_compressed_size


def shown(requests):
    return [f"{one.method} {one.target} {one.range} -> {one.status}, {one.sent}" for one in requests]


def of_data(requests):
    return [one for one in requests if one.path.endswith(".parquet")]


@test
def what_a_query_costs_and_nothing_the_second_time(servers):
    with wide(servers) as (mount, proxy):
        names(mount.root)
        names(mount / "current")
        look = proxy.take()
        # A listing of `metadata/` to see that this is a table and find its newest metadata, which is read; and for what
        # `current/` shows the manifest list and a manifest for each commit.
        listings = [one for one in look if one.query]
        equal(len(listings), 1, shown(look))
        assert len(look) <= 2 + 1 + tables.FILES, shown(look)
        equal(of_data(look), [], "data files asked for by a listing")

        view = mount / "current/wide.parquet"
        count = f"select count(*) from '{view}'"
        equal(sql(count), [(tables.FILES * tables.ROWS,)])
        counted = proxy.take()
        # The end of each data file, which holds its footer; the manifests, where the listing did not need them.
        equal(len(of_data(counted)), tables.FILES, shown(counted))
        assert len(look) + len(counted) <= 2 + 1 + 2 * tables.FILES, shown(look + counted)
        equal(sql(count), [(tables.FILES * tables.ROWS,)])
        equal(shown(proxy.take()), [], "the count again")

        column = f"select round(sum(c3), 6), count(c3) from '{view}'"
        first = sql(column)
        asked = proxy.take()
        # DuckDB reads a chunk of 320 kB in at most three pieces: its header, the start of it, the rest.
        assert tables.FILES <= len(asked) <= 3 * tables.FILES, shown(asked)
        sent = sum(one.sent for one in asked)
        chunks = sum(chunk(file, 3) for file in stored(servers))
        assert chunks <= sent + tables.FILES * BLOCK and sent <= chunks + tables.FILES * 4 * BLOCK, (sent, chunks, shown(asked))
        equal(sql(column), first)
        equal(shown(proxy.take()), [], "the column again")
        # Nobody has asked for a text: to size one reads all the data.
        equal(mount.stats()["texts_sized"], 0)


@test
def a_whole_file_costs_its_bytes_once(servers):
    with wide(servers) as (mount, proxy):
        view = mount / "current/wide.parquet"
        size = len(read(view))
        asked = of_data(proxy.take())
        sent = sum(one.sent for one in asked)
        # Every block of the data files, and none twice.
        equal(sent, sum(file.stat().st_size for file in stored(servers)), shown(asked))
        assert size > 8 * tables.FILES * tables.COLUMNS * tables.ROWS, size
        # Of each file its end; and of each chunk, of 400 kB, two parts: a reader that comes to one is read ahead of in it.
        assert len(asked) <= tables.FILES * (1 + 2 * tables.COLUMNS), shown(asked)
        read(view)
        equal(shown(proxy.take()), [], "the file again")


@test
def the_counters_are_what_the_store_saw(servers):
    proxy = servers.proxied
    table = written(servers)["deleted"]
    with mounted(table.location(), servers.s3.properties(proxy.url)) as mount:
        for kind in ("parquet", "csv", "jsonl"):
            digest(mount / f"current/deleted.{kind}")
        names(mount / "snapshots")
        stats, asked = mount.stats(), proxy.take()
        equal(stats["store_requests"], len(asked), shown(asked))
        equal(stats["store_bytes"], sum(one.sent for one in asked), shown(asked))
        equal(stats["store_retries"], 0)


@test
def only_reading_is_asked_of_a_store(servers):
    proxy = servers.proxied
    table = written(servers)["partitioned"]
    with mounted(table.location(), servers.s3.properties(proxy.url)) as mount:
        read(mount / "current/partitioned.parquet")
    methods = {one.method for one in proxy.take()}
    assert methods <= {"GET", "HEAD"}, methods
