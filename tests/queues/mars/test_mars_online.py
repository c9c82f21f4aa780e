"""Learning while a queue runs, what is kept of it in the run log, and going on from there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stretto.core.trace import QueueArrays, Trace
from stretto.errors import UnknownName
from stretto.queues.mars.network import MarsNet, classic_net
from stretto.queues.mars.online_learning import OnlineLearner
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.replay import LEARNED, mars_replay
from stretto.queues.mars.run_record import resume
from stretto.queues.mars.selector import Selector
from stretto.runlog import RunLog

PROCS = 16
RULES = Selection(epoch_jobs=100, least_jobs=200, early_gain=0.0, network_gain=0.0, certainty=0.0)


def crowded(n: int) -> Trace:
    rng = np.random.default_rng(5)
    run = np.round(np.exp(rng.normal(5, 1.5, n))) + 1
    procs = rng.integers(1, PROCS + 1, n)
    gap = rng.exponential(float((run * procs).mean()) / PROCS, n)
    return Trace.of(np.floor(np.cumsum(gap)), run, procs, np.round(3 * run), user=np.zeros(n, np.int32))


def late_learner(known: QueueArrays, num_jobs: int) -> MarsNet | None:
    """Learn the shortest job first after six hundred jobs, whatever they were."""
    assert np.all(known.run[:num_jobs] > 0)
    return MarsNet(LEARNED, classic_net("saf").net) if 500 <= num_jobs < 600 else None


def test_what_is_learned_is_played_from_the_beginning_and_followed_where_it_wins() -> None:
    trace = crowded(1500)
    found = mars_replay(trace, PROCS, candidates=[classic_net("laf")], selection=RULES, learner=late_learner)
    assert found.candidates == ("laf", LEARNED)
    assert np.all(found.chosen[:600] == 0), "until the lesson, it is the default once more"
    assert np.mean(found.chosen[1000:] == 1) > 0.9
    alone = mars_replay(trace, PROCS, candidates=[classic_net("laf"), classic_net("saf")], selection=RULES)
    assert found.choices[-1].cost[LEARNED] < 0.5 * found.choices[-1].cost["laf"]
    assert alone.choices[-1].cost["saf"] < alone.choices[-1].cost["laf"]


def test_rewards_and_choices_are_in_the_log_once_and_a_restart_goes_on(tmp_path: Path) -> None:
    trace = crowded(1500)
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("replay", "mars", {})
        found = mars_replay(
            trace, PROCS, candidates=[classic_net("laf")], selection=RULES, learner=late_learner, run=run
        )
        choices = log.events(run.id, kinds=["choice"], limit=1000)
        assert [event.subject for event in choices] == [choice.chosen for choice in found.choices]
        told = [event.fields for event in log.events(run.id, kinds=["reward"], limit=1000)]
        jobs = np.concatenate([fields["job"] for fields in told]).astype(int)
        assert sorted(jobs) == list(range(1500))
        rewards = np.concatenate([fields["reward"] for fields in told])
        kept = found.trace
        flow = (found.start_s - kept.submit_s + kept.run_s)[jobs]
        np.testing.assert_allclose(rewards, -np.maximum(1, flow / np.maximum(kept.run_s[jobs], 10)), atol=1e-5)
        selector = Selector(found.candidates, [LEARNED], RULES)
        net = resume(log, run.id, selector)
        assert net is not None
        np.testing.assert_array_equal(net.net.skip, classic_net("saf").net.skip)
        assert found.candidates[selector.chosen] == found.choices[-1].chosen


def test_lessons_come_when_they_are_due_and_start_from_the_last() -> None:
    jobs = crowded(900).fitting(PROCS)[0].arrays()
    learner = OnlineLearner(PROCS, num_generations=2, first_jobs=300, window_jobs=120, num_threads=1)
    assert learner(jobs, 299) is None
    first = learner(jobs, 300)
    assert first is not None
    assert first.name == LEARNED
    assert learner(jobs, 599) is None
    assert learner(jobs, 600) is not None
    assert learner.num_lessons == 2
    other = OnlineLearner(PROCS, measure="flow", num_generations=2, first_jobs=300, window_jobs=120, num_threads=1)
    by_flow = other(jobs, 300)
    assert by_flow is not None
    assert not np.array_equal(first.net.skip, by_flow.net.skip), "another measure, another lesson"
    with pytest.raises(UnknownName, match="flow"):
        OnlineLearner(PROCS, measure="flaw")
    again = OnlineLearner(PROCS, num_generations=2, first_jobs=300, window_jobs=120, num_threads=1)(jobs, 300)
    assert again is not None
    np.testing.assert_array_equal(first.net.skip, again.net.skip)
