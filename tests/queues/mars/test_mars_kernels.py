"""Kernels of MARS against their slow twin, start for start."""

from __future__ import annotations

import numpy as np
import pytest
from mars_cases import PROCS, crowded, random_candidate
from mars_twin import MarsTwin, classic_key, score_of

from queues.promises.promise_cases import Case, make_case
from stretto.core.csr import Floats
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.kernels import keys
from stretto.queues.mars.candidates import (
    Candidate,
    candidates_of,
    classic_candidate,
    untrained_nets,
)
from stretto.queues.mars.kernels.moment import foresee_all, order_now
from stretto.queues.mars.kernels.offer import need_of
from stretto.queues.mars.kernels.play import play, play_beside
from stretto.queues.mars.kernels.score import NUM_JOB, fill_scores, new_scores, put_through
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.mars.policy_queue import PolicyQueue
from stretto.queues.promises.queue import PromiseQueue
from stretto.queues.promises.validate import check_promises

#: Seconds of the small cases become minutes and hours: some forecasts are long.
_STRETCH = 300.0


def stretched(seed: int) -> Case:
    case = make_case(seed)
    q = case.jobs
    longer = {name: _STRETCH * getattr(q, name) for name in ("submit", "run", "estimate", "deadline")}
    return case._replace(jobs=q._replace(**longer), slack_s=_STRETCH * case.slack_s)


