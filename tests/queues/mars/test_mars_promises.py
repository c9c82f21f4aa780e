"""No network, however bad, breaks a promise; without promises a classic candidate is EASY, start for start."""

from __future__ import annotations

import numpy as np
import pytest
from mars_cases import PROCS, crowded, random_candidate

from queues.promises.promise_cases import make_case
from stretto.core.trace import Trace
from stretto.queues.mars.candidates import (
    CLASSIC_CANDIDATES,
    POLICY,
    Candidate,
    candidates_of,
    classic_candidate,
    network_candidate,
)
from stretto.queues.mars.network import linear_net
from stretto.queues.mars.parameters import MarsParameters
from stretto.queues.mars.replay import mars_replay
from stretto.queues.mars.windows import starts_of
from stretto.queues.promises.slack import Slack
from stretto.queues.promises.validate import check_promises
from stretto.queues.replay import replay

SLACKS = ("0", "6h+1e", "12h+2e", "24h+4e")
HASTY = MarsParameters(epoch_jobs=60, lag_jobs=20, block_epochs=1, certainty=0.5, guard=9.0)


def adversary() -> Candidate:
    """Those who have waited longest and are due soonest come last; long jobs leave much room."""
    from stretto.queues.mars.kernels import score

    weights = {score.WAIT: -9.0, score.URGENCY: -99.0, score.OVERDUE: -9.0, score.WIDTH: -1.0}
    return network_candidate(linear_net("adversary", weights, reserve=3.0))


def assert_kept(trace: Trace, candidates: list[Candidate], slack: Slack) -> None:
    found = mars_replay(trace, PROCS, candidates=candidates, slack=slack, rules=HASTY)
    jobs = found.trace.arrays()
    kept = check_promises(jobs, PROCS, slack.of(jobs.estimate), found.start_s, found.due_s)
    assert kept.is_valid, (slack, kept)


@pytest.mark.parametrize("slack", SLACKS)
def test_random_and_adversarial_networks_keep_every_promise(slack: str) -> None:
    trace = crowded(600, 2)
    for one in (random_candidate(1), random_candidate(2, scale=1e6), random_candidate(3, scale=1e-9), adversary()):
        assert_kept(trace, [one], Slack.parse(slack))


@pytest.mark.parametrize("slack", SLACKS)
def test_changes_between_candidates_keep_every_promise(slack: str) -> None:
    """Every epoch another one may take over in the middle of plans that it did not make."""
    some = [classic_candidate("fcfs"), adversary(), random_candidate(4), *candidates_of()[1:3], random_candidate(6)]
    found = mars_replay(crowded(900, 5), PROCS, candidates=some, slack=Slack.parse(slack), rules=HASTY)
    jobs = found.trace.arrays()
    assert check_promises(jobs, PROCS, Slack.parse(slack).of(jobs.estimate), found.start_s, found.due_s).is_valid
    assert len(found.shares) > 1, "nobody took over"


def test_small_queues_with_slack_of_their_own_keep_every_promise() -> None:
    for seed in range(60):
        jobs, procs, slack_s = make_case(seed)[:3]
        trace = Trace.of(jobs.submit, jobs.run, jobs.procs, jobs.estimate, user=jobs.user)
        one = random_candidate(seed, scale=(0.1, 1.0, 1e9)[seed % 3])
        slack = Slack(float(slack_s.min()) if np.isfinite(slack_s.min()) else 7.0, (0.0, 0.5, 2.0)[seed % 3])
        found = mars_replay(trace, procs, candidates=[one], slack=slack)
        assert check_promises(jobs, procs, slack.of(jobs.estimate), found.start_s, found.due_s).is_valid, seed


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 20_000, 1000))
def test_twenty_thousand_small_queues_keep_every_promise(first: int) -> None:
    for seed in range(first, first + 1000):
        jobs, procs, _ = make_case(seed)[:3]
        trace = Trace.of(jobs.submit, jobs.run, jobs.procs, jobs.estimate, user=jobs.user)
        slack = Slack((0.0, 5.0, 60.0)[seed % 3], (0.0, 1.0)[seed // 3 % 2])
        start = starts_of(trace, procs, random_candidate(seed, scale=10.0 ** (seed % 7 - 3)), slack)
        found = mars_replay(
            trace, procs, candidates=[random_candidate(seed, scale=10.0 ** (seed % 7 - 3))], slack=slack
        )
        assert np.array_equal(found.start_s, start), seed
        assert check_promises(jobs, procs, slack.of(jobs.estimate), start, found.due_s).is_valid, seed


@pytest.mark.parametrize("name", [POLICY, *CLASSIC_CANDIDATES])
def test_a_classic_candidate_without_promises_is_easy(name: str) -> None:
    trace = crowded(1200, 3)
    found = mars_replay(trace, PROCS, candidates=[classic_candidate(name)])
    assert np.array_equal(found.start_s, replay(trace, PROCS, strategy=name, backfill="easy").start_s)
    assert np.all(np.isinf(found.due_s))
    assert np.array_equal(starts_of(trace, PROCS, classic_candidate(name), Slack(np.inf)), found.start_s)


def test_a_classic_candidate_with_promises_is_that_backfilling() -> None:
    trace = crowded(500, 3)
    found = mars_replay(trace, PROCS, candidates=[classic_candidate("saf")], slack=Slack.parse("1h+1e"))
    expected = replay(trace, PROCS, strategy="saf", backfill="promise", slack="1h+1e")
    assert np.array_equal(found.start_s, expected.start_s)
    assert expected.due_s is not None
    assert np.array_equal(found.due_s, expected.due_s)
