"""Tables in real stores and real catalogs, read through mounts while faults are injected between.

    run.py [NAME...]      only the tests in whose names one of these occurs

Prints a line a test (as TAP does, with the reason of what was skipped); the last line counts.
"""

import contextlib
import faulthandler
import os
import pathlib
import sys
import tempfile
import time
import traceback

import suite

SUITES = ("proxy", "s3", "counts", "faults", "credentials", "identities", "azure", "gcs", "web", "keys", "catalogs", "java", "guarded", "lakana")


def main():
    faulthandler.enable()
    for name in SUITES:
        __import__(f"test_{name}")
    wanted = sys.argv[1:]
    tests = [test for test in suite.TESTS if not wanted or any(word in f"{test.__module__} {test.__name__}".replace("_", " ") for word in wanted)]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    scratch = suite.TARGET / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stores-", dir=scratch) as directory, contextlib.ExitStack() as stack:
        servers = suite.Servers(directory, stack)
        for test in tests:
            name = f"{test.__module__.removeprefix('test_')}: {test.__name__.replace('_', ' ')}"
            started = time.monotonic()
            try:
                test(servers)
                outcome, line = "passed", "ok"
            except suite.Missing as missing:
                outcome, line = "skipped", f"SKIPPED ({missing})"
            except Exception:
                outcome, line = "failed", f"FAILED\n{traceback.format_exc()}"
            counts[outcome] += 1
            print(f"{name}: {line} ({time.monotonic() - started:.1f} s)", flush=True)
    print("stores: " + ", ".join(f"{count} {word}" for word, count in counts.items()), flush=True)
    # A thread may still hang in a read.
    os._exit(0 if counts["failed"] == 0 and counts["passed"] > 0 else 1)


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    main()
