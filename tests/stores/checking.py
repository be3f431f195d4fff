"""Servers that check who asks: stores that recompute signatures and know when a credential runs out, and those who give
credentials: AWS's token service, the metadata of containers and machines, Azure's and Google's authorities.

    with served(S3(directory, clerk)) as port: ...

Signatures are recomputed by botocore. Nothing here is lenient: what is not asked for as the vendor has it is refused, and
noted in `refused`. Times are those of this machine's clock, told to the second.
"""

import base64
import collections
import contextlib
import dataclasses
import datetime
import email.utils
import hashlib
import http.client
import http.server
import json
import pathlib
import socket
import ssl
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

import botocore.auth
import botocore.awsrequest
import botocore.credentials

# How long what a clerk gives is good for, in seconds. Told in whole ones, so it is one less at times.
LIFETIME = 3

Reply = collections.namedtuple("Reply", "status body headers", defaults=({},))


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclasses.dataclass
class Pass:
    """A credential: an id with a secret and a token, or a token alone."""

    id: str
    secret: str
    token: str
    expires: int
    used: int = 0
    revoked: bool = False


class Clerk:
    """Gives credentials, and knows those it gave."""

    def __init__(self, lifetime=LIFETIME):
        self.lifetime, self.given, self.asked = lifetime, [], []
        self.lock = threading.Lock()

    def give(self):
        with self.lock:
            number = len(self.given) + 1
            one = Pass(f"ASIA{number:04}", f"hunter2secret{number}/+", f"hunter2token{number}+/==", int(time.time()) + self.lifetime)
            self.given.append(one)
            return one

    def known(self, **what):
        [(name, value)] = what.items()
        return next((one for one in self.given if getattr(one, name) == value), None)

    def used(self):
        return [one for one in self.given if one.used]

    def last_is_over(self):
        """A condition: what was given last until now has run out."""
        last = self.given[-1]
        return lambda: last.expires < time.time()


def signature_is(request, keys, service, region):
    """Whether a request is signed with these keys, as botocore would have signed it."""
    scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
    if scheme != "AWS4-HMAC-SHA256" or parts.keys() != {"Credential", "SignedHeaders", "Signature"}:
        return False
    when = request.headers.get("X-Amz-Date", "")
    if parts["Credential"] != f"{keys.id}/{when[:8]}/{region}/{service}/aws4_request":
        return False
    if abs(datetime.datetime.strptime(when, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc).timestamp() - time.time()) > 900:
        return False
    names = parts["SignedHeaders"].split(";")
    digest = request.headers.get("X-Amz-Content-SHA256", "")
    if digest not in ("UNSIGNED-PAYLOAD", hashlib.sha256(request.body).hexdigest()):
        return False
    if keys.token and (request.headers.get("X-Amz-Security-Token") != keys.token or "x-amz-security-token" not in names):
        return False
    again = botocore.awsrequest.AWSRequest(
        request.command, f"http://{request.headers['Host']}{request.path}", {name: request.headers[name] for name in names}, request.body
    )
    again.context["timestamp"] = when
    again.context["signing"] = {"region": region, "signing_name": service}
    kind = botocore.auth.S3SigV4Auth if service == "s3" else botocore.auth.SigV4Auth
    signer = kind(botocore.credentials.Credentials(keys.id, keys.secret, keys.token), service, region)
    text = signer.string_to_sign(again, signer.canonical_request(again))
    return signer.signature(text, again) == parts["Signature"]


class Server:
    """Answers by the first of `routes` whose prefix the path has."""

    def __init__(self):
        self.routes, self.refused, self.requests, self.tunnels = {}, [], [], {}

    def answer(self, request):
        for prefix, route in self.routes.items():
            if request.path.startswith(prefix):
                return route(request)
        return Reply(404, b"")

    def refuse(self, request, status, code, reason):
        self.refused.append(f"{request.command} {request.path}: {code}: {reason}")
        return Reply(status, f"<Error><Code>{code}</Code><Message>{reason}</Message></Error>".encode())


