"""Steering by slurmrestd: a real one where it is installed; versions that are not here are played by a small server."""

from __future__ import annotations

import json
import stat
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from stretto.cli.main import main
from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.client.errors import SlurmRefused, SlurmUnreachable
from stretto.engines.slurm.client.rest import RestClient, RestPlace
from stretto.engines.slurm.steer.label_store import Label, LabelStore
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.daemons import is_rest_installed
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.errors import InvalidInput

#: Time limits in minutes, in the order of submission.
LIMITS = (9, 2, 7, 5)
SHORTEST_FIRST = sorted(range(len(LIMITS)), key=LIMITS.__getitem__)


@pytest.fixture(scope="module")
def rest_bed(slurm_place: Path) -> Iterator[Testbed]:
    reason = is_rest_installed()
    if reason is not None:
        pytest.skip(reason)
    found = Testbed.up(slurm_place / "rest", TestbedSpec(num_nodes=1, cpus_per_node=1, has_rest=True))
    try:
        yield found
    finally:
        assert found.down() == []


@pytest.fixture
def jobs(rest_bed: Testbed, tmp_path: Path) -> Iterator[list[int]]:
    """Four jobs that wait behind a fifth."""
    client = SlurmClient(rest_bed.commands)
    script = tmp_path / "wait.sh"
    script.write_text("#!/bin/sh\nsleep 600\n")
    options: dict[str, str | int | bool] = {"output": "/dev/null", "exclusive": True}
    first = client.submit(Submission(str(script), options={**options, "time": 60}))
    assert wait_until(lambda: any(job.is_running and job.job_id == first for job in client.queue()), timeout_s=120.0)
    yield [client.submit(Submission(str(script), options={**options, "time": limit})) for limit in LIMITS]
    client.cancel(job.job_id for job in client.queue() if not job.is_ended)


def priorities(bed: Testbed, jobs: list[int]) -> list[float]:
    known = {job.job_id: job.priority for job in SlurmClient(bed.commands).queue()}
    return [known[job] for job in jobs]


def place_lacks_site_factors(place: RestPlace) -> bool:
    return not RestClient(place).has_site_factors


def test_both_ways_show_the_same_queue(rest_bed: Testbed, jobs: list[int]) -> None:
    over_http, by_programs = RestClient(rest_bed.rest), SlurmClient(rest_bed.commands)
    assert over_http.version >= (0, 0, 38)
    assert [node.name for node in over_http.nodes()] == [node.name for node in by_programs.nodes()] == ["n1"]
    fields = ("job_id", "name", "user", "state", "partition", "submit_s", "time_limit_s", "num_cpus", "is_exclusive")
    seen = [
        [tuple(getattr(job, field) for field in fields) for job in sorted(client.queue(), key=lambda job: job.job_id)]
        for client in (over_http, by_programs)
    ]
    assert seen[0] == seen[1]
    assert set(jobs) <= {row[0] for row in seen[0]}
    assert over_http.queue("nowhere") == []


def test_priorities_are_set_and_given_back(rest_bed: Testbed, jobs: list[int]) -> None:
    client = RestClient(rest_bed.rest)
    before = priorities(rest_bed, jobs)
    assert all(client.update(job, priority=1000 + k) for k, job in enumerate(jobs))
    assert priorities(rest_bed, jobs) == [1000.0, 1001.0, 1002.0, 1003.0]
    assert all(client.restore_priority(job) for job in jobs)
    assert priorities(rest_bed, jobs) == before
    assert not client.update(987_654, priority=5)  # there is no such job


