"""A REST catalog of one table, `s.t`, in a store that only the catalog can open: it lends credentials or its signature.

    lending.py PORT MODE ENDPOINT METADATA_LOCATION

MODE is `credentials` (they have run out as soon as they are lent, so each look at the store renews them), or `sign`. ENDPOINT
is the S3 server's, which has the metadata file too. Prints its URL when it answers; `GET /asked` tells what was asked of it.
"""

import json
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, mode, endpoint, metadata_location = sys.argv[1:]
asked = []
ROOT = "/v1/lent"
TABLE = f"{ROOT}/namespaces/s/tables/t"


def credentials(key):
    expires = int((time.time() + 5) * 1000)
    return [
        {
            "prefix": metadata_location.split("/metadata/")[0],
            "config": {
                "s3.access-key-id": key,
                "s3.secret-access-key": "secret",
                "s3.session-token": "token",
                "s3.session-token-expires-at-ms": str(expires),
            },
        }
    ]


def table():
    with urllib.request.urlopen(f"{endpoint}/{metadata_location.removeprefix('s3://')}") as answer:
        metadata = json.load(answer)
    loaded = {
        "metadata-location": metadata_location,
        "metadata": metadata,
        "config": {"s3.endpoint": endpoint, "client.region": "us-east-1", "s3.path-style-access": "true", "token": "tables"},
    }
    if mode == "sign":
        loaded["config"]["s3.remote-signing-enabled"] = "true"
        loaded["remote-signing-config"] = {"properties": {"table": "t"}, "headers": {}}
    else:
        loaded["storage-credentials"] = credentials("first")
    return loaded


def answer(method, path, body):
    path = path.split("?")[0]
    if path == "/v1/config":
        endpoints = ["GET /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}/tables"]
        endpoints.append("GET /v1/{prefix}/namespaces/{namespace}/tables/{table}")
        endpoints.append("GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials")
        return {"defaults": {}, "overrides": {"prefix": "lent"}, "endpoints": endpoints}
    if path == f"{ROOT}/namespaces":
        return {"namespaces": [["s"]]}
    if path == f"{ROOT}/namespaces/s/tables":
        return {"identifiers": [{"namespace": ["s"], "name": "t"}]}
    if path == TABLE:
        return table()
    if path == f"{TABLE}/credentials":
        return {"storage-credentials": credentials("renewed")}
    if path == f"{TABLE}/sign" and method == "POST":
        signature = "AWS4-HMAC-SHA256 Credential=catalog/20240101/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=00"
        headers = {"Authorization": [signature], "x-amz-date": ["20240101T000000Z"], "x-amz-content-sha256": ["UNSIGNED-PAYLOAD"]}
        return {"uri": body["uri"], "headers": {**body["headers"], **headers}}
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "null")
        if self.path == "/asked":
            said = asked
        else:
            asked.append(f"{self.command} {self.path}")
            said = answer(self.command, self.path, body)
        text = json.dumps(said).encode()
        self.send_response(404 if said is None else 200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET


server = ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
