"""A cluster has one steerer and one switch, whatever homes they are started from; text from it commands nothing."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.cli.console import guarded_streams, remark
from stretto.cli.main import main
from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import SlurmClient, Submission, is_installed, program
from stretto.engines.slurm.client.jobs import MOST_PRIORITY, Factors, parse_jobs
from stretto.engines.slurm.steer.label_store import LabelStore, Reading
from stretto.engines.slurm.steer.marks import Mark
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed

#: Site factor and comment that the first job has beforehand, from somebody else.
FACTOR, COMMENT = 555, 'of the "site": \u202etxt\x1b[31m\nsecond line '
HOSTILE = "\x1b]0;owned\x07\x9b31m\u202egnp.exe\r\n<script>"


class Cluster:
    """A real Slurm whose node takes no jobs, and homes from which it is steered."""

    def __init__(self, bed: Testbed, folder: Path) -> None:
        self.bed, self.folder, self.client = bed, folder, SlurmClient(bed.commands)
        script = folder / "sleep.sh"
        script.write_text("#!/bin/sh\nsleep 60\n")
        options: dict[str, str | int | bool] = {"output": "/dev/null", "job-name": HOSTILE.replace("\r\n", "")}
        self.jobs = [self.client.submit(Submission(str(script), options={**options, "time": 9 - k})) for k in range(3)]
        self.client.update(self.jobs[0], sitefactor=FACTOR, admincomment=COMMENT)
        assert wait_until(lambda: set(self.jobs) <= set(self.client.site_factors()), timeout_s=60.0)

    def environment(self, home: str) -> dict[str, str]:
        return dict(os.environ, STRETTO_HOME=str(self.folder / home), SLURM_CONF=str(self.bed.conf))

    def command(self, *words: str, home: str = "a") -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "stretto.cli.main", "steer", "slurm", *words]
        return subprocess.Popen(
            line, env=self.environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def steerer(self, home: str) -> subprocess.Popen[str]:
        process = self.command("--apply", "--interval", "200ms", "--budget", "60s", "--output", "quiet", home=home)
        assert wait_until(self.is_labelled, timeout_s=120.0), process.poll()
        return process

    def run(self, *words: str, home: str) -> tuple[int, str]:
        process = self.command(*words, home=home)
        _, said = process.communicate(timeout=300.0)
        return process.returncode, said

    def state(self) -> list[tuple[int | None, str]]:
        factors, queue = self.client.site_factors(), {job.job_id: job for job in self.client.queue()}
        return [(factors.get(job), queue[job].admin_comment) for job in self.jobs]

    def is_labelled(self) -> bool:
        return all(comment.endswith("partition=]") for _, comment in self.state())

    def is_restored(self) -> bool:
        return self.state() == [(FACTOR, COMMENT), (0, ""), (0, "")]


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    if not is_installed():
        pytest.skip("Slurm is not installed: make slurm")
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        found = Testbed.up(Path(folder) / "bed", TestbedSpec(num_nodes=1, cpus_per_node=1))
        found.commands.run(["scontrol", "update", "nodename=n1", "state=drain", "reason=test"])
        yield found
        assert found.down() == []


@pytest.fixture
def cluster(testbed: Testbed, tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(testbed, tmp_path)
    yield found
    found.client.cancel(found.jobs)
    for name in found.client.reservations():
        found.client.unreserve(name)


def test_another_home_is_refused_and_can_switch_off(cluster: Cluster) -> None:
    first = cluster.steerer("a")
    try:
        code, said = cluster.run("--apply", "--once", home="b")
        assert code == 2
        assert f"steerer of all partitions, pid {first.pid} on " in said
        assert ", user " in said
        assert ", since 20" in said
        assert "stretto steer slurm --off" in said
        code, said = cluster.run("--off", home="b")
        assert code == 0, said
        assert "3 jobs are in Slurm's own order again" in said
        assert cluster.is_restored()
        assert first.wait(60) == 0
        assert "switched off" not in said
    finally:
        first.kill()
        first.communicate()
    code, said = cluster.run("--apply", "--once", home="a")
    assert code == 2
    assert "steering is off (--off of all partitions, pid " in said
    assert cluster.run("--on", home="c")[0] == 0
    assert cluster.client.reservations() == {}


def test_who_was_killed_is_followed_by_another_home(cluster: Cluster) -> None:
    first = cluster.steerer("a")
    first.kill()
    first.communicate()
    second = cluster.steerer("b")  # it waits for the guard of the first one, where that is still at work
    try:
        ours = [Mark.parse(name) for name in cluster.client.reservations()]
        assert [mark.pid for mark in ours if mark is not None and mark.role == "steerer"] == [second.pid]
    finally:
        second.send_signal(signal.SIGTERM)
        second.communicate(timeout=120.0)
    assert cluster.is_restored()
    assert cluster.client.reservations() == {}


@pytest.mark.long
def test_labels_of_a_machine_that_went_down_are_removed_from_another_home(cluster: Cluster) -> None:
    first = cluster.steerer("a")
    (guard,) = subprocess.run(
        ["pgrep", "-P", str(first.pid), "-f", "steering_guard"], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(guard), signal.SIGKILL)
    first.kill()
    first.communicate()
    assert cluster.is_labelled()
    code, said = cluster.run("--off", home="b")
    assert code == 0, said
    assert "no sign of life of the steerer of all partitions" in said
    assert cluster.is_restored()


@pytest.mark.parametrize("forbidden", ["create reservation", "admincomment"])
def test_what_a_cluster_forbids_is_said_and_kept_in_files(cluster: Cluster, forbidden: str) -> None:
    fake = cluster.folder / "bin" / "scontrol"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *"{forbidden}"*) echo "Access/permission denied" >&2; exit 1;; esac\n'
        f'exec {program("scontrol")} "$@"\n'
    )
    fake.chmod(0o755)
    line = [sys.executable, "-m", "stretto.cli.main", "steer", "slurm"]
    path = f"{fake.parent}{os.pathsep}{os.environ['PATH']}"

    def run(home: str, *words: str) -> tuple[int, str]:
        environment = cluster.environment(home) | {"PATH": path}
        done = subprocess.run([*line, *words], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    code, said = run("a", "--once", "--apply", "--budget", "60s")
    assert code == 0, said
    assert str(cluster.folder / "a") in said
    assert "Access/permission denied" in said
    assert all(cluster.client.site_factors()[job] for job in cluster.jobs)
    if forbidden == "admincomment":  # the values are recorded in another home, and everybody is told where
        (cluster.folder / "a").rename(cluster.folder / "unreadable")
        for words in (["--once", "--apply"], ["--off"]):
            code, said = run("b", *words)
            assert code == 2
            assert f"{cluster.folder}/a/steer-slurm/" in said
        (cluster.folder / "unreadable").rename(cluster.folder / "a")
    code, said = run("a", "--off")
    assert code == 0, said
    assert "3 jobs are in Slurm's own order again" in said
    assert [factor for factor, _ in cluster.state()] == [FACTOR, 0, 0]
    assert not list(cluster.folder.glob("a/steer-slurm/*/*.json"))


def test_names_from_the_cluster_command_no_terminal(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(cluster.folder / "a"))
    monkeypatch.setenv("SLURM_CONF", str(cluster.bed.conf))
    names = {job.name for job in cluster.client.queue() if job.job_id in cluster.jobs}
    assert names
    assert all(name.isprintable() for name in names)
    cluster.client.reserve(f"stretto-off-{HOSTILE.split()[0]}")
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        assert main(["steer", "slurm", "--once"]) == 2
    assert "steering is off (reservation stretto-off-\\u001b]0;owned" in output.getvalue()
    assert output.getvalue().replace("\n", "").isprintable()


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_of_a_job_or_a_mark_commands_anything(text: str) -> None:
    fields = ("name", "user_name", "partition", "comment", "state_reason", "state_description", "nodes")
    (job,) = parse_jobs(json.dumps({"jobs": [{"job_id": 1, "job_state": text or "X"} | dict.fromkeys(fields, text)]}))
    shown = [job.name, job.user, job.state, job.reason, job.partition, job.comment, job.description, job.nodes]
    shown.append(Mark("steering", text, text, text, 1, text, text, 1.0, text).text())
    output = io.StringIO()
    with redirect_stderr(output), guarded_streams():
        remark(text)
    for line in [*shown, output.getvalue().rstrip("\n")]:
        assert not {"\n", "\r", "\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u2028"} & set(line)
        line.encode()  # no half of a character, which would be an error


def test_sums_stay_within_what_slurm_holds(tmp_path: Path) -> None:
    entries = [
        {"job_id": number, "job_state": "PENDING", "priority": priority}
        for number, priority in ((1, 1000), (2, MOST_PRIORITY - 100), (3, MOST_PRIORITY - 500))
    ]
    jobs = {job.job_id: job for job in parse_jobs(json.dumps({"jobs": entries}))}
    reading = Reading(jobs, {1: Factors(2_147_483_000), 2: Factors(0), 3: Factors(-5)})
    store = LabelStore(tmp_path / "store.json")
    told: dict[int, int] = {}

    class Client(SlurmClient):
        def update(self, job: object, **settings: int | str) -> bool:
            told[job.job_id] = int(settings["sitefactor"])  # type: ignore[attr-defined]
            return True

    labels = {1: 1000, 2: 1000, 3: 100}
    assert store.reduced(labels, reading) == [1, 2]
    assert store.tell(Client(), labels, reading) == []
    assert told == {1: 2_147_483_645, 2: 100, 3: 95}
    assert [store.jobs[job].before for job in labels] == [2_147_483_000, 0, -5]
