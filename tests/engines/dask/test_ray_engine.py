"""The Ray engine keeps the same contract; Ray takes long to start, so its faults are tried under ``make test-long``."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import stretto
from real_data import small_workflows
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import merge
from stretto.core.workload import Workload
from stretto.engines.engine import RunOptions
from stretto.engines.ray.engine import RayEngine
from stretto.engines.work import Call, Work
from stretto.errors import MissingExtra
from stretto.testing import check_engine
from stretto.testing.engine_checks import EngineTrial, check_run, random_plan

TWO = Cluster.parse("cpu:2")


def one(function: Call) -> tuple[Work, stretto.Plan]:
    zero = np.zeros(1, dtype=np.int32)
    return Work(TaskGraph.from_edges([1.0], [], [], 0.0), (function,)), stretto.Plan(zero, zero)


def test_without_ray_the_engine_says_what_to_install() -> None:
    work, plan = one(Call(int))
    with patch.object(importlib.util, "find_spec", return_value=None):
        reason = RayEngine().available()
        assert reason is not None
        assert "stretto[ray]" in reason
        with pytest.raises(MissingExtra, match=r"stretto\[ray\]"):
            RayEngine().run(work, plan, TWO, RunOptions())


@pytest.fixture(scope="module")
def running() -> Iterator[None]:
    """Ray, started once for all tests of this file."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


@pytest.mark.long  # the catalog's conformance test runs it, too
def test_the_whole_suite(running: None) -> None:
    assert len(check_engine(RayEngine(), EngineTrial(num_tasks=200))) == 5


def test_real_workflows(running: None, data_dir: Path) -> None:
    together, _, _ = merge(Workload.of(small_workflows(data_dir)))
    work = Work.timed(together, 1.0 / float(together.work_s.sum()))
    plan = random_plan(np.random.default_rng(3), together, TWO)
    check_run(RayEngine(), work, plan, TWO, RunOptions(discipline="sequence"))


@pytest.mark.long
def test_a_task_that_kills_its_actor_is_blamed_and_tried_elsewhere(running: None, tmp_path: Path) -> None:
    marks = tmp_path / "killed"

    def kill_once() -> str:
        if not marks.exists():
            marks.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"

    result = RayEngine().run(*one(Call(kill_once)), TWO, RunOptions()).check()
    assert result.outputs == {0: "alive"}
    assert [(failure.blame, failure.device) for failure in result.failures] == [("worker", 0)]
    assert result.device.tolist() == [1]


@pytest.mark.long
def test_a_task_that_hangs_is_given_up(running: None, tmp_path: Path) -> None:
    marks = tmp_path / "hung"

    def hang_once() -> str:
        if not marks.exists():
            marks.write_text("")
            time.sleep(600)
        return "awake"

    result = RayEngine().run(*one(Call(hang_once, timeout_s=10.0)), TWO, RunOptions()).check()
    assert result.outputs == {0: "awake"}
    assert [failure.blame for failure in result.failures] == ["timeout"]
