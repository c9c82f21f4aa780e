"""The shipped suite passes for our engines, and notices engines that break the contract."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from stretto.catalog import ENGINES
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.problem import Problem
from stretto.engines.engine import Engine, RunOptions, RunResult
from stretto.engines.local.engine import LocalEngine
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Call, Work
from stretto.files.load import load
from stretto.registry import construct
from stretto.testing import NotConforming, check_engine
from stretto.testing.engine_checks import EngineTrial, check_run, random_plan


@pytest.mark.parametrize("workers", ["thread", "process"])
@pytest.mark.parametrize("num_queued", [0, 1])
def test_the_local_engine_passes(workers: str, num_queued: int) -> None:
    engine = LocalEngine(workers=workers, num_queued=num_queued)  # type: ignore[arg-type]
    passed = check_engine(engine, EngineTrial(seed=num_queued))
    assert {"resumption", "calls and their arrays", "a failing task"} < set(passed)


def test_the_simulated_engine_passes() -> None:
    check_engine(SimulatedEngine(), EngineTrial(num_graphs=4, has_calls=False, scale=1.0))


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_real_workflows_run_exactly_as_planned(data_dir: Path, discipline: str) -> None:
    files = sorted((data_dir / "wfformat").rglob("*.json*"), key=lambda path: path.stat().st_size)
    checked = 0
    for path in files:
        graph = load(path)
        assert isinstance(graph, TaskGraph)
        cluster = Cluster.parse("cpu:4,gpu:2x3.0@1GB/s")
        problem = Problem.of(graph, cluster)
        total_s = float(problem.device_duration.min(axis=1).sum())
        work = Work.timed(graph, 0.2 / max(total_s, 1e-9))
        plan = random_plan(np.random.default_rng(checked), graph, cluster)
        workers = ("thread", "process")[checked % 2]
        options = RunOptions(discipline=discipline)  # type: ignore[arg-type]
        check_run(LocalEngine(workers=workers), work, plan, cluster, options)  # type: ignore[arg-type]
        checked += 1
        if checked == 20:
            break
    assert checked == 20


@dataclasses.dataclass(frozen=True)
class Wrong:
    """An engine that runs well and then lies about one thing."""

    field: str

    def available(self) -> str | None:
        return None

    def run(self, work: Work, plan: Plan, cluster: Cluster, options: RunOptions) -> RunResult:
        if self.field == "events":
            return SimulatedEngine().run(work, plan, cluster, dataclasses.replace(options, on_event=None))
        if self.field == "discipline":
            return SimulatedEngine().run(work, backwards(plan), cluster, options)
        found = SimulatedEngine().run(work, plan, cluster, options)
        if self.field in ("device", "attempts"):
            changed = getattr(found, self.field).copy()
            changed[3] += 1
            return dataclasses.replace(found, **{self.field: changed})
        if self.field in ("start_s", "end_s"):
            return dataclasses.replace(found, **{self.field: np.random.default_rng(0).permutation(found.start_s)})
        if self.field == "digests":
            return dataclasses.replace(found, digests=(*found.digests[:-1], "0" * 32))
        return dataclasses.replace(found, status="failed")


def backwards(plan: Plan) -> Plan:
    """Keep the devices, and prefer the tasks that come last."""
    return Plan(plan.assignment, np.ascontiguousarray(plan.order[::-1]), "work-conserving")


@pytest.mark.parametrize("field", ["device", "attempts", "start_s", "end_s", "digests", "status", "events"])
def test_a_lying_engine_is_caught(field: str) -> None:
    with pytest.raises(NotConforming):
        check_engine(Wrong(field), EngineTrial(num_tasks=60, scale=1.0, has_calls=False))


def test_an_engine_with_another_priority_is_caught() -> None:
    rng = np.random.default_rng(3)
    graph = TaskGraph.from_edges(rng.uniform(0.5, 2.0, 40), [], [])
    cluster = Cluster.parse("cpu:2")
    plan = random_plan(rng, graph, cluster)
    with pytest.raises(NotConforming, match="higher priority"):
        check_run(Wrong("discipline"), Work.timed(graph), plan, cluster, RunOptions(discipline="work-conserving"))


OTHERS = [pytest.param(name, marks=pytest.mark.long) for name in ENGINES if name not in ("local", "simulated")]


@pytest.mark.parametrize("name", ["local", "simulated", *OTHERS])
def test_every_engine_of_the_catalog_that_can_run_here_passes(name: str) -> None:
    engine: Engine = construct("engine", name, ENGINES, {})
    reason = engine.available()
    if reason is not None:
        pytest.skip(f"{name}: {reason}")
    has_calls = name != "simulated"
    check_engine(engine, EngineTrial(num_tasks=60, scale=0.002, latency_s=0.5, has_calls=has_calls, seed=7))


def test_devices_that_share_cores_are_called_so() -> None:
    graph = TaskGraph.from_edges(np.ones(2), [], [])
    many = Cluster.parse("cpu:500")
    found = LocalEngine().run(
        Work(graph, (Call(int), Call(int))), Plan(*[np.arange(2, dtype=np.int32)] * 2), many, RunOptions()
    )
    assert "shared" in found.notes[0]
    found = LocalEngine().run(Work.timed(graph, 0.001), Plan(*[np.arange(2, dtype=np.int32)] * 2), many, RunOptions())
    assert "timed" in found.notes[0]
