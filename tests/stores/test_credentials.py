"""Who asks: credentials from every place, those that run out while a table is mounted, and that no secret is ever shown."""

import datetime
import json
import os
import pathlib
import subprocess
import tempfile

import proxy as faults
import tables
from servers import KEYS
from suite import BERGFS, STORE_TIMEOUT, cases, equal, eventually, mounted, names, read, rows_of, test, text
from test_faults import right, wide
from test_s3 import written

ENDPOINT = ("s3.endpoint", "s3.region")


def without_keys(properties):
    return {name: value for name, value in properties.items() if name in ENDPOINT}


class Keys:
    """Places for credentials in a directory, that hold the keys of one id at a time."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    def environment(self, key):
        return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": KEYS[key]}

    def profile(self, key):
        """In `credentials`, changed in place as `aws sso` and its like do."""
        file = self.directory / "credentials"
        file.with_suffix(".new").write_text(
            f"[other]\naws_access_key_id=nobody\naws_secret_access_key=none\n"
            f"[lake]\naws_access_key_id={key}\naws_secret_access_key={KEYS[key]}\naws_session_token=hunter2token{key}\n"
        )
        file.with_suffix(".new").rename(file)
        return self.files() | {"AWS_PROFILE": "lake"}

    def program(self, key):
        """`credential_process`: a program, whose keys run out in a minute."""
        now = datetime.datetime.now(datetime.timezone.utc)
        expires = (now + datetime.timedelta(minutes=1)).isoformat()
        said = {"Version": 1, "AccessKeyId": key, "SecretAccessKey": KEYS[key], "SessionToken": "hunter2token", "Expiration": expires}
        (self.directory / "said.json").write_text(json.dumps(said))
        (self.directory / "config").write_text(f"[default]\ncredential_process = /bin/cat {self.directory}/said.json\n")
        return self.files()

    def files(self):
        return {
            "AWS_CONFIG_FILE": str(self.directory / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(self.directory / "credentials"),
        }


@cases(environment="environment", profile="profile", program="program")
def keys_are_taken_from_where_the_sdks_look(servers, place):
    table = written(servers)["appended"]
    with tempfile.TemporaryDirectory() as directory:
        env = getattr(Keys(directory), place)("first")
        with mounted(table.location(), without_keys(servers.s3.properties()), env=env) as mount:
            equal(rows_of(mount / "current/appended.parquet"), tables.answer(table))


@cases(profile="profile", program="program")
def keys_that_run_out_are_asked_for_again(servers, place):
    table, expected = wide(servers)
    proxy = servers.proxied
    with tempfile.TemporaryDirectory() as directory:
        keys = Keys(directory)
        env = getattr(keys, place)("first")
        properties = {**without_keys(servers.s3.properties(proxy.url)), **STORE_TIMEOUT}
        with mounted(table.location(), properties, env=env) as mount:
            assert right(mount, expected, "c0"), mount.errors()
            # The old keys are refused, and the new ones are there already.
            getattr(keys, place)("second")
            proxy.guard = lambda request: faults.expired if request.key_id == "first" else None
            assert right(mount, expected, "c1"), mount.errors()
            equal({one.key_id for one in proxy.take() if one.status in (200, 206)} >= {"second"}, True)
            # The other way round: refused before there are new ones, then right again.
            proxy.guard = lambda request: faults.expired if request.key_id == "second" else None
            assert not right(mount, expected, "c2")
            getattr(keys, place)("first")
            eventually(lambda: right(mount, expected, "c2"))


def everything_shown(mountpoint, log):
    """All that others can see of a mount."""
    shown = {
        "mount": subprocess.run(["mount"], capture_output=True, text=True).stdout,
        "/proc/mounts": pathlib.Path("/proc/mounts").read_text(),
        "/proc/self/mountinfo": pathlib.Path("/proc/self/mountinfo").read_text(),
        "log": pathlib.Path(log).read_text(),
    }
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes()
        except OSError:
            continue
        if b"bergfs" in line:
            shown[str(process)] = line.decode(errors="replace")
    for name in names(pathlib.Path(mountpoint) / ".bergfs"):
        shown[f".bergfs/{name}"] = text(pathlib.Path(mountpoint) / ".bergfs" / name)
    return shown


def in_background(source, arguments, env, view, faulty=lambda: None, prefix=""):
    """Mounts as users do, reads, meets a fault, and gives all that is shown meanwhile."""
    with tempfile.TemporaryDirectory(prefix="bergfs-test-") as directory:
        mountpoint, log = os.path.join(directory, "mnt"), os.path.join(directory, "log")
        os.mkdir(mountpoint)
        command = [BERGFS, "mount", "-vv", "--log-file", log, *arguments, source, mountpoint]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, timeout=60, stdin=subprocess.DEVNULL)
        equal(done.returncode, 0, done.stderr)
        try:
            read(pathlib.Path(mountpoint) / view)
            table_json = text(pathlib.Path(mountpoint) / prefix / "metadata/table.json")
            faulty()
            try:
                read((pathlib.Path(mountpoint) / view).with_suffix(".csv"))
            except OSError:
                pass
            shown = everything_shown(mountpoint, log)
            shown["table.json"] = table_json
            shown["stdout and stderr"] = done.stdout + done.stderr
        finally:
            subprocess.run([BERGFS, "umount", mountpoint], capture_output=True, timeout=60)
        shown["log at the end"] = pathlib.Path(log).read_text()
        return shown


def holds_no_secret(shown, *secrets):
    for place, content in shown.items():
        for secret in secrets:
            assert secret not in content, f"{secret} in {place}: {content[:2000]}"
    assert any("/proc/" in place and "cmdline" in place for place in shown), "no bergfs among the processes"


@cases(options="options", file="file", environment="environment", profile="profile", program="program")
def no_secret_of_s3_is_shown(servers, place):
    table, proxy = written(servers)["appended"], servers.proxied
    properties = {**servers.s3.properties(proxy.url), "store.timeout-ms": "1000", "s3.session-token": "hunter2token"}
    with tempfile.TemporaryDirectory() as directory:
        env = {}
        if place == "file":
            file = pathlib.Path(directory) / "properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
            arguments = ["--properties", str(file)]
        else:
            if place != "options":
                env = getattr(Keys(directory), place)("first")
                properties = without_keys(properties)
            arguments = [part for pair in properties.items() for part in ("-p", "=".join(pair))]
        # After the first read every data file is refused, and what S3 says of it goes into the errors.
        shown = in_background(
            table.location(), arguments, env, "current/appended.parquet",
            lambda: proxy.fail(faults.expired),
        )  # fmt: skip
    proxy.heal()
    holds_no_secret(shown, "hunter2")
    # It is looked for where something is: the log tells of requests, the table says where it is from.
    assert "s3://lake/written" in shown["mount"], shown["mount"]


@test
def a_password_in_a_url_is_not_shown(servers):
    web = servers.web
    servers.upload(servers.fixtures / "java/plain", "web/plain")
    shown = in_background(f"http://berg:hunter2@127.0.0.1:{web}/lake/web/plain", [], {}, "current/plain.parquet")
    holds_no_secret(shown, "hunter2")