class Files(Server):
    """A directory's files at `/BUCKET/KEY`, and its listings, for those that `check` lets in (None, or a refusal)."""

    def __init__(self, directory):
        super().__init__()
        self.directory = pathlib.Path(directory)

    def check(self, request):
        raise NotImplementedError

    def answer(self, request):
        path, _, query = request.path.partition("?")
        if any(request.path.startswith(prefix) for prefix in self.routes):
            return super().answer(request)
        self.requests.append(request)
        if (refusal := self.check(request)) is not None:
            return refusal
        query = dict(urllib.parse.parse_qsl(query))
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        if "list-type" in query or query.get("comp") == "list":
            return Reply(200, self.listing(bucket, query).encode())
        return self.part(request, self.directory / bucket / key)

    def part(self, request, file):
        if not file.is_file():
            return Reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
        whole, asked = file.read_bytes(), request.headers.get("Range") or request.headers.get("x-ms-range") or ""
        headers = {"ETag": self.etag(file), "Last-Modified": self.modified(file)}
        if not asked.startswith("bytes="):
            return Reply(200, whole, headers)
        first, _, last = asked[6:].partition("-")
        start = int(first) if first else max(len(whole) - int(last), 0)
        end = min(int(last) + 1, len(whole)) if first and last else len(whole)
        if start >= len(whole):
            return Reply(416, b"")
        return Reply(206, whole[start:end], {**headers, "Content-Range": f"bytes {start}-{end - 1}/{len(whole)}"})

    @staticmethod
    def etag(file):
        return f'"{file.stat().st_mtime_ns:x}-{file.stat().st_size:x}"'

    @staticmethod
    def modified(file):
        return email.utils.formatdate(file.stat().st_mtime, usegmt=True)

    def level(self, bucket, prefix):
        directory = self.directory / bucket / prefix
        found = sorted(directory.iterdir()) if directory.is_dir() else []
        return [one for one in found if one.is_file()], [one for one in found if one.is_dir()]

    def listing(self, bucket, query):
        prefix = query.get("prefix", "")
        files, directories = self.level(bucket, prefix)
        items = [
            f"<Contents><Key>{escape(prefix + file.name)}</Key><Size>{file.stat().st_size}</Size>"
            f"<LastModified>{utc(file.stat().st_mtime)}</LastModified><ETag>{escape(self.etag(file))}</ETag></Contents>"
            for file in files
        ]
        items += [f"<CommonPrefixes><Prefix>{escape(prefix + one.name)}/</Prefix></CommonPrefixes>" for one in directories]
        return f"<ListBucketResult>{''.join(items)}</ListBucketResult>"


class S3(Files):
    """S3, for who signs with a credential of a clerk that has not run out."""

    def __init__(self, directory, clerk, region="us-east-1"):
        super().__init__(directory)
        self.clerk, self.region = clerk, region

    def check(self, request):
        id = request.headers.get("Authorization", "").partition("Credential=")[2].partition("/")[0]
        keys = self.clerk.known(id=id)
        if keys is None:
            return self.refuse(request, 403, "InvalidAccessKeyId", f"no key {id}")
        if not signature_is(request, keys, "s3", self.region):
            return self.refuse(request, 403, "SignatureDoesNotMatch", id)
        if keys.revoked or keys.expires <= time.time():
            return self.refuse(request, 400, "ExpiredToken", id)
        keys.used += 1
        return None


class Gcs(Files):
    """Google's stores, for who brings a token that `good` knows."""

    def __init__(self, directory, good):
        super().__init__(directory)
        self.good = good

    def check(self, request):
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind != "Bearer" or not self.good(token):
            return self.refuse(request, 401, "AuthenticationRequired", "the token is not good")
        return None


class Azure(Gcs):
    """A storage account's blobs at `/ACCOUNT/CONTAINER/KEY`."""

    def answer(self, request):
        account, path = "/bergtest/", request.path
        if path.startswith(account):
            request.path = "/" + path.removeprefix(account)
        return super().answer(request)

    def check(self, request):
        if request.headers.get("x-ms-version", "") < "2017-11-09" or not (request.headers.get("x-ms-date") or request.headers.get("Date")):
            return self.refuse(request, 400, "MissingRequiredHeader", "x-ms-version, x-ms-date")
        return super().check(request)

    def listing(self, bucket, query):
        prefix = query.get("prefix", "")
        files, directories = self.level(bucket, prefix)
        items = [
            f"<Blob><Name>{escape(prefix + file.name)}</Name><Properties><Last-Modified>{self.modified(file)}</Last-Modified>"
            f"<Content-Length>{file.stat().st_size}</Content-Length><Content-Type>x</Content-Type>"
            f"<Etag>{escape(self.etag(file))}</Etag></Properties></Blob>"
            for file in files
        ]
        items += [f"<BlobPrefix><Name>{escape(prefix + one.name)}/</Name></BlobPrefix>" for one in directories]
        return f"<EnumerationResults><Blobs>{''.join(items)}</Blobs></EnumerationResults>"


