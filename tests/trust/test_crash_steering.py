"""A steering layer that is ended at random moments leaves every job with what it had."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import SlurmClient, Submission, is_installed
from stretto.engines.slurm.steer.tags import tag_of
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed

#: Site factors that the jobs have beforehand.
BEFORE = (555, 0, -40, 0)
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    if not is_installed():
        pytest.skip("Slurm is not installed: make slurm")
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        found = Testbed.up(Path(folder) / "bed", TestbedSpec(num_nodes=1, cpus_per_node=1))
        yield found
        assert found.down() == []


def waiting_jobs(testbed: Testbed, folder: Path) -> list[int]:
    """Jobs that wait for a node that takes none."""
    testbed.commands.run(["scontrol", "update", "nodename=n1", "state=drain", "reason=test"])
    script = folder / "sleep.sh"
    script.write_text("#!/bin/sh\nsleep 60\n")
    client = SlurmClient(testbed.commands)
    jobs = []
    for factor in BEFORE:
        jobs.append(client.submit(Submission(str(script), options={"output": "/dev/null", "time": 9 - len(jobs)})))
        client.update(jobs[-1], sitefactor=factor)
    assert wait_until(lambda: set(jobs) <= set(client.site_factors()), timeout_s=60.0)
    return jobs


@pytest.mark.long
@pytest.mark.parametrize("mode", ["sitefactor", "priority"])
def test_every_job_gets_back_what_it_had(testbed: Testbed, tmp_path: Path, mode: str) -> None:
    rng = random.Random(mode)
    client = SlurmClient(testbed.commands)
    jobs = waiting_jobs(testbed, tmp_path)
    testbed.commands.run(["scontrol", "update", f"jobid={jobs[3]}", "priority=5000"])

    def state() -> list[tuple[float, object]]:
        factors, queue = client.factors(), {job.job_id: job.priority for job in client.queue()}
        return [(queue[job], factors.get(job)) for job in jobs]

    def is_labelled() -> bool:
        priority, _ = state()[1]
        return priority > 1

    before = state()
    assert not is_labelled()
    words = [sys.executable, "-m", "stretto.cli.main", "steer", "slurm", "--apply", "--conf", str(testbed.conf)]
    words += ["--mode", mode, "--interval", "50ms", "--budget", "30s"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    num_labelled = 0
    for number in range(20):
        # Another strategy each time: labels move while the signal is on its way.
        strategy = ["--strategy", ("sjf", "ljf", "saf", "fcfs")[number % 4]]
        process = subprocess.Popen([*words, *strategy], env=dict(os.environ, STRETTO_HOME=str(tmp_path)), **quiet)  # type: ignore[call-overload]
        try:
            if number % 4:
                assert wait_until(is_labelled, timeout_s=120.0, pause_s=0.01)
                num_labelled += 1
                time.sleep(rng.uniform(0.0, 0.1))
            else:
                time.sleep(rng.uniform(0.0, 3.0))
            sent = SIGNALS[number // 4 % 4]
            process.send_signal(sent)
            code = process.wait(120)
            if number % 4:  # it was at work
                assert code == {signal.SIGINT: 130, signal.SIGTERM: 0}.get(sent, -sent)
        finally:
            process.kill()
            process.wait()
        assert wait_until(lambda: state() == before, timeout_s=120.0), (number, before, state())
        # Where Slurm computes a priority again, the tag goes last.
        assert wait_until(lambda: not any(tag_of(job.admin_comment) for job in client.queue()), timeout_s=60.0)
        assert wait_until(lambda: not client.reservations(), timeout_s=60.0)
    assert num_labelled == 15
    client.cancel(jobs)
