"""What pages are made of: explanations against brute force, records that read back, events, curves, layers, tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from stretto import workloads
from stretto.api import plan
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.core.workload import Job, Workload
from stretto.errors import InvalidInput
from stretto.graphs.evaluate import evaluate
from stretto.queues.evaluate import evaluate_replay
from stretto.queues.workloads.lublin import lublin
from stretto.reports.page.cost import device_costs
from stretto.reports.page.curves import device_use
from stretto.reports.page.events import bars_chart, read_events
from stretto.reports.page.explain import Timetable, explain_task
from stretto.reports.page.layers import MAX_TASKS, depths, placement_drawing
from stretto.reports.page.tables import comparison_tables, runs_tables
from stretto.reports.page.training import training_json
from stretto.reports.page.view import run_view
from stretto.reports.plots.runs import placement
from stretto.reports.problem import attach_problem, plan_of, problem_of
from stretto.reports.record import Rows, record_plan, recording
from stretto.reports.replay import record_replay, replay_of
from stretto.reports.strict_json import drawn, packed, plain, unpacked
from stretto.runlog import Event, RunLog

RULES = {"backfill": "easy", "estimates": "user", "pool_rule": "cheapest", "kill": False, "tie": "batch"}


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with RunLog.open(tmp_path / "runs.db") as found:
        yield found


def earliest(problem: Problem, schedule: Any, task: int, device: int) -> float:
    """Try every moment at which a task could begin on a device, one after the other."""
    arrays = problem.arrays
    ready = float(arrays.release[task])
    for read in range(arrays.in_ptr[task], arrays.in_ptr[task + 1]):
        parent, size = int(arrays.in_task[read]), float(arrays.in_size[read])
        at = int(schedule.device[parent])
        moving = (
            0.0 if at == device or size == 0 else arrays.latency[at, device] + size * arrays.inv_bandwidth[at, device]
        )
        ready = max(ready, schedule.finish_s[parent] + moving)
    length = float(arrays.duration[task, arrays.device_class[device]])
    others = [t for t in range(problem.num_tasks) if schedule.device[t] == device and t != task]
    for begin in sorted([ready, *(schedule.finish_s[t] for t in others if schedule.finish_s[t] > ready)]):
        slack = 1e-9 * length
        if all(
            schedule.finish_s[t] <= begin + slack or schedule.start_s[t] >= begin + length - slack or
            schedule.start_s[t] == schedule.finish_s[t]
            for t in others
        ):  # fmt: skip
            return float(begin)
    raise AssertionError("after the last task there is always room")


@given(seed=st.integers(0, 10_000), num_tasks=st.integers(2, 25))
@settings(max_examples=25, deadline=None)
def test_alternatives_are_what_trying_every_moment_finds(seed: int, num_tasks: int) -> None:
    problem = Problem.of(workloads.random_dag(num_tasks=num_tasks, seed=seed), Cluster.parse("cpu:2x1.0,gpu:1x3.0"))
    schedule = evaluate(problem, "heft").schedule
    table = Timetable(problem, schedule)
    for task in range(num_tasks):
        found = {one.device: one for one in table.alternatives(task)}
        assert len(found) == 3
        for device, one in found.items():
            if device == schedule.device[task]:
                assert (one.start_s, one.finish_s) == (schedule.start_s[task], schedule.finish_s[task])
            else:
                assert one.start_s == pytest.approx(earliest(problem, schedule, task, device), rel=1e-9, abs=1e-12)


def test_an_explanation_tells_what_moving_the_task_does_to_the_whole() -> None:
    result = plan(workloads.random_dag(num_tasks=30, seed=2), "cpu:2x1.0,gpu:1x4.0")
    found = explain_task(result.problem, result.plan, result.schedule, 11)
    chosen = next(one for one in found["alternatives"] if one["is_chosen"])
    assert chosen["device"] == found["device"]
    assert chosen["makespan_s"] == result.makespan_s
    assert [one["finish_s"] for one in found["alternatives"]] == sorted(
        one["finish_s"] for one in found["alternatives"]
    )
    alone = plan(workloads.random_dag(num_tasks=5, seed=1), "cpu:1")
    assert "only device" in explain_task(alone.problem, alone.plan, alone.schedule, 0)["reason"]


def test_a_recorded_plan_reads_back_with_its_arrivals(log: RunLog) -> None:
    jobs = tuple(Job(workloads.random_dag(num_tasks=12, seed=k), arrival_s=3.0 * k) for k in range(3))
    result = plan(Workload("three", jobs), "cpu:2,gpu:1x4.0")
    with recording(log, "plan", "three", {}) as run:
        record_plan(run, result)
    problem = problem_of(log, run.id)
    for name in problem.arrays._fields:
        assert np.array_equal(getattr(problem.arrays, name), getattr(result.problem.arrays, name)), name
    assert np.array_equal(problem.job_ptr, result.problem.job_ptr)
    found = plan_of(log, run.id, problem)
    assert found is not None
    assert np.array_equal(found[0].order, result.plan.order)
    assert np.array_equal(found[1].start_s, result.schedule.start_s)
    with pytest.raises(InvalidInput, match="keeps no graph"):
        problem_of(log, log.start("plan", "empty", {}).id)


@pytest.mark.parametrize("live", [True, False], ids=["while it plays", "afterwards"])
@pytest.mark.parametrize("strategy", ["saf", "mars", "portfolio"])
def test_a_recorded_replay_reads_back(log: RunLog, strategy: str, live: bool) -> None:
    trace = lublin(1200, seed=3, num_procs=32)
    with recording(log, "replay", "jobs", {}) as run:
        played = evaluate_replay(trace, 32, timed=False, run=run if live else None, strategy=strategy, **RULES)
        record_replay(run, played)
    found = replay_of(log, run.id)
    assert found is not None
    assert np.array_equal(found.start_s, played.result.start_s)
    assert np.array_equal(found.trace.estimate_s, played.result.trace.estimate_s, equal_nan=True)
    told = read_events(log.events(run.id), 0.0).choices
    assert len(told) > (strategy != "saf")
    for choice, expected in zip(told, played.choices, strict=True):
        assert choice == {"seq": choice["seq"], **plain(expected)}
    assert log.run(run.id).summary["mean_bounded_slowdown"] == played.metrics.bounded_slowdown.mean
    rewards = [job for event in log.events(run.id, kinds=["reward"]) for job in event.fields["job"]]
    assert sorted(rewards) == (list(range(trace.num_jobs)) if live and strategy == "mars" else [])


def test_what_was_recorded_before_an_interruption_stays(log: RunLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third choice is interrupted: two of them are kept with their rewards, and pages can be made of them."""
    from stretto.queues.mars.run_record import ChoiceRecorder

    write, count = ChoiceRecorder.epoch, iter(range(9))

    def epoch(*args: Any) -> None:
        if next(count) == 2:
            raise KeyboardInterrupt
        write(*args)

    monkeypatch.setattr(ChoiceRecorder, "epoch", epoch)
    with pytest.raises(KeyboardInterrupt), recording(log, "replay", "jobs", {"strategy": "mars"}) as run:
        evaluate_replay(lublin(1200, seed=3, num_procs=32), 32, timed=False, run=run, strategy="mars", **RULES)
    view = run_view(log, run.id)
    assert (view["status"], len(view["choices"]), view["queue"]) == ("interrupted", 2, None)
    assert [len(event.fields["job"]) > 50 for event in log.events(run.id, kinds=["reward"])] == [True, True]


