"""Tables in Azure's blobs, as Azurite plays them: keys, connection strings and signatures in URLs."""

import base64
import contextlib
import datetime
import hashlib
import hmac
import http.client
import shutil
import subprocess
import urllib.parse

import tables
from servers import AZURE_ACCOUNT, AZURE_KEY, VENV
from suite import cases, digest, equal, mounted, names, read, refused, rows_of, test
from test_credentials import holds_no_secret, in_background

PLACE = f"abfss://alake@{AZURE_ACCOUNT}.dfs.core.windows.net"


def endpoint(port):
    return f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"


def endpoint_properties(port):
    return {"adls.blob-storage-scheme": "http", "adls.blob-storage-authority": f"127.0.0.1:{port}/{AZURE_ACCOUNT}"}


def upload(servers):
    """Copies the directory `alake` into the container of that name."""
    command = [VENV / "bin/rclone", "--config", "/dev/null", "copy", servers.azure_directory / "alake", ":azureblob:alake"]
    command += ["--azureblob-account", AZURE_ACCOUNT, "--azureblob-key", AZURE_KEY, "--azureblob-endpoint", endpoint(servers.azure)]
    subprocess.run([str(part) for part in command], check=True, timeout=120, stdin=subprocess.DEVNULL)


def filled(servers):
    """The tables, in the container: of PyIceberg, which recorded `abfss:` for them, and of the fixtures, copied."""

    def fill():
        # The bucket is `container@host` of the URL: the tables are written to a directory of that name.
        shelf = servers.azure_directory / "shelf"
        catalog = tables.catalog(servers.directory / "azure-catalog", f"{PLACE}/written", shelf)
        found = {name: tables.MIXES[name](catalog) for name in ("deleted", "partitioned")}
        shutil.copytree(shelf / PLACE.removeprefix("abfss://"), servers.azure_directory / "alake")
        for table in ("plain", "position_deletes"):
            shutil.copytree(servers.fixtures / "java" / table, servers.azure_directory / "alake/copied" / table)
        upload(servers)
        return found

    servers.azure
    return servers.once("azure tables", fill)


def signature(may="rl"):
    """A shared access signature that lets read and list, for an hour."""
    expires = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = [AZURE_ACCOUNT, may, "b", "sco", "", expires, "", "", "2019-12-12", ""]
    signed = hmac.new(base64.b64decode(AZURE_KEY), "\n".join(fields).encode(), hashlib.sha256).digest()
    sig = base64.b64encode(signed).decode()
    query = {"sv": "2019-12-12", "ss": "b", "srt": "sco", "sp": may, "se": expires, "sig": sig}
    return urllib.parse.urlencode(query), sig


def connection_string(port):
    return f"DefaultEndpointsProtocol=http;AccountName={AZURE_ACCOUNT};AccountKey={AZURE_KEY};BlobEndpoint={endpoint(port)};"


CREDENTIALS = {
    "key": lambda port: {**endpoint_properties(port), "adls.account-key": AZURE_KEY},
    "signature": lambda port: {**endpoint_properties(port), f"adls.sas-token.{AZURE_ACCOUNT}": signature()[0]},
    "connection string": lambda port: {"adls.connection-string": connection_string(port)},
}


@cases(**{f"{how}, {name}": {"how": how, "name": name} for how in CREDENTIALS for name in ("deleted", "partitioned")})
def rows_are_what_their_writer_reads(servers, how, name):
    table = filled(servers)[name]
    with mounted(table.location(), CREDENTIALS[how](servers.azure)) as mount:
        equal(rows_of(mount / f"current/{name}.parquet"), tables.answer(table), name)
        equal(mount.errors(), "")


@test
def a_warehouse_is_listed_and_tables_that_were_copied_give_the_local_bytes(servers):
    filled(servers)
    with mounted(f"{PLACE}/copied", CREDENTIALS["key"](servers.azure)) as far, mounted(servers.fixtures / "java") as near:
        equal([name for name in names(far.root) if name != ".bergfs"], ["plain", "position_deletes"])
        for table in ("plain", "position_deletes"):
            for kind in ("parquet", "jsonl"):
                equal(digest(far / f"{table}/current/{table}.{kind}"), digest(near / f"{table}/current/{table}.{kind}"), table)


@test
def keys_that_no_file_can_have_hide_no_table(servers):
    filled(servers)
    for stray in ("copied//x", "copied/plain//x", "copied/plain/metadata//x", "copied/plain/metadata/..", "copied/./x"):
        # As it is: a client that knows URLs would take the dots out.
        connection = http.client.HTTPConnection("127.0.0.1", servers.azure, timeout=60)
        with contextlib.closing(connection):
            target = f"/{AZURE_ACCOUNT}/alake/{stray}?{signature('rwlc')[0]}"
            connection.request("PUT", target, b"x", {"x-ms-blob-type": "BlockBlob"})
            equal(connection.getresponse().status, 201, stray)
    with mounted(f"{PLACE}/copied", CREDENTIALS["key"](servers.azure)) as mount:
        equal([name for name in names(mount.root) if name != ".bergfs"], ["plain", "position_deletes"])
        read(mount / "plain/current/plain.parquet")


@test
def no_secret_of_azure_is_shown(servers):
    """Of a signature above all, which is part of every request's URL."""
    table = filled(servers)["deleted"]
    port = servers.azure
    token, sig = signature()
    for how, secrets in (("signature", (sig, urllib.parse.quote(sig, safe=""))), ("connection string", (AZURE_KEY,))):
        properties = CREDENTIALS[how](port)
        arguments = [part for pair in properties.items() for part in ("-p", "=".join(pair))]
        holds_no_secret(in_background(table.location(), arguments, {}, "current/deleted.parquet"), *secrets)
    # Refused: what is said then.
    wrong = {**endpoint_properties(port), "adls.sas-token": token.replace("sp=rl", "sp=r")}
    message = refused(table.location(), wrong)
    assert sig not in message and urllib.parse.quote(sig, safe="") not in message, message
