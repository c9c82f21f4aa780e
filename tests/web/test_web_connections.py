"""Clients that never finish: half-sent requests, too many connections, answers that nobody reads."""

from __future__ import annotations

import contextlib
import json
import logging
import resource
import select
import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from web_serving import PATIENCE_S, Server, serving

from stretto.web.quiet_log import FewLines

HALF = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nX-Half: "
WHOLE = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
NUM_CONNECTIONS = 20


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with little patience and few connections."""
    runs = tmp_path_factory.mktemp("short") / "runs.db"
    limits = {"max_header_s": 1.0, "max_write_s": 1.0, "max_connections": NUM_CONNECTIONS, "rate_per_s": 1e6}
    with serving(runs, num_workers=1, burst=1_000_000, **limits) as found:
        with found.client() as client:  # it is up
            assert client.get("/api/health").status_code == 200
        yield found


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server with few connections that waits long for each, and the file that it logs to."""
    folder = tmp_path_factory.mktemp("patient")
    limits = {"max_header_s": 600.0, "max_write_s": 600.0, "max_body_s": 600.0, "max_connections": NUM_CONNECTIONS}
    limits |= {"rate_per_s": 1e6, "burst": 1_000_000}
    with (
        (folder / "stderr").open("wb") as stderr,
        serving(folder / "runs.db", stderr=stderr, num_workers=1, **limits) as found,
    ):
        with found.client() as client:
            assert client.get("/api/health").status_code == 200
        yield found, folder / "stderr"


def connect(server: Server, data: bytes = b"") -> socket.socket:
    place = urlsplit(server.url)
    assert place.hostname is not None
    connection = socket.create_connection((place.hostname, place.port or 0), timeout=PATIENCE_S)
    connection.sendall(data)
    return connection


def read_all(connection: socket.socket) -> bytes:
    """Return what arrives until the server closes the connection."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_headers_that_never_end_are_given_up(short: Server) -> None:
    with connect(short, HALF) as connection:
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408")
    assert b"content-security-policy" in head.lower()
    assert "longer than 1 s" in json.loads(body)["error"]
    with connect(short) as silent:  # not a byte
        assert read_all(silent).startswith(b"HTTP/1.1 408")


def test_the_second_request_has_no_more_time_than_the_first(short: Server) -> None:
    with connect(short, WHOLE) as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(HALF)
        assert b"HTTP/1.1 408" in read_all(connection)
    with connect(short, WHOLE + HALF) as pipelined:
        assert b"HTTP/1.1 408" in read_all(pipelined)


def test_a_connection_that_rests_between_requests_is_kept(short: Server) -> None:
    place = urlsplit(short.url)
    connection = HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE_S)
    for pause_s in (0.0, 1.5):  # longer than headers may take
        time.sleep(pause_s)
        connection.request("GET", "/api/health")
        assert connection.getresponse().read().startswith(b"{")
        connection.auto_open = 0  # from now on it must be the same one
    connection.close()


def is_open(connection: socket.socket) -> bool:
    """Say whether the server still waits for the rest of a request."""
    connection.settimeout(0.02)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    except ConnectionResetError:
        pass
    return False


HALF_BODY = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntoken="


@pytest.mark.parametrize("sent", [HALF, HALF_BODY], ids=["headers", "body"])
def test_many_half_requests_keep_nobody_out(patient: tuple[Server, Path], sent: bytes) -> None:
    """The oldest that waits makes room for the newest; the time that headers may take plays no part in this."""
    server, _ = patient
    held = [connect(server, sent) for _ in range(3 * NUM_CONNECTIONS)]
    with server.client() as client:
        assert client.get("/api/health").status_code == 200
    assert 0 < sum(map(is_open, held)) <= NUM_CONNECTIONS
    for connection in held:
        connection.close()


def test_what_is_not_http_is_answered_in_json(short: Server) -> None:
    with connect(short, b"\x16\x03\x01 this is TLS\r\n\r\n") as connection:
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body)["error"] == "not a valid HTTP request"


def test_an_answer_that_nobody_reads_is_dropped(short: Server) -> None:
    ask = b"GET /static/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with short.client() as client:
        size = len(client.get("/static/page.css").content)
    num = 20_000_000 // size  # more than the kernel holds for the server
    place = urlsplit(short.url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.connect((place.hostname, place.port))
        connection.settimeout(3.0)
        with contextlib.suppress(TimeoutError, ConnectionError):  # no more is read while it cannot answer
            connection.sendall(ask * num)
        waiting = select.poll()
        waiting.register(connection, 0)  # tells of the end alone, not of what could be read
        assert waiting.poll(PATIENCE_S * 1000), "the server still waits for somebody to read"


def test_a_server_without_free_files_does_not_fill_its_log(patient: tuple[Server, Path]) -> None:
    server, log = patient
    num_files = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
    before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (num_files + 3, before[1]))
    held = [connect(server, HALF) for _ in range(60)]
    time.sleep(2.5)  # asyncio tries again every second, 128 times each, and would log every one of them
    assert b"Too many open files" in log.read_bytes()
    assert log.stat().st_size < 100_000
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
    for connection in held:
        connection.close()
    with server.client() as client:
        assert client.get("/api/health").status_code == 200


def test_lines_beyond_the_limit_are_counted() -> None:
    now_s = [0.0]
    few = FewLines(num_per_minute=2, clock=lambda: now_s[0])

    def told(text: str) -> str | None:
        record = logging.LogRecord("x", logging.WARNING, "", 0, "%s", (text,), None)
        return record.getMessage() if few.filter(record) else None

    assert [told("a") for _ in range(5)] == ["a", "a", None, None, None]
    now_s[0] = 61.0
    assert [told("b"), told("b"), told("b")] == ["b (3 lines before this one were left out)", "b", None]
