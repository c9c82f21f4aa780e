"""A token by default: the link that logs a browser in once, the form, and what programs send."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from web_serving import PATIENCE_S, Server, serving

from stretto.cli.main import main
from stretto.cli.serve_access import can_open_browser, kept_token, token_path
from stretto.web.login_code import VALID_S, LoginCode

TOKEN = "a-token-of-some-length"
CODE = "a-code-of-some-length"


class Started(NamedTuple):
    url: str
    link: str
    token: str
    folder: Path


@contextmanager
def command(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``stretto serve`` as a user does who has no token."""
    environment = {key: value for key, value in os.environ.items() if key != "STRETTO_TOKEN"}
    environment |= {"STRETTO_HOME": str(folder / "home")}
    process = subprocess.Popen(
        [sys.executable, "-m", "stretto.cli.main", "serve", "--port", "0", "--workers", "1", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    folder = tmp_path_factory.mktemp("started")
    with command(folder) as process:
        assert process.stdout is not None
        at, link, programs = (process.stdout.readline() for _ in range(3))
        place = Path(programs.strip().rpartition(" in ")[2])
        yield Started(at.split()[3], link.split()[1], place.read_text().strip(), folder)


def test_nobody_comes_in_without_the_token(started: Started) -> None:
    with httpx.Client(base_url=started.url, timeout=PATIENCE_S) as client:
        for path in ("/api/runs", "/metrics", "/api/stream"):
            assert client.get(path).status_code == 401
        assert client.post("/api/plan", json={"workload": "fft", "cluster": "cpu:1"}).status_code == 401
        right = {"Authorization": f"Bearer {started.token}"}
        assert client.get("/api/runs", headers=right).json() == {"runs": []}
    assert len(started.token) >= 32
    assert started.token not in started.link


def test_the_link_logs_in_once(started: Started) -> None:
    with httpx.Client(timeout=PATIENCE_S) as first, httpx.Client(timeout=PATIENCE_S) as second:
        assert second.get(f"{started.url}/login?code=wrong").status_code == 401  # and does not use it up
        assert second.head(started.link).status_code == 405  # nor does whoever only looks
        reply = first.get(started.link)
        assert reply.status_code == 200
        cookie = reply.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert first.get(f"{started.url}/api/runs").status_code == 200
        again = second.get(started.link)
        assert again.status_code == 401
        assert "already used" in again.text
        assert "set-cookie" not in again.headers
        assert second.get(f"{started.url}/api/runs").status_code == 401


def test_all_that_a_server_keeps_is_private(started: Started) -> None:
    for path in (started.folder / "home", *(started.folder / "home").iterdir()):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_a_code_is_good_for_a_while() -> None:
    now_s = [0.0]
    code = LoginCode(CODE, clock=lambda: now_s[0])
    now_s[0] = VALID_S + 1.0
    assert not code.redeem(CODE)
    assert not LoginCode(None).redeem("")


def test_a_token_is_kept_unless_others_could_read_it(tmp_path: Path) -> None:
    runs = tmp_path / "new" / "runs.db"
    token = kept_token(runs)
    assert kept_token(runs) == token
    assert stat.S_IMODE(token_path(runs).stat().st_mode) == 0o600
    token_path(runs).chmod(0o644)
    other = kept_token(runs)
    assert other != token
    assert stat.S_IMODE(token_path(runs).stat().st_mode) == 0o600
    token_path(runs).write_text("cut")
    assert kept_token(runs) not in (token, other, "cut")


def test_no_token_is_a_choice_with_a_warning(tmp_path: Path) -> None:
    with command(tmp_path, "--no-token") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().split()[3]
        assert "every user of this machine" in process.stderr.readline()
        assert httpx.get(f"{url}/api/runs", timeout=PATIENCE_S).status_code == 200


def test_no_token_is_for_this_machine_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRETTO_TOKEN", raising=False)
    assert main(["serve", "--host", "0.0.0.0", "--no-token"]) == 2
    assert "other machines" in capsys.readouterr().err
    monkeypatch.setenv("STRETTO_TOKEN", TOKEN)
    assert main(["serve", "--no-token"]) == 2
    assert "leave one out" in capsys.readouterr().err


def test_no_browser_is_opened_without_a_terminal_or_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    assert not can_open_browser()  # pytest has taken the terminal away


#: A browser that notes what it was given.
_BROWSER = """#!/bin/sh
page="${1#file://}"
{ echo "$1"; stat -c %a "$page"; cat "$page"; } > NOTE.new
mv NOTE.new NOTE
"""


def test_the_browser_is_given_a_file_and_not_the_link(tmp_path: Path) -> None:
    """Every user of the machine can read the words of a command."""
    note, program = tmp_path / "note", tmp_path / "browser.sh"
    program.write_text(_BROWSER.replace("NOTE", str(note)))
    program.chmod(0o700)
    environment = {key: value for key, value in os.environ.items() if key != "STRETTO_TOKEN"}
    environment |= {"STRETTO_HOME": str(tmp_path / "home"), "DISPLAY": ":0", "BROWSER": f"{program} %s"}
    words = [sys.executable, "-m", "stretto.cli.main", "serve", "--port", "0", "--workers", "1"]
    ours, theirs = os.openpty()
    process = subprocess.Popen(words, stdout=theirs, stdin=theirs, env=environment, stderr=subprocess.DEVNULL)
    os.close(theirs)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not note.exists():
            assert time.monotonic() < deadline, "no browser was opened"
            time.sleep(0.1)
        printed = os.read(ours, 65536).decode()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
        os.close(ours)
    said, mode, page = note.read_text().split("\n", 2)
    code = printed.partition("?code=")[2].split()[0]
    assert said.startswith("file:///")
    assert mode == "600"
    assert code not in said
    assert code in page
    assert not Path(said.removeprefix("file://")).exists()  # it goes with the server


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a token of its user's own."""
    runs = tmp_path_factory.mktemp("locked") / "runs.db"
    with serving(runs, token=TOKEN, num_workers=1) as found:
        yield found


@pytest.mark.parametrize(
    ("body", "kind", "status", "field"),
    [
        (b"token=%ff%fe", "application/x-www-form-urlencoded", 400, "body"),
        (b"token=\xff\xfe", "application/x-www-form-urlencoded", 400, "body"),
        (b"&".join(b"a=1" for _ in range(9)), "application/x-www-form-urlencoded", 400, "body"),
        (b'{"token": "x"}', "application/json", 415, "Content-Type"),
        (b"token=x", "", 415, "Content-Type"),
        (b"", "application/x-www-form-urlencoded", 401, "token"),
        (b"token=wrong", "application/x-www-form-urlencoded", 401, "token"),
    ],
)
def test_wrong_forms_are_refused_in_json(locked: Server, body: bytes, kind: str, status: int, field: str) -> None:
    with locked.client() as client:
        reply = client.post("/login", content=body, headers={"Content-Type": kind} if kind else {})
    assert reply.status_code == status
    assert reply.json()["field"] == field
    assert "set-cookie" not in reply.headers


def test_who_has_not_shown_the_token_sends_little(locked: Server) -> None:
    """Refused by what it says of itself, and by what arrives."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    with locked.client(headers=form) as client:
        assert client.post("/login", content=b"token=" + b"x" * 5000).status_code == 413
        assert client.post("/login", content=iter([b"x" * 1000] * 8)).status_code == 413
        assert client.post("/api/plan", content=b"x" * 5000).status_code == 401
