"""Real runs placed by dispatchers: on processes, on threads, with commands, with counters that fail; and the log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stretto
from racks.telemetry.fake_host import FakeHost
from stretto import catalog
from stretto.api.options import Record
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.engines.driver.events import Event, Overruled
from stretto.engines.engine import RunOptions
from stretto.engines.host.dispatcher import HostDispatcher, category_of
from stretto.engines.host.learned import DEMANDS
from stretto.engines.host.named import attached, new_dispatcher, run_dispatch
from stretto.engines.local.engine import LocalEngine
from stretto.engines.work import Call, Work
from stretto.errors import InvalidInput, UnknownName
from stretto.reports.racks.belief import EVENT
from stretto.reports.racks.topology import TOPOLOGY
from stretto.runlog import RunLog


def spin(number: int) -> int:
    return sum(range(20_000)) * 0 + number


def work_of(num_tasks: int) -> tuple[Problem, Work]:
    graph = TaskGraph.from_edges([0.002] * num_tasks, [0, 1], [num_tasks - 1, num_tasks - 1])
    kinds = (np.arange(num_tasks) % 2).astype(np.int32)
    graph = replace(graph, categories=("compute", "copy"), category=kinds)
    calls = tuple(Call(lambda *inputs, n=number: spin(n)) for number in range(num_tasks))
    return Problem.of(graph, Cluster.parse("cpu:2")), Work(graph, calls)


@pytest.mark.parametrize("workers", ["thread", "process"])
@pytest.mark.parametrize("name", sorted(catalog.RUN_DISPATCHERS))
def test_every_task_runs_once_on_the_local_engine(name, workers):
    problem, work = work_of(24)
    dispatcher = new_dispatcher(name, problem)
    with attached(dispatcher, problem, RunOptions(keep="all")) as options:
        found = LocalEngine(workers=workers).play(problem, dispatcher, work, options).check()
    assert found.outputs == {number: number for number in range(24)}
    assert found.attempts.tolist() == [1] * 24
    if isinstance(dispatcher, HostDispatcher):
        learned = dispatcher.learned_json()
        assert learned is not None
        learned_from = sum(row["num_tasks"] for row in learned["categories"].values())
        assert 0 < learned_from <= 24  # on a busy host some tasks end before the counters were read
        assert dispatcher.num_decisions >= 12


def run_on_fake(root: Path, break_it, num_tasks: int = 16) -> tuple[list[Overruled], HostDispatcher]:
    """Run with the counters of a fake host that breaks after some tasks."""
    problem, work = work_of(num_tasks)
    seen: list[Event] = []
    dispatcher = HostDispatcher(root=root)
    with attached(dispatcher, problem, RunOptions(on_event=seen.append)) as options:
        live = dispatcher.live(problem)
        break_it(live)
        LocalEngine().play(problem, dispatcher, work, options).check()
    return [event for event in seen if isinstance(event, Overruled)], dispatcher


def test_a_host_without_counters_is_served_by_greedy(tmp_path):
    told, dispatcher = run_on_fake(tmp_path, lambda live: None)
    assert len(told) == 1
    assert "/proc/stat cannot be read" in told[0].reason
    assert dispatcher.num_fallbacks == dispatcher.num_decisions


def test_a_dead_sampler_is_told(tmp_path):
    FakeHost(tmp_path)
    told, dispatcher = run_on_fake(tmp_path, lambda live: live.sampler.close())
    assert [event.reason for event in told] == ["greedy decides: the sampler of the counters has ended"]
    assert "the sampler of the counters has ended" in dispatcher.notes()[-1]


def test_an_unplugged_core_is_told(tmp_path):
    fake = FakeHost(tmp_path)

    def unplug(live) -> None:
        fake.write("sys/devices/system/cpu/online", "0\n")
        live.sampler.close()
        live.sampler = None
        live.sense.step()

    told, _ = run_on_fake(tmp_path, unplug)
    assert [event.reason for event in told] == ["greedy decides: cpu1 went offline"]


FLOW = """
name = "pair"
[[task]]
name = "copy-1"
run = "echo one > one"
writes = ["one"]
seconds = 0.01
[[task]]
name = "copy-2"
run = "echo two > two"
writes = ["two"]
seconds = 0.01
[[task]]
name = "sum"
run = "cat one two > both"
reads = ["one", "two"]
writes = ["both"]
seconds = 0.01
"""


def test_a_recorded_run_keeps_what_it_learned_and_what_it_believed(tmp_path):
    flow, runs = tmp_path / "pair.toml", tmp_path / "runs.db"
    flow.write_text(FLOW)
    options = RunOptions(dispatch="symphony", rerun=True)
    first = stretto.run(str(flow), "cpu:2", options=options, record=Record(runs=runs))
    assert (tmp_path / "both").read_text() == "one\ntwo\n"
    with RunLog.open(runs) as log:
        info = log.run(first.session.run_id)
        assert info.settings["dispatch"] == "symphony"
        learned = json.loads(log.artifact(info.id, DEMANDS) or b"")
        assert set(learned["law"]["categories"]) == {"copy", "sum"}
        assert TOPOLOGY in log.artifacts(info.id)
        assert log.events(info.id, kinds=[EVENT])
    again = stretto.run(str(flow), "cpu:2", options=options, record=Record(runs=runs))
    with RunLog.open(runs) as log:
        law = json.loads(log.artifact(again.session.run_id, DEMANDS) or b"")["law"]
    assert law["categories"]["copy"]["num_tasks"] == 4


def test_a_broken_record_of_what_was_learned_is_left_out(tmp_path):
    flow, runs = tmp_path / "pair.toml", tmp_path / "runs.db"
    flow.write_text(FLOW)
    options = RunOptions(dispatch="symphony", rerun=True)
    first = stretto.run(str(flow), "cpu:2", options=options, record=Record(runs=runs))
    from stretto.runlog import Run

    with RunLog.open(runs) as log:
        Run(log, first.session.run_id).attach(DEMANDS, b"{not json")
    again = stretto.run(str(flow), "cpu:2", options=options, record=Record(runs=runs))
    assert again.result.status == "done"


def test_what_does_not_apply_is_refused(tmp_path):
    problem = Problem.of(TaskGraph.from_edges([1.0], [], []), Cluster.parse("node:1*2c4GB"))
    with pytest.raises(InvalidInput, match="nodes pack"):
        new_dispatcher("symphony", problem)
    new_dispatcher("greedy", problem)
    with pytest.raises(UnknownName, match="symphony"):
        run_dispatch("symfony")
    graph = stretto.workloads.random_dag(num_tasks=4, seed=0)
    plan = stretto.plan(graph, "cpu:2").plan
    with pytest.raises(InvalidInput, match="counters of this machine"):
        stretto.run(graph, "cpu:2", engine="simulated", options=RunOptions(dispatch="symphony"))
    assert stretto.run(graph, "cpu:2", engine="simulated", options=RunOptions(dispatch="heft-online")).status == "done"
    with pytest.raises(InvalidInput, match="saved plan"):
        stretto.run(graph, "cpu:2", plan, options=RunOptions(dispatch="greedy"))


def test_kinds_of_tasks_by_name():
    assert category_of("copy-17", "") == "copy"
    assert category_of("matmul_3_4", "") == "matmul"
    assert category_of("anything", "given") == "given"
    assert category_of("copy-1", "sh") == "copy"
    assert category_of("17", "") == "task"