class Sts:
    """AWS's token service: `AssumeRole` for who signs with `base`, `AssumeRoleWithWebIdentity` for who brings `token`."""

    def __init__(self, server, clerk, base=None, token=None, external_id=None):
        self.server, self.clerk, self.base, self.token, self.external_id = server, clerk, base, token, external_id
        self.arns = []

    def __call__(self, request):
        form = dict(urllib.parse.parse_qsl(request.path.partition("?")[2] or request.body.decode()))
        action = form.get("Action")
        if form.get("Version") != "2011-06-15" or not form.get("RoleSessionName"):
            return self.server.refuse(request, 400, "ValidationError", "Version, RoleSessionName")
        if action == "AssumeRole" and self.base:
            if not signature_is(request, self.base(), "sts", "us-east-1"):
                return self.server.refuse(request, 403, "SignatureDoesNotMatch", action)
            if form.get("ExternalId") != self.external_id:
                return self.server.refuse(request, 403, "AccessDenied", "ExternalId")
        elif action == "AssumeRoleWithWebIdentity" and self.token:
            if form.get("WebIdentityToken") != self.token():
                return self.server.refuse(request, 400, "InvalidIdentityToken", "not the token")
        else:
            return self.server.refuse(request, 400, "InvalidAction", action)
        self.arns.append(form.get("RoleArn"))
        keys = self.clerk.give()
        inside = (
            f"<AccessKeyId>{keys.id}</AccessKeyId><SecretAccessKey>{keys.secret}</SecretAccessKey>"
            f"<SessionToken>{keys.token}</SessionToken><Expiration>{utc(keys.expires)}</Expiration>"
        )
        text = f"<{action}Response><{action}Result><Credentials>{inside}</Credentials></{action}Result></{action}Response>"
        return Reply(200, text.encode())


def as_json(keys):
    said = {"AccessKeyId": keys.id, "SecretAccessKey": keys.secret, "Token": keys.token, "Expiration": utc(keys.expires)}
    return Reply(200, json.dumps(said).encode())


def container(server, clerk, authorization):
    """The keys of a container, for who brings what `authorization` gives (None: for all)."""

    def answer(request):
        if request.command != "GET" or request.headers.get("Authorization") != authorization():
            return server.refuse(request, 401, "Unauthorized", "the container's token")
        return as_json(clerk.give())

    return answer


def machine(server, clerk, role="lake-role"):
    """A machine's metadata, in its second version."""
    token = "machine-session"

    def answer(request):
        path = request.path.split("/latest/", 1)[1]
        if path == "api/token":
            if request.command != "PUT" or not 1 <= int(request.headers.get("X-aws-ec2-metadata-token-ttl-seconds", 0)) <= 21600:
                return server.refuse(request, 400, "BadRequest", path)
            return Reply(200, token.encode())
        if request.headers.get("X-aws-ec2-metadata-token") != token:
            return server.refuse(request, 401, "Unauthorized", path)
        if path == "meta-data/iam/security-credentials/":
            return Reply(200, role.encode())
        if path == f"meta-data/iam/security-credentials/{role}":
            return as_json(clerk.give())
        return Reply(404, b"")

    return answer


def bearer(clerk):
    """Whether a token is one of a clerk's that has not run out."""

    def good(token):
        one = clerk.known(token=token)
        if one is None or one.revoked or one.expires <= time.time():
            return False
        one.used += 1
        return True

    return good


def authority(server, clerk, proof):
    """Microsoft's tokens for a client (`/TENANT/oauth2/v2.0/token`), whose form has what `proof` gives."""

    def answer(request):
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        wanted = {"grant_type": "client_credentials", "scope": "https://storage.azure.com/.default", **proof()}
        if request.command != "POST" or not request.path.endswith("/tenant-1/oauth2/v2.0/token") or form != wanted:
            return server.refuse(request, 401, "invalid_client", f"{request.path} {sorted(form)}")
        one = clerk.give()
        return Reply(200, json.dumps({"token_type": "Bearer", "expires_in": int(one.expires - time.time()), "access_token": one.token}).encode())

    return answer


def managed_identity(server, clerk, header):
    """The identity that Azure gives to what runs there."""

    def answer(request):
        query = dict(urllib.parse.parse_qsl(request.path.partition("?")[2]))
        if request.headers.get("metadata") != "true" or request.headers.get("x-identity-header") != header:
            return server.refuse(request, 401, "unauthorized", "metadata, x-identity-header")
        if not query.get("api-version") or query.get("resource") != "https://storage.azure.com":
            return server.refuse(request, 400, "bad_request", str(query))
        one = clerk.give()
        return Reply(200, json.dumps({"token_type": "Bearer", "expires_on": str(one.expires), "access_token": one.token}).encode())

    return answer


