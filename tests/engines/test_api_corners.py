"""The library's front door: what it fills in by itself, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stretto
from stretto import api
from stretto.core.graph import Resources, TaskGraph
from stretto.core.plan import Plan
from stretto.core.trace import Trace
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.runlog.place import default_path

PAIR = TaskGraph.from_edges([1.0, 2.0], [0], [1], name="pair")


def test_names_are_listed_before_they_are_imported() -> None:
    assert {"plan", "simulate", "run", "replay"} <= set(dir(stretto))


def test_a_project_brings_its_machine_and_a_graph_gets_four() -> None:
    assert api.problem(PAIR).num_devices == 4
    shop = Resources(("saw",), np.array([1], np.int32), np.array([[1], [1]], np.int32))
    project = TaskGraph.from_edges([1.0, 2.0], [], [], resources=shop)
    assert api.problem(project).cluster.name == "shop:1"


def test_a_simulation_needs_a_plan_or_brings_one() -> None:
    with pytest.raises(TypeError, match="simulate needs a plan"):
        api.simulate(PAIR, "cpu:2")
    plan = Plan(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    assert api.simulate(PAIR, "cpu:2", plan).makespan_s == 3.0
    assert api.simulate(api.plan(PAIR, "cpu:2")).makespan_s == 3.0


def test_work_is_planned_and_run() -> None:
    result = api.run(PAIR, "cpu:2", scale=0.001)
    assert (result.status, result.is_timed) == ("done", True)
    plan = Plan(np.array([1, 0], np.int32), np.array([0, 1], np.int32))
    planned = api.run(PAIR, "cpu:2", plan, scale=0.001, engine_params={"workers": "thread"})
    assert planned.device.tolist() == [1, 0]
    with pytest.raises(InvalidInput, match="two: holds several graphs"):
        api.run(Workload.of([PAIR, PAIR], name="two"), "cpu:2")


def test_jobs_need_a_machine_that_is_known() -> None:
    trace = Trace.of([0, 1], [5, 5], [1, 1])
    assert api.replay(trace, 1).start_s.tolist() == [0.0, 5.0]
    with pytest.raises(InvalidInput, match="'trace' does not say on how many processors it ran"):
        api.replay(trace)


def test_the_run_log_lives_where_the_user_keeps_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "own"))
    assert default_path() == tmp_path / "own" / "runs.db"
    monkeypatch.delenv("STRETTO_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert default_path() == tmp_path / "state" / "stretto" / "runs.db"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local" / "state" / "stretto" / "runs.db"
