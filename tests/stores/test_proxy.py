"""The proxy's own tests: each fault is what it says, as a plain client sees it."""

import http.client

import proxy as faults
from proxy import Proxy
from suite import equal, test, within

CONTENT = bytes(range(256)) * 400
ASKED = {"Range": "bytes=1000-60999"}


def fetch(proxy):
    """Status, headers and body of a range, or the name of what went wrong."""

    def run():
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=2)
        try:
            connection.request("GET", "/lake/proxied", headers=ASKED)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__
        finally:
            connection.close()

    return within(run)


@test
def every_fault_is_what_it_says(servers):
    (servers.s3_directory / "lake/proxied").write_bytes(CONTENT)
    proxy = Proxy(servers.web, servers.s3_directory)
    try:
        status, headers, body = fetch(proxy)
        equal((status, body), (206, CONTENT[1000:61000]))
        [request] = proxy.take()
        equal((request.path, request.range, request.status, request.sent), ("/lake/proxied", "bytes=1000-60999", 206, 60000))

        def with_fault(fault):
            proxy.fail(fault, 1)
            found = fetch(proxy)
            equal([one.fault for one in proxy.take()], [fault.__name__])
            return found

        equal(with_fault(faults.throttled)[0], 503)
        equal(with_fault(faults.expired)[0], 403)
        equal(with_fault(faults.reset_before_head), "ConnectionResetError")
        equal(with_fault(faults.reset_mid_body) in ("ConnectionResetError", "IncompleteRead"), True)
        equal(with_fault(faults.truncated), "IncompleteRead")
        equal(with_fault(faults.stalled), "TimeoutError")
        equal(with_fault(faults.black_hole), "TimeoutError")
        status, headers, body = with_fault(faults.whole_file)
        equal((status, body, headers["Content-Range"]), (200, CONTENT, None))
        status, headers, body = with_fault(faults.short_range)
        equal((status, body), (206, CONTENT[1000:31000]))
        status, headers, body = with_fault(faults.shifted_range)
        equal((status, body), (206, CONTENT[993:60993]))
        equal(headers["Content-Range"], f"bytes 993-60992/{len(CONTENT)}")

        equal(fetch(proxy)[0], 206, "after the faults")
        proxy.refuse()
        equal(fetch(proxy), "ConnectionRefusedError")
        proxy.listen()
        equal(fetch(proxy)[0], 206, "after it listens again")
    finally:
        proxy.close()