def test_runs_that_do_not_end_well_say_so(log: RunLog) -> None:
    with pytest.raises(KeyboardInterrupt), recording(log, "plan", "stopped", {}) as stopped:
        raise KeyboardInterrupt
    with pytest.raises(InvalidInput), recording(log, "plan", "wrong", {}) as wrong:
        raise InvalidInput("no", field="it")
    with pytest.raises(ZeroDivisionError), recording(log, "plan", "broken", {}) as broken:
        _ = 1 / 0
    assert log.run(stopped.id).status == "interrupted"
    assert log.run(wrong.id).summary == {"error": "it: no"}
    assert "ZeroDivisionError" in log.run(broken.id).summary["error"]


def test_rows_are_all_there_in_the_end_and_without_nan(log: RunLog) -> None:
    run = log.start("train", "x", {})
    with Rows(run, "row") as rows:
        for step in range(20):
            rows.add(episode=step, best_s=float("nan") if step == 0 else 1.0)
    events = log.events(run.id)
    assert [event.fields["episode"] for event in events] == list(range(20))
    assert events[0].fields["best_s"] is None


def test_events_of_engines_become_bars() -> None:
    def event(seq: int, kind: str, subject: str, **fields: Any) -> Event:
        return Event(seq, 100.0 + seq, kind, subject, fields)

    story = read_events(
        [
            event(1, "task-started", "a", device="cpu0", at_s=0.0),
            event(2, "task-finished", "a", device="cpu0", start_s=0.5, end_s=2.0),
            event(3, "task-started", "b", device="cpu1", at_s=1.0),
            event(4, "task-failed", "b", device="cpu1", at_s=1.5, blame="task"),
            event(5, "task-started", "b", device="cpu0", at_s=2.0),
            event(6, "unheard-of", "b"),
        ],
        100.0,
    )
    assert [(bar.task, bar.device, bar.start_s, bar.finish_s) for bar in story.bars] == [
        ("a", "cpu0", 0.5, 2.0),
        ("b", "cpu1", 1.0, 1.5),
        ("b", "cpu0", 2.0, None),
    ]
    chart = bars_chart(story.bars, ["cpu0", "cpu1", "gpu0"], 3.0)
    assert [row[0] for row in chart["rows"]] == ["cpu0", "cpu1", "gpu0"]
    assert chart["state"] == [1, 0, 2]
    assert chart["color"] == [0, 0, 0]  # nothing is known of categories
    assert chart["makespan"] == 3.0


