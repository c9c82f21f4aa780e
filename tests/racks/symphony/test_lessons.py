"""Forecasts, masks and lessons: equal to their slow twins, and costs that repeated play-outs confirm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from racks.rack_cases import random_action, small_rack, two_nics
from stretto.core.kernels.rng import seeded
from stretto.racks.kernels.moves import can_configure, can_execute
from stretto.racks.kernels.policy_inputs import _fill_times
from stretto.racks.kernels.policy_plan import fill_known, fill_order, forecast
from stretto.racks.kernels.policy_teacher import collect
from stretto.racks.kernels.rules import expected_speed, free_at
from stretto.racks.kernels.state import ARRIVED, BLOCKED, READY
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import World
from stretto.racks.symphony.loss import Lessons, expected_cost, scores
from stretto.racks.symphony.network import fresh_weights, unflat
from stretto.racks.symphony.player import StreamPlayer
from stretto.racks.symphony.settings import TRAINING


def _moments(make, num: int):
    """Batches at decisions of a stream that is played at random."""
    model, streams = make(num_instances=1)
    batch = RackBatch(model, streams, 1, seed=0)
    batch.start(np.zeros(1, np.int64))
    rng = np.random.default_rng(0)
    for _ in range(num):
        yield batch
        batch.step(np.array([random_action(batch.mask[0], rng)]))


@pytest.mark.parametrize("make", [small_rack, two_nics])
def test_the_mask_and_times_are_those_of_the_single_functions(make):
    for batch in _moments(make, 20):
        a, s, pressure = batch.model.arrays, batch.state, batch.belief.pressure[0]
        num_kernels, num_procs = a.duration_s.shape
        valid = [can_execute(a, s, 0, k, p) for k in range(num_kernels) for p in range(num_procs)]
        valid += [can_configure(a, s, 0, k, p) for k in range(num_kernels) for p in a.fpgas]
        np.testing.assert_array_equal(batch.mask[0, :-1], np.array(valid, bool))
        free, (takes, runs, speed) = np.empty(num_procs), np.empty((3, num_kernels, num_procs))
        _fill_times(a, batch.streams, s, 0, pressure, free, takes, runs, speed)
        for p in range(num_procs):
            assert free[p] == pytest.approx(free_at(a, batch.streams, s, 0, p, a.duration_s, pressure))
            for k in np.flatnonzero((s.num_left[0] > 0) & np.isfinite(a.duration_s[:, p])):
                assert speed[k, p] == pytest.approx(expected_speed(a, k, p, a.proc_machine[p], pressure))
                assert runs[k, p] == pytest.approx(a.duration_s[k, p] / speed[k, p])


def _slow_forecast(batch: RackBatch, free, runs, order, first, place) -> float:
    """The list schedule as it is described, with dictionaries."""
    a, w, s, i = batch.model.arrays, batch.streams, batch.state, int(batch.state.instance[0])
    before = {task: [] for task in range(w.kernel.shape[1])}
    for task in range(w.kernel.shape[1]):
        for later in w.after[i, w.after_ptr[i, task] : w.after_ptr[i, task + 1]]:
            before[int(later)].append(task)
    free, config = list(free), s.config[0].tolist()
    ends = {int(task): free[p] for p, task in enumerate(s.task[0]) if task >= 0}

    def put(task: int, p: int) -> None:
        free[p], config[p] = end(task, p), int(w.kernel[i, task])
        ends[task] = free[p]

    def end(task: int, p: int) -> float:
        k = int(w.kernel[i, task])
        ready = max([ends.get(other, 0.0) for other in before[task]], default=0.0)
        return max(free[p], ready) + runs[k, p] + (a.reconfigure_s[p] if config[p] != k else 0.0)

    if first >= 0:
        put(first, place)
    for task in order:
        if task != first:
            put(int(task), min(range(len(free)), key=lambda p: end(int(task), p)))
    jobs: dict[int, float] = {}
    for task, when in ends.items():
        jobs[int(w.job[i, task])] = max(jobs.get(int(w.job[i, task]), 0.0), when)
    return sum(jobs.values())


@pytest.mark.parametrize("make", [small_rack, two_nics])
def test_forecasts_are_list_schedules(make):
    for batch in _moments(make, 15):
        a, w, s, i = batch.model.arrays, batch.streams, batch.state, int(batch.state.instance[0])
        free, (takes, runs, speed) = np.empty(a.duration_s.shape[1]), np.empty((3, *a.duration_s.shape))
        _fill_times(a, w, s, 0, batch.belief.pressure[0], free, takes, runs, speed)
        work = np.arange(w.arrival_s.shape[1], 0.0, -1.0)
        order = np.empty(w.kernel.shape[1], np.int64)
        order = order[: fill_order(w, s, 0, work, order)]
        known = w.job[i] < s.num[0, ARRIVED]
        waiting = known & ((s.status[0] == READY) | (s.status[0] == BLOCKED))
        assert sorted(order) == np.flatnonzero(waiting).tolist()
        for action in np.flatnonzero(batch.mask[0, : a.duration_s.size])[:4]:
            k, p = divmod(int(action), a.duration_s.shape[1])
            first = int(s.head[0, k])
            ready_s, end_s = np.empty(w.kernel.shape[1]), np.empty(s.num[0, ARRIVED])
            fill_known(w, s, 0, free, ready_s, end_s)
            graph = (w.kernel[i], w.job[i], w.after_ptr[i], w.after[i], order)
            state = (free.copy(), s.config[0].copy(), ready_s, end_s)
            found = forecast(*graph, runs, a.reconfigure_s, *state, first, p)
            assert found == pytest.approx(_slow_forecast(batch, free, runs, order, first, p))


def test_lessons_price_the_best_candidates_and_playing_on_by_the_network_costs_what_it_does():
    model, streams = small_rack(num_instances=2, num_jobs=3)
    player, weights = StreamPlayer(World.of(model, streams)), fresh_weights(0)
    found, mean_s = player.lessons(weights, 0, seed=1, p=replace(TRAINING, share=1.0, explore=0.0, error=0.0))
    score, _ = scores(weights, found.inputs)
    assert (np.where(found.is_there, score, -np.inf).argmax(axis=1) == 0).all()
    assert (found.is_there.sum(axis=1) > 1).all()
    assert abs((found.cost * found.is_there).sum(axis=1)).max() < 1e-9 or abs(found.cost).max() == TRAINING.most_cost
    assert mean_s == pytest.approx(player.mean_s(weights, [0], seed=1), rel=0.1)
    shape = (40, 6, found.inputs.shape[2])
    costs, nums = np.zeros(shape[:2]), np.zeros(40, np.int64)
    args = (model.arrays, streams, player._racks, 0, weights, 0.0, 1.0, 0.0, seeded(1, 0))
    num = collect(*args, np.zeros(shape), costs, nums)
    assert num > 5
    # With exact pressures and no exploration, the network's own choice costs the same at every decision.
    np.testing.assert_allclose(costs[:num, 0], costs[0, 0], rtol=1e-9)


def test_the_gradient_is_that_of_the_expected_cost():
    rng = np.random.default_rng(0)
    num = sum(int(np.prod(part.shape)) for part in fresh_weights(0))
    row = 0.3 * rng.normal(size=num)
    x, there = rng.normal(size=(7, 4, fresh_weights(0).direct.shape[0])), rng.random((7, 4)) < 0.8
    there[:, 0] = True
    lessons = Lessons.of(x, 10.0 + rng.random((7, 4)), there, most=0.3)
    _, gradient = expected_cost(unflat(row), lessons, 30.0)
    slope = np.concatenate([np.ravel(part) for part in gradient])
    for _ in range(5):
        way = rng.normal(size=num)
        ends = [expected_cost(unflat(row + sign * 1e-6 * way), lessons, 30.0)[0] for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(float(slope @ way), rel=1e-3, abs=1e-6)
