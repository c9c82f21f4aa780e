"""Steering a live queue: the order is kept, everything is written down, and it can always be stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.errors import InvalidInput
from stretto.queues.live_order import StrategyOrder, warm_up
from stretto.queues.view import QueueDecision, QueueView
from stretto.runlog import RunLog

#: Time limits in minutes, in the order of submission.
LIMITS = (9, 2, 7, 5, 1, 8, 3)
SHORTEST_FIRST = sorted(range(len(LIMITS)), key=LIMITS.__getitem__)


class Queue:
    """Jobs on node n1 that wait for a blocker."""

    def __init__(self, client: SlurmClient, folder: Path) -> None:
        self.client, self.folder = client, folder
        blocker, note = folder / "block.sh", folder / "note.sh"
        blocker.write_text(f"#!/bin/sh\nuntil [ -e {folder}/go ]; do sleep 0.1; done\n")
        note.write_text(f"#!/bin/sh\necho $1 >> {folder}/order\n")
        self.script = str(note)
        # A job of the test before may still be running: this one must.
        blocking = client.submit(Submission(str(blocker), options=self.options(60)))
        assert wait_until(
            lambda: any(job.is_running and job.job_id == blocking for job in client.queue()), timeout_s=120.0
        )
        self.ids = [client.submit(Submission(str(note), (str(k),), self.options(t))) for k, t in enumerate(LIMITS)]
        # Slurm shows what a job has once it has looked at it.
        assert wait_until(lambda: set(self.ids) <= set(client.site_factors()), timeout_s=60.0)

    @staticmethod
    def options(minutes: int) -> dict[str, str | int | bool]:
        return {"output": "/dev/null", "nodelist": "n1", "exclusive": True, "time": minutes}

    def factors(self) -> list[int]:
        found = self.client.site_factors()
        return [found.get(number, 0) for number in self.ids]

    def release(self) -> list[int]:
        """Let the jobs run and return them in the order in which they did."""
        order = self.folder / "order"
        (self.folder / "go").touch()
        assert wait_until(
            lambda: len(order.read_text().split()) == len(LIMITS) if order.exists() else False, timeout_s=120
        )
        return [int(word) for word in order.read_text().split()]


@pytest.fixture
def queue(client: SlurmClient, tmp_path: Path) -> Iterator[Queue]:
    warm_up(StrategyOrder("sjf"))
    yield Queue(client, tmp_path)
    (tmp_path / "go").touch()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    with RunLog.open(tmp_path / "runs.db") as found:
        yield found


def steerer(queue: Queue, *, is_applied: bool = True, order: object = None, **settings: object) -> Steerer:
    store = LabelStore(queue.folder / "store.json", conf=str(queue.client.commands.conf))
    chosen = order if order is not None else StrategyOrder("sjf")
    how = SteerSettings(is_applied=is_applied, interval_s=0.3, **{"budget_s": 30.0} | settings)  # type: ignore[arg-type]
    return Steerer(queue.client, chosen, store, queue.folder / "off", how)  # type: ignore[arg-type]


def test_dry_by_default(queue: Queue, log: RunLog) -> None:
    run = log.start("steer", "test", {})
    layer = steerer(queue, is_applied=False)
    layer.run = run
    step = layer.step()
    assert step.order == tuple(queue.ids[k] for k in SHORTEST_FIRST)
    assert len(step.updates) == len(LIMITS)
    assert queue.factors() == [0] * len(LIMITS)
    assert not (queue.folder / "store.json").exists()
    (event,) = log.events(run.id)
    assert (event.kind, event.fields["chosen"], event.fields["is_applied"]) == ("decision", "sjf", False)
    assert event.fields["order"] == list(step.order)
    jobs = {row[0]: row[2] for row in event.fields["inputs"]["jobs"]}
    assert [jobs[number] for number in queue.ids] == [60.0 * minutes for minutes in LIMITS]
    layer.step()
    assert len(log.events(run.id)) == 1  # nothing new, nothing to say


def test_figures_for_monitoring_are_written_with_a_decision(queue: Queue, log: RunLog) -> None:
    layer = steerer(queue, is_applied=False)
    layer.run = log.start("steer", "test", {})
    layer.step()
    queue.release()
    assert wait_until(lambda: not any(job.is_pending for job in queue.client.queue()), timeout_s=60.0)
    layer.step()
    before, after = (event.fields["figures"] for event in log.events(layer.run.id))
    (partition, running, _), (_, waiting, num_waiting) = before["jobs"]
    assert (running, waiting, num_waiting) == ("running", "waiting", len(LIMITS))
    assert before["num_procs"] == 8
    assert [partition, "waiting", 0] in after["jobs"]
    assert sum(after["waits"][partition]["counts"]) == len(LIMITS)
    assert after["outcomes"] == {"used": 2, "fallback": 0}
    assert log.latest_event(layer.run.id, "decision") == log.events(layer.run.id)[-1]
    assert log.event_counts(layer.run.id) == {"decision": 2}


def test_jobs_start_in_the_order_of_the_strategy(queue: Queue) -> None:
    layer = steerer(queue)
    layer.step()
    late = queue.client.submit(Submission(queue.script, ("7",), queue.options(4)))
    assert wait_until(lambda: late in queue.client.site_factors(), timeout_s=30.0)  # Slurm has looked at it
    step = layer.step()
    assert set(step.updates) == {late}  # one arrival, one word to Slurm
    thread = threading.Thread(target=layer.follow, args=(lambda step: None,))
    thread.start()
    try:
        (queue.folder / "go").touch()
        order = queue.folder / "order"
        assert wait_until(lambda: len(order.read_text().split()) == 8 if order.exists() else False, timeout_s=120)
    finally:
        layer.switch.touch()
        thread.join(60.0)
    limits = (*LIMITS, 4)
    assert [limits[int(word)] for word in order.read_text().split()] == sorted(limits)


def test_slurm_has_its_order_back_when_steering_ends(queue: Queue) -> None:
    layer = steerer(queue)
    seen: list[list[int]] = []
    reason = layer.follow(lambda step: seen.append(queue.factors()), num_steps=1)
    assert reason == "done"
    assert all(factor > 0 for factor in seen[0])
    assert queue.factors() == [0] * len(LIMITS)
    assert queue.release() == list(range(len(LIMITS)))


def test_full_control_can_be_given_back_too(queue: Queue) -> None:
    layer = steerer(queue)
    layer.store.mode = "priority"
    layer.step()
    before = {job.job_id: job.priority for job in queue.client.queue() if job.is_pending}
    assert sorted(queue.ids, key=lambda number: -before[number]) == [queue.ids[k] for k in SHORTEST_FIRST]
    layer.close()
    after = {job.job_id: job.priority for job in queue.client.queue() if job.is_pending}
    assert max(after[number] for number in queue.ids) < min(before[number] for number in queue.ids)


class Slow:
    def decide(self, view: QueueView) -> QueueDecision:
        time.sleep(1.0)
        return QueueDecision(tuple(view.waiting.tolist()), "slow")


class Broken:
    def decide(self, view: QueueView) -> QueueDecision:
        raise ZeroDivisionError("nobody is perfect")


class Forgetful:
    def decide(self, view: QueueView) -> QueueDecision:
        return QueueDecision(tuple(view.waiting.tolist()[1:]), "forgetful")


@pytest.mark.parametrize(
    ("order", "why"), [(Slow(), "no decision within"), (Broken(), "nobody is perfect"), (Forgetful(), "did not return")]
)
def test_without_a_good_decision_slurm_decides(queue: Queue, order: object, why: str) -> None:
    layer = steerer(queue, budget_s=30.0)
    layer.step()
    assert all(factor > 0 for factor in queue.factors())
    worse = steerer(queue, order=order, budget_s=0.1 if isinstance(order, Slow) else 30.0)
    worse.store = layer.store
    step = worse.step()
    assert why in step.fallback
    assert step.chosen == "slurm"
    assert queue.factors() == [0] * len(LIMITS)


def test_only_the_head_is_put_in_order(queue: Queue) -> None:
    layer = steerer(queue, depth=2)
    layer.step()
    factors = queue.factors()
    head = [k for k in range(len(LIMITS)) if factors[k] > 0]
    assert sorted(head, key=lambda k: -factors[k]) == SHORTEST_FIRST[:2]
    layer.close()


def test_the_command_steers_until_it_is_switched_off(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(queue.folder / "home"))
    conf = str(queue.client.commands.conf)
    words = [sys.executable, "-m", "stretto.cli.main", "steer", "slurm", "--strategy", "sjf", "--conf", conf]
    options = ["--apply", "--interval", "300ms", "--budget", "30s"]
    process = subprocess.Popen([*words, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: all(queue.factors()), timeout_s=120.0, pause_s=0.3)
        assert main(["steer", "slurm", "--off", "--conf", conf]) == 0
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert queue.factors() == [0] * len(LIMITS)
    assert main(["steer", "slurm", "--once", "--conf", conf]) == 2
    assert "steering is off" in capsys.readouterr().err
    assert main(["steer", "slurm", "--on", "--conf", conf]) == 0
    assert main(["steer", "slurm", "--once", "--conf", conf, "--strategy", "sjf", "--output", "json"]) == 0
    step = json.loads(capsys.readouterr().out)
    assert step["order"] == [queue.ids[k] for k in SHORTEST_FIRST]
    with RunLog.open() as log:
        runs = log.runs(kind="steer")
        assert [info.status for info in runs] == ["done", "done"]
        assert runs[1].summary == {"reason": "switched off"}


def test_a_layer_that_is_killed_leaves_nothing_behind(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(queue.folder / "home"))
    words = [sys.executable, "-m", "stretto.cli.main", "steer", "slurm", "--apply", "--budget", "30s"]
    words += ["--conf", str(queue.client.commands.conf)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
    try:
        assert wait_until(lambda: all(queue.factors()), timeout_s=120.0, pause_s=0.3)
    finally:
        process.kill()
        process.wait()
    assert wait_until(lambda: not any(queue.factors()), timeout_s=60.0, pause_s=0.3)


def test_refuses_settings_that_cannot_be(bed: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput):
        SteerSettings(interval_s=0.0)
    with pytest.raises(InvalidInput):
        SteerSettings(depth=0)
    conf = ["--conf", str(bed.conf)]
    for words in (["--mode", "force"], ["--strategy", "shortest"], ["--interval", "soon"], ["--history", "/absent"]):
        assert main(["steer", "slurm", "--once", *conf, *words]) == 2
        assert words[1] in capsys.readouterr().err
