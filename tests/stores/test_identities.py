"""Credentials that others give, for seconds, before servers that check them: a mount goes on reading after they have run out,
and no request is made with one that has."""

import contextlib
import json
import pathlib
import tempfile

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

import checking
from certificates import Authority
from checking import S3, Azure, Clerk, Gcs, Pass, Server, Sts, container, machine, served
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
        outlives(one, table.location(), {**one.properties, **properties}, env, expected)


@test
def keys_that_are_refused_before_their_time_are_taken_anew(servers):
    table, expected = wide(servers)
    with aws(servers) as one:
        one.clerk.lifetime = 3600
        env, _ = one.web_identity()
        taken_anew(one, table.location(), one.properties, env, expected)


def taken_anew(one, source, properties, env, expected):
    with mounted(source, properties, env=env) as mount:
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


# Azure and Google. The tables of S3 serve, which are opened by URLs of these stores.


def elsewhere(table, store):
    """A table's place in another store that has the same files."""
    return table.location().replace("s3://lake", store)


class AzureAccount:
    """A storage account, and all who give tokens for it."""

    def __init__(self, servers, directory):
        self.clerk = Clerk()
        self.store = Azure(servers.s3_directory, checking.bearer(self.clerk))
        self.token_file = pathlib.Path(directory) / "token"
        self.token_file.write_text("signed-elsewhere")
        self.client = {"client_id": "client-1"}

    @property
    def properties(self):
        authority = f"{self.url.removeprefix('http://')}/bergtest"
        return {"adls.blob-storage-scheme": "http", "adls.blob-storage-authority": authority, **STORE_TIMEOUT}

    def login(self, **proof):
        self.store.routes["/authority/"] = checking.authority(self.store, self.clerk, lambda: {**self.client, **proof})
        return {"AZURE_CLIENT_ID": "client-1", "AZURE_TENANT_ID": "tenant-1", "AZURE_AUTHORITY_HOST": f"{self.url}/authority"}

    def secret_of_the_environment(self):
        return {**self.login(client_secret="hunter2+/secret"), "AZURE_CLIENT_SECRET": "hunter2+/secret"}, {}

    def secret_of_the_properties(self):
        self.login(client_secret="hunter2+/secret")
        properties = {"client-id": "client-1", "tenant-id": "tenant-1", "authority-host": f"{self.url}/authority"}
        properties["client-secret"] = "hunter2+/secret"
        return {"AZURE_STORAGE_ACCOUNT_KEY": "bm90IHRoaXM="}, {f"adls.{name}": value for name, value in properties.items()}

    def workload_identity(self):
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        env = self.login(client_assertion_type=kind, client_assertion="signed-elsewhere")
        return {**env, "AZURE_FEDERATED_TOKEN_FILE": str(self.token_file)}, {}

    def managed_identity(self):
        self.store.routes["/identity"] = checking.managed_identity(self.store, self.clerk, "hunter2header")
        return {"IDENTITY_ENDPOINT": f"{self.url}/identity", "IDENTITY_HEADER": "hunter2header"}, {}


@contextlib.contextmanager
def azure(servers):
    with tempfile.TemporaryDirectory() as directory:
        one = AzureAccount(servers, directory)
        with served(one.store) as port:
            one.url = f"http://127.0.0.1:{port}"
            yield one


@cases(**{way.replace("_", " "): way for way in ("secret_of_the_environment", "secret_of_the_properties", "workload_identity", "managed_identity")})
def a_mount_of_azure_outlives_the_tokens_of(servers, way):
    table, expected = wide(servers)
    with azure(servers) as one:
        env, properties = getattr(one, way)()
        outlives(one, elsewhere(table, "abfss://lake@bergtest.dfs.core.windows.net"), {**one.properties, **properties}, env, expected)


def outlives(one, source, properties, env, expected):
    with mounted(source, properties, env=env) as mount:
        assert right(mount, expected, "c0"), mount.errors()
        before = one.clerk.used()
        for column in ("c1", "c2"):
            eventually(one.clerk.last_is_over())
            assert right(mount, expected, column), mount.errors()
        equal(mount.errors(), "")
        assert len(one.clerk.used()) >= len(before) + 2, one.clerk.given
    equal(one.store.refused, [], "nothing is asked with keys or tokens that have run out, or in a wrong way")


