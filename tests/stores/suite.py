"""What the suites share: how a test is written down, the servers that are started once, mounts, and waits that end.

    @test
    def a_rule_that_holds(servers):
        with mounted("s3://lake/t", servers.s3.properties()) as mount:
            ...

A test fails by an exception, and is skipped by `Missing`. Nothing of a mount is read but through `within`, `read` or
`sql`, which fail when there is no answer: a hang is a failure and not a suite that never ends.
"""

import contextlib
import dataclasses
import functools
import hashlib
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "readers"))

import duckdb
from mounting import BERGFS, Mount, fixtures

import servers as start
from proxy import Proxy
from servers import Missing, TARGET

TESTS = []

# Whoever waits longer than this for bergfs waits for ever. Seconds; the machine may be busy.
PATIENCE = 120

# What bergfs itself may wait for a store, where a test makes the store silent.
STORE_TIMEOUT = {"store.timeout-ms": "3000"}


def test(function):
    TESTS.append(function)
    return function


def cases(**named):
    """A test for each of several arguments."""

    def register(function):
        parameter = function.__code__.co_varnames[1]
        for name, argument in named.items():
            chosen = argument if isinstance(argument, dict) else {parameter: argument}
            case = functools.partial(function, **chosen)
            case.__name__ = f"{function.__name__}: {name}"
            case.__module__ = function.__module__
            TESTS.append(case)
        return function

    return register


def within(action, seconds=PATIENCE):
    """What `action` returns or raises; a failure when it does neither."""
    outcome = []

    def run():
        try:
            outcome.append((action(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise AssertionError(f"no answer within {seconds} s")
    value, error = outcome[0]
    if error:
        raise error
    return value


def read(path):
    """A file's bytes."""
    return within(pathlib.Path(path).read_bytes)


def text(path):
    return read(path).decode()


def names(path):
    return sorted(within(lambda: os.listdir(path)))


def digest(path):
    return hashlib.sha256(read(path)).hexdigest()


def sql(statement):
    """DuckDB's answer, as a list of rows."""

    def run():
        with duckdb.connect() as database:
            database.execute("set timezone = 'UTC'")
            return database.execute(statement).fetchall()

    return within(run)


def rows_of(path, order="all"):
    return sql(f"from '{path}' order by {order}")


def eventually(condition, seconds=30):
    """Waits until a condition holds. What it raises counts as not yet."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
            last = None
        except (OSError, duckdb.Error) as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s ({last})")
        time.sleep(0.1)


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: found {str(found)[:600]}, expected {str(expected)[:600]}")


@dataclasses.dataclass
class Mounted:
    root: pathlib.Path

    def __truediv__(self, name):
        return self.root / name

    def stats(self):
        lines = (line.split() for line in text(self.root / ".bergfs/stats").splitlines())
        return {fields[0]: int(fields[1]) for fields in lines if len(fields) == 2 and fields[1].isdigit()}

    def errors(self):
        return text(self.root / ".bergfs/errors")


@contextlib.contextmanager
def mounted(source, properties=(), options=(), env=None):
    """A mount in the foreground; its properties, secrets among them, come from a file."""
    with tempfile.NamedTemporaryFile("w", prefix="bergfs-test-", suffix=".properties") as file:
        file.writelines(f"{name}={value}\n" for name, value in dict(properties).items())
        file.flush()
        with Mount(source, ["--properties", file.name, *options], env=env) as root:
            yield Mounted(root)


def refused(source, properties=(), options=(), env=None):
    """What is said when a mount is refused."""
    try:
        with mounted(source, properties, options, env):
            raise AssertionError(f"{source} was mounted")
    except RuntimeError as error:
        return str(error)


class Servers:
    """The servers, each started when it is first asked for."""

    def __init__(self, directory, stack):
        self.directory, self.stack, self.started = pathlib.Path(directory), stack, {}

    def once(self, name, begin):
        if name not in self.started:
            try:
                self.started[name] = begin()
            except Missing as missing:
                self.started[name] = missing
        found = self.started[name]
        if isinstance(found, Missing):
            raise found
        return found

    def enter(self, manager):
        return self.stack.enter_context(manager)

    @property
    def s3_directory(self):
        """What the S3 server serves: a directory in it is a bucket, and copying a file there is uploading it."""
        directory = self.directory / "s3"
        (directory / "lake").mkdir(parents=True, exist_ok=True)
        return directory

    @property
    def s3(self):
        return self.once("s3", lambda: self.enter(start.s3(self.s3_directory)))

    @property
    def proxied(self):
        """A proxy before the S3 server, without faults or memories."""

        def begin():
            proxy = Proxy(self.s3.port, self.s3_directory)
            self.stack.callback(proxy.close)
            return proxy

        proxy = self.once("proxy", begin)
        proxy.heal()
        proxy.latency = 0
        proxy.take()
        return proxy

    @property
    def web(self):
        """The port of a web server that has what the S3 server has."""
        return self.once("web", lambda: self.enter(start.web(self.s3_directory)))

    @property
    def plain_web(self):
        """The same without ranges."""
        return self.once("plain web", lambda: self.enter(start.web(self.s3_directory, ranges=False)))

    @property
    def gcs_directory(self):
        """Where tables for GCS are made, a directory a bucket."""
        directory = self.directory / "gcs"
        (directory / "glake").mkdir(parents=True, exist_ok=True)
        return directory

    @property
    def gcs(self):
        """The port of the GCS server."""
        return self.once("gcs", lambda: self.enter(start.gcs()))

    @property
    def azure_directory(self):
        directory = self.directory / "azure"
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    @property
    def azure(self):
        """The port of Azurite."""
        return self.once("azure", lambda: self.enter(start.azurite(self.azure_directory / "server")))

    @property
    def fixtures(self):
        return self.once("fixtures", lambda: fixtures())

    def upload(self, table, key):
        """Copies a table's directory into the bucket `lake`; gives where it lies."""
        place = self.s3_directory / "lake" / key
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(table, place)
        return place