def candidate_of(seed: int) -> Candidate:
    if seed % 4 == 3:
        return classic_candidate(("fcfs", "saf", "f4", "wfp3")[seed // 4 % 4])
    return random_candidate(seed, scale=(0.3, 3.0)[seed % 2])


def played(case: Case, one: Candidate, policy: Candidate) -> tuple[PromiseQueue, PolicyQueue]:
    queue = PromiseQueue.of(case.jobs, case.num_procs, case.slack_s, new_forecasts(case.jobs))
    beside = PolicyQueue.of(case.jobs, case.num_procs, policy)
    n = len(case.jobs.submit)
    scores = new_scores(n)._replace(reference=beside.queue.state.start)
    play_beside(
        *(case.jobs, case.num_procs, queue.state, one.order(learns=True), queue.forecasts),
        *(one.net, scores, P.forecast_pause, n + 1),
        *(beside.queue.jobs, beside.queue.state, beside.policy, beside.queue.forecasts),
    )
    return queue, beside


@pytest.mark.parametrize("first", range(0, 96, 32))
def test_a_replay_equals_its_twin_and_keeps_every_promise(first: int) -> None:
    for seed in range(first, first + 32):
        case, one = stretched(seed), candidate_of(seed)
        policy = classic_candidate(("fcfs", "saf")[seed // 2 % 2])
        queue, beside = played(case, one, policy)
        twin = MarsTwin(case.jobs, case.num_procs, case.slack_s, one, new_forecasts(case.jobs), policy.code)
        twin.run()
        assert queue.state.start.tolist() == twin.start, seed
        assert queue.state.due.tolist() == twin.due, seed
        started = np.array(twin.beside.start) >= 0
        assert beside.queue.state.start[started].tolist() == np.array(twin.beside.start)[started].tolist(), seed
        assert check_promises(case.jobs, case.num_procs, case.slack_s, queue.state.start, queue.state.due).is_valid


def test_the_cases_hold_jobs_back_and_refuse_starts() -> None:
    """Without these the twin would prove little."""
    cases = [(stretched(seed), candidate_of(seed)) for seed in range(0, 80)]
    moments = [played(case, one, classic_candidate("fcfs"))[0].state.moment for case, one in cases]
    assert sum(int(moment["num_refused"][0]) for moment in moments) > 10
    assert sum(int(moment["num_forced"][0]) for moment in moments) > 10
    holding = [(case, one) for case, one in cases if one.is_network and one.net.reserve[0] > 0]
    free = [one.net._replace(reserve=np.zeros(1)) for _, one in holding]
    other = [
        played(case, Candidate(one.name, one.code, net), classic_candidate("fcfs"))[0].state.start
        for (case, one), net in zip(holding, free, strict=True)
    ]
    same = [
        np.array_equal(played(case, one, classic_candidate("fcfs"))[0].state.start, start)
        for (case, one), start in zip(holding, other, strict=True)
    ]
    assert not all(same), "the reserve changes nothing in any of them"


def queue_now(seed: int, one: Candidate, until_s: float) -> PromiseQueue:
    """Return a crowded queue at a moment at which jobs wait."""
    jobs = crowded(120, seed).arrays()
    queue = PromiseQueue.of(jobs, PROCS, 3600.0, new_forecasts(jobs))
    queue.advance(one.order(learns=True)._replace(code=keys.FCFS), until_s)
    return queue


@pytest.mark.parametrize("seed", range(6))
def test_scores_are_those_of_the_formula(seed: int) -> None:
    one, rng = random_candidate(seed), np.random.default_rng(seed)
    queue = queue_now(seed, one, float(crowded(120, seed).submit_s[80]))
    q, s, n = queue.jobs, queue.state, 120
    assert len(queue.waiting) > 3
    scores = new_scores(n)
    scores.static[:] = rng.normal(size=scores.static.shape)
    scores.mean[:], scores.sharp[:] = rng.uniform(10, 9999, (2, n))
    scores.reference[:] = np.where(rng.random(n) < 0.5, -1.0, queue.now_s - rng.uniform(-900, 9000, n))
    for job in queue.waiting:
        put_through(one.net, scores, job)
    fill_scores(q, s, one.net, scores)
    waiting = queue.waiting
    for job in waiting:
        waited, late = queue.now_s - q.submit[job], queue.now_s - scores.reference[job]
        x = [
            *scores.static[job],
            np.log1p(waited / 60.0) / 3,
            np.log1p(waited / scores.sharp[job]) / 3,
            min(1.0, waited / (s.latest[job] - q.submit[job])),
            np.log1p(max(0.0, late) / 60.0) / 3 if scores.reference[job] >= 0 else 0.0,
        ]
        assert -s.key[job] == pytest.approx(score_of(one.net, x), rel=1e-9)


def test_only_long_jobs_leave_room_and_never_more_than_a_third_of_the_machine() -> None:
    jobs = crowded(50).arrays()
    scores = new_scores(50)
    scores.width[0] = 6.0
    net = untrained_nets()[0].net._replace(reserve=np.array([0.5]))
    for job in range(50):
        scores.mean[job] = P.long_s + (1.0 if job % 2 else 0.0)
        need, procs = need_of(jobs, 12, net, scores, job), int(jobs.procs[job])
        assert need == (max(procs, min(procs + 3, 4)) if job % 2 else procs)
        assert need_of(jobs, 12, net._replace(reserve=np.zeros(1)), scores, job) == procs


def test_a_replay_that_stops_at_arrivals_goes_on_exactly() -> None:
    jobs, one = crowded(200, 3).arrays(), random_candidate(4)

    def starts(stops: list[int]) -> Floats:
        queue = PromiseQueue.of(jobs, PROCS, 7200.0)
        scores = new_scores(200)
        scores.static[:] = np.random.default_rng(0).normal(size=scores.static.shape)
        for stop in stops:
            arguments = jobs, PROCS, queue.state, one.order(learns=False), queue.forecasts
            play(*arguments, one.net, scores, 0.0, stop)
            assert queue.state.moment["num_arrived"][0] >= min(stop, 200)
        return queue.state.start

    whole = starts([201])
    assert np.all(whole >= jobs.submit)
    assert np.array_equal(whole, starts([30, 31, 150, 201]))


def test_forecasts_from_a_record_are_those_that_were_made_on_arrival() -> None:
    """Where nothing is forecast anew, a queue that is looked at afterwards has the features that it had then."""
    jobs, one = crowded(300, 7).arrays(), random_candidate(1)
    jobs = jobs._replace(run=jobs.run + np.random.default_rng(1).random(300) * 0.5)  # no two jobs end at once
    jobs = jobs._replace(estimate=jobs.estimate + 1.0)
    queue = PromiseQueue.of(jobs, PROCS, np.inf, new_forecasts(jobs))
    beside = PolicyQueue.of(jobs, PROCS, classic_candidate("fcfs"))
    scores = new_scores(300)
    play_beside(
        *(jobs, PROCS, queue.state, one.order(learns=True), queue.forecasts, one.net, scores, np.inf, 301),
        *(beside.queue.jobs, beside.queue.state, beside.policy, beside.queue.forecasts),
    )
    end = queue.state.start + jobs.run
    again = PromiseQueue.of(jobs, PROCS, np.inf, new_forecasts(jobs))
    seen = new_scores(300)
    foresee_all(jobs, PROCS, again.state, again.forecasts, one.net, seen, np.argsort(end), end)
    np.testing.assert_array_equal(seen.static, scores.static)
    np.testing.assert_array_equal(seen.mean, scores.mean)
    assert again.forecasts.tally[0] == 300, "what ended later is learned, too"


@pytest.mark.parametrize("one", [classic_candidate("saf"), classic_candidate("wfp3"), random_candidate(2)])
def test_the_order_at_a_moment_is_that_of_the_keys(one: Candidate) -> None:
    queue = queue_now(5, one, float(crowded(120, 5).submit_s[90]))
    jobs, now, waiting = queue.jobs, queue.now_s, queue.waiting.copy()
    scores = new_scores(120)
    found = order_now(jobs, PROCS, queue.state, one.order(learns=True), queue.forecasts, one.net, scores, now, 3)
    assert sorted(found.tolist()) == sorted(waiting.tolist())
    if one.is_network:
        assert np.all(np.diff(queue.state.key[found]) >= 0)
    else:
        assert found.tolist() == sorted(waiting.tolist(), key=lambda j: (classic_key(jobs, one.code, j, now), j))


def test_every_candidate_has_the_same_shape_so_that_one_compiled_kernel_serves_all() -> None:
    for one in candidates_of():
        assert (one.net.weight.shape, one.net.reserve.shape) == ((NUM_JOB,), (1,))
