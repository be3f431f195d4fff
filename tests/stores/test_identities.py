"""Credentials that others give, for seconds, before servers that check them: a mount goes on reading after they have run out,
and no request is made with one that has."""

import contextlib
import json
import pathlib
import tempfile

import checking
from checking import S3, Clerk, Pass, Sts, container, machine, served
from suite import STORE_TIMEOUT, cases, equal, eventually, mounted, refused, test
from test_faults import right, wide

BASE = Pass("AKIABASE", "hunter2base", "", 2**40)
ROLE = "arn:aws:iam::123456789012:role/lake"


class Aws:
    """A store, and all who give keys for it."""

    def __init__(self, servers, directory):
        self.clerk = Clerk()
        self.store = S3(servers.s3_directory, self.clerk)
        self.directory = pathlib.Path(directory)
        self.token_file = self.directory / "token"
        self.token_file.write_text("signed-elsewhere\n")

    def token(self):
        return self.token_file.read_text().strip()

    def sts(self, base=None, **more):
        self.store.routes["/sts"] = Sts(self.store, self.clerk, base or (lambda: BASE), self.token, **more)
        return {"AWS_ENDPOINT_URL_STS": f"{self.url}/sts"}

    def files(self, config, credentials=""):
        (self.directory / "config").write_text(config)
        (self.directory / "credentials").write_text(credentials)
        return {
            "AWS_CONFIG_FILE": str(self.directory / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(self.directory / "credentials"),
        }

    @property
    def none(self):
        """No keys of this machine's own are found."""
        return {**self.files(""), "AWS_EC2_METADATA_DISABLED": "true"}

    # Each gives the environment, and properties beside the endpoint.

    def web_identity(self):
        return {**self.none, **self.sts(), "AWS_WEB_IDENTITY_TOKEN_FILE": str(self.token_file), "AWS_ROLE_ARN": ROLE}, {}

    def web_identity_of_a_profile(self):
        config = f"[default]\nrole_arn = {ROLE}\nweb_identity_token_file = {self.token_file}\n"
        return {**self.none, **self.files(config), **self.sts()}, {}

    def container_full_uri(self):
        self.store.routes["/keys"] = container(self.store, self.clerk, self.token)
        uri = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.url}/keys?of=lake"}
        return {**self.none, **uri, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self.token_file)}, {}

    def container_token_in_the_environment(self):
        self.store.routes["/keys"] = container(self.store, self.clerk, lambda: "Bearer x")
        uri = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.url}/keys"}
        return {**self.none, **uri, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Bearer x"}, {}

    def container_relative_uri(self):
        # The address is the vendor's: what is sent there goes through a proxy.
        self.store.routes["/169.254.170.2/v2/keys"] = container(self.store, self.clerk, lambda: None)
        proxy = {"http_proxy": self.url, "no_proxy": "127.0.0.1"}
        return {**self.none, **proxy, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/keys"}, {}

    def machine(self):
        self.store.routes["/imds/latest/"] = machine(self.store, self.clerk)
        return {**self.files(""), "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{self.url}/imds/"}, {}

    def role_of_a_profile(self):
        config = f"[profile lake]\nrole_arn = {ROLE}\nsource_profile = base\nexternal_id = our lake\n"
        keys = f"[base]\naws_access_key_id = {BASE.id}\naws_secret_access_key = {BASE.secret}\n"
        return {**self.none, **self.files(config, keys), **self.sts(external_id="our lake"), "AWS_PROFILE": "lake"}, {}

    def role_by_the_containers_keys(self):
        """A role that is taken with keys that run out themselves."""
        base = Clerk()
        env, _ = self.container_full_uri()
        self.store.routes["/keys"] = container(self.store, base, self.token)
        # `Sts` refuses a signature by any but the newest keys.
        config = f"[default]\nrole_arn = {ROLE}\ncredential_source = EcsContainer\n"
        return {**env, **self.files(config), **self.sts(lambda: base.given[-1])}, {}

    def role_of_the_properties(self):
        keys = {"AWS_ACCESS_KEY_ID": BASE.id, "AWS_SECRET_ACCESS_KEY": BASE.secret}
        return {**self.none, **keys, **self.sts()}, {"s3.role-arn": ROLE}

    def program(self):
        self.store.routes["/printed"] = container(self.store, self.clerk, lambda: None)
        # It prints `Token` under another name, and its version.
        take = f"curl -s {self.url}/printed | sed 's/\"Token\"/\"Version\": 1, \"SessionToken\"/'"
        return {**self.none, **self.files(f"[default]\ncredential_process = {take}\n")}, {}


WAYS = [
    "web_identity", "web_identity_of_a_profile", "container_full_uri", "container_token_in_the_environment", "container_relative_uri",
    "machine", "role_of_a_profile", "role_by_the_containers_keys", "role_of_the_properties", "program",
]  # fmt: skip


@contextlib.contextmanager
def aws(servers):
    with tempfile.TemporaryDirectory() as directory:
        one = Aws(servers, directory)
        with served(one.store) as port:
            one.url = f"http://127.0.0.1:{port}"
            one.properties = {"s3.endpoint": one.url, "s3.region": "us-east-1", **STORE_TIMEOUT}
            yield one


@cases(**{way.replace("_", " "): way for way in WAYS})
def a_mount_outlives_the_keys_of(servers, way):
    table, expected = wide(servers)
    with aws(servers) as one:
        env, properties = getattr(one, way)()
        with mounted(table.location(), {**one.properties, **properties}, env=env) as mount:
            assert right(mount, expected, "c0"), mount.errors()
            before = one.clerk.used()
            for column in ("c1", "c2"):
                eventually(one.clerk.all_over)
                assert right(mount, expected, column), mount.errors()
            equal(mount.errors(), "")
            assert len(one.clerk.used()) >= len(before) + 2, one.clerk.given
        equal(one.store.refused, [], "nothing is asked with keys that have run out, or in a wrong way")


@test
def keys_that_are_refused_before_their_time_are_taken_anew(servers):
    table, expected = wide(servers)
    with aws(servers) as one:
        one.clerk.lifetime = 3600
        env, _ = one.web_identity()
        with mounted(table.location(), one.properties, env=env) as mount:
            assert right(mount, expected, "c0"), mount.errors()
            [keys] = one.clerk.used()
            # Not at once: what was taken a second ago is not taken again for a refusal.
            eventually(lambda: revoked(keys) and right(mount, expected, "c1"))
            assert len(one.clerk.given) == 2, one.clerk.given
            assert one.store.refused, "the old keys were not refused"


def revoked(keys):
    keys.revoked = True
    return True


@test
def keys_that_are_refused_for_good_are_an_error_and_not_taken_for_ever(servers):
    table, expected = wide(servers)
    with aws(servers) as one:
        env, _ = one.web_identity()
        one.store.region = "eu-elsewhere-1"
        message = refused(table.location(), one.properties, env=env)
        assert "SignatureDoesNotMatch" in message and "hunter2" not in message, message
        assert len(one.clerk.given) <= 2 and len(one.store.refused) <= 4, (one.clerk.given, one.store.refused)


@test
def who_gives_no_keys_is_named(servers):
    table, _ = wide(servers)
    with aws(servers) as one:
        for way, change, word in (
            ("web_identity", lambda: one.token_file.write_text("another"), ROLE),
            ("container_full_uri", lambda: one.store.routes.pop("/keys"), "container"),
            ("machine", lambda: one.store.routes.pop("/imds/latest/"), "machine"),
            ("role_of_a_profile", lambda: one.sts(external_id="not ours"), "AWS profile lake"),
        ):
            env, properties = getattr(one, way)()
            if way == "web_identity":
                one.store.routes["/sts"].token = lambda: "signed-elsewhere"
            change()
            message = refused(table.location(), {**one.properties, **properties}, env=env)
            assert word in message and "hunter2" not in message, (way, message)
            one.token_file.write_text("signed-elsewhere")
        # A stranger is not asked without TLS.
        env = {**one.none, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://keys.example.com/"}
        message = refused(table.location(), one.properties, env=env)
        assert "AWS_CONTAINER_CREDENTIALS_FULL_URI" in message, message