class Google:
    """A store, and those who give tokens for it."""

    def __init__(self, servers, directory):
        self.clerk, self.directory = Clerk(), pathlib.Path(directory)
        self.store = Gcs(servers.s3_directory, checking.bearer(self.clerk))

    def machine(self):
        self.store.routes["/computeMetadata/"] = checking.google_machine(self.store, self.clerk)
        # No file of this machine's user is found.
        return {"GCE_METADATA_HOST": self.url.removeprefix("http://"), "HOME": str(self.directory)}

    def user(self, stack):
        """What `gcloud auth application-default login` has left. The token's server is Google's, which is played behind a proxy."""
        authority = Authority(self.directory / "tls")
        secrets = {"client_id": "client-1", "client_secret": "hunter2client", "refresh_token": "hunter2refresh"}
        google = Server()
        google.routes["/"] = checking.google_tokens(self.store, self.clerk, secrets)
        name = "accounts.google.com"
        self.store.tunnels[f"{name}:443"] = stack.enter_context(served(google, authority.issue(name)))
        left = self.directory / ".config/gcloud/application_default_credentials.json"
        left.parent.mkdir(parents=True)
        left.write_text(json.dumps({"type": "authorized_user", **secrets}))
        return {"HOME": str(self.directory), "https_proxy": self.url, "SSL_CERT_FILE": str(authority.file)}

    @property
    def properties(self):
        return {"gcs.service.host": self.url, **STORE_TIMEOUT}


@contextlib.contextmanager
def google(servers):
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        one = Google(servers, directory)
        one.url = f"http://127.0.0.1:{stack.enter_context(served(one.store))}"
        one.stack = stack
        yield one


@cases(**{"an account of Azure": "azure", "Google's machine": "google", "Google's user": "user"})
def tokens_that_are_refused_before_their_time_are_taken_anew(servers, whose):
    table, expected = wide(servers)
    with contextlib.ExitStack() as stack:
        if whose == "azure":
            one = stack.enter_context(azure(servers))
            (env, properties), place = one.managed_identity(), "abfss://lake@bergtest.dfs.core.windows.net"
        else:
            one = stack.enter_context(google(servers))
            (env, properties), place = (one.user(one.stack) if whose == "user" else one.machine(), {}), "gs://lake"
        one.clerk.lifetime = 3600
        taken_anew(one, elsewhere(table, place), {**one.properties, **properties}, env, expected)


@test
def a_mount_of_google_outlives_the_tokens_of_the_machine(servers):
    table, expected = wide(servers)
    with google(servers) as one:
        outlives(one, elsewhere(table, "gs://lake"), one.properties, one.machine(), expected)


@test
def a_mount_of_google_outlives_the_tokens_of_a_user_who_has_logged_in(servers):
    table, expected = wide(servers)
    with google(servers) as one:
        outlives(one, elsewhere(table, "gs://lake"), one.properties, one.user(one.stack), expected)


@cases(properties="properties", environment="environment")
def a_service_account_of_google_signs_for_itself(servers, place):
    table, expected = wide(servers)
    with google(servers) as one:
        key = rsa.generate_private_key(65537, 2048)
        email = "lake@project.iam.gserviceaccount.com"
        one.store.good = checking.signed_by(key.public_key(), email)
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
        account = {"type": "service_account", "client_email": email, "private_key_id": "key-1", "private_key": pem}
        file = one.directory / "account.json"
        file.write_text(json.dumps(account))
        env = {"GOOGLE_APPLICATION_CREDENTIALS": str(file)} if place == "environment" else {}
        properties = {**one.properties, **({"gcs.credentials-file": str(file)} if place == "properties" else {})}
        source = elsewhere(table, "gs://lake")
        with mounted(source, properties, env=env) as mount:
            assert right(mount, expected, "c0"), mount.errors()
        equal(one.store.refused, [])
        # Of another key: refused.
        one.store.good = checking.signed_by(rsa.generate_private_key(65537, 2048).public_key(), email)
        message = refused(source, properties, env=env)
        assert "gs://lake" in message and "PRIVATE" not in message, message
