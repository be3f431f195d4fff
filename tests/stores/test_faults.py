"""Faults between bergfs and the store: the right rows or an error within a bounded time, and never wrong rows; after each the
mount is alive and right."""

import os
import pathlib
import threading

import proxy as faults
import tables
from suite import STORE_TIMEOUT, cases, digest, equal, eventually, mounted, names, refused, sql, test, within
from test_s3 import written

# What another attempt mends; and an answer that holds more than was asked for.
PASSING = ("throttled", "reset_before_head", "reset_mid_body", "truncated", "whole_file")
# What makes an error while it lasts.
LASTING = ("throttled", "reset_before_head", "reset_mid_body", "truncated", "short_range", "shifted_range", "stalled", "black_hole", "expired")


def wide(servers):
    def write():
        catalog = tables.catalog(servers.directory / "s3-catalog", "s3://lake/written", servers.s3_directory)
        table = tables.wide(catalog, "faulty")
        found = table.scan().to_arrow()
        import pyarrow.compute

        return table, {name: pyarrow.compute.sum(found[name]).as_py() for name in found.column_names}

    return servers.once("faulty", write)


def data(request):
    return request.path.endswith(".parquet")


def metadata(request):
    return "/metadata/" in request.path and not request.query


def right(mount, expected, column):
    """Whether a column is read right. False: an error; what is wrong fails the test."""
    try:
        [(found, count)] = sql(f"select sum({column}), count({column}) from '{mount / 'current/faulty.parquet'}'")
    except Exception as error:
        if isinstance(error, AssertionError):
            raise
        assert "nput/output" in str(error) or "IO Error" in str(error), error
        return False
    equal(count, tables.FILES * tables.ROWS, column)
    assert abs(found - expected[column]) < 1e-6, (column, found, expected[column])
    return True


def alive(mount, expected, column):
    """Right again, and soon: what failed may be remembered for a while."""
    eventually(lambda: right(mount, expected, column), 30)
    assert "faulty.parquet" in names(mount / "current")


@cases(**{fault: fault for fault in PASSING})
def a_fault_that_passes_is_not_seen(servers, fault):
    table, expected = wide(servers)
    proxy = servers.proxied
    fault = getattr(faults, fault)
    # Of the metadata and the manifests, twice; then of the data, once a file.
    proxy.fail(fault, 2, metadata)
    with mounted(table.location(), servers.s3.properties(proxy.url)) as mount:
        proxy.fail(fault, tables.FILES, data)
        assert right(mount, expected, "c0"), mount.errors()
        proxy.fail(fault, tables.FILES, data)
        assert right(mount, expected, "c1"), mount.errors()
        equal(mount.errors(), "")
        # The faults did happen.
        assert sum(bool(one.fault) for one in proxy.take()) >= 2 + tables.FILES


@cases(**{fault: fault for fault in LASTING})
def a_fault_that_stays_is_an_error_and_the_mount_recovers(servers, fault):
    table, expected = wide(servers)
    proxy = servers.proxied
    with mounted(table.location(), {**servers.s3.properties(proxy.url), **STORE_TIMEOUT}) as mount:
        assert right(mount, expected, "c0"), mount.errors()
        proxy.fail(getattr(faults, fault), where=data)
        assert not right(mount, expected, "c1")
        # What is known is served, and a listing answers.
        assert right(mount, expected, "c0"), mount.errors()
        names(mount / "snapshots")
        assert mount.errors(), "nothing says what failed"
        proxy.heal()
        alive(mount, expected, "c1")


@cases(**{fault: fault for fault in ("throttled", "truncated", "black_hole")})
def a_fault_before_the_first_look_is_an_error_and_the_mount_recovers(servers, fault):
    table, expected = wide(servers)
    proxy = servers.proxied
    with mounted(table.location(), {**servers.s3.properties(proxy.url), **STORE_TIMEOUT}) as mount:
        proxy.fail(getattr(faults, fault))
        assert not right(mount, expected, "c0")
        proxy.heal()
        alive(mount, expected, "c0")