def test_the_command_steers_and_takes_it_back(
    rest_bed: Testbed,
    jobs: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    monkeypatch.delenv("SLURM_CONF", raising=False)
    before = priorities(rest_bed, jobs)
    place = rest_bed.rest
    words = ["steer", "slurm", "--rest", place.url, "--token-file", str(place.token_file), "--once", "--apply"]
    assert main([*words, "--strategy", "sjf"]) == (2 if place_lacks_site_factors(place) else 0)
    assert main([*words, "--strategy", "sjf", "--mode", "priority", "--budget", "60s", "--output", "json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out.splitlines()[-1])["order"] == [jobs[k] for k in SHORTEST_FIRST]
    assert "none is made through slurmrestd" in said.err
    assert f"a file in {tmp_path}/steer-slurm/" in said.err
    now = priorities(rest_bed, jobs)
    assert sorted(range(len(jobs)), key=lambda k: -now[k]) == SHORTEST_FIRST
    (path,) = tmp_path.glob("steer-slurm/*/*.json")
    store = path.read_text()
    assert Path(str(place.token_file)).read_text().strip().partition("=")[2] not in store
    assert main([*words[:6], "--off"]) == 0
    assert priorities(rest_bed, jobs) == before
    assert main([*words[:6], "--on"]) == 0
    SlurmClient(rest_bed.commands).reserve("stretto-off-for-maintenance")  # a reservation is seen over HTTP, too
    assert main([*words, "--strategy", "sjf", "--mode", "priority"]) == 2
    assert "steering is off (reservation stretto-off-for-maintenance)" in capsys.readouterr().err
    assert SlurmClient(rest_bed.commands).unreserve("stretto-off-for-maintenance")


def test_a_wrong_token_is_refused(rest_bed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JWT", "not.a.token")
    with pytest.raises((SlurmRefused, SlurmUnreachable)) as found:
        RestClient(RestPlace(rest_bed.rest.url)).queue()
    assert "not.a.token" not in str(found.value)


def test_what_a_testbed_writes_is_for_its_owner_only(rest_bed: Testbed) -> None:
    for path in (Path(str(rest_bed.rest.token_file)), rest_bed.folder / "state" / "jwt_hs256.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    command = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert rest_bed.rest.token() not in command


class Newer(HTTPServer):
    """Says what a slurmrestd of 24.11 says, and keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.told: list[tuple[str, Any, str]] = []
        self.status = 200
        self.errors: list[dict[str, Any]] = []


class _Answers(BaseHTTPRequestHandler):
    server: Newer

    def do_GET(self) -> None:
        versions = {f"/slurm/v0.0.{number}/jobs/": {} for number in (40, 41, 42, 43)}
        self._answer({"paths": versions} if self.path == "/openapi/v3" else {"jobs": [], "errors": self.server.errors})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.told.append((self.path, body, self.headers["X-SLURM-USER-NAME"]))
        self._answer({"errors": self.server.errors})

    def _answer(self, body: dict[str, Any]) -> None:
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Newer]:
    # The claims of a token for the user "olga", as any JWT carries them.
    monkeypatch.setenv("SLURM_JWT", "SLURM_JWT=e30.eyJzdW4iOiJvbGdhIn0.c2ln\n")
    server = Newer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def client_of(server: Newer) -> RestClient:
    return RestClient(RestPlace(f"http://127.0.0.1:{server.server_port}/"))


def test_newer_versions_take_site_factors_above_an_offset(newer: Newer) -> None:
    client = client_of(newer)
    assert client.version == (0, 0, 42)  # the newest that we know
    assert client.has_site_factors
    assert client.update(7, sitefactor=-3)
    assert newer.told == [("/slurm/v0.0.42/job/7", {"site_factor": 2**31 - 3}, "olga")]


def test_errors_are_told_apart(newer: Newer) -> None:
    client = client_of(newer)
    assert client.queue() == []
    newer.errors = [{"error": "Invalid job id specified", "error_number": 2017}]
    assert not client.update(7, priority=1)
    newer.errors = [{"error": "Access/permission denied"}]
    with pytest.raises(SlurmRefused, match="permission denied"):
        client.update(7, priority=1)
    newer.errors = [{"error": "Unable to contact slurm controller (connect failure)"}]
    with pytest.raises(SlurmUnreachable, match="Unable to contact"):
        client.queue()


def test_a_token_is_not_carried_elsewhere(newer: Newer) -> None:
    client = client_of(newer)
    assert client.version
    newer.status = 302
    with pytest.raises(SlurmRefused, match="status 302"):
        client.queue()


def test_nobody_there_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JWT", "x")
    with pytest.raises(SlurmUnreachable, match="does not answer"):
        RestClient(RestPlace("http://127.0.0.1:1")).queue()


@pytest.mark.parametrize("url", ["127.0.0.1:6820", "ftp://x", "http://", "http://user:word@host:1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="is not a URL like"):
        RestPlace(url)


def test_tokens_come_from_safe_files_only(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    place = RestPlace("https://slurm.example", str(path))
    with pytest.raises(InvalidInput, match="holds no token"):
        place.token()
    path.write_text("SLURM_JWT=abc.def.ghi\n")
    assert place.token() == "abc.def.ghi"
    path.chmod(0o644)
    with pytest.raises(InvalidInput, match="other users can read"):
        place.token()
    with pytest.raises(InvalidInput, match="cannot be read"):
        RestPlace("https://slurm.example", str(tmp_path / "none")).token()


def test_a_book_remembers_the_way_but_not_the_token(tmp_path: Path) -> None:
    place = RestPlace("https://slurm.example", "/run/token")
    store = LabelStore(tmp_path / "store.json", "priority", None, {3: Label(1, None, [1_000_001])}, place)
    store.write()
    assert LabelStore.read(store.path) == store
    assert isinstance(LabelStore.read(store.path).client(), RestClient)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--token-file", "t"], "is for --rest"),
        (["--rest", "http://127.0.0.1:1", "--conf", "x"], "not both"),
        (["--rest", "nowhere"], "is not a URL like"),
    ],
)
def test_contradictions_are_refused(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["steer", "slurm", *words]) == 2
    assert reason in capsys.readouterr().err
