"""A steering layer that is started again goes on where it was; it needs no Slurm to show that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.engines.slurm.client.jobs import Factors, SlurmJob
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.steer.order_state import queue_identity, resume_order
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings
from stretto.queues.live_order import StrategyOrder
from stretto.queues.mars.candidates import classic_candidate
from stretto.queues.mars.cost import JobCost
from stretto.queues.mars.live import MarsOrder
from stretto.queues.mars.parameters import MarsParameters
from stretto.queues.view import KeptOrder, QueueDecision, QueueView
from stretto.runlog import RunLog

RULES = MarsParameters(epoch_jobs=100, lag_jobs=20, block_epochs=1)
NOW_S = 1e9
DAY_S = 86400.0


class EmptyQueue:
    """A Slurm in which nothing is going on."""

    def queue(self, partition: str | None = None) -> list[Any]:
        return []

    def nodes(self) -> list[Any]:
        return []

    def partitions(self) -> list[str]:
        return []

    def factors(self) -> dict[int, Factors]:
        return {}

    def update(self, job: int | SlurmJob, **settings: int | str) -> bool:
        return False

    def release(self, job: int | SlurmJob) -> bool:
        return False

    def restore_priority(self, job: int | SlurmJob) -> bool:
        return False


class Counter:
    """Goes by how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def decide(self, view: QueueView) -> QueueDecision:
        self.count += 1
        return QueueDecision((), "counter")

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: dict[str, Any]) -> bool:
        self.count = state["count"]
        return True


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    with RunLog.open(tmp_path / "runs.db") as found:
        yield found


def steer(log: RunLog, order: Any, folder: Path, num_steps: int, partition: str | None = None) -> None:
    settings = SteerSettings(interval_s=0.05, budget_s=60.0, partition=partition)
    run = log.start("steer", "test", {})
    layer = Steerer(EmptyQueue(), order, LabelStore(folder / "store.json"), folder / "off", settings, run=run)
    layer.clock = lambda: NOW_S
    layer.follow(lambda step: None, num_steps=num_steps)


def test_an_order_goes_on_after_a_restart(log: RunLog, tmp_path: Path) -> None:
    steer(log, Counter(), tmp_path, 3)
    steer(log, StrategyOrder("saf"), tmp_path, 1)  # has nothing to keep, and is no reason to forget
    place = queue_identity(LabelStore(tmp_path / "store.json"), None)
    again = Counter()
    assert resume_order(log, again, place, NOW_S + DAY_S)
    assert again.count == 3
    steer(log, again, tmp_path, 1)
    assert resume_order(log, again, place, NOW_S)
    assert again.count == 4


def test_not_in_another_queue_nor_after_a_long_time(log: RunLog, tmp_path: Path) -> None:
    steer(log, Counter(), tmp_path, 3, partition="debug")
    store = LabelStore(tmp_path / "store.json")
    other = LabelStore(tmp_path / "store.json", conf="other.conf")
    order = Counter()
    assert not resume_order(log, order, queue_identity(store, None), NOW_S)
    assert not resume_order(log, order, queue_identity(other, "debug"), NOW_S)
    assert not resume_order(log, order, queue_identity(store, "debug"), NOW_S + 30 * DAY_S)
    assert not resume_order(log, StrategyOrder("saf"), queue_identity(store, "debug"), NOW_S)
    assert order.count == 0
    assert resume_order(log, order, queue_identity(store, "debug"), NOW_S)


def busy_view(num_jobs: int) -> QueueView:
    """A busy machine with many short and some long jobs, on which shortest first is far better than longest."""
    rng = np.random.default_rng(0)
    submit = np.sort(rng.uniform(0.0, 40_000.0, 600))
    submit -= submit[0]
    run = np.where(rng.uniform(size=600) < 0.8, 30.0, 3000.0)
    start, end = submit + 5.0, submit + 5.0 + run
    start[-20:] = end[-20:] = np.nan
    now = float(np.nanmax(end)) + 1.0
    ones = np.ones(600, np.int32)
    columns = (np.arange(600), submit, run * 1.5, ones, 0 * ones, start, end, ones.astype(bool))
    return QueueView(now, 8, *(column[-num_jobs:] for column in columns))


def test_mars_follows_whom_it_followed_before() -> None:
    def order(cost: JobCost | None = None, last: str = "sjf") -> MarsOrder:
        return MarsOrder([classic_candidate("ljf"), classic_candidate(last)], cost or JobCost(), rules=RULES)

    first = order()
    assert isinstance(first, KeptOrder)
    assert first.decide(busy_view(600)).chosen == "sjf"
    little = busy_view(40)
    assert order().decide(little).chosen == "ljf", "too little is known to leave the policy"
    again = order()
    assert again.restore(first.state())
    assert again.decide(little).chosen == "sjf"
    for other in (order(JobCost("flow")), order(last="saf")):
        assert not other.restore(first.state())
        assert other.decide(little).chosen == "ljf"
