"""Dispatchers on a host in virtual time: nothing lost or repeated, parents first, and worth their place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.host.virtual_host import MEASURED_LAW, VirtualHost, mixed_problem, watching
from stretto.engines.driver.dispatch import GreedyDispatcher, LateDispatcher
from stretto.racks.host.law import LawValues


def phases(seed: int, mean_s: float, level: float):  # type: ignore[no-untyped-def]
    ends = np.cumsum(np.random.default_rng(seed).uniform(0.5, 1.5, 500) * mean_s)
    return lambda now_s: level * float(np.searchsorted(ends, now_s) % 2)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num_compute=st.integers(0, 12),
    num_memory=st.integers(1, 12),
    num_edges=st.integers(0, 30),
    cores=st.integers(1, 4),
    rule=st.sampled_from(["look-ahead", "earliest-completion"]),
)
def test_every_task_runs_once_after_its_parents_one_at_a_time(seed, num_compute, num_memory, num_edges, cores, rule):
    problem = mixed_problem(num_compute, num_memory, seed=seed, num_edges=num_edges, cores=cores)
    load = phases(seed, 0.5, 1.0)
    host = VirtualHost(problem, foreign_load=lambda now_s: (load(now_s),) * cores)
    host.play(watching(host, rule))
    assert sorted(host.ends) == list(range(problem.num_tasks))
    start = {task: at_s for task, _, at_s in host.starts}
    source, target, _ = problem.graph.edges
    for parent, child in zip(source.tolist(), target.tolist(), strict=True):
        assert host.ends[parent] <= start[child] + 1e-9


def test_no_core_is_left_idle_on_purpose():
    host = VirtualHost(mixed_problem(10, 20))
    dispatcher = watching(host)
    host.play(dispatcher)
    assert dispatcher.num_held == 0


def test_tasks_that_do_not_slow_each_other_down_never_wait():
    problem = mixed_problem(15, 15)
    host = VirtualHost(problem, LawValues(0.0, 0.0, np.ones(2), np.zeros(2)))
    dispatcher = watching(host)
    host.play(dispatcher)
    assert dispatcher.num_held == 0
    assert host.now_s <= 1.15 * float(problem.graph.work_s.sum()) / 2


@pytest.mark.parametrize("seed", [1, 2])
def test_symphony_beats_those_that_ignore_the_host(seed):
    cpu, memory = phases(seed, 3.0, 1.0), phases(seed + 100, 3.0, 0.8)

    def mean_s(make):  # type: ignore[no-untyped-def]
        problem = mixed_problem(50, 50, seed=seed)
        host = VirtualHost(problem, MEASURED_LAW, lambda now_s: (cpu(now_s), 0.0), memory, noise_sd=0.1)
        return host.play(make(host))

    symphony = mean_s(watching)
    assert symphony < 0.95 * mean_s(lambda host: GreedyDispatcher())
    assert symphony < 0.85 * mean_s(lambda host: LateDispatcher(num_queued=0))
    assert symphony < 0.92 * mean_s(lambda host: watching(host, "earliest-completion"))


def test_trouble_with_counters_hands_over_to_greedy_and_back():
    problem = mixed_problem(20, 20)
    host = VirtualHost(problem)
    told: list[tuple[float, str]] = []
    dispatcher = watching(host, on_fallback=lambda at_s, reason: told.append((at_s, reason)))
    sense = dispatcher.sense
    sense.problem = lambda: "cpu1 went offline" if 0.5 < host.now_s < 1.5 else None  # type: ignore[union-attr,method-assign]
    host.play(dispatcher)
    assert [reason for _, reason in told] == ["cpu1 went offline", ""]
    assert 0 < dispatcher.num_fallbacks < dispatcher.num_decisions
    assert dispatcher.notes()[-1].endswith("cpu1 went offline")
    assert len(host.ends) == 40


def test_what_a_run_learned_starts_the_next_one():
    problem = mixed_problem(30, 30)
    host = VirtualHost(problem)
    first = watching(host)
    host.play(first)
    learned = first.learned_json()
    assert learned is not None
    memory = learned["categories"]["memory"]
    together = math.exp(memory["log_scale"]) * (1 + learned["coupling"] + memory["demand"] ** 2)
    assert together == pytest.approx(1 + 0.75 + 1.07**2, rel=0.25)
    second = watching(VirtualHost(problem), learned=learned)
    assert second.live(problem).law.to_json() == learned
