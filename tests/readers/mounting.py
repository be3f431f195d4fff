"""Mounts for the tests: the binary, a place to mount on, and the names that bergfs gives to what it shows."""

import os
import pathlib
import subprocess
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BERGFS = os.environ.get("BERGFS", str(TARGET / "debug/bergfs"))


# Directories of tables, each an archive in tests/fixtures and a mount of its own. What is expected of a table stands in the
# archive `expected`, or in `.expected` of its warehouse.
WAREHOUSES = ("java", "java_formats", "java_avro_orc", "java_parquet", "pyiceberg")


def encoded(name):
    """A name of a branch, tag or table as a file name (DESIGN.md section 1)."""
    text = "".join(
        f"%{ord(c):02X}" if c in "/%=\0" or ord(c) < 0x20 or ord(c) == 0x7F or (c == "." and at == 0) else c
        for at, c in enumerate(name)
    )
    return text


def fixtures():
    """The unpacked fixtures: the WAREHOUSES and what is expected of them below one directory."""
    directory = TARGET / "fixtures"
    for name in (*WAREHOUSES, "expected"):
        archive = ROOT / f"tests/fixtures/{name}.tar.gz"
        stamp = directory / f".{name}"
        wanted = str(archive.stat().st_mtime_ns)
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(["rm", "-rf", str(directory / name)], check=True)
        with tarfile.open(archive) as tar:
            tar.extractall(directory, filter="data")
        stamp.write_text(wanted)
    return directory


class Mount:
    """`with Mount(source, options) as root:` where root is the directory it is mounted on."""

    def __init__(self, source, options=(), env=None):
        self.source, self.options = str(source), list(options)
        self.env = {**os.environ, **env} if env else None

    def __enter__(self):
        self.point = tempfile.mkdtemp(prefix="bergfs-test-")
        self.log = tempfile.NamedTemporaryFile(prefix="bergfs-test-", suffix=".log", delete=False)
        command = [BERGFS, "mount", *self.options, "-f", self.source, self.point]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, env=self.env)
        deadline = time.monotonic() + 60
        while not os.path.ismount(self.point):
            if self.process.poll() is not None or time.monotonic() > deadline:
                text = pathlib.Path(self.log.name).read_text()
                self.__exit__()
                raise RuntimeError(f"{' '.join(command)}: exit status {self.process.returncode}\n{text}")
            time.sleep(0.02)
        return pathlib.Path(self.point)

    def __exit__(self, *_):
        if os.path.ismount(self.point):
            subprocess.run([BERGFS, "umount", self.point], check=False, capture_output=True)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            subprocess.run(["fusermount3", "-u", "-z", self.point], check=False, capture_output=True)
        self.log.close()
        os.unlink(self.log.name)
        os.rmdir(self.point)