def test_an_executed_graph_is_placed_once_all_of_it_has_run(log: RunLog) -> None:
    result = plan(workloads.random_dag(num_tasks=12, seed=1), "cpu:2,gpu:1x4.0")
    names = [device.name for device in result.problem.cluster.devices]
    run = log.start("run", "real", {})
    attach_problem(run, result.problem)
    for task in range(12):
        assert run_view(log, run.id)["graph"] is None
        where, times = (
            names[result.plan.assignment[task]],
            (result.schedule.start_s[task], result.schedule.finish_s[task]),
        )
        run.record("task-finished", f"t{task}", device=where, start_s=float(times[0]), end_s=float(times[1]))
    view = run_view(log, run.id)
    assert [node[3] for node in view["graph"]["nodes"]] == result.plan.assignment.tolist()
    assert view["gantt"]["makespan"] == pytest.approx(result.makespan_s)
    assert view["can_ask"]
    assert not view["is_planned"]


def test_steering_becomes_samples_of_the_queue_and_choices() -> None:
    inputs = {"jobs": [[1, 0.0, 60.0, 1], [2, 0.0, 60.0, 1], [3, 0.0, 60.0, 1]], "running": [1]}
    fields = {"chosen": "saf", "costs": {"saf": 2.0, "fcfs": 3.0}, "inputs": inputs, "fallback": ""}
    story = read_events([Event(1, 107.0, "decision", "1", fields)], 100.0)
    assert story.samples == [(7.0, 2.0, 1.0)]
    assert story.choices[0]["reason"] == "lowest expected cost"


def test_use_of_devices_adds_up_to_the_busy_time() -> None:
    result = plan(workloads.random_dag(num_tasks=80, seed=5), "cpu:3,gpu:1x4.0")
    schedule, kinds = result.schedule, [device.kind for device in result.problem.cluster.devices]
    use = device_use(schedule.device, schedule.start_s, schedule.finish_s, kinds)
    assert use is not None
    means = {one["name"]: np.mean(one["mean"]) for one in use["series"]}
    assert means["all devices"] == pytest.approx(result.metrics.utilization, rel=1e-4)
    assert means["gpu"] == pytest.approx(result.metrics.device_utilization[3], rel=1e-4)


def test_costs_add_up_to_the_cost_of_the_plan() -> None:
    graph = workloads.random_dag(num_tasks=50, seed=5)
    for price in (0.0, 2.5):
        cluster = Cluster.parse("cpu:3,gpu:1x4.0")
        devices = tuple(type(one)(one.name, one.kind, one.speed, price_usd_per_hour=price) for one in cluster.devices)
        result = plan(graph, Cluster(devices, cluster.latency_s, cluster.bandwidth))
        lines = device_costs(result.problem, result.schedule)
        assert sum(line["usd"] for line in lines) == pytest.approx(result.cost_usd)


@pytest.mark.parametrize("num_tasks", [30, MAX_TASKS + 50])
def test_layers_hold_every_task_and_edges_go_to_the_right(num_tasks: int) -> None:
    result = plan(workloads.random_dag(num_tasks=num_tasks, seed=1), "cpu:3,gpu:1x4.0")
    found = placement_drawing(result.problem, result.schedule.device)
    assert sum(node[4] for node in found["nodes"]) == num_tasks
    assert all(0 <= node[1] <= 1 for node in found["nodes"])
    for source, target, _, crosses in found["edges"]:
        assert found["nodes"][source][0] <= found["nodes"][target][0]
        assert crosses == (found["nodes"][source][3] != found["nodes"][target][3])
    assert found["num_layers"] <= int(depths(result.problem).max()) + 1


