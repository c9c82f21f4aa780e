"""Promises on nodes: the kernels equal their definition, and no order and no adversary breaks a promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.queues.nodes.promised_cases import NodeCase, make_case, played
from tests.queues.nodes.random_sites import random_jobs, random_site

from stretto.core.csr import Floats
from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Reservation, Site, SiteNode
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, InvalidPlan, UnknownName
from stretto.queues.evaluate import evaluate_replay
from stretto.queues.kernels import codes, keys
from stretto.queues.nodes.kernels.plan_arrays import NUM_FORCED, NUM_REFUSED, NUM_TESTS
from stretto.queues.nodes.promised import NodePromiseQueue
from stretto.queues.nodes.reference.promised import PromisedReference
from stretto.queues.nodes.replay import to_result
from stretto.queues.nodes.rules import node_rules
from stretto.queues.promises.slack import Slack
from stretto.queues.promises.validate import check_given
from stretto.queues.replay import replay
from stretto.queues.strategies import Submitted
from stretto.queues.validate import check_replay

#: In units of the random cases, whose jobs run for 1 to 20 seconds: 0, 6h+1e, 12h+2e, 24h+4e.
SLACKS = ((0.0, 0.0), (6.0, 1.0), (12.0, 2.0), (24.0, 4.0))


def checked(case: NodeCase, queue: NodePromiseQueue) -> None:
    """Check the nodes, and every promise, without knowing how the replay was made."""
    result = replace(to_result(case.setup, queue.result(), {}), due_s=queue.due_s)
    check_replay(case.jobs, case.site, result)
    check_given(result, case.slack_s)


def agrees(seed: int) -> bool:
    """Compare one random case with the definition; False where no job can run at all."""
    case = make_case(seed)
    if case is None:
        return False
    queue = played(case)
    twin = PromisedReference(case.setup, case.rules, case.slack_s, case.max_tests)
    twin.run()
    assert queue.start_s.tolist() == twin.start, f"seed {seed}"
    assert queue.due_s.tolist() == twin.due, f"seed {seed}"
    checked(case, queue)
    return True


def slack_of(seed: int, case: NodeCase) -> Floats:
    """Return the slack of the jobs of a case, sometimes with a share of the planned wait."""
    hours, share = SLACKS[seed % 4]
    time: Floats = hours + share * case.setup.arrays.estimate
    return time if seed % 5 else np.stack([time, np.full_like(time, 1.0)], axis=-1)


def ordered(seed: int) -> bool:
    """Replay one random case in an order that helps nobody: random keys, the longest or the largest first."""
    case = make_case(seed)
    if case is None:
        return False
    rules = node_rules(case.setup, (keys.DEADLINE, keys.LONGEST, keys.LARGEST_AREA)[seed % 3], codes.PROMISE)
    case = case._replace(rules=rules, slack_s=slack_of(seed, case))
    checked(case, played(case))
    return True


def attacked(seed: int) -> bool:
    """Lead one random case by keys that change at every event, by starts at random, or by nothing at all."""
    case = make_case(seed)
    if case is None:
        return False
    rng = np.random.default_rng(seed)
    rules = node_rules(case.setup, keys.DEADLINE, codes.PROMISE)
    case = case._replace(rules=rules, slack_s=slack_of(seed, case))
    queue = NodePromiseQueue.of(case.setup, case.slack_s, rules)
    while queue.next_event_s() < np.inf:
        if queue.happen(rules):
            way = rng.random()
            if way < 0.4:  # those who are due last come first
                queue.set_keys(-queue.due_s, rules)
                queue.propose(rules)
            elif way < 0.7:
                for job in rng.permutation(queue.waiting)[:3]:
                    queue.start(int(job))
            elif way < 0.8:
                queue.set_keys(rng.random(len(queue.due_s)), rules)
                queue.propose(rules, max_tests=1)
        queue.settle()
    checked(case, queue)
    return True


def test_the_kernels_equal_their_definition() -> None:
    assert sum(agrees(seed) for seed in range(150)) > 120


def test_no_order_breaks_a_promise() -> None:
    assert sum(ordered(seed) for seed in range(10_000, 12_150)) >= 2000


def test_nobody_who_decides_at_every_event_breaks_a_promise() -> None:
    assert sum(attacked(seed) for seed in range(150)) > 120


@pytest.mark.long
@pytest.mark.parametrize("first", range(20_000, 32_000, 1000))
def test_ten_thousand_cases_equal_their_definition_and_keep_every_promise(first: int) -> None:
    for seed in range(first, first + 1000):
        agrees(seed)
        ordered(seed)
        attacked(seed)


def test_the_cases_test_plans_refuse_and_force_starts() -> None:
    numbers = sum(played(case).plan.numbers for case in map(make_case, range(120)) if case is not None)
    assert numbers[NUM_TESTS] > 200
    assert numbers[NUM_REFUSED] > 50
    assert numbers[NUM_FORCED] > 5


def test_infinite_slack_is_easy() -> None:
    for seed in range(80):
        rng = np.random.default_rng(seed)
        site = random_site(rng)
        jobs = random_jobs(rng, site, 60)
        strategy = str(rng.choice(["fcfs", "sjf", "wfp3", "multifactor"]))
        try:
            easy = replay(jobs, site, strategy=strategy)
        except (InvalidInput, UnknownName):
            continue
        promised = replay(jobs, site, strategy=strategy, backfill="promise", slack="inf")
        assert np.array_equal(easy.start_s, promised.start_s), seed
        assert np.array_equal(easy.node, promised.node), seed


def test_the_mask_says_which_starts_are_allowed() -> None:
    seen = [0, 0]
    for seed in range(12):
        case = make_case(seed)
        if case is None:
            continue
        queue = NodePromiseQueue.of(case.setup, case.slack_s, case.rules)
        rng = np.random.default_rng(seed)
        while queue.next_event_s() < np.inf:
            if queue.happen(case.rules):
                waiting, allowed = queue.waiting, queue.allowed()
                for job, may in zip(waiting.tolist(), allowed.tolist(), strict=True):
                    seen[may] += 1
                    if rng.random() < 0.2:
                        assert queue.copy().start(job) == may
                queue.propose(case.rules)
            queue.settle()
        checked(case, queue)
    assert min(seen) > 20


def test_a_replay_that_stops_and_goes_on_is_the_same() -> None:
    for seed in range(40, 60):
        case = make_case(seed)
        if case is None:
            continue
        queue = NodePromiseQueue.of(case.setup, case.slack_s, case.rules)
        for until in (3.0, 3.5, 20.0, np.inf):
            queue.advance(case.rules, until, max_tests=case.max_tests)
        assert np.array_equal(queue.start_s, played(case).start_s)


def small_site(**closed: float) -> Site:
    nodes = (SiteNode("a", 4), SiteNode("b", 4))
    reservations = (Reservation("service", closed["start_s"], closed["end_s"], ("a", "b")),) if closed else ()
    both = Partition("main", ("a", "b"), is_default=True)
    return Site("pair", nodes, (both, Partition("debug", ("b",))), reservations)


def jobs_of(cpus: list[int], run: list[float], submit: list[float], **columns: object) -> Trace:
    requests = tuple(ResourceRequest(cpus_per_task=width, max_nodes=1) for width in cpus)
    return Trace.of(submit, run, cpus, request=np.arange(len(cpus), dtype=np.int32), requests=requests, **columns)


def test_fragmentation_is_in_the_plan() -> None:
    # Four processors are free, two on each node: a count of processors would promise the last job a start at 2 s.
    jobs = jobs_of([2, 3, 4], [100, 100, 100], [0, 0, 2])
    result = replay(jobs, small_site(), backfill="promise", slack="0")
    assert result.due_s is not None
    assert result.due_s.tolist() == [0.0, 0.0, 100.0]
    assert result.start_s.tolist() == [0.0, 0.0, 100.0]


def test_a_promise_knows_maintenance() -> None:
    jobs = jobs_of([4, 4, 4], [50, 50, 50], [0, 0, 0])
    result = replay(jobs, small_site(start_s=60, end_s=500), backfill="promise", slack="0")
    assert result.due_s is not None
    assert result.due_s.tolist() == [0.0, 0.0, 500.0]
    assert result.start_s.tolist() == [0.0, 0.0, 500.0]


def test_a_job_with_parents_is_promised_a_start_when_it_becomes_eligible() -> None:
    jobs = jobs_of([4, 4], [50, 50], [0, 0], parent=np.array([0], np.int32), child=np.array([1], np.int32))
    result = replay(jobs, small_site(), backfill="promise", slack="10s")
    assert result.due_s is not None
    assert result.due_s.tolist() == [10.0, 60.0]


def test_slack_may_differ_by_partition_qos_and_user() -> None:
    requests = (ResourceRequest(("main",)), ResourceRequest(("debug",)))
    jobs = Trace.of(
        [0, 1, 2, 3],
        [5, 5, 5, 5],
        [1, 1, 1, 1],
        request=np.array([0, 1, 0, 0], np.int32),
        requests=requests,
        qos=np.array([0, 0, 1, 0], np.int32),
        user=np.array([0, 0, 0, 1], np.int32),
        meta={"qos_names": ("normal", "high"), "user_names": ("bob", "alice")},
    )
    slack = "1h+1e,partition:debug=1min,qos:high=0,user:alice=2h"
    found = evaluate_replay(jobs, small_site(), timed=False, backfill="promise", slack=slack)
    assert found.result.due_s is not None
    assert (found.result.due_s - found.result.trace.submit_s).tolist() == [3605.0, 60.0, 0.0, 7200.0]
    assert found.result.spec["slack"] == "1h+1e,partition:debug=60.0s,qos:high=0,user:alice=2h"
    assert found.to_json()["promises_given"] == 4
    with pytest.raises(UnknownName, match="alise"):
        replay(jobs, small_site(), backfill="promise", slack="1h,user:alise=2h")
    with pytest.raises(InvalidInput, match="COLUMN:NAME=SLACK"):
        replay(jobs, small_site(), backfill="promise", slack="1h,debug=2h")


@pytest.mark.parametrize("slack", ["0", "6h+1e", "24h+4e"])
def test_keys_of_users_stay_inside_promises(slack: str) -> None:
    case = make_case(7)
    assert case is not None

    def widest(jobs: Submitted) -> Floats:
        return -jobs.num_procs.astype(float)

    def widest_slowly(jobs: Submitted, wait_s: Floats) -> Floats:
        assert np.all(wait_s >= 0)
        return -jobs.num_procs.astype(float)

    rules = {"backfill": "promise", "slack": slack}
    found = [replay(case.jobs, case.site, strategy=one, **rules) for one in (widest, widest_slowly, "largest")]
    for one in found:
        check_given(one, Slack.parse(slack).of(one.trace.estimate_s))
        assert np.array_equal(one.start_s, found[0].start_s)


def test_the_check_finds_broken_promises() -> None:
    jobs = jobs_of([4, 4, 4], [50, 50, 50], [0, 0, 0])
    result = replay(jobs, small_site(), backfill="promise", slack="10s")
    assert result.due_s is not None
    check_given(result, np.full(3, 10.0))
    for wrong in (result.start_s - 1.0, np.full(3, np.inf)):
        with pytest.raises(InvalidPlan, match="promise"):
            check_given(replace(result, due_s=wrong), np.full(3, 10.0))
