"""Calibration: what is measured fits a known engine, and the executor feeds Doppler's third stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from research.engines.prediction import Judgement, draw_calibration, judge

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.calibrate import calibrate, measure_links, spread_plan
from stretto.engines.engine import EngineExecutor, RunOptions, RunResult
from stretto.engines.kernels.tiled_matmul import tiled_matmul_work
from stretto.engines.local.engine import LocalEngine
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work
from stretto.errors import InvalidInput

CLUSTER = Cluster.parse("cpu:2")


@dataclass
class Known:
    """An engine whose links have a known latency and bandwidth."""

    latency_s: float = 2e-5
    bandwidth: float = 4e9
    sizes: list[float] = field(default_factory=list)

    def available(self) -> str | None:
        return None

    def run(self, work: Work, plan: Plan, cluster: Cluster, options: RunOptions) -> RunResult:
        found = SimulatedEngine().run(work, plan, cluster, options)
        size = float(work.graph.object_size.max())
        self.sizes.append(size)
        found.fetch_s[:] = self.latency_s + size / self.bandwidth
        return found


def test_latency_and_bandwidth_are_found() -> None:
    engine = Known()
    latency_s, bandwidth = measure_links(engine, CLUSTER)
    assert latency_s == pytest.approx(engine.latency_s, rel=1e-6)
    assert bandwidth == pytest.approx(engine.bandwidth, rel=1e-6)
    assert len(set(engine.sizes)) >= 3


@pytest.mark.parametrize("workers", ["thread", "process"])
def test_a_calibrated_simulator_can_be_judged_on_the_local_engine(workers: str, tmp_path: Path) -> None:
    work = tiled_matmul_work(num_tiles=2, tile=48)
    engine = LocalEngine(workers=workers)  # type: ignore[arg-type]
    found = calibrate(engine, work, CLUSTER, repeats=2)
    assert (found.task_s > 0).all()
    assert found.same_s > 0
    assert found.cross_s > 0
    assert 1e6 < found.bandwidth < 1e13
    assert found.graph(work.graph).work_s.tolist() == (found.task_s + found.same_s).tolist()
    assert found.cluster(CLUSTER).latency_s[0, 1] >= found.latency_s
    judgement = judge(engine, work, CLUSTER, found, num_plans=4, repeats=1)
    assert (judgement.predicted_s > 0).all()
    assert (judgement.measured_s > 0).all()
    draw_calibration(judgement, tmp_path / "plot.png", title="tiny")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_judgement_is_about_order_and_size() -> None:
    measured = np.array([1.0, 2.0, 3.0, 4.0])
    assert Judgement(measured * 2, measured).rank_correlation == pytest.approx(1.0)
    assert Judgement(measured * 2, measured).median_error == pytest.approx(1.0)
    assert Judgement(measured[::-1] * 0.5, measured).rank_correlation == pytest.approx(-1.0)
    assert Judgement(measured * 0.5, measured).median_ratio == pytest.approx(0.5)


def test_one_device_cannot_be_calibrated() -> None:
    with pytest.raises(InvalidInput, match="measured between two"):
        calibrate(LocalEngine(), tiled_matmul_work(num_tiles=1, tile=4), Cluster.parse("cpu:1"))


def test_the_executor_returns_seconds_of_the_graph() -> None:
    work = Work.timed(tiled_matmul_work(num_tiles=2, tile=128).graph, 20.0)
    problem = Problem.of(work.graph, CLUSTER)
    plan = spread_plan(problem, np.random.default_rng(0), 0.5)
    executor = EngineExecutor(LocalEngine(), work, CLUSTER)
    least_s = float(work.graph.work_s.sum()) / 2
    assert least_s <= executor.execute(plan) < 1000 * least_s
    assert executor.runs == 1


def test_doppler_learns_on_the_local_engine() -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")

    from stretto.graphs.doppler.run import DopplerRun
    from stretto.graphs.doppler.stages import ImitateRule, ReinforceOnEngine
    from stretto.learning.trainer import TrainingSpec

    work = tiled_matmul_work(num_tiles=2, tile=16)
    problem = Problem.of(work.graph, CLUSTER)
    executor = EngineExecutor(LocalEngine(), work, CLUSTER)
    stages = (ImitateRule(episodes=1), ReinforceOnEngine(executor, episodes=1))
    run = DopplerRun(problem, TrainingSpec(episodes=64), stages=stages)
    rows = [run.step() for _ in range(3)]
    assert rows[-1].stage == "engine"
    assert executor.runs > 0
    best = run.best_plan()
    assert best is not None
    assert sorted(best.order.tolist()) == list(range(problem.num_tasks))
