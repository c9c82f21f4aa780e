"""What is learned from predicted and real starts."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.replay import replay
from stretto.queues.view import QueueView
from stretto.queues.when.known import FutureRules, KnownQueue
from stretto.queues.when.learner import MEDIAN, REGRESSION, REPLAY, Outlook, StartLearner, WhenParts
from stretto.queues.when.live import live_queue
from stretto.queues.when.predict import StartPredictor, past_questions


def outlook(rng: np.random.Generator, moment_s: float, wait_s: float, *, spread: float, exact: bool = False) -> Outlook:
    """Return futures around a wait; those of a scale are all wrong by the same factor."""
    by_estimates = wait_s if exact else 4.0 * wait_s
    futures = wait_s * np.exp(spread * rng.normal(size=30)) * (1.0 if exact else 2.0)
    return Outlook(moment_s, by_estimates, futures, 0.1, 3600.0, 1.0)


def run_through(learner: StartLearner, seed: int, *, exact: bool = False, count: int = 1500) -> tuple[float, list[int]]:
    """Predict and learn one after the other; return the share inside and what was believed."""
    rng = np.random.default_rng(seed)
    inside, believed = [], []
    for i in range(count):
        wait = float(np.exp(rng.normal(8.0, 1.0)))
        centre = wait if exact else wait * np.exp(rng.normal(0.0, 0.5))
        said = learner.predict(outlook(rng, 600.0 * i, centre, spread=0.2, exact=exact))
        inside.append(said.low_s - 1e-6 <= wait <= said.high_s + 1e-6)
        believed.append(said.believed)
        learner.learn(said, wait)
    return float(np.mean(inside[100:])), believed


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_intervals_cover_what_they_say(coverage: float) -> None:
    share, _ = run_through(StartLearner(coverage), 0)
    assert abs(share - coverage) < 0.03


def test_raw_futures_would_not_cover() -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(500):
        wait = float(np.exp(rng.normal(8.0, 1.0)))
        low, high = np.quantile(
            outlook(rng, 0.0, wait * np.exp(rng.normal(0, 0.5)), spread=0.2).futures_s, (0.05, 0.95)
        )
        inside.append(low <= wait <= high)
    assert np.mean(inside) < 0.4


def test_the_regression_removes_a_constant_error_and_is_then_believed() -> None:
    _, believed = run_through(StartLearner(), 1)
    assert np.mean(np.array(believed[500:]) == REGRESSION) > 0.9
    assert REGRESSION not in run_through(StartLearner(parts=WhenParts(regression=False)), 1)[1]


def test_exact_estimates_are_believed() -> None:
    _, believed = run_through(StartLearner(), 2, exact=True)
    assert np.mean(np.array(believed[500:]) == REPLAY) > 0.9


def test_without_futures_the_replay_is_believed() -> None:
    _, believed = run_through(StartLearner(parts=WhenParts(futures=False, regression=False)), 3, count=150)
    assert set(believed) == {REPLAY}


def test_the_median_is_believed_first_and_a_batch_counts_little() -> None:
    learner, rng = StartLearner(), np.random.default_rng(0)
    said = [learner.predict(outlook(rng, 1000.0 + i, 600.0, spread=0.1)) for i in range(9)]
    assert said[0].believed == MEDIAN
    assert said[0].weight == 1.0
    assert said[8].weight == pytest.approx(1.0 / 3.0)


def crowded(num_jobs: int = 400) -> KnownQueue:
    rng = np.random.default_rng(0)
    estimate = rng.integers(600, 20_000, num_jobs).astype(float)
    submit = np.cumsum(rng.exponential(900.0, num_jobs))
    submit -= submit[0]
    user = rng.integers(0, 9, num_jobs).astype(np.int32)
    run = np.maximum(1.0, estimate * rng.random(num_jobs))
    trace = Trace.of(submit, run, rng.integers(1, 9, num_jobs), estimate, user=user)
    result = replay(trace, 16)
    return KnownQueue(trace, trace.arrays(), 16, result.start_s, result.end_s, FutureRules(0))


def test_nothing_that_comes_later_changes_an_answer() -> None:
    queue = crowded()
    now = float(queue.jobs.submit[250])
    row = int(queue.waiting_at(now)[-1])
    later = queue.start_s > now
    start, end = queue.start_s.copy(), queue.end_s.copy()
    start[later] += 12345.0
    end[queue.end_s > now] += 99999.0
    changed = KnownQueue(queue.trace, queue.jobs, 16, start, end, queue.rules)
    answers = []
    for one in (queue, changed):
        predictor = StartPredictor(one)
        predictor.learn_past(now, at_submission=False, most=20)
        answers.append(predictor.ask(now, [row])[0])
    assert answers[0] == answers[1]


def test_past_questions_are_asked_in_order_while_jobs_wait() -> None:
    queue = crowded()
    now = float(queue.jobs.submit[300])
    rows, moments = past_questions(queue, now, at_submission=False, most=50, seed=0)
    assert 10 < len(rows) <= 50
    assert np.all(np.diff(moments) >= 0)
    assert np.all(
        (moments >= queue.jobs.submit[rows]) & (moments <= queue.start_s[rows]) & (queue.start_s[rows] <= now)
    )


def test_a_live_queue_follows_priorities() -> None:
    nan = np.nan
    view = QueueView(
        now_s=100.0,
        num_procs=4,
        job_id=np.array([1, 2, 3, 4, 5]),
        submit_s=np.array([0.0, 10.0, 20.0, 30.0, 40.0]),
        estimate_s=np.array([50.0, 500.0, 500.0, 500.0, 500.0]),
        procs=np.array([4, 4, 4, 4, 99], np.int32),
        user=np.array([0, 0, 1, 1, 1], np.int32),
        start_s=np.array([0.0, 50.0, nan, nan, nan]),
        end_s=np.array([50.0, nan, nan, nan, nan]),
        is_ready=np.array([True, True, True, True, True]),
    )
    queue, numbers = live_queue(view, {3: 1.0, 4: 9.0})
    assert numbers.tolist() == [1, 2, 3, 4]
    third, fourth = StartPredictor(queue).ask(100.0, queue.waiting_at(100.0))
    assert fourth.likely_s < third.likely_s
    assert fourth.num_learned == 0
    with pytest.raises(InvalidInput, match="no job waits"):
        live_queue(QueueView(*(getattr(view, name) for name in ("now_s", "num_procs")), *_none(view)), {})


def _none(view: QueueView) -> list[np.ndarray]:
    names = ("job_id", "submit_s", "estimate_s", "procs", "user", "start_s", "end_s", "is_ready")
    return [getattr(view, name)[:2] for name in names]


def test_a_coverage_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="between"):
        StartPredictor(crowded(20), coverage=1.0)


def test_a_queue_without_outcomes_begins_with_those_of_others() -> None:
    rng = np.random.default_rng(0)
    inside: dict[bool, list[bool]] = {True: [], False: []}
    for prior, found in inside.items():
        for _ in range(300):
            wait = float(np.exp(rng.normal(8.0, 1.0)))
            # Futures whose spread is right, as far as the futures of real queues are: their median is off, too.
            centre = wait * np.exp(rng.normal(0.0, 0.3))
            said = StartLearner(parts=WhenParts(prior=prior)).predict(outlook(rng, 0.0, 0.5 * centre, spread=0.3))
            found.append(said.low_s <= wait <= said.high_s)
    assert np.mean(inside[False]) < np.mean(inside[True])
    assert 0.85 < np.mean(inside[True]) < 0.97


def test_errors_are_measured_in_the_spread_of_the_futures() -> None:
    learner, rng = StartLearner(), np.random.default_rng(0)
    narrow, wide = (learner.predict(outlook(rng, 0.0, 3600.0, spread=spread)) for spread in (0.05, 0.5))
    assert narrow.high_s / narrow.low_s < wide.high_s / wide.low_s
    learner.learn(wide, 1e6)
    assert learner.scores[-1][0] > 1.0
    far = StartLearner(parts=WhenParts(spread=False, prior=False))
    assert far.predict(outlook(rng, 0.0, 3600.0, spread=0.5)).below == 1.0


def test_run_times_of_seconds_are_told_apart() -> None:
    """Jobs that ask for minutes and run for seconds: many of them end soon after each other."""
    num = 200
    run = np.where(np.arange(num) % 2, 2.0, 4.0)
    trace = Trace.of(np.arange(num) * 0.01, run, np.ones(num, int), np.full(num, 600.0), user=np.zeros(num, np.int32))
    result = replay(trace, 2)
    queue = KnownQueue(trace, trace.arrays(), 2, result.start_s, result.end_s, FutureRules(0))
    now = 60.0
    answers = StartPredictor(queue).ask(now, queue.waiting_at(now))
    ahead = np.array([(one.likely_s - now) / (result.start_s[one.row] - now + 5.0) for one in answers])
    assert 0.6 < np.median(ahead) < 1.4
