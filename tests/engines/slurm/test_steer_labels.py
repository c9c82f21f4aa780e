"""Jobs get back what they had: no hold, site factor or priority of others is lost, and no other steerer's label."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.queues.live_order import StrategyOrder, warm_up

#: What Slurm takes at most.
MOST = 2_147_483_645


class Bed:
    """A Slurm whose two nodes, each with a partition of its own, take no jobs: whatever is submitted waits."""

    def __init__(self, bed: Testbed) -> None:
        self.conf = str(bed.conf)
        self.client = SlurmClient(bed.commands)
        self._commands = bed.commands
        self._script = bed.folder / "sleep.sh"
        self._script.write_text("#!/bin/sh\nsleep 60\n")
        self.control("create", "partitionname=left", "nodes=n1", "state=up")
        self.control("create", "partitionname=right", "nodes=n2", "state=up")
        self.control("update", "nodename=n[1-2]", "state=drain", "reason=test")

    def control(self, *words: str) -> str:
        return self._commands.run(["scontrol", *words])

    def submit(self, partition: str = "left", **options: str) -> int:
        more: dict[str, str | int | bool] = {"output": "/dev/null", "partition": partition, "time": 5, **options}
        return self.client.submit(Submission(str(self._script), options=more))

    def settle(self) -> None:
        """Wait until Slurm has looked at all jobs and shows what their priorities are made of."""

        def is_settled() -> bool:
            waiting = {job.job_id for job in self.client.queue() if job.is_pending and not job.is_held}
            return waiting <= set(self.client.site_factors())

        assert wait_until(is_settled, timeout_s=60.0)

    def factors(self, jobs: list[int]) -> list[int | None]:
        found = self.client.site_factors()
        return [found.get(job) for job in jobs]

    def priorities(self, jobs: list[int]) -> list[float]:
        found = {job.job_id: job.priority for job in self.client.queue()}
        return [found[job] for job in jobs]

    def clear(self) -> None:
        self.control("update", "partitionname=left", "state=up")
        self.client.cancel(job.job_id for job in self.client.queue() if not job.is_ended)


@pytest.fixture(scope="module")
def module_bed(slurm_place: Path) -> Iterator[Bed]:
    warm_up(StrategyOrder("sjf"))
    found = Testbed.up(slurm_place / "labels", TestbedSpec(num_nodes=2, cpus_per_node=2))
    try:
        yield Bed(found)
    finally:
        assert found.down() == []


@pytest.fixture
def place(module_bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bed]:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SLURM_CONF", module_bed.conf)
    yield module_bed
    assert main(["steer", "slurm", "--on"]) == 0
    module_bed.clear()


def steer(place: Bed, *words: str) -> int:
    """Look once, and tell Slurm."""
    place.settle()
    once = ["--once", "--apply", "--strategy", "sjf", "--budget", "60s", "--output", "quiet"]
    return main(["steer", "slurm", "--conf", place.conf, *once, *words])


def layer(place: Bed, folder: Path) -> Steerer:
    """Return a steerer of jobs that Slurm has looked at."""
    place.settle()
    settings = SteerSettings(is_applied=True, interval_s=0.1, budget_s=60.0)
    return Steerer(
        place.client, StrategyOrder("sjf"), LabelStore(folder / "b.json", conf=place.conf), folder / "off", settings
    )


@pytest.mark.parametrize(
    ("stop", "go"),
    [
        (["hold", "{job}"], ["release", "{job}"]),
        (["update", "partitionname=left", "state=down"], ["update", "partitionname=left", "state=up"]),
    ],
    ids=["held", "partition down"],
)
def test_a_job_that_cannot_run_at_present_is_not_forgotten(
    place: Bed, tmp_path: Path, stop: list[str], go: list[str]
) -> None:
    jobs = [place.submit() for _ in range(3)]
    steerer = layer(place, tmp_path)
    steerer.step()
    assert all(place.factors(jobs))
    place.control(*(word.format(job=jobs[0]) for word in stop))
    assert wait_until(lambda: not {job.job_id: job for job in place.client.queue()}[jobs[0]].is_ready, timeout_s=30.0)
    steerer.step()
    steerer.close()
    place.control(*(word.format(job=jobs[0]) for word in go))
    assert wait_until(lambda: None not in place.factors(jobs), timeout_s=30.0)
    assert place.factors(jobs) == [0, 0, 0]


def test_a_site_factor_of_somebody_else_comes_back(place: Bed, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [place.submit() for _ in range(4)]
    before = [555, 0, -40, MOST]
    for job, factor in zip(jobs, before, strict=True):
        place.control("update", f"jobid={job}", f"sitefactor={factor}")
    assert steer(place) == 0
    during = place.factors(jobs)
    assert [now is not None and now > then for now, then in zip(during, before, strict=True)] == [
        True,
        True,
        True,
        False,
    ]
    assert during[3] == MOST  # as far as Slurm goes
    assert steer(place) == 0  # as after a restart
    assert "4 jobs are in Slurm's own order again" in capsys.readouterr().err
    assert place.factors(jobs) == during
    assert main(["steer", "slurm", "--off"]) == 0
    assert "4 jobs are in Slurm's own order again" in capsys.readouterr().err
    assert place.factors(jobs) == before


@pytest.mark.parametrize("mode", ["sitefactor", "priority"])
def test_held_jobs_stay_held(place: Bed, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [place.submit() for _ in range(3)]
    usual = place.priorities(jobs)
    assert steer(place, "--mode", mode) == 0
    place.control("hold", str(jobs[0]))
    place.control("uhold", str(jobs[1]))
    assert main(["steer", "slurm", "--off"]) == 0
    said = capsys.readouterr().err
    assert place.priorities(jobs) == [0.0, 0.0, usual[2]]
    assert ("1 job is" in said and "2 jobs left on hold" in said) if mode == "priority" else "3 jobs are" in said
    place.control("release", str(jobs[0]), str(jobs[1]))
    assert place.priorities(jobs) == usual


def test_a_priority_that_somebody_set_comes_back(place: Bed) -> None:
    jobs = [place.submit() for _ in range(2)]
    place.control("update", f"jobid={jobs[1]}", "priority=5000")
    before = place.priorities(jobs)
    assert before[1] == 5000.0
    assert steer(place, "--mode", "priority") == 0
    assert min(place.priorities(jobs)) > 5000.0
    assert main(["steer", "slurm", "--off"]) == 0
    assert place.priorities(jobs) == before
    place.control("update", f"jobid={jobs[0]}", "sitefactor=70")
    assert place.priorities(jobs) == [70.0, 5000.0]  # one is computed again, the other is not


@pytest.mark.parametrize(("mode", "value"), [("sitefactor", 777), ("priority", 9_000)])
def test_what_somebody_else_changed_is_left_alone(
    place: Bed, tmp_path: Path, mode: str, value: int, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [place.submit() for _ in range(3)]
    assert steer(place, "--mode", mode) == 0
    place.control("update", f"jobid={jobs[1]}", f"{mode}={value}")
    assert main(["steer", "slurm", "--off"]) == 0
    said = capsys.readouterr().err
    assert "2 jobs are in Slurm's own order again" in said
    assert f"1 job left as someone else has changed it: {jobs[1]}" in said
    now = place.factors(jobs) if mode == "sitefactor" else place.priorities(jobs)
    assert now[1] == value
    assert value not in (now[0], now[2])


def test_a_steerer_that_is_at_work_leaves_it_alone_too(place: Bed, tmp_path: Path) -> None:
    jobs = [place.submit() for _ in range(3)]
    steerer = layer(place, tmp_path)
    steerer.step()
    place.control("update", f"jobid={jobs[2]}", "sitefactor=777")
    assert steerer.step().left_alone == (jobs[2],)
    late = place.submit(time="1")  # comes first, and would move the others
    place.settle()
    assert late in steerer.step().updates
    steerer.close()
    assert place.factors([*jobs, late]) == [0, 0, 777, 0]


def test_a_job_that_is_started_again_has_no_label_left(place: Bed, tmp_path: Path) -> None:
    job = place.submit()
    steerer = layer(place, tmp_path)
    steerer.step()
    assert place.factors([job]) != [0]
    place.control("update", "nodename=n1", "state=resume")
    try:
        assert wait_until(lambda: any(found.is_running for found in place.client.queue()), timeout_s=60.0)
        steerer.step()
    finally:
        place.control("update", "nodename=n1", "state=drain", "reason=test")
    steerer.close()
    place.control("requeue", str(job))
    assert wait_until(
        lambda: {found.job_id: found.state for found in place.client.queue()}[job] == "PENDING", timeout_s=60.0
    )
    place.control("update", f"jobid={job}", "starttime=now")
    assert wait_until(lambda: place.factors([job]) == [0], timeout_s=30.0)


def test_tasks_of_an_array_are_told_apart(place: Bed, tmp_path: Path) -> None:
    whole, single = place.submit(array="1-4%2"), place.submit(time="1")
    steerer = layer(place, tmp_path)
    steerer.step()
    place.control("hold", f"{whole}_3")  # takes it out of the common entry
    place.control("release", f"{whole}_3")
    (part,) = {job.job_id for job in place.client.queue() if job.array_id == whole and job.array_task == 3}
    late = place.submit(time="1")
    place.settle()
    step = steerer.step()
    assert step.left_alone == ()
    assert set(step.order) == {whole, part, single, late}
    now = place.factors([single, late, whole, part])
    assert None not in now
    assert steerer.step().updates == {}  # telling one did not tell the others
    steerer.close()
    assert place.factors([whole, part, single, late]) == [0, 0, 0, 0]


def test_an_unknown_partition_is_an_error(place: Bed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["steer", "slurm", "--conf", place.conf, "--once", "--partition", "letf"]) == 2
    said = capsys.readouterr().err
    assert "--partition: 'letf' is not in this Slurm, which has: all, left, right; did you mean left?" in said
    assert main(["steer", "slurm", "--conf", place.conf, "--once", "--partition", "left"]) == 0


def test_each_partition_has_its_own_steerer(place: Bed, capsys: pytest.CaptureFixture[str]) -> None:
    left, right = ([place.submit(name) for _ in range(2)] for name in ("left", "right"))
    place.control("update", f"jobid={right[0]}", "sitefactor=555")
    words = [sys.executable, "-m", "stretto.cli.main", "steer", "slurm", "--conf", place.conf, "--apply"]
    words += ["--interval", "100ms", "--budget", "60s"]
    steerers = {
        name: subprocess.Popen(
            [*words, "--partition", name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=dict(os.environ)
        )
        for name in ("left", "right")
    }
    try:
        assert wait_until(lambda: all(place.factors(left)) and 0 not in place.factors(right), timeout_s=120.0)
        assert wait_until(lambda: (place.factors(right)[0] or 0) > 555, timeout_s=60.0)
        for more in (["--partition", "left"], []):  # a second steerer of these jobs
            assert steer(place, *more) == 2
            said = capsys.readouterr().err
            assert f"steerer of partition left, pid {steerers['left'].pid} on " in said
            assert "since 20" in said
        labels = place.factors(left)
        steerers["right"].kill()
        assert wait_until(lambda: place.factors(right) == [555, 0], timeout_s=60.0)
        assert place.factors(left) == labels
        assert steerers["left"].poll() is None
        assert main(["steer", "slurm", "--off", "--partition", "left"]) == 0
        assert "2 jobs are in Slurm's own order again" in capsys.readouterr().err
        assert place.factors(left) == [0, 0]
        assert steerers["left"].wait(60) == 0
    finally:
        for process in steerers.values():
            process.kill()
            process.communicate()
    assert steer(place, "--partition", "left") == 2
    assert "steering is off" in capsys.readouterr().err
    assert main(["steer", "slurm", "--on", "--partition", "left"]) == 0
    assert steer(place, "--partition", "left") == 0


def test_off_for_one_partition_takes_back_no_others(place: Bed, capsys: pytest.CaptureFixture[str]) -> None:
    left, right = place.submit("left"), place.submit("right")
    assert steer(place) == 0  # of all
    assert main(["steer", "slurm", "--off", "--partition", "left"]) == 0
    assert "1 job is in Slurm's own order again" in capsys.readouterr().err
    assert [bool(factor) for factor in place.factors([left, right])] == [False, True]
    assert main(["steer", "slurm", "--off"]) == 0
    assert "1 job is in Slurm's own order again" in capsys.readouterr().err
    assert place.factors([left, right]) == [0, 0]
    assert steer(place, "--partition", "right") == 2
    assert main(["steer", "slurm", "--on"]) == 0
    assert steer(place, "--partition", "left") == 0
    assert steer(place) == 0  # takes back what the other left
    assert "1 job is in Slurm's own order again" in capsys.readouterr().err
    assert all(place.factors([left, right]))
