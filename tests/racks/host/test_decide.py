"""The look-ahead against a slow twin, and the order in which it takes tasks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from racks.host.host_cases import rollout_inputs
from stretto.racks.host.decide import HostView, by_category, earliest_completion, look_ahead, weights_of
from stretto.racks.host.law import LawValues
from stretto.racks.host.parameters import HostParams
from stretto.racks.kernels.host_rollout import IDLE, price

LAW = LawValues(0.75, 0.0, np.ones(2), np.array([0.05, 1.07]))


def view_of(kinds, *, running=(IDLE, IDLE), lost=(0.0, 0.0), work=None, alive=(True, True)) -> HostView:
    kinds = np.array(kinds, dtype=np.int64)
    num, cores = len(kinds), len(running)
    seconds = np.full(num, 0.15) if work is None else np.array(work, float)
    return HostView(
        np.array(lost, float),
        np.ones((cores, cores)) - np.eye(cores),
        np.array(alive),
        np.array(running),
        np.full(cores, 0.1),
        np.full(cores, 0.15),
        np.ones(cores),
        np.arange(num),
        kinds,
        np.repeat(seconds[:, None], cores, axis=1),
        np.ones(num),
    )


def slow_price(law, host, tasks, running, order, first_core, first_kind):
    """The same as the kernel, in small steps of plain Python with dictionaries."""
    share, near, idle_busy = host
    ptr, work, weight = tasks
    queues = [list(range(ptr[k], ptr[k + 1])) for k in range(len(ptr) - 1)]
    now, cost = 0.0, 0.0
    here = {p: [int(running[0][p]), running[1][p], running[2][p], running[3][p]] for p in order if running[0][p] >= 0}

    def rates(state):
        found = {}
        for p, (k, *_) in state.items():
            busy = sum(near[p, q] * (1.0 if q in state else idle_busy[q]) for q in range(len(share)) if q != p)
            others = sum(law[2][state[q][0]] * share[q] for q in state if q != p)
            found[p] = share[p] / (1 + law[0] * busy + law[2][k] * (others + law[1]))
        return found

    def worth(state):
        return sum(rate * state[p][3] / state[p][2] for p, rate in rates(state).items())

    def begun(state, p, k):
        task = queues[k][0]
        return {**state, p: [k, work[task, p], work[task, p], weight[task]]}

    here = begun(here, first_core, first_kind)
    queues[first_kind].pop(0)
    while True:
        for p in order:
            if p in here:
                continue
            options = [(worth(begun(here, p, k)), -k) for k in range(len(queues)) if queues[k]]
            if options and max(options)[0] > worth(here):
                k = -max(options)[1]
                speed = rates(begun(here, p, k))
                rest = sum(state[1] for state in here.values()) + sum(work[t].min() for row in queues for t in row)
                others = sum(speed[q] for q in here)
                if work[queues[k][0], p] * others <= rest * speed[p]:
                    here = begun(here, p, k)
                    queues[k].pop(0)
        if not here:
            return cost
        speed = rates(here)
        step = min(state[1] / speed[p] for p, state in here.items())
        now += step
        for p in list(here):
            here[p][1] -= speed[p] * step
            if here[p][1] <= 1e-9 * here[p][2]:
                cost += here.pop(p)[3] * now


@pytest.mark.parametrize("seed", range(25))
def test_the_rollout_equals_its_slow_twin(seed):
    *rest, first = rollout_inputs(seed)
    assert price(*rest, first) == pytest.approx(slow_price(*rest, first), rel=1e-9)


def test_no_core_waits_for_another():
    assert len(look_ahead(view_of([1, 1, 1, 1]), LAW, HostParams())) == 2


def test_a_memory_bound_task_is_paired_with_a_compute_bound_one():
    assert look_ahead(view_of([1, 1, 0], running=(1, IDLE)), LAW, HostParams()) == [(2, 1)]


def test_something_always_starts_on_an_idle_host():
    for kinds in product([0, 1], repeat=3):
        assert look_ahead(view_of(kinds, lost=(0.9, 0.9)), LAW, HostParams())
        assert earliest_completion(view_of(kinds, lost=(0.9, 0.9)), LAW)


def test_shorter_tasks_and_less_loaded_cores_come_first():
    chosen = look_ahead(view_of([0, 0, 0], work=[0.5, 0.1, 0.3], lost=(0.5, 0.0)), LAW, HostParams())
    assert chosen[0] == (1, 1)


def test_a_core_that_is_gone_gets_nothing():
    view = view_of([0, 0], alive=(True, False))
    assert all(core == 0 for _, core in look_ahead(view, LAW, HostParams()) + earliest_completion(view, LAW))


def test_a_window_keeps_every_kind():
    rows = by_category(view_of([0] * 200 + [1]), 2, 48)
    assert [len(row) for row in rows] == [48, 1]


def test_a_task_counts_for_its_share_of_what_waits_for_it():
    assert weights_of(4, [0, 1, 2, 3], [[], [], [0, 1], [2]]).tolist() == [2.0, 2.0, 2.0, 1.0]
