"""Stretches of a wait on a site agree with the slow reference: room on nodes, limits, maintenance, and the queue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.queues.nodes.random_sites import random_jobs, random_site

import stretto
from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Reservation, Site, SiteNode
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.explain.explain import explain_job
from stretto.queues.explain.stretches import Cause
from stretto.queues.kernels import codes
from stretto.queues.nodes.reference.nodes import Room
from stretto.queues.nodes.reference.replay import NodeReference
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.setup import prepare_nodes
from stretto.queues.replay import replay
from stretto.queues.strategies import FCFS, SAF


class _Watched(NodeReference):
    """Writes down what was free, who waited, and who was held back by a limit after each pass."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.seen: list[tuple[float, Room, list[int], set[int]]] = []

    def schedule(self) -> None:
        super().schedule()
        order = self.in_order(self.waiting)
        self.seen.append((self.now, [row.copy() for row in self.free], order, set(filter(self.is_throttled, order))))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 100_000), st.sampled_from([FCFS, SAF]), st.sampled_from(["none", "easy"]))
def test_stretches_say_what_the_reference_saw(seed: int, strategy: object, backfill: str) -> None:
    rng = np.random.default_rng(seed)
    site = random_site(rng)
    trace = random_jobs(rng, site)
    try:
        setup = prepare_nodes(trace, site)
    except InvalidInput:  # no job fits
        return
    tagged = replay(replace(trace, job_id=np.arange(trace.num_jobs, dtype=np.int32)), site)
    assert tagged.trace.job_id is not None
    kept = set(tagged.trace.job_id.tolist())
    code = {"none": codes.NONE, "easy": codes.EASY}[backfill]
    watched = _Watched(setup, node_rules(setup, strategy.code, code))  # type: ignore[attr-defined]
    watched.run()
    for row in range(trace.num_jobs):
        if row in kept:
            how = {"strategy": strategy, "backfill": backfill, "with_alternatives": False}
            found = explain_job(trace, site, row, **how)  # type: ignore[arg-type]
            hold(watched, found.wait.index, found.wait)
        else:
            with pytest.raises(InvalidInput, match="is not in the replay"):
                explain_job(trace, site, row)


def hold(watched: _Watched, job: int, wait: object) -> None:
    several = watched.q.component_ptr[watched.q.kind[job] + 1] - watched.q.component_ptr[watched.q.kind[job]] > 1
    for one in wait.stretches:  # type: ignore[attr-defined]
        if one.cause is Cause.DEPENDENCY:
            continue
        for now, free, waiting, throttled in watched.seen:
            if not one.begin_s <= now < one.end_s or job not in waiting:
                continue
            same = [other for other in waiting if island(watched, other) == island(watched, job)]
            assert (same[0] == job) == one.is_head
            assert (job in throttled) == (one.cause is Cause.LIMIT)
            if job in throttled or several:
                continue
            watched.now = now
            span = (now, now + float(watched.q.estimate[job]))
            places = watched.place(
                watched.components(job), [line.copy() for line in free], None, span, prefers_busy=False
            )
            assert (places is None) == (one.cause in (Cause.RESOURCE, Cause.MAINTENANCE))


def island(watched: _Watched, job: int) -> int:
    return int(watched.q.island[watched.q.kind[job]])


NODES = (
    SiteNode("c1", 8, 64 * 2**30),
    SiteNode("c2", 8, 64 * 2**30),
    SiteNode("g1", 8, 64 * 2**30, gpus={"a100": 2}),
)
SITE = Site(
    "hades", NODES, (Partition("cpu", ("c1", "c2"), is_default=True), Partition("gpu", ("g1",), max_time_s=7200.0))
)


def jobs(*asked: tuple[float, float, ResourceRequest]) -> Trace:
    return Trace.of(
        [submit for submit, _, _ in asked],
        [run for _, run, _ in asked],
        [request.num_cpus for _, _, request in asked],
        request=np.arange(len(asked), dtype=np.int32),
        requests=tuple(request for _, _, request in asked),
    )


def test_memory_and_gpus_are_named() -> None:
    big = ResourceRequest(("cpu",), memory_bytes_per_node=60 * 2**30)
    trace = jobs((0, 100, big), (1, 100, big), (2, 100, big))
    (one,) = explain_job(trace, SITE, 2, with_alternatives=False).wait.stretches
    assert (one.cause, one.resources, one.names) == (Cause.RESOURCE, ("memory",), ("cpu",))
    card = ResourceRequest(("gpu",), gpus_per_task={"a100": 2})
    (one,) = explain_job(jobs((0, 100, card), (1, 100, card)), SITE, 1, with_alternatives=False).wait.stretches
    assert (one.resources, one.needed, one.free_most) == (("GPUs of type a100",), 2, 0)
    assert [holder.row for holder in one.holders] == [0]


def test_another_partition_is_an_alternative_with_its_start() -> None:
    wide = ResourceRequest(("cpu",), num_tasks=8, min_nodes=1, max_nodes=1)
    trace = jobs((0, 100, wide), (0, 100, wide), (1, 50, wide))
    found = stretto.explain(trace, SITE, job="row:2")
    assert found.answer == (
        "Job 2 waited 1.6 min for 8 processors in partition cpu: too few processors were free in partition cpu."
    )
    kinds = {one.change: one.start_s for one in found.alternatives if one.kind == "partition"}
    assert kinds == {"partition gpu instead of cpu": 1.0, "any partition instead of cpu": 1.0}


def test_what_a_partition_does_not_allow_is_said() -> None:
    long = ResourceRequest(("cpu",), num_tasks=8, max_nodes=1)
    trace = jobs((0, 9000, long), (0, 9000, long), (1, 9000, long))
    moved = next(
        one for one in stretto.explain(trace, SITE, job="row:2").alternatives if one.change.startswith("partition gpu")
    )
    assert moved.reason is not None


def test_maintenance_is_named() -> None:
    closed = replace(SITE, reservations=(Reservation("cooling", 50.0, 500.0, ("c1", "c2")),))
    wide = ResourceRequest(("cpu",), num_tasks=4)
    wait = explain_job(jobs((0, 10, wide), (1, 100, wide)), closed, 1, with_alternatives=False).wait
    assert [(one.cause, one.names, one.end_s) for one in wait.stretches] == [(Cause.MAINTENANCE, ("cooling",), 500.0)]


def test_limits_of_arrays_are_named() -> None:
    one = ResourceRequest(("cpu",))
    trace = replace(jobs((0, 100, one), (0, 100, one)), limit_group=np.zeros(2, np.int32), group_limits=(1,))
    found = stretto.explain(trace, SITE, job="row:1")
    assert found.answer.endswith("as many jobs of its group ran as its limit of 1 allows.")


@pytest.mark.parametrize("strategy", ["fcfs", "sjf"])
def test_a_trace_without_requests_is_explained_too(strategy: str) -> None:
    trace = Trace.of([0, 0, 1], [100, 100, 50], [8, 8, 8])
    found = stretto.explain(trace, SITE, job="row:2", strategy=strategy)
    assert found.wait.wait_s > 0
    assert found.wait.stretches[0].resources == ("processors",)
    assert {one.kind for one in found.alternatives} == {"size", "partition"}
