"""What tasks waited for: waits lie in idle time, and the critical path reaches from the first moment to the last."""

from __future__ import annotations

import numpy as np
import pytest

from stretto import workloads
from stretto.api import plan
from stretto.reports.gantt.chart import colorings, make_chart
from stretto.reports.gantt.delays import delays_of
from stretto.reports.gantt.html import chart_json

CLUSTER = "cpu:3x1.0,gpu:2x5.0@100MB/s"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("policy", ["heft", "round-robin"])
def test_the_critical_path_explains_the_makespan(seed: int, policy: str) -> None:
    result = plan(workloads.random_dag(num_tasks=60, seed=seed), CLUSTER, policy=policy)
    done, arrays = result.schedule, result.problem.arrays
    found = delays_of(result.problem, done.device, done.start_s, done.finish_s)
    path = found.critical
    assert done.finish_s[path[-1]] == done.makespan_s
    assert done.start_s[path[0]] == pytest.approx(0.0)
    for before, task in zip(path, path[1:], strict=False):
        is_parent = before in arrays.in_task[arrays.in_ptr[task] : arrays.in_ptr[task + 1]]
        assert is_parent or done.device[before] == done.device[task]
        assert done.finish_s[before] <= done.start_s[task] + 1e-9
        if not is_parent:  # the device was the reason: it began at once
            assert done.finish_s[before] == pytest.approx(done.start_s[task])


@pytest.mark.parametrize("seed", range(5))
def test_waits_for_data_lie_in_idle_time(seed: int) -> None:
    result = plan(workloads.random_dag(num_tasks=60, seed=seed), CLUSTER, policy="round-robin")
    done = result.schedule
    found = delays_of(result.problem, done.device, done.start_s, done.finish_s)
    late = np.flatnonzero(found.idle_s > 0)
    assert len(late)
    for task in late.tolist():
        begin = done.start_s[task] - found.idle_s[task]
        others = np.flatnonzero(done.device == done.device[task])
        overlap = (done.start_s[others] < done.start_s[task] - 1e-9) & (done.finish_s[others] > begin + 1e-9)
        assert not np.any(overlap)
        assert (
            found.parent[task]
            in result.problem.arrays.in_task[
                result.problem.arrays.in_ptr[task] : result.problem.arrays.in_ptr[task + 1]
            ]
        )


def test_bars_are_named_by_their_place_in_the_chart() -> None:
    result = plan(workloads.random_dag(num_tasks=60, seed=1), CLUSTER)
    chart = chart_json(make_chart(result.problem, result.schedule))
    start, length, waits = chart["start"], chart["length"], chart["waits"]
    last = chart["critical"][-1]
    assert start[last] + length[last] == pytest.approx(chart["makespan"])
    for bar, source in zip(waits["bar"], waits["source"], strict=True):
        assert start[source] + length[source] <= start[bar] + 1e-6


def test_jobs_and_categories_both_color() -> None:
    result = plan("workload:cholesky?num_tiles=4", "cpu:2")
    assert [one.name for one in colorings(result.problem)] == ["category"]