@test
def a_storm_of_every_fault_gives_the_bytes_of_fair_weather(servers):
    """Every second request fails, each in another way; what is read is what a mount without faults gives."""
    table = written(servers)["deleted"]
    views = [f"current/deleted.{kind}" for kind in ("parquet", "csv", "jsonl")]
    with mounted(table.location(), servers.s3.properties()) as mount:
        expected = [digest(mount / view) for view in views]
    proxy = servers.proxied
    for number, name in enumerate(PASSING):
        # `where` is asked of a request until a fault is found for it: the n-th of every ten fails in the n-th way.
        proxy.fail(getattr(faults, name), where=lambda _, number=number: len(proxy.requests) % 10 == 2 * number)
    with mounted(table.location(), servers.s3.properties(proxy.url)) as mount:
        equal([digest(mount / view) for view in views], expected, mount.errors())
        stats, asked = mount.stats(), proxy.take()
        equal(stats["store_requests"], len(asked))
        assert stats["store_retries"] >= sum(bool(one.fault) and one.fault != "whole_file" for one in asked) > 0, (stats, asked)


@test
def a_store_that_is_gone_for_a_while_is_found_again(servers):
    table, expected = wide(servers)
    proxy = servers.proxied
    with mounted(table.location(), {**servers.s3.properties(proxy.url), **STORE_TIMEOUT}, ["--refresh", "500ms"]) as mount:
        assert right(mount, expected, "c0"), mount.errors()
        pinned = pathlib.Path(os.path.realpath(within(lambda: mount / "current"))) / "faulty.parquet"
        proxy.refuse()
        try:
            try:
                sql(f"select sum(c1) from '{pinned}'")
                raise AssertionError("read from a store that is gone")
            except AssertionError:
                raise
            except Exception as error:
                assert "nput/output" in str(error) or "IO Error" in str(error), error
            # A snapshot that was read stays readable where its bytes are kept.
            [(found,)] = sql(f"select sum(c0) from '{pinned}'")
            assert abs(found - expected["c0"]) < 1e-6
        finally:
            proxy.listen()
        alive(mount, expected, "c1")


@test
def a_store_that_stops_and_goes_on_is_waited_for(servers):
    """For less time than a read may take: who reads meanwhile sees nothing of it."""
    table, expected = wide(servers)
    proxy = servers.proxied
    with mounted(table.location(), servers.s3.properties(proxy.url)) as mount:
        assert right(mount, expected, "c0"), mount.errors()
        proxy.fail(faults.black_hole)
        found = []
        reader = threading.Thread(target=lambda: found.append(right(mount, expected, "c1")), daemon=True)
        reader.start()
        eventually(lambda: any(one.fault for one in list(proxy.requests)))
        equal(found, [])
        proxy.heal()
        reader.join(60)
        equal(found, [True], mount.errors())
        equal(mount.errors(), "")


@test
def a_mount_of_a_store_that_is_gone_is_refused(servers):
    table, _ = wide(servers)
    proxy = servers.proxied
    proxy.refuse()
    try:
        message = refused(table.location(), {**servers.s3.properties(proxy.url), **STORE_TIMEOUT})
    finally:
        proxy.listen()
    assert table.location() in message and "no answer" in message and "hunter2" not in message, message


@test
def an_umount_ends_while_the_store_is_silent(servers):
    """A reader waits for a store that does not answer; the mount goes all the same."""
    table, expected = wide(servers)
    proxy = servers.proxied
    with mounted(table.location(), {**servers.s3.properties(proxy.url), **STORE_TIMEOUT}) as mount:
        assert right(mount, expected, "c0"), mount.errors()
        proxy.fail(faults.black_hole, where=data)
        view = mount / "current/faulty.parquet"
        reader = threading.Thread(target=lambda: _ignore(view), daemon=True)
        reader.start()
        eventually(lambda: any(one.fault for one in list(proxy.requests)))
    reader.join(60)
    assert not reader.is_alive(), "the reader hangs"
    proxy.heal()


def _ignore(view):
    try:
        view.read_bytes()
    except OSError:
        pass