def test_json_is_strict_and_small() -> None:
    value = {"a": [float("inf"), np.float64(1.5), np.arange(2)], "b": (True, None, "x\ud800")}
    assert plain(value)["a"] == [None, 1.5, [0, 1]]
    assert unpacked(packed({"a": float("nan")}), "x") == {"a": None}
    assert drawn([1.0, float("nan"), 123456.789012345]) == [1.0, None, 123456.8]


def test_trainings_are_read_whatever_they_measure() -> None:
    rows = [{"generation": k, "cost": 5.0 - k, "note": "x"} for k in range(3)]
    found = training_json(rows, {})
    assert found is not None
    assert found["x_name"] == "generations"
    assert [one["name"] for one in found["series"]] == ["cost"]
    assert training_json([], {}) is None


def test_tables_rank_and_give_intervals() -> None:
    rows = [
        {"graph": "g", "policy": policy, "seed": seed, "makespan_s": base + seed, "num_tasks": 5, "num_devices": 2}
        for policy, base in (("slow", 20.0), ("quick", 10.0))
        for seed in range(7)
    ]
    (table,) = comparison_tables({"rows": rows}, "x.json")
    assert [row[0] for row in table.rows] == ["quick", "slow"]
    assert table.rows[0][1] == "13 s\n10 s to 16 s"
    assert table.best == {(0, 1)}
    assert "<b>13 s</b>" in table.to_html()
    with pytest.raises(InvalidInput, match="neither"):
        comparison_tables({"rows": 3}, "x.json")


def test_runs_of_a_kind_stand_side_by_side() -> None:
    def header(kind: str, policy: str, makespan_s: float) -> dict[str, Any]:
        return {"kind": kind, "name": "g<b>", "settings": {"policy": policy}, "summary": {"makespan_s": makespan_s}}

    tables = runs_tables([header("plan", "a", 2.0), header("plan", "b", 1.0), header("replay", "c", 5.0)])
    assert [table.title for table in tables] == ["Plans side by side"]
    assert tables[0].best == {(1, 1)}
    assert "g&lt;b&gt;" in tables[0].to_html()


@pytest.mark.parametrize("num_devices", [3, 12])
def test_the_legend_of_a_placement_leaves_the_title_alone(num_devices: int) -> None:
    graph = TaskGraph.from_edges([1.0] * 24, [], [], [], name="a-graph-with-a-name-of-some-length-" * 2)
    problem = Problem.of(graph, Cluster.parse(f"cpu:{num_devices}"))
    drawing = placement_drawing(problem, np.arange(24, dtype=np.int32) % num_devices)
    figure = placement({"name": graph.name, "settings": {"policy": "heft"}}, drawing)
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    assert len(axes.get_legend().get_texts()) == num_devices
    title, legend = figure.texts[0].get_window_extent(), axes.get_legend().get_window_extent()
    assert not title.overlaps(legend)
    assert legend.y0 >= axes.get_window_extent().y1 - 1


def test_a_run_that_failed_has_no_makespan_to_be_the_best() -> None:
    rows = [("done", 4.0), ("failed", 1.0)]
    headers = [
        {"kind": "run", "name": "flow", "status": status, "settings": {}, "summary": {"makespan_s": value}}
        for status, value in rows
    ]
    (table,) = runs_tables(headers)
    assert table.rows == (("flow", "4 s"), ("flow (failed)", "-"))
    assert table.best == {(0, 1)}


def test_gaps_within_rounding_are_proven_optimal_in_tables() -> None:
    rows = [{"graph": "g", "policy": f"p{k}", "makespan_s": 3.0, "gap": gap} for k, gap in enumerate((7.11e-15, 0.0))]
    rows.append({"graph": "g", "policy": "other", "makespan_s": 3.3, "gap": 0.1})
    rows.append({"graph": "g", "policy": "near", "makespan_s": 3.4, "gap": 1e-5})
    sized = [row | {"num_tasks": 3, "num_devices": 1} for row in rows]
    (table,) = comparison_tables({"rows": sized}, "c.json")
    used = [row | {"utilization": 0.9 if row["policy"] == "near" else 0.5} for row in sized]
    assert all(column < 3 for _, column in comparison_tables({"rows": used}, "c.json")[0].best)  # busy is not best
    assert [row[2] for row in table.rows] == ["proven optimal", "proven optimal", "10.0 %", "<0.1 %"]
    assert {(0, 2), (1, 2)} <= table.best