def google_machine(server, clerk):
    """The token of a machine's service account."""

    def answer(request):
        if request.headers.get("Metadata-Flavor") != "Google":
            return server.refuse(request, 403, "forbidden", "Metadata-Flavor")
        one = clerk.give()
        said = {"token_type": "Bearer", "expires_in": int(one.expires - time.time()), "access_token": one.token}
        return Reply(200, json.dumps(said).encode())

    return answer


def google_tokens(server, clerk, secrets):
    """Google's tokens for a user who has logged in before."""

    def answer(request):
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        if request.command != "POST" or form != {"grant_type": "refresh_token", **secrets}:
            return server.refuse(request, 401, "invalid_client", str(sorted(form)))
        one = clerk.give()
        said = {"token_type": "Bearer", "expires_in": int(one.expires - time.time()), "access_token": one.token}
        return Reply(200, json.dumps(said).encode())

    return answer


def signed_by(public_key, email):
    """Whether a token is a JWT that a service account has signed for reading its stores, and good now."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    def decoded(part):
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))

    def good(token):
        try:
            head, claims, signature = token.split(".")
            public_key.verify(decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
        except (ValueError, InvalidSignature):
            return False
        head, claims = json.loads(decoded(head)), json.loads(decoded(claims))
        scopes = claims["scope"].split()
        return (
            head["alg"] == "RS256" and claims["iss"] == claims["sub"] == email and claims["iat"] <= time.time() < claims["exp"]
            and any(scope.startswith("https://www.googleapis.com/auth/") for scope in scopes)
        )  # fmt: skip

    return good


class Guarded(Server):
    """A catalog before which `check` stands (None, or a refusal); it gives tokens itself, where it has a clerk."""

    def __init__(self, port, check):
        super().__init__()
        self.port, self.check = port, check

    def answer(self, request):
        for prefix, route in self.routes.items():
            if request.path.startswith(prefix):
                return route(request)
        self.requests.append(request)
        if (refusal := self.check(request)) is not None:
            return refusal
        behind = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in ("host", "authorization")}
            behind.request(request.command, request.path, request.body or None, headers)
            answer = behind.getresponse()
            kept = {name: value for name, value in answer.getheaders() if name.lower() in ("content-type", "etag")}
            return Reply(answer.status, answer.read(), kept)
        finally:
            behind.close()

    def refuse(self, request, status, code, reason):
        self.refused.append(f"{request.command} {request.path}: {code}: {reason}")
        return Reply(status, json.dumps({"error": {"message": reason, "type": code, "code": status}}).encode())


def oauth_tokens(server, clerk, client, secret, scope):
    """OAuth2's tokens, for a client (its id and secret) or in exchange for one that is still good."""
    good = bearer(clerk)

    def answer(request):
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        clerk.asked.append(form.get("grant_type"))
        if form.get("scope") != scope:
            return server.refuse(request, 400, "invalid_scope", str(form.get("scope")))
        if form.get("grant_type") == "client_credentials":
            if (form.get("client_id"), form.get("client_secret")) != (client, secret):
                return server.refuse(request, 401, "invalid_client", "not the client")
        elif form.get("grant_type") == "urn:ietf:params:oauth:grant-type:token-exchange":
            if form.get("subject_token_type") != "urn:ietf:params:oauth:token-type:access_token" or not good(form.get("subject_token")):
                return server.refuse(request, 400, "invalid_request", "the subject's token")
        else:
            return server.refuse(request, 400, "unsupported_grant_type", str(form.get("grant_type")))
        one = clerk.give()
        said = {"access_token": one.token, "token_type": "bearer", "expires_in": int(one.expires - time.time())}
        return Reply(200, json.dumps({**said, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}).encode())

    return answer


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # A proxy is asked by the whole URL.
        if self.path.startswith("http://"):
            self.path = self.path.removeprefix("http:/")
        reply = self.server.application.answer(self)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    do_GET = do_HEAD = do_POST = do_PUT = serve

    def do_CONNECT(self):
        """A proxy that leads to the servers it was told of, whatever they are called."""
        port = self.server.application.tunnels.get(self.path)
        if port is None:
            return self.send_error(403)
        self.send_response(200)
        self.end_headers()
        with socket.create_connection(("127.0.0.1", port)) as other:
            ends = [threading.Thread(target=pump, args=pair, daemon=True) for pair in ((self.connection, other), (other, self.connection))]
            for end in ends:
                end.start()
            for end in ends:
                end.join()
        self.close_connection = True

    def log_message(self, *_):
        pass


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def served(application, tls=None):
    """Serves on a free port of 127.0.0.1, which it gives. `tls`: the files of a certificate and its key."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.application = application
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
