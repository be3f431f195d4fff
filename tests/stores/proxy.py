"""A proxy that stands between bergfs and a server: it counts what is asked and what is answered, and makes faults.

It runs in a thread of the suite. HTTP/1.1 without TLS; bodies by Content-Length or in chunks. What is asked goes to the
server unchanged.

    proxy = Proxy(port_of_the_server, its_directory)
    proxy.latency = 0.05
    proxy.fail(reset_mid_body, times=2, where=lambda request: request.path.endswith(".parquet"))
    proxy.take() -> the requests since it was last called
"""

import asyncio
import contextlib
import dataclasses
import pathlib
import socket
import struct
import threading
import urllib.parse

SLOW_DOWN = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"""
EXPIRED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"""


@dataclasses.dataclass
class Request:
    """One request, and what came back for it."""

    method: str
    target: str
    headers: dict
    status: int = 0
    sent: int = 0
    fault: str = ""

    @property
    def path(self):
        return self.target.split("?")[0]

    @property
    def query(self):
        return self.target.partition("?")[2]

    @property
    def range(self):
        return self.headers.get("range", "")

    @property
    def key_id(self):
        """Who signed: the access key of AWS's signatures."""
        return self.headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]


@dataclasses.dataclass
class Answer:
    """The server's answer: `head` are its header lines, the first being the status line."""

    head: list
    body: bytes

    @property
    def status(self):
        return int(self.head[0].split()[1])

    def header(self, name):
        for line in self.head[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name:
                return value.strip()
        return None

    def with_headers(self, status, **changed):
        """The same with another status line and other values of some headers."""
        names = {name.replace("_", "-") for name in changed}
        kept = [line for line in self.head[1:] if line.partition(":")[0].lower() not in names]
        new = [f"{name.replace('_', '-')}: {value}" for name, value in changed.items() if value is not None]
        return Answer([status, *kept, *new], self.body)


class Reset(Exception):
    """The connection is to be cut."""


def plain(status, reason, body):
    return Answer([f"HTTP/1.1 {status} {reason}", "Content-Type: application/xml", f"Content-Length: {len(body)}"], body)


# Faults: each is a coroutine that answers one request in its own way. `link` offers `ask` (the server's answer), `send`
# (an answer to the client), `write` (bytes to the client), `released` (wait until the proxy is released).


async def throttled(link, request):
    """503 SlowDown, as S3 says it."""
    await link.send(request, plain(503, "Slow Down", SLOW_DOWN))


async def expired(link, request):
    """403 ExpiredToken."""
    await link.send(request, plain(403, "Forbidden", EXPIRED))


async def reset_before_head(link, request):
    raise Reset


async def reset_mid_body(link, request):
    answer = await link.ask(request)
    await link.send(request, Answer(answer.head, answer.body[: len(answer.body) // 2]))
    raise Reset


async def truncated(link, request):
    """The whole Content-Length is promised, half is sent, the connection ends in good order."""
    answer = await link.ask(request)
    await link.send(request, Answer(answer.head, answer.body[: len(answer.body) // 2]))
    link.end()


async def short_range(link, request):
    """Less than was asked for, and honest about it."""
    answer = await link.ask(request)
    content = answer.header("content-range")
    if content is None or len(answer.body) < 2:
        return await link.send(request, answer)
    start, total = int(content.split()[1].split("-")[0]), content.split("/")[1]
    body = answer.body[: len(answer.body) // 2]
    answer = answer.with_headers(
        answer.head[0], content_range=f"bytes {start}-{start + len(body) - 1}/{total}", content_length=len(body)
    )
    await link.send(request, Answer(answer.head, body))


async def whole_file(link, request):
    """200 with the whole file where a range was asked for."""
    answer = await link.ask(request)
    if answer.header("content-range") is not None:
        body = link.proxy.file(request)
        answer = Answer(answer.with_headers("HTTP/1.1 200 OK", content_range=None, content_length=len(body)).head, body)
    await link.send(request, answer)


async def shifted_range(link, request):
    """A range a few bytes before that which was asked for, and honest about it."""
    answer = await link.ask(request)
    content = answer.header("content-range")
    start = int(content.split()[1].split("-")[0]) if content else 0
    if start >= 7:
        end, total = start - 7 + len(answer.body), content.split("/")[1]
        told = answer.with_headers(answer.head[0], content_range=f"bytes {start - 7}-{end - 1}/{total}")
        answer = Answer(told.head, link.proxy.file(request)[start - 7 : end])
    await link.send(request, answer)


async def stalled(link, request):
    """Half of the body, then silence."""
    answer = await link.ask(request)
    await link.send(request, Answer(answer.head, answer.body[: len(answer.body) // 2]))
    await link.released()
    raise Reset


async def black_hole(link, request):
    """No answer at all."""
    await link.released()
    raise Reset


class Link:
    """One connection from a client, and its connection to the server."""

    def __init__(self, proxy, reader, writer):
        self.proxy, self.reader, self.writer = proxy, reader, writer
        self.upstream = None
        self.open = True

    async def serve(self):
        try:
            while self.open and (request := await self.read_request()) is not None:
                await self.answer(request)
        except Reset:
            # An RST rather than a FIN.
            with contextlib.suppress(OSError):  # The client has gone already.
                self.socket().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except (ConnectionError, asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self.writer.close()
            if self.upstream:
                self.upstream[1].close()

    def socket(self):
        return self.writer.get_extra_info("socket")

    async def read_request(self):
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        request = Request(method, target, headers)
        request.head = [first, *lines]
        if headers.get("transfer-encoding", "").lower() == "chunked":
            request.body = await read_chunks(self.reader, raw=True)
        else:
            request.body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return request

    async def answer(self, request):
        proxy = self.proxy
        fault = proxy.begin(request)
        if proxy.latency:
            await asyncio.sleep(proxy.latency)
        if fault is not None:
            request.fault = fault.__name__
            await fault(self, request)
        else:
            await self.send(request, await self.ask(request))

    async def ask(self, request):
        """The server's answer to a request, which is asked as it came: a signature covers the path, the range and the host."""
        message = "\r\n".join([*request.head, "", ""]).encode("latin-1") + request.body
        for again in (True, False):
            try:
                if self.upstream is None:
                    self.upstream = await asyncio.open_connection("127.0.0.1", self.proxy.server)
                reader, writer = self.upstream
                writer.write(message)
                return await self.read_answer(reader, request.method)
            except (ConnectionError, asyncio.IncompleteReadError):
                # The server may have ended a connection that was kept.
                self.upstream = None
                if not again:
                    raise

    async def read_answer(self, reader, method):
        head = await reader.readuntil(b"\r\n\r\n")
        answer = Answer(head.decode("latin-1").split("\r\n")[:-2], b"")
        if method == "HEAD" or answer.status in (204, 304):
            return answer
        if (answer.header("transfer-encoding") or "").lower() == "chunked":
            answer.body = await read_chunks(reader)
            return answer.with_headers(answer.head[0], transfer_encoding=None, content_length=len(answer.body))
        length = answer.header("content-length")
        if length is None:
            answer.body = await reader.read()
            self.upstream = None
            return answer.with_headers(answer.head[0], content_length=len(answer.body))
        answer.body = await reader.readexactly(int(length))
        if (answer.header("connection") or "").lower() == "close":
            self.upstream = None
            self.open = False
        return answer

    async def send(self, request, answer):
        request.status = answer.status
        # Counted before it is sent: whoever has read it may look at the count.
        request.sent += len(answer.body)
        self.writer.write("\r\n".join([*answer.head, "", ""]).encode("latin-1") + answer.body)
        await self.writer.drain()

    def end(self):
        self.open = False

    async def released(self):
        await self.proxy.release.wait()


async def read_chunks(reader, raw=False):
    whole, body = b"", b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        data = await reader.readexactly(size + 2)
        whole += line + data
        body += data[:-2]
        if size == 0:
            return whole if raw else body


class Proxy:
    """Listens on a free port of 127.0.0.1 until it is closed. `files` is where the server has its files."""

    def __init__(self, server, files):
        self.server, self.files = server, pathlib.Path(files)
        self.latency = 0
        self.guard = lambda request: None
        self.requests = []
        self.lock = threading.Lock()
        self.faults = []
        self.links = set()
        # Set when those who wait for ever are to go on; made by the loop.
        self.release = None
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.port = 0
        self.listen()

    # Called by the suite's thread.

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def listen(self):
        """Listens, after `refuse` on the same port as before."""

        async def start():
            self.release = self.release or asyncio.Event()
            self.listener = await asyncio.start_server(self.accept, "127.0.0.1", self.port, limit=1 << 20)
            self.port = self.listener.sockets[0].getsockname()[1]

        self.run(start())

    def refuse(self):
        """Refuses connections, and cuts those there are."""

        async def stop():
            self.listener.close()
            self.cut()

        self.run(stop())

    def cut(self):
        for link in list(self.links):
            link.writer.transport.abort()

    def close(self):
        self.heal()
        self.refuse()

        async def ended():
            while self.links:
                await asyncio.sleep(0.01)

        self.run(ended())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    def fail(self, fault, times=10**9, where=lambda request: True):
        """Makes the next `times` requests of those that `where` holds for fail."""
        with self.lock:
            self.faults.append([fault, times, where])

    def heal(self):
        """No more faults; who waits for an answer is cut off."""
        with self.lock:
            self.faults = []
        self.guard = lambda request: None

        async def release():
            self.release.set()
            self.release = asyncio.Event()

        self.run(release())

    def take(self):
        """The requests since the last call, in the order they came."""
        with self.lock:
            taken, self.requests = self.requests, []
        return taken

    # Called by the loop's thread.

    def file(self, request):
        """All of the file that is asked for a part of."""
        return (self.files / urllib.parse.unquote(request.path).lstrip("/")).read_bytes()

    def begin(self, request):
        """Notes a request and says how it is to fail, if it is."""
        with self.lock:
            self.requests.append(request)
            if (fault := self.guard(request)) is not None:
                return fault
            for entry in self.faults:
                fault, times, where = entry
                if times > 0 and where(request):
                    entry[1] -= 1
                    return fault
        return None

    async def accept(self, reader, writer):
        link = Link(self, reader, writer)
        self.links.add(link)
        try:
            await link.serve()
        finally:
            self.links.discard(link)
