"""The map of a cluster: what devices did, what is believed of parts, and the boxes that machines are drawn as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.machine_presets import PRESETS, preset
from stretto.core.pool import Pool, Spot
from stretto.queues.evaluate import Evaluation
from stretto.queues.metrics import measure
from stretto.queues.replay import replay
from stretto.queues.workloads.lublin import lublin
from stretto.racks.machine_work import rack_model
from stretto.racks.workloads.kernels import PAPER_KERNELS, SHUFFLES
from stretto.reports.page.tables import runs_tables
from stretto.reports.page.view import run_view
from stretto.reports.plots.runs import draw_figures
from stretto.reports.racks.belief import BeliefSample, belief_map, record_sample
from stretto.reports.racks.map import MAX_TILES, NUM_FRAMES, device_map
from stretto.reports.racks.topology import TOPOLOGY, drawn_machines, processor_kinds, rack_topology
from stretto.reports.replay import record_replay, replay_of, same_jobs
from stretto.reports.strict_json import packed
from stretto.runlog import RunLog


def inside(box: dict[str, Any]) -> list[str]:
    """Return the names of a box and of everything in it."""
    return [box["name"], *(name for part in box["inside"] for name in inside(part))]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_part_of_a_machine_is_drawn_once(name: str) -> None:
    rack = preset(name)
    kinds = ("cpu", "gpu", "fpga", "nic")
    topology = rack_topology(rack_model(rack, PAPER_KERNELS, kinds=kinds))
    for machine, drawn in zip(rack.machines, drawn_machines(topology), strict=True):
        found = [part for box in drawn["boxes"] for part in inside(box)] + [one["name"] for one in drawn["joints"]]
        assert sorted(found) == sorted(part.name for part in machine.parts)
        assert {box["kind"] for box in drawn["boxes"]} == {"memory"}
    assert list(processor_kinds(topology)) == topology["processors"]


def test_boxes_follow_the_links() -> None:
    topology = rack_topology(rack_model(preset("m1"), PAPER_KERNELS))
    (machine,) = drawn_machines(topology)
    memory = machine["boxes"][0]
    assert memory["name"] == "mem0"
    root = next(box for box in memory["inside"] if box["kind"] == "root-complex")
    assert [box["name"] for box in root["inside"]] == ["switch0"]
    assert {"gpu0", "gpu2", "nic0"} <= set(inside(root))
    assert topology["resources"][memory["resource"]] == "m1/mem0"
    assert [joint["ends"] for joint in machine["joints"]] == [["mem0", "mem1"]]


def test_a_belief_is_written_and_read_back_with_its_interval(tmp_path: Path) -> None:
    topology = rack_topology(rack_model(preset("m1"), PAPER_KERNELS))
    num, procs = len(topology["resources"]), len(topology["processors"])
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("rack", "watched", {})
        run.attach(TOPOLOGY, packed(topology))
        for moment in range(500):
            mean = np.full(num, moment / 1000)
            raw = np.where(np.arange(num) % 2 == 0, mean, np.nan)
            record_sample(
                run, BeliefSample(float(moment), mean, np.full(num, 0.1), raw, mean, ["fft", *[None] * (procs - 1)])
            )
        found = run_view(log, run.id)["belief"]
    assert found["kind"] == "belief"
    assert len(found["at_s"]) <= 240
    assert found["at_s"][-1] == 499.0  # the last moment is always there
    assert found["mean"][0][-1] == 0.499
    assert found["low"][0][-1] == pytest.approx(0.499 - 0.196)
    assert found["high"][0][-1] == pytest.approx(0.499 + 0.196)
    assert found["low"][0][0] == 0.0  # a share is never below nothing
    assert found["raw"][1][-1] is None
    assert found["doing"] == ["fft"]
    assert [row[-1] for row in found["running"][:2]] == [0, -1]


def test_beliefs_about_something_else_are_left_out() -> None:
    topology = {"machines": [], "resources": ["a", "b"], "processors": []}
    events: list[dict[str, Any]] = [{"at_s": 0.0, "mean": [1.0], "sd": [0.0]}, {"at_s": 1.0}]
    assert belief_map(topology, events) is None
    found = belief_map(topology, [*events, {"at_s": 2.0, "mean": [0.5, 0.1], "sd": [0.0, 0.0]}])
    assert found is not None
    assert found["at_s"] == [2.0]
    assert "raw" not in found


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_the_map_of_devices_holds_all_the_work(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_devices, num_tasks = int(rng.integers(1, 6)), int(rng.integers(1, 30))
    device = rng.integers(num_devices, size=num_tasks).astype(np.int32)
    start, finish = np.zeros(num_tasks), np.zeros(num_tasks)
    free = np.zeros(num_devices)
    for task in range(num_tasks):
        start[task] = free[device[task]] + rng.exponential()
        finish[task] = free[device[task]] = start[task] + rng.exponential()
    names = [f"d{k}" for k in range(num_devices)]
    kinds = ["cpu"] * num_devices
    found = device_map(device, start, finish, names=names, kinds=kinds, machines=kinds)
    assert found is not None
    for k in range(num_devices):
        busy = float(np.sum((finish - start)[device == k])) / float(finish.max())
        assert found["total"][k] == pytest.approx(busy, abs=1e-3)
        assert len(found["use"][k]) == NUM_FRAMES


def test_too_many_devices_become_machines_or_kinds() -> None:
    num = 3 * MAX_TILES
    names, kinds = [f"d{k}" for k in range(num)], ["cpu", "gpu", "gpu"] * MAX_TILES
    device, start = np.arange(num, dtype=np.int32), np.zeros(num)
    alone = device_map(device, start, start + 1.0, names=names, kinds=kinds, machines=["m0"] * num)
    assert alone is not None
    assert alone["names"] == ["cpu", "gpu"]
    assert alone["notes"] == [f"{MAX_TILES} devices", f"{2 * MAX_TILES} devices"]
    assert alone["total"] == [1.0, 1.0]
    racks = [f"m{k // 30}" for k in range(num)]
    found = device_map(device, start, start + 1.0, names=names, kinds=kinds, machines=racks)
    assert found is not None
    assert len(found["names"]) == num // 30


def test_a_replay_on_pools_keeps_them_whole(tmp_path: Path) -> None:
    spot = Spot(np.array([0.0, 60.0]), np.array([0.1, 0.2]), np.array([0.0, 0.01]), bid_usd_per_hour=0.15)
    more: dict[str, Any] = {"price_usd_per_hour": 0.4, "provision_s": 90.0, "idle_shutdown_s": 300.0}
    pools = (Pool("own", 4, 16), Pool("cloud", 64, 8, min_nodes=0, spot=spot, **more))
    jobs = lublin(100, seed=1, num_procs=64)
    result = replay(jobs, pools, strategy="saf", pool_rule="fastest")
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("replay", "pools", {})
        record_replay(run, Evaluation(result, measure(result), 1.0, jobs, pools))
        kept = replay_of(log, run.id)
    assert kept is not None
    trace, machine = same_jobs(kept)
    again = replay(trace, machine, strategy="saf", pool_rule="fastest")
    assert again.cost_usd.tolist() == result.cost_usd.tolist()
    assert again.start_s.tolist() == result.start_s.tolist()


def test_a_failed_task_is_told_of_and_not_called_placed(tmp_path: Path) -> None:
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("run", "broken", {"workflow": "flow.toml", "cluster": "cpu:2", "engine": "local"})
        run.record("task-started", "fetch", device="cpu0", at_s=0.0)
        run.record("task-failed", "fetch", device="cpu0", at_s=1.0, attempt=1, blame="task", reason="exit code 3")
        view = run_view(log, run.id)
    assert view["failures"] == [
        {"at_s": 1.0, "task": "fetch", "device": "cpu0", "attempt": 1, "blame": "task", "reason": "exit code 3"}
    ]
    assert view["graph"] is None
    assert view["settings"]["command"] == "stretto run flow.toml --cluster cpu:2 --engine local"


def test_streams_of_a_rack_become_one_line_with_an_interval() -> None:
    headers = [
        {
            "kind": "rack",
            "name": "small-rack",
            "settings": {"policy": by, "cluster": "small-rack", "stream": stream},
            "summary": {"mean_completion_s": base + stream, "coverage_95": 0.95, "num_jobs": 10},
        }
        for by, base in (("mct", 12.0), ("srpt-belief", 10.0))
        for stream in range(3)
    ]
    (table,) = runs_tables(headers)
    assert table.title == "Racks side by side"
    assert [row[0] for row in table.rows] == [f"small-rack · {by} (3 runs)" for by in ("mct", "srpt-belief")]
    assert table.rows[1][1] == "11 s\n10 s to 12 s"
    assert (1, 1) in table.best


def test_every_figure_of_a_run_is_drawn(tmp_path: Path) -> None:
    topology = rack_topology(rack_model(preset("two-nics"), SHUFFLES, kinds=("nic",)))
    num = len(topology["resources"])
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("rack", "all of it", {"policy": "mct"})
        run.attach(TOPOLOGY, packed(topology))
        for moment in range(3):
            values = np.full(num, 0.2 * moment)
            record_sample(run, BeliefSample(float(moment), values, np.full(num, 0.05), values, values))
            run.record("progress", elapsed_s=0.1 * moment, best_s=5.0 - moment)
            run.record("row", iteration=moment, seconds=1.0, best_s=2.0, mean_s=3.0 - moment, loss=0.1)
        run.record("task-finished", "a", device="two-nics/nic0", start_s=0.0, end_s=1.0)
        run.record("task-failed", "b", device="two-nics/nic1", start_s=0.5, at_s=2.0, reason="exit code 1")
        view = run_view(log, run.id)
    names = {path.name for path in draw_figures(view, tmp_path / "figures", stem="x", kinds=("svg",))}
    wanted = ("belief", "executed", "intervals", "map", "search", "training", "utilization")
    assert names == {f"x-{name}.svg" for name in wanted}
    assert "failed" in (tmp_path / "figures" / "x-executed.svg").read_text()
    assert "two-nics/mem0" in (tmp_path / "figures" / "x-intervals.svg").read_text()
