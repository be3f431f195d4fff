"""Catalogs that check who asks, before the reference REST catalog: OAuth2's tokens, signatures of AWS; and TLS by an authority
of our own."""

import contextlib
import tempfile
import time

import tables
from certificates import Authority
from checking import Clerk, Guarded, Pass, S3, bearer, oauth_tokens, served, signature_is
from suite import STORE_TIMEOUT, cases, equal, eventually, mounted, names, refused, rows_of, test
from test_catalogs import lake, table
from test_identities import aws
from test_s3 import written

CREDENTIAL = "bergfs-client:hunter2secret"
SCOPE = "PRINCIPAL_ROLE:ALL"


class OAuth(Guarded):
    """A catalog that knows the tokens it gave."""

    def __init__(self, servers):
        super().__init__(lake(servers).catalog.port, self.knows)
        self.clerk = Clerk()
        self.good = bearer(self.clerk)
        self.routes["/v1/oauth/tokens"] = oauth_tokens(self, self.clerk, *CREDENTIAL.split(":"), SCOPE)

    def knows(self, request):
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind != "Bearer" or not self.good(token):
            return self.refuse(request, 401, "NotAuthorizedException", "the token is not good")
        return None


@contextlib.contextmanager
def oauth(servers):
    guard = OAuth(servers)
    with served(guard) as port:
        guard.source = f"rest+http://127.0.0.1:{port}"
        yield guard


def properties(servers):
    return {**lake(servers).properties(), "scope": SCOPE}


def committed_and_seen(mount, made, name, start):
    """What is written is read, through the catalog."""
    made.append(tables.numbered(start, start + 2))
    eventually(lambda: rows_of(mount / f"ns/{name}/current/{name}.parquet") == tables.answer(made))


@cases(credential="credential", exchange="exchange")
def a_mount_outlives_the_tokens_of_its_catalog(servers, way):
    name = f"guarded_{way}"
    made = table(servers, name, 3)
    with oauth(servers) as guard:
        if way == "credential":
            own = {"credential": CREDENTIAL}
        else:
            own = {"token": guard.clerk.give().token, "token-expires-in-ms": str((guard.clerk.lifetime - 1) * 1000)}
        with mounted(guard.source, {**properties(servers), **own}, ["--refresh", "500ms"]) as mount:
            view = mount / f"ns/{name}/current/{name}.parquet"
            equal(rows_of(view), tables.answer(made))
            for start in (10, 20):
                eventually(guard.clerk.last_is_over())
                committed_and_seen(mount, made, name, start)
            equal(mount.errors(), "")
        equal(guard.refused, [], "nothing is asked with a token that has run out")
        kinds = {"credential": {"client_credentials"}, "exchange": {"urn:ietf:params:oauth:grant-type:token-exchange"}}
        equal(set(guard.clerk.asked), kinds[way])


@test
def a_token_that_is_refused_before_its_time_is_renewed_once(servers):
    made = table(servers, "guarded_revoked", 3)
    with oauth(servers) as guard:
        guard.clerk.lifetime = 3600
        with mounted(guard.source, {**properties(servers), "credential": CREDENTIAL}, ["--refresh", "500ms"]) as mount:
            equal(rows_of(mount / "ns/guarded_revoked/current/guarded_revoked.parquet"), tables.answer(made))
            equal(len(guard.clerk.given), 1)
            guard.clerk.given[0].revoked = True
            committed_and_seen(mount, made, "guarded_revoked", 10)
            equal(len(guard.clerk.given), 2)
            equal(len(guard.refused), 1)
            equal(mount.errors(), "")


@test
def a_catalog_that_refuses_every_token_is_not_asked_for_ever(servers):
    lake(servers)
    with oauth(servers) as guard:
        guard.good = lambda token: False
        message = refused(guard.source, {**properties(servers), "credential": CREDENTIAL})
        assert "401" in message and "hunter2" not in message, message
        assert len(guard.clerk.given) <= 2 and len(guard.refused) <= 2, (guard.clerk.given, guard.refused)


# The service and region that are signed for where the properties say so, and where they do not.
SIGNED = {
    "glue": ({"rest.signing-name": "glue", "rest.signing-region": "eu-west-3"}, "glue", "eu-west-3"),
    "s3tables": ({"rest.signing-name": "s3tables", "rest.signing-region": "us-west-2"}, "s3tables", "us-west-2"),
    "neither": ({"client.region": "ap-south-1"}, "execute-api", "ap-south-1"),
}


