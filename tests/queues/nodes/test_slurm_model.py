"""The model of Slurm's schedulers: every result is valid, and small cases come out as computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.queues.nodes.random_sites import random_jobs, random_site

from stretto.core.request import JobRequest, ResourceRequest, components_of
from stretto.core.site import Partition, Reservation, Site, SiteNode
from stretto.core.site_policy import Account, PriorityFactors, SchedulerTiming, SitePolicy
from stretto.core.trace import Trace
from stretto.errors import Infeasible, InvalidInput
from stretto.queues.nodes.setup import prepare_nodes
from stretto.queues.nodes.slurm_model.account_usage import AccountUsage
from stretto.queues.nodes.slurm_model.parameters import DaemonTiming
from stretto.queues.nodes.slurm_model.replay import replay_like_slurm
from stretto.queues.nodes.validate import check_nodes
from stretto.queues.result import QueueResult

#: The main scheduler after every event within a hundredth of a second; no backfilling within the first hour.
AT_ONCE = DaemonTiming(batch_sched_delay_s=0.0, tick_s=0.01, first_tick_s=0.0)
MAIN_ONLY = SchedulerTiming(has_backfill=False, sched_interval_s=1e6)
#: Both schedulers nearly at once.
FAST = SchedulerTiming(bf_interval_s=0.01, bf_resolution_s=1.0, sched_interval_s=1e6, bf_max_job_test=10_000)


def one_partition(num_nodes: int, cpus: int, **policy: object) -> Site:
    names = tuple(f"n{i}" for i in range(num_nodes))
    nodes = tuple(SiteNode(name, cpus) for name in names)
    return Site("test", nodes, (Partition("all", names),), policy=SitePolicy(**policy))  # type: ignore[arg-type]


def jobs_of(rows: Sequence[tuple[float, float, float, JobRequest]]) -> Trace:
    """Return jobs from submission, run time, limit and request."""
    submit, run, limit = (np.array([row[i] for row in rows], dtype=float) for i in range(3))
    request = np.arange(len(rows), dtype=np.int32)
    return Trace.of(submit, run, np.ones(len(rows)), limit, request=request, requests=tuple(row[3] for row in rows))


def starts(result: QueueResult) -> list[float]:
    assert result.site is not None
    check_nodes(result.site, result)
    return [round(float(start), 1) for start in result.start_s]


def tasks(count: int) -> ResourceRequest:
    return ResourceRequest(num_tasks=count)


@pytest.mark.parametrize("seed", range(60))
def test_every_result_is_valid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    site = random_site(rng)
    jobs = random_jobs(rng, site)
    scheduler = SchedulerTiming(
        bf_interval_s=float(rng.choice([0.5, 2.0, 7.0])),
        bf_resolution_s=float(rng.choice([1, 5, 60])),
        bf_max_job_test=int(rng.choice([1, 3, 500])),
        queue_depth=int(rng.choice([1, 100])),
        sched_interval_s=10.0,
    )
    timing = DaemonTiming(launch_s=0.1, complete_s=0.2, clock_s=float(rng.integers(0, 2_000_000_000)))
    try:
        prepare_nodes(jobs, site)
    except InvalidInput:
        return  # none of the random jobs fits
    try:
        result = replay_like_slurm(jobs, site, scheduler=scheduler, timing=timing)
    except (InvalidInput, Infeasible):  # heterogeneous jobs that need to share nodes, or more tests than a pass has
        jobs = replace(jobs, requests=tuple(components_of(request)[0] for request in jobs.requests))
        result = replay_like_slurm(jobs, site, scheduler=scheduler, timing=timing)
    check_nodes(site, result)
    assert np.isfinite(result.start_s).all()


class TestMainScheduler:
    def test_a_job_that_waits_blocks_its_partition(self) -> None:
        rows = [(0.0, 10.0, 10.0, tasks(1)), (0.0, 10.0, 10.0, tasks(2)), (0.0, 10.0, 10.0, tasks(1))]
        result = replay_like_slurm(jobs_of(rows), one_partition(1, 2), scheduler=MAIN_ONLY, timing=AT_ONCE)
        assert starts(result) == [0.0, 10.0, 20.0]

    def test_and_the_nodes_of_that_partition_in_others(self) -> None:
        nodes = tuple(SiteNode(f"n{i}", 1) for i in range(3))
        partitions = (Partition("a", ("n0", "n1"), priority_tier=2), Partition("b", ("n1", "n2")))
        site = Site("test", nodes, partitions)
        wide = ResourceRequest(("a",), num_tasks=2, min_nodes=2)
        rows = [
            (0.0, 10.0, 10.0, ResourceRequest(("a",))),
            (0.0, 10.0, 10.0, wide),
            (0.0, 5.0, 5.0, ResourceRequest(("b",))),
            (0.0, 5.0, 5.0, ResourceRequest(("b",))),
        ]
        result = replay_like_slurm(jobs_of(rows), site, scheduler=MAIN_ONLY, timing=AT_ONCE)
        # n1 is idle, but belongs to the partition in which the wide job waits; n2 is all that is left to b.
        assert starts(result) == [0.0, 10.0, 0.0, 5.0]
        assert result.nodes_of(2) == result.nodes_of(3) == ["n2"]

    def test_it_runs_in_the_background_loop_and_after_epilogs(self) -> None:
        rows = [(0.0, 1.2, 60.0, tasks(1)), (0.1, 1.0, 60.0, tasks(1)), (0.2, 1.0, 60.0, tasks(1))]
        timing = DaemonTiming(has_epilog=False, batch_sched_delay_s=3.0, first_tick_s=0.5)
        result = replay_like_slurm(jobs_of(rows), one_partition(1, 1), scheduler=MAIN_ONLY, timing=timing)
        assert starts(result) == [0.5, 3.5, 6.5]
        prompt = replace(timing, has_epilog=True, complete_s=0.1)
        result = replay_like_slurm(jobs_of(rows), one_partition(1, 1), scheduler=MAIN_ONLY, timing=prompt)
        assert starts(result) == [0.5, 1.8, 2.9]

    def test_only_so_many_jobs_are_tried(self) -> None:
        site = Site(
            "test",
            (SiteNode("n0", 1), SiteNode("n1", 1)),
            (Partition("a", ("n0",), priority_tier=2), Partition("b", ("n1",))),
        )
        rows = [(0.0, 10.0, 10.0, ResourceRequest(("a",))) for _ in range(4)]
        rows.append((0.0, 10.0, 10.0, ResourceRequest(("b",))))
        shallow = replace(MAIN_ONLY, queue_depth=2)
        result = replay_like_slurm(jobs_of(rows), site, scheduler=shallow, timing=AT_ONCE)
        # Three jobs are tried: those of the first partition, until two of them have gone.
        assert starts(result) == [0.0, 10.0, 20.0, 30.0, 20.0]
        deep = replay_like_slurm(jobs_of(rows), site, scheduler=MAIN_ONLY, timing=AT_ONCE)
        assert starts(deep)[4] == 0.0


class TestBackfill:
    def test_short_jobs_pass_a_wide_one_that_waits(self) -> None:
        rows = [
            (0.0, 100.0, 100.0, tasks(1)),
            (0.0, 100.0, 100.0, tasks(2)),
            (0.0, 90.0, 90.0, tasks(1)),
            (0.0, 50.0, 150.0, tasks(1)),
        ]
        result = replay_like_slurm(jobs_of(rows), one_partition(1, 2), scheduler=FAST, timing=AT_ONCE)
        # The third ends before the reservation of the second. The fourth might not, and comes last.
        assert starts(result) == [0.0, 100.0, 0.0, 200.0]

    def test_reservations_take_whole_nodes(self) -> None:
        pinned = ResourceRequest(num_tasks=3)
        rows = [(0.0, 100.0, 100.0, tasks(2)), (0.0, 100.0, 100.0, pinned), (0.0, 300.0, 300.0, tasks(1))]
        result = replay_like_slurm(jobs_of(rows), one_partition(1, 4), scheduler=FAST, timing=AT_ONCE)
        # 3 + 1 processors would fit beside each other at 100 s; Slurm keeps the whole node for the second job.
        assert starts(result) == [0.0, 100.0, 100.0]

    def test_every_waiting_job_has_a_reservation(self) -> None:
        rows = [
            (0.0, 100.0, 100.0, tasks(1)),
            (0.0, 100.0, 100.0, tasks(2)),
            (0.0, 100.0, 100.0, tasks(2)),
            (0.0, 90.0, 90.0, tasks(1)),
            (0.0, 90.0, 190.0, tasks(1)),
        ]
        result = replay_like_slurm(jobs_of(rows), one_partition(1, 2), scheduler=FAST, timing=AT_ONCE)
        assert starts(result) == [0.0, 100.0, 200.0, 0.0, 300.0]

    def test_not_before_its_interval(self) -> None:
        rows = [(0.0, 99.0, 99.0, tasks(1)), (0.0, 100.0, 100.0, tasks(2)), (0.0, 20.0, 20.0, tasks(1))]
        slow = replace(FAST, bf_interval_s=30.0)
        result = replay_like_slurm(jobs_of(rows), one_partition(1, 2), scheduler=slow, timing=AT_ONCE)
        assert starts(result) == [0.0, 99.0, 30.0]

    def test_only_so_many_jobs_are_tested(self) -> None:
        rows = [(0.0, 100.0, 100.0, tasks(1)), (0.0, 9.0, 90.0, tasks(2)), (0.0, 9.0, 90.0, tasks(1))]
        one = replace(FAST, bf_max_job_test=1)
        result = replay_like_slurm(jobs_of(rows), one_partition(1, 2), scheduler=one, timing=AT_ONCE)
        assert starts(result)[2] > 100.0
        two = replace(FAST, bf_max_job_test=2)
        assert starts(replay_like_slurm(jobs_of(rows), one_partition(1, 2), scheduler=two, timing=AT_ONCE))[2] == 0.0

    def test_coarse_slots_delay(self) -> None:
        rows = [(0.0, 100.0, 100.0, tasks(1)), (0.0, 100.0, 100.0, tasks(2)), (0.0, 90.0, 90.0, tasks(1))]
        coarse = replace(FAST, bf_resolution_s=60.0)
        result = replay_like_slurm(jobs_of(rows), one_partition(1, 2), scheduler=coarse, timing=AT_ONCE)
        # The reservation begins at 60 s of the clock, so a job of 90 s does not fit before it.
        assert starts(result)[2] > 100.0

    def test_maintenance_is_kept_free(self) -> None:
        site = replace(one_partition(1, 2), reservations=(Reservation("maintenance", 50.0, 80.0, ("n0",)),))
        rows = [(0.0, 10.0, 60.0, tasks(1)), (0.0, 10.0, 40.0, tasks(1))]
        result = replay_like_slurm(jobs_of(rows), site, scheduler=FAST, timing=AT_ONCE)
        assert starts(result) == [80.0, 0.0]


class TestNodeChoice:
    def test_lightest_then_tightest(self) -> None:
        nodes = (SiteNode("n0", 8, weight=2), SiteNode("n1", 8), SiteNode("n2", 8, weight=2), SiteNode("n3", 4))
        site = Site("test", nodes, (Partition("all", ("n0", "n1", "n2", "n3")),))
        rows = [(0.0, 50.0, 60.0, ResourceRequest(num_tasks=n, max_nodes=1)) for n in (3, 8, 8)]
        result = replay_like_slurm(jobs_of(rows), site, scheduler=MAIN_ONLY, timing=AT_ONCE)
        assert [result.nodes_of(job) for job in range(3)] == [["n3"], ["n1"], ["n0"]]
        check_nodes(site, result)

    def test_nodes_are_filled_and_one_task_stays_for_each(self) -> None:
        rows = [(0.0, 50.0, 60.0, ResourceRequest(num_tasks=6, min_nodes=3, max_nodes=3))]
        result = replay_like_slurm(jobs_of(rows), one_partition(3, 4), scheduler=MAIN_ONLY, timing=AT_ONCE)
        assert result.tasks.tolist() == [4, 1, 1]

    def test_gpus_by_type_and_whole_nodes(self) -> None:
        nodes = (SiteNode("n0", 4, gpus={"a": 1}), SiteNode("n1", 4, gpus={"b": 2}))
        site = Site("test", nodes, (Partition("all", ("n0", "n1")),))
        gpu = ResourceRequest(gpus_per_node={"b": 1}, max_nodes=1)
        whole = ResourceRequest(is_exclusive=True, max_nodes=1)
        rows = [(0.0, 50.0, 60.0, gpu), (0.0, 50.0, 60.0, gpu), (0.0, 50.0, 60.0, gpu), (0.0, 50.0, 60.0, whole)]
        result = replay_like_slurm(jobs_of(rows), site, scheduler=FAST, timing=AT_ONCE)
        assert [result.nodes_of(job) for job in range(4)] == [["n1"], ["n1"], ["n1"], ["n0"]]
        assert starts(result) == [0.0, 0.0, 50.0, 0.0]


class TestPriorities:
    def test_large_jobs_first_by_size(self) -> None:
        site = one_partition(2, 2, priority=PriorityFactors(job_size=1000.0))
        rows = [(0.0, 10.0, 10.0, tasks(4)), (1.0, 10.0, 10.0, tasks(1)), (2.0, 10.0, 10.0, tasks(4))]
        result = replay_like_slurm(jobs_of(rows), site, scheduler=MAIN_ONLY, timing=AT_ONCE)
        assert starts(result) == [0.0, 20.0, 10.0]

    def test_age_counts_when_priorities_are_computed_again(self) -> None:
        # Size gives the wide job 100 more; 60 s of 600 s of age give 100.
        weights = PriorityFactors(job_size=200.0, age=1000.0, max_age_s=600.0)
        site = one_partition(1, 2, priority=weights)
        rows = [(0.0, 99.0, 99.0, tasks(2)), (1.0, 10.0, 10.0, tasks(1)), (95.0, 10.0, 10.0, tasks(2))]
        timing = replace(AT_ONCE, priority_period_s=60.0, first_priority_s=90.0)
        result = replay_like_slurm(jobs_of(rows), site, scheduler=MAIN_ONLY, timing=timing)
        assert starts(result) == [0.0, 99.0, 109.0]
        never = replace(timing, first_priority_s=1e6)
        assert starts(replay_like_slurm(jobs_of(rows), site, scheduler=MAIN_ONLY, timing=never)) == [0.0, 109.0, 99.0]

    def test_higher_tiers_first(self) -> None:
        site = Site("t", (SiteNode("n0", 1),), (Partition("low", ("n0",)), Partition("high", ("n0",), priority_tier=9)))
        rows = [
            (0.0, 10.0, 10.0, ResourceRequest(("low",))),
            (1.0, 10.0, 10.0, ResourceRequest(("low",))),
            (2.0, 10.0, 10.0, ResourceRequest(("high",))),
        ]
        result = replay_like_slurm(jobs_of(rows), site, scheduler=MAIN_ONLY, timing=AT_ONCE)
        assert starts(result) == [0.0, 20.0, 10.0]

    def test_who_has_used_less_comes_first(self) -> None:
        """Ann's long job has used the site for 100 s; then Bob's job passes hers, though it came later."""
        site = one_partition(1, 1, priority=PriorityFactors(fair_share=1000.0))
        rows = [(0.0, 100.0, 200.0, tasks(1)), (1.0, 10.0, 20.0, tasks(1)), (2.0, 10.0, 20.0, tasks(1))]
        jobs = replace(jobs_of(rows), user=np.array([0, 0, 1], np.int32), meta={"user_names": ("ann", "bob")})
        timing = replace(AT_ONCE, priority_period_s=10.0, first_priority_s=10.0)
        fair = replay_like_slurm(jobs, site, scheduler=MAIN_ONLY, timing=timing)
        assert np.argsort(fair.start_s).tolist() == [0, 2, 1]
        plain = replay_like_slurm(jobs, one_partition(1, 1), scheduler=MAIN_ONLY, timing=timing)
        assert np.argsort(plain.start_s).tolist() == [0, 1, 2]

    def test_the_factor_is_a_half_at_the_fair_share(self) -> None:
        accounts = (Account("phys", shares=3), Account("chem", shares=1))
        site = one_partition(2, 4, priority=PriorityFactors(fair_share=1.0, half_life_s=1e12), accounts=accounts)
        jobs = replace(
            jobs_of([(0.0, 10.0, 20.0, tasks(3)), (0.0, 10.0, 20.0, tasks(1)), (0.0, 1.0, 2.0, tasks(1))]),
            user=np.array([0, 1, 2], np.int32),
            account=np.array([0, 1, 0], np.int32),
            meta={"user_names": ("ann", "bob", "cat"), "account_names": ("phys", "chem")},
        )
        usage = AccountUsage(prepare_nodes(jobs, site), 1e12)
        assert usage.factor(0) == usage.factor(1) == 1.0
        for job in (0, 1):
            usage.start(job, 0.0)
        usage.decay(10.0)
        assert usage.used[usage.member[0]] == 30.0
        assert usage.factor(1) == pytest.approx(0.5)  # a quarter of the shares, a quarter of the usage
        # Ann and Cat have half of physics each: effective usage of Cat 0 + (3/4 - 0) / 2, shares 3/8.
        assert usage.factor(2) == pytest.approx(2 ** -(0.375 / 0.375))
        assert usage.factor(0) == pytest.approx(2 ** -((0.75 + (0.75 - 0.75) * 0.5) / 0.375))
        usage.end(0, 10.0)
        assert list(usage.since) == [1]

    def test_usage_fades(self) -> None:
        site = one_partition(1, 4, priority=PriorityFactors(fair_share=1.0))
        usage = AccountUsage(prepare_nodes(jobs_of([(0.0, 10.0, 20.0, tasks(2))]), site), 50.0)
        usage.start(0, 0.0)
        usage.end(0, 10.0)
        usage.decay(100.0)
        assert usage.total == pytest.approx(20.0 / 4)


def test_components_of_a_heterogeneous_job_start_together_as_in_slurm() -> None:
    """What slurmctld 22.05 did with these jobs, with times that do not depend on a race.

    The first component reserves the idle node from every pass on, so the last job, which would end in time, has to
    wait: first for the nodes, then for the pass after the one that starts both components, each on a node of its own.
    """
    rows = [(0.0, 12.0, 120.0, tasks(4)), (1.5, 5.0, 120.0, (tasks(2), tasks(4))), (2.5, 4.0, 60.0, tasks(1))]
    site = one_partition(2, 4)
    slow = SchedulerTiming(bf_interval_s=2.0, bf_resolution_s=1.0)
    timing = DaemonTiming(first_tick_s=0.8, first_backfill_s=1.8, launch_s=0.1, complete_s=0.03)
    result = replay_like_slurm(jobs_of(rows), site, scheduler=slow, timing=timing)
    check_nodes(site, result)
    assert [round(float(start), 1) for start in result.start_s] == [0.8, 13.8, 15.8]
    assert [result.nodes_of(job) for job in range(3)] == [["n0"], ["n0", "n1"], ["n0"]]


def test_the_main_scheduler_leaves_heterogeneous_jobs_to_backfilling() -> None:
    rows: list[tuple[float, float, float, JobRequest]] = [(0.0, 5.0, 10.0, (tasks(1), tasks(1)))]
    late = SchedulerTiming(bf_interval_s=30.0, bf_resolution_s=1.0)
    assert replay_like_slurm(jobs_of(rows), one_partition(2, 4), scheduler=late, timing=AT_ONCE).start_s[0] >= 29.0


def test_components_that_would_have_to_share_a_node_are_refused() -> None:
    rows: list[tuple[float, float, float, JobRequest]] = [(0, 1, 1, (tasks(1), tasks(1)))]
    with pytest.raises(InvalidInput, match="share nodes"):
        replay_like_slurm(jobs_of(rows), one_partition(1, 2))


def test_nodes_that_clean_up_are_left_alone() -> None:
    rows = [(0.0, 10.0, 60.0, tasks(1)), (0.0, 10.0, 60.0, tasks(2))]
    timing = replace(AT_ONCE, complete_s=2.5, launch_s=0.5)
    result = replay_like_slurm(jobs_of(rows), one_partition(1, 2), scheduler=FAST, timing=timing)
    assert starts(result) == [0.0, 13.0]
