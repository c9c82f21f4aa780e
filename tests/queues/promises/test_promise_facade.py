"""Backfill ``promise`` of ``stretto.replay``: every order, slack, wall limits, keys of users, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stretto.catalog import ESTIMATES, STRATEGIES
from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.files.traces.load import load_trace
from stretto.queues.evaluate import evaluate_replay
from stretto.queues.promises.slack import Slack
from stretto.queues.promises.validate import check_given, check_promises
from stretto.queues.replay import replay
from stretto.queues.strategies import Submitted
from stretto.queues.validate import check_replay
from stretto.queues.workloads.lublin import lublin

SLACKS = ("0", "6h+1e", "12h+2e", "24h+4e")


@pytest.fixture(scope="module")
def busy() -> Trace:
    trace = lublin(600, num_procs=64, load=1.2, seed=2)
    factor = np.random.default_rng(1).choice([0.5, 1.0, 3.0], trace.num_jobs)
    return Trace.of(trace.submit_s, trace.run_s, trace.num_procs, trace.run_s * factor, user=trace.user)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("slack", SLACKS)
def test_every_strategy_keeps_every_promise(busy: Trace, strategy: str, slack: str) -> None:
    result = replay(busy, 64, strategy=strategy, backfill="promise", slack=slack)
    assert result.due_s is not None
    jobs = result.trace.arrays()
    check = check_promises(jobs, 64, Slack.parse(slack).of(jobs.estimate), result.start_s, result.due_s)
    assert check.is_valid


@pytest.mark.parametrize("strategy", ["fcfs", "wfp3", "multifactor"])
def test_infinite_slack_is_easy_through_the_facade(busy: Trace, strategy: str) -> None:
    easy = replay(busy, 64, strategy=strategy)
    promised = replay(busy, 64, strategy=strategy, backfill="promise", slack="inf")
    assert np.array_equal(easy.start_s, promised.start_s)


def test_jobs_end_at_their_wall_limit(busy: Trace) -> None:
    result = replay(busy, 64, backfill="promise", slack="1h", kill=True)
    limit = np.where(busy.estimate_s > 0, busy.estimate_s, busy.run_s)
    assert np.allclose(result.run_s, np.minimum(busy.run_s, limit))
    assert np.array_equal(result.is_killed, busy.run_s > limit)
    assert result.due_s is not None
    assert np.all(result.start_s <= result.due_s)


@pytest.mark.parametrize("estimates", ESTIMATES)
def test_estimates_change_the_order_and_break_nothing(busy: Trace, estimates: str) -> None:
    result = replay(busy, 64, strategy="sjf", backfill="promise", slack="6h+1e", estimates=estimates, quantile=0.3)
    assert result.due_s is not None
    assert np.all(result.start_s <= result.due_s)
    by_user = replay(busy, 64, strategy="sjf", backfill="promise", slack="6h+1e")
    assert np.array_equal(result.start_s, by_user.start_s) == (estimates == "user")


def test_keys_of_users_stay_inside_promises(busy: Trace) -> None:
    def widest(jobs: Submitted) -> Floats:
        return -jobs.num_procs.astype(float)

    def widest_slowly(jobs: Submitted, wait_s: Floats) -> Floats:
        assert np.all(wait_s >= 0)
        return -jobs.num_procs.astype(float)

    def wfp3(jobs: Submitted, wait_s: Floats) -> Floats:
        return -((wait_s / np.maximum(1.0, jobs.estimate_s)) ** 3) * jobs.num_procs

    rules = {"backfill": "promise", "slack": "2h"}
    for one, other in ((widest, "largest"), (widest_slowly, "largest"), (wfp3, "wfp3")):
        found = replay(busy, 64, strategy=one, **rules)
        assert np.array_equal(found.start_s, replay(busy, 64, strategy=other, **rules).start_s)


def test_figures_of_promises_are_in_the_json(busy: Trace) -> None:
    found = evaluate_replay(busy, 64, timed=False, strategy="saf", backfill="promise").to_json()
    assert (found["promises_given"], found["promises_broken"]) == (600, 0)
    assert found["promise_margin_p01_s"] >= 0
    assert "promises_given" not in evaluate_replay(busy, 64, timed=False).to_json()


def with_parents(trace: Trace) -> Trace:
    """Let every third job wait for one of those before it."""
    child = np.arange(3, trace.num_jobs, 3, dtype=np.int32)
    return replace(trace, parent=child - 1 - (child % 3), child=child)


@pytest.mark.parametrize("slack", SLACKS)
def test_jobs_with_parents_are_promised_a_start_when_they_become_eligible(busy: Trace, slack: str) -> None:
    trace = with_parents(busy.take(slice(0, 200)))
    for strategy in ("fcfs", "ljf", "wfp3"):
        result = replay(trace, 64, strategy=strategy, backfill="promise", slack=slack)
        check_replay(trace, 64, result)
        check_given(result, Slack.parse(slack).of(result.trace.estimate_s))
    with pytest.raises(InvalidInput, match="dependencies"):
        replay(trace, 64, strategy="multifactor", backfill="promise")


def test_infinite_slack_is_easy_with_parents(busy: Trace) -> None:
    trace = with_parents(busy.take(slice(0, 200)))
    promised = replay(trace, 64, strategy="saf", backfill="promise", slack="inf")
    assert np.array_equal(promised.start_s, replay(trace, 64, strategy="saf").start_s)


def test_slack_differs_by_user(busy: Trace) -> None:
    trace = replace(busy, user=(np.arange(busy.num_jobs) % 4).astype(np.int32), meta={"user_names": tuple("abcd")})
    result = replay(trace, 64, backfill="promise", slack="24h,user:b=0")
    every = replay(trace, 64, backfill="promise", slack="24h")
    assert result.due_s is not None
    assert every.due_s is not None
    assert np.all(result.start_s <= result.due_s)
    assert result.due_s[1::4].mean() < every.due_s[1::4].mean() - 20 * 3600
    with pytest.raises(UnknownName, match="'e'"):
        replay(trace, 64, backfill="promise", slack="24h,user:e=0")


@pytest.mark.parametrize(
    ("machine", "rules", "match"),
    [
        (64, {"slack": "soon"}, "24h"),
        (64, {"slack": -1.0}, "negative"),
        (64, {"tie": "one-event"}, "batch"),
        (64, {"backfill": "slack", "slack": "24h"}, "share"),
    ],
)
def test_what_promises_do_not_know_is_refused(busy: Trace, machine: int, rules: dict[str, str], match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        replay(busy, machine, **{"backfill": "promise", **rules})


@pytest.mark.parametrize("log", ["KTH-SP2", "SDSC-SP2", "lublin_256_new2", "Theta"])
def test_no_promise_is_broken_on_real_logs(data_dir: Path, log: str) -> None:
    found = sorted((data_dir / "swf").glob(f"{log}*.swf.gz"))
    if not found:
        pytest.skip(f"no log {log}")
    trace = load_trace(found[0]).window(0, 4000)
    num_procs = trace.max_procs or int(trace.num_procs.max())
    for slack in ("0", "24h+4e"):
        for strategy in ("saf", "ljf", "wfp3"):
            result = replay(trace, num_procs, strategy=strategy, backfill="promise", slack=slack)
            assert result.due_s is not None
            assert np.all(result.start_s <= result.due_s)