@cases(**{f"{name}, keys of {place}": {"name": name, "place": place} for name in SIGNED for place in ("properties", "environment")})
def requests_to_a_catalog_are_signed_as_aws_recomputes_it(servers, name, place):
    made = servers.once("signed", lambda: table(servers, "signed", 3))
    # A name that is encoded in the path, and so twice in what is signed.
    writer = lake(servers).writer
    writer.create_namespace_if_not_exists("sig ned ü%")
    said, service, region = SIGNED[name]
    keys = Pass("AKIASIGN", "hunter2sign/+", "" if place == "properties" else "hunter2session/+==", 2**40)

    def check(request):
        if signature_is(request, keys, service, region):
            return None
        return guard.refuse(request, 403, "InvalidSignatureException", request.path)

    guard = Guarded(lake(servers).catalog.port, check)
    own, env = {}, {}
    if place == "properties":
        own = {"rest.access-key-id": keys.id, "rest.secret-access-key": keys.secret}
    else:
        env = {"AWS_ACCESS_KEY_ID": keys.id, "AWS_SECRET_ACCESS_KEY": keys.secret, "AWS_SESSION_TOKEN": keys.token}
    with served(guard) as port:
        given = {**properties(servers), **said, **own, "rest.sigv4-enabled": "true"}
        with mounted(f"rest+http://127.0.0.1:{port}", given, env=env) as mount:
            equal(rows_of(mount / "ns/signed/current/signed.parquet"), tables.answer(made))
            equal(names(mount / "sig ned ü%25"), [])
        equal(guard.refused, [])
        assert any("%25" in request.path for request in guard.requests), "no name that needs encoding was asked for"
        # With another secret nothing is let in.
        keys.secret = "hunter2other"
        message = refused(f"rest+http://127.0.0.1:{port}", given, env=env)
        assert "InvalidSignatureException" in message and "hunter2" not in message, message


@test
def a_signed_catalog_is_asked_with_keys_that_last(servers):
    made = table(servers, "signed_long", 3)
    with aws(servers) as one:
        env, _ = one.web_identity()

        def check(request):
            id = request.headers.get("Authorization", "").partition("Credential=")[2].partition("/")[0]
            keys = one.clerk.known(id=id)
            if keys is None or not signature_is(request, keys, "glue", "us-east-1") or keys.expires <= time.time():
                return guard.refuse(request, 403, "ExpiredTokenException", id)
            keys.used += 1
            return None

        guard = Guarded(lake(servers).catalog.port, check)
        with served(guard) as port:
            given = {**properties(servers), "rest.sigv4-enabled": "true", "rest.signing-name": "glue", "rest.signing-region": "us-east-1"}
            with mounted(f"rest+http://127.0.0.1:{port}", given, ["--refresh", "500ms"], env=env) as mount:
                equal(rows_of(mount / "ns/signed_long/current/signed_long.parquet"), tables.answer(made))
                for start in (10, 20):
                    eventually(one.clerk.last_is_over())
                    committed_and_seen(mount, made, "signed_long", start)
            equal(guard.refused, [])
            assert len(one.clerk.used()) >= 3, one.clerk.given


# TLS. The certificates are told by `SSL_CERT_FILE`, as to other programs.


@contextlib.contextmanager
def behind_tls(servers, host="127.0.0.1", days=(-1, 10)):
    """A store and a catalog by TLS, the certificates of which are for `host` and those days; and the authority."""
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(directory)
        clerk = Clerk(3600)
        files = authority.issue(host, days)
        catalog = Guarded(lake(servers).catalog.port, lambda request: None)
        with served(S3(servers.s3_directory, clerk), files) as store, served(catalog, files) as port:
            keys = clerk.give()
            given = {"s3.access-key-id": keys.id, "s3.secret-access-key": keys.secret, "s3.session-token": keys.token}
            given |= {"s3.endpoint": f"https://127.0.0.1:{store}", "s3.region": "us-east-1", "rest.timeout-ms": "5000", "store.timeout-ms": "5000"}
            yield authority, given, f"rest+https://127.0.0.1:{port}"


@test
def an_authority_of_ones_own_is_trusted_where_the_environment_names_it(servers):
    made = written(servers)["deleted"]
    table(servers, "by_tls", 3)
    with behind_tls(servers) as (authority, given, catalog):
        env = {"SSL_CERT_FILE": str(authority.file)}
        with mounted(made.location(), given, env=env) as mount:
            equal(rows_of(mount / "current/deleted.parquet"), tables.answer(made))
        with mounted(catalog, lake(servers).properties(), env=env) as mount:
            equal(len(rows_of(mount / "ns/by_tls/current/by_tls.parquet")), 3)


@cases(
    stranger={"host": "127.0.0.1", "days": (-1, 10), "named": False},
    host={"host": "store.example.com", "days": (-1, 10), "named": True},
    expired={"host": "127.0.0.1", "days": (-10, -1), "named": True},
    early={"host": "127.0.0.1", "days": (1, 10), "named": True},
)
def a_certificate_that_does_not_hold_is_refused_at_once(servers, host, days, named):
    made = written(servers)["deleted"]
    lake(servers)
    with behind_tls(servers, host, days) as (authority, given, catalog):
        env = {"SSL_CERT_FILE": str(authority.file)} if named else {}
        for source, properties in ((made.location(), given), (catalog, lake(servers).properties())):
            message = refused(source, properties, env=env)
            assert "certificate" in message.lower() and "attempts" not in message, message


@test
def a_plain_port_that_is_asked_by_tls_is_an_error_at_once(servers):
    made = written(servers)["deleted"]
    plain = servers.s3.properties()
    given = {**plain, "s3.endpoint": plain["s3.endpoint"].replace("http:", "https:"), **STORE_TIMEOUT}
    for source, properties in ((made.location(), given), (f"rest+{lake(servers).url}".replace("http:", "https:"), {})):
        message = refused(source, properties)
        assert "does not speak TLS" in message and "attempts" not in message, message


@test
def a_metadata_file_that_is_not_there_is_named(servers):
    missing = f"{written(servers)['deleted'].location()}/metadata/v99.metadata.json"
    message = refused(missing, servers.s3.properties())
    assert f"{missing}: no such file" in message, message
