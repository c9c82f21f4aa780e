"""A replay with MARS: counterfactuals are what they say, nothing looks into the future, and what is told is true."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mars_cases import PROCS, crowded, random_candidate

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.mars.candidates import Candidate, candidates_of, classic_candidate
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.counterfactual import CounterfactualReplays, known_until
from stretto.queues.mars.kernels.score import new_scores
from stretto.queues.mars.parameters import MarsParameters
from stretto.queues.mars.replay import EpochReplay, mars_replay
from stretto.queues.mars.run_record import resume
from stretto.queues.mars.selector import Selector
from stretto.queues.promises.queue import PromiseQueue
from stretto.queues.promises.slack import Slack, SlackTable
from stretto.runlog import RunLog

RULES = MarsParameters(epoch_jobs=100, lag_jobs=30, block_epochs=1)


def orders(*names: str) -> list[Candidate]:
    return [classic_candidate(name) for name in names]


@pytest.mark.parametrize("slack", [Slack(np.inf), Slack(1800.0, 1.0)], ids=str)
@pytest.mark.parametrize("one", [classic_candidate("saf"), classic_candidate("wfp3"), random_candidate(3)])
def test_a_counterfactual_of_what_was_done_is_what_was_done(one: Candidate, slack: Slack) -> None:
    """With all run times known, and forecasts that do not change after arrival, the replay is the real queue."""
    trace = crowded(400, 8)
    real = EpochReplay(trace, PROCS, [one], SlackTable(slack), replace(RULES, forecast_pause=np.inf), USUAL)
    with ThreadPoolExecutor(1) as executor:
        real.play(executor)
    replays, n = real._replays, trace.num_jobs
    replays.learn(real.queue.forecasts, n, float((real.queue.state.start + trace.run_s).max()))
    assert replays.num_playable == n
    replays.play(n)
    epochs = replays.epochs(n, 50)
    np.testing.assert_array_equal(epochs[0], epochs[-1])
    state = replays._states[0]
    assert state is not None
    done = state.start >= 0
    assert done.sum() > 350
    np.testing.assert_array_equal(state.start[done], real.queue.state.start[done])
    np.testing.assert_array_equal(state.due[done], real.queue.state.due[done])


def test_a_bad_policy_is_left_for_what_was_cheaper() -> None:
    trace = crowded(1200, load=0.9)
    found = mars_replay(trace, PROCS, candidates=orders("laf", "saf"), rules=RULES)
    assert np.mean(found.chosen[600:] == 1) > 0.9
    alone = mars_replay(trace, PROCS, candidates=orders("laf"))
    assert found.start_s.mean() < alone.start_s.mean()
    last = found.choices[-1]
    assert last.cost["saf"] < last.cost["laf"]
    assert last.saved == pytest.approx(1 - last.cost["saf"] / last.cost["laf"])
    assert last.regret < 0 < last.sure <= 1
    assert found.shares == {name: float(np.mean(found.chosen == k)) for k, name in enumerate(("laf", "saf"))}
    assert list(found.shares.values()) == sorted(found.shares.values(), reverse=True)


def test_the_future_does_not_matter() -> None:
    """Jobs that have not ended may have any run time: nothing before their end changes."""
    trace = crowded(1200, seed=3)
    some = [*orders("fcfs", "saf"), random_candidate(1), *candidates_of()[-2:]]
    one = mars_replay(trace, PROCS, candidates=some, rules=RULES, slack=Slack(3600.0, 2.0))
    middle = float(one.start_s[700])
    is_open = one.start_s + one.trace.run_s > middle
    run = np.where(is_open, one.trace.estimate_s, one.trace.run_s)
    assert np.any(run != one.trace.run_s)
    other = Trace.of(one.trace.submit_s, run, one.trace.num_procs, one.trace.estimate_s, user=one.trace.user)
    two = mars_replay(other, PROCS, candidates=some, rules=RULES, slack=Slack(3600.0, 2.0))
    early = one.start_s <= middle
    np.testing.assert_array_equal(one.start_s[early], two.start_s[early])


def test_it_says_how_far_it_is_and_can_be_stopped() -> None:
    trace = crowded(1000, 3)
    told: list[tuple[int, int]] = []

    def watch(done: int, total: int) -> bool:
        told.append((done, total))
        return done < 600

    some = orders("fcfs", "saf")
    found = mars_replay(trace, PROCS, candidates=some, rules=RULES, watch=watch)
    assert told == [(done, 1000) for done in range(100, 700, 100)]
    assert (found.trace.num_jobs, found.num_unplayed, len(found.start_s)) == (600, 400, 600)
    whole = mars_replay(trace, PROCS, candidates=some, rules=RULES)
    assert whole.num_unplayed == 0
    before = whole.start_s[:600] < whole.trace.submit_s[599]
    assert np.array_equal(found.start_s[before], whole.start_s[:600][before])
    assert (found.start_s >= found.trace.submit_s).all(), "what had arrived is replayed to its end"
    assert [one.job for one in found.choices] == [one.job for one in whole.choices if one.job < 600]


def test_the_same_seed_is_the_same_replay_and_another_guesses_otherwise() -> None:
    trace, some = crowded(900, 4), orders("fcfs", "saf")
    one, same, other = (
        [choice.cost for choice in mars_replay(trace, PROCS, candidates=some, rules=RULES, seed=seed).choices]
        for seed in (0, 0, 1)
    )
    assert one == same
    assert one != other


def test_threads_change_nothing() -> None:
    trace, some = crowded(900, 4), [*orders("fcfs", "saf"), random_candidate(1)]
    one, two = (
        mars_replay(trace, PROCS, candidates=some, rules=RULES, num_threads=count, slack=Slack(9000.0))
        for count in (1, 4)
    )
    assert np.array_equal(one.start_s, two.start_s)
    assert one.choices == two.choices


def test_hopeless_candidates_are_dropped_and_nothing_else_changes() -> None:
    trace, some = crowded(2000, 7), orders("saf", "laf")
    whole = mars_replay(trace, PROCS, candidates=some, rules=replace(RULES, hopeless_epochs=10**6))
    brief = mars_replay(trace, PROCS, candidates=some, rules=replace(RULES, hopeless_epochs=3, hopeless_ratio=1.0))
    assert "laf" in whole.choices[-1].cost
    assert "laf" not in brief.choices[-1].cost
    np.testing.assert_array_equal(whole.start_s, brief.start_s)


@pytest.mark.parametrize("cost", [USUAL, JobCost("flow", 3.0), JobCost("fairness")], ids=lambda cost: cost.measure)
def test_choices_and_rewards_are_in_the_log_once_and_a_restart_goes_on(tmp_path: Path, cost: JobCost) -> None:
    trace = crowded(900, 5)
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("replay", "mars", {})
        found = mars_replay(trace, PROCS, candidates=orders("laf", "saf"), rules=RULES, cost=cost, run=run)
        choices = log.events(run.id, kinds=["choice"], limit=1000)
        assert [event.subject for event in choices] == [choice.chosen for choice in found.choices]
        assert [event.fields["sure"] for event in choices] == [choice.sure for choice in found.choices]
        told = log.events(run.id, kinds=["reward"], limit=1000)
        jobs = np.concatenate([event.fields["job"] for event in told]).astype(int)
        rewards = np.concatenate([event.fields["reward"] for event in told])
        assert sorted(jobs) == list(range(900))
        assert [event.subject for event in told] == ["laf", *(choice.chosen for choice in found.choices)]
        wait = found.start_s - found.trace.submit_s
        if cost.measure != "fairness":  # whose shares are those of the moment
            expected = -cost.of(wait, found.trace.run_s, found.trace.num_procs)[jobs]
            np.testing.assert_allclose(rewards, expected, atol=1e-5)
        selector = Selector(found.candidates, [False, False], RULES)
        resume(log, run.id, selector)
        assert found.candidates[selector.chosen] == found.choices[-1].chosen
        assert np.all(rewards < 0)


def test_replays_know_only_what_has_ended() -> None:
    trace = crowded(60, 1)
    jobs = trace.arrays()
    queue = PromiseQueue.of(jobs, PROCS, np.inf, new_forecasts(jobs))
    queue.state.start[:20] = jobs.submit[:20]
    now = float(np.sort(jobs.submit[:20] + jobs.run[:20])[12])
    replays = CounterfactualReplays(queue, new_scores(60), orders("saf"), np.array(np.inf))
    queue.forecasts.said[:] = np.log([0.05, 0.25, 0.5, 0.75, 0.9, 0.95])
    replays.learn(queue.forecasts, 40, now)
    ended = (queue.state.start >= 0) & (queue.state.start + jobs.run <= now)
    assert 13 <= ended.sum() < 20
    np.testing.assert_array_equal(replays.jobs.run[ended], jobs.run[ended])
    running = (queue.state.start >= 0) & ~ended
    assert np.all(replays.jobs.run[running] > (now - queue.state.start)[running])
    waiting = replays.jobs.run[20:40]
    assert np.all((waiting >= 1.0) & (waiting <= np.maximum(1.0, jobs.estimate[20:40])))
    first = waiting.copy()
    replays.learn(queue.forecasts, 40, now)
    assert not np.array_equal(first, replays.jobs.run[20:40]), "guesses are drawn anew"
    untouched = np.maximum(1.0, 0.5 * jobs.estimate[40:])
    np.testing.assert_array_equal(replays.jobs.run[40:], untouched)


def test_guesses_follow_the_forecast() -> None:
    """Half of the draws lie below the median that was forecast, one in twenty below the lowest quantile."""
    n = 4000
    trace = Trace.of(np.arange(float(n)), np.full(n, 500.0), np.ones(n), np.full(n, 1000.0))
    jobs = trace.arrays()
    queue = PromiseQueue.of(jobs, 4, np.inf, new_forecasts(jobs))
    queue.forecasts.said[:] = np.log([0.1, 0.2, 0.4, 0.6, 0.8, 0.9])
    replays = CounterfactualReplays(queue, new_scores(n), orders("saf"), np.array(np.inf))
    replays.learn(queue.forecasts, n, float(n))
    guess = replays.jobs.run
    for level, value in ((0.25, 200.0), (0.5, 400.0), (0.9, 800.0)):
        assert np.mean(guess < value) == pytest.approx(level, abs=0.03)
    assert (guess.min(), guess.max() <= 1000.0) == (pytest.approx(100.0), True)


def test_replays_go_as_far_as_three_in_four_are_known() -> None:
    rng = np.random.default_rng(5)
    for share in (0.0, 0.5, 0.74, 0.76, 1.0):
        known = rng.random(1500) < share
        for first, least in ((0, 0), (100, 400), (700, 900)):
            reached = [i + 1 for i in range(first, 1500) if known[max(first, i - 199) : i + 1].sum() >= 150]
            expected = max([at for at in reached if at > least], default=least)
            assert max(least, known_until(known, first, 1500, least)) == expected


def test_other_weights_take_the_place_of_a_candidate() -> None:
    trace = crowded(300, 2)
    real = EpochReplay(
        trace, PROCS, [random_candidate(1), random_candidate(2)], SlackTable(Slack(np.inf)), RULES, USUAL
    )
    with ThreadPoolExecutor(1) as executor:
        real.play(executor)
    replays = real._replays
    replays.learn(real.queue.forecasts, 300, 1e12)
    replays.play(250)
    replays.replace(1, random_candidate(1))
    replays.play(300)
    assert np.all(np.isfinite(replays.epochs(300, 50)))
    replays.drop(1)
    assert replays.replayed == [0]
    assert np.all(np.isinf(replays.epochs(300, 50)[1]))


def test_dependencies_are_refused() -> None:
    trace = Trace.of([0, 1], [5, 5], [1, 1], parent=np.array([0], np.int32), child=np.array([1], np.int32))
    with pytest.raises(InvalidInput, match="dependencies"):
        mars_replay(trace, 4, candidates=orders("saf"))
