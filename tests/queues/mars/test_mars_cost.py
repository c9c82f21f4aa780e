"""What a job costs: each measure against its formula, and that another measure follows another candidate."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.candidates import DEFAULT, OPEN, candidates_of
from stretto.queues.mars.cost import MEASURES, JobCost
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.network import classic_net
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.replay import mars_replay
from stretto.queues.portfolio import kinds_of
from stretto.runlog import RunLog

PROCS = 16
RULES = Selection(epoch_jobs=100, least_jobs=200, least_gain=0.1, early_gain=0.0, certainty=0.0)
FORMULAS: dict[str, Callable[[float, float], float]] = {
    "bounded-slowdown": lambda wait, run: max(1.0, (wait + run) / max(run, 10.0)),
    "flow": lambda wait, run: (wait + run) / 3600.0,
    "tail": lambda wait, run: max(1.0, (wait + run) / max(run, 10.0)) ** 2,
    "mars-v1": lambda wait, run: math.log(1.0 + run) * max(1.0, (wait + run) / max(run, 10.0)),
}
JOBS = st.lists(
    st.tuples(st.floats(0, 1e7), st.floats(1e-3, 1e7), st.integers(1, 9999), st.integers(0, 4)), min_size=1, max_size=30
)


def columns(jobs: list[tuple[float, float, int, int]]) -> tuple[Any, ...]:
    wait, run, procs, user = zip(*jobs, strict=True)
    return np.array(wait), np.array(run), np.array(procs, np.int32), np.array(user, np.int32)


@given(JOBS, st.sampled_from(sorted(FORMULAS)), st.floats(0.1, 10), st.floats(0, 10), st.floats(0, 5))
def test_a_job_costs_what_the_formula_says(
    jobs: list[tuple[float, float, int, int]], measure: str, time: float, money: float, price: float
) -> None:
    wait, run, procs, user = columns(jobs)
    cost = JobCost(measure, time, money, price)
    expected = [time * FORMULAS[measure](w, r) + money * price * p * r / 3600.0 for w, r, p, _ in jobs]
    np.testing.assert_allclose(cost.of(wait, run, procs), expected, rtol=1e-12)
    assert cost.mean(wait, run, procs, user) == pytest.approx(np.mean(expected))
    assert np.all(cost.of(wait, run, procs) > 0.0)


@given(JOBS)
def test_every_user_counts_as_one(jobs: list[tuple[float, float, int, int]]) -> None:
    users: dict[int, list[float]] = {}
    for wait, run, _, user in jobs:
        users.setdefault(user, []).append(FORMULAS["bounded-slowdown"](wait, run))
    expected = np.mean([np.mean(slowdowns) for slowdowns in users.values()])
    assert JobCost("fairness").mean(*columns(jobs)) == pytest.approx(expected)


def test_all_measures_have_a_formula_here() -> None:
    assert set(MEASURES) == {*FORMULAS, "fairness"}


def test_wrong_costs_are_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean fairness"):
        JobCost("fairnes")
    for wrong in ({"time": 0.0}, {"money": -1.0}, {"price_usd_per_proc_hour": math.nan}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            JobCost(**wrong)


def test_a_cost_says_what_it_is() -> None:
    assert JobCost().summary == "mean bounded slowdown"
    assert JobCost("flow", 2.0, 0.5).summary == "2 x mean hours from submission to end + 0.5 x USD"


def two_users() -> Trace:
    """One user keeps the machine busy with narrow jobs; another submits a wide one now and then."""
    n = 1500
    is_wide = np.arange(n) % 50 == 49
    procs = np.where(is_wide, PROCS, 2)
    run = np.where(is_wide, 400.0, 100.0)
    gap = np.random.default_rng(0).exponential(float((run * procs).mean()) / (0.95 * PROCS), n)
    return Trace.of(np.cumsum(gap) - gap[0], run, procs, run, user=is_wide.astype(np.int32))


@pytest.mark.parametrize(("measure", "expected"), [("bounded-slowdown", "smallest"), ("fairness", "largest")])
@pytest.mark.parametrize("default", ["smallest", "largest"])
def test_another_measure_follows_another_candidate(measure: str, expected: str, default: str) -> None:
    """Wide jobs first: bad for most jobs, good for one of two users."""
    nets = sorted((classic_net(name) for name in ("smallest", "largest")), key=lambda net: net.name != default)
    found = mars_replay(two_users(), PROCS, candidates=nets, selection=RULES, cost=JobCost(measure))
    assert found.choices[-1].chosen == expected
    assert found.cost.measure == measure


def test_the_costs_of_a_replay_are_those_of_its_jobs() -> None:
    """A single candidate is its own shadow, so its cost is that of what really happened, once all have ended."""
    trace = two_users()
    jobs = trace.arrays()
    for cost in (JobCost("fairness"), JobCost("flow", 1.0, 2.0), JobCost()):
        shadows = CounterfactualReplays(jobs, kinds_of(jobs), PROCS, [classic_net("saf")], shipped(), cost)
        start = mars_replay(trace, PROCS, candidates=[classic_net("saf")]).start_s
        end = float((start + trace.run_s).max())
        shadows.learn(start, trace.num_jobs, end)
        shadows.play(trace.num_jobs + 1)
        expected = cost.mean(start - trace.submit_s, trace.run_s, trace.num_procs, jobs.user)
        assert shadows.real_costs(start, 0, trace.num_jobs, end).mean() == pytest.approx(expected)
        assert shadows.costs(0, trace.num_jobs, end)[0].mean() == pytest.approx(expected)


def test_money_makes_candidates_more_alike_and_changes_no_order() -> None:
    def costs(money: float) -> dict[str, float]:
        nets = [classic_net(name) for name in ("smallest", "largest")]
        return (
            mars_replay(two_users(), PROCS, candidates=nets, selection=RULES, cost=JobCost(money=money))
            .choices[-1]
            .cost
        )

    without, rich = costs(0.0), costs(1e6)
    assert (without["smallest"] < without["largest"]) == (rich["smallest"] < rich["largest"])
    assert rich["smallest"] / rich["largest"] == pytest.approx(1.0, abs=1e-3)
    assert without["smallest"] / without["largest"] < 0.9


@pytest.mark.parametrize("measure", MEASURES)
def test_calm_is_where_nobody_waits_by_any_measure(measure: str) -> None:
    """An idle machine holds nobody back; a busy one is not calm because its jobs take less than an hour."""
    idle = two_users()
    idle = Trace.of(1000.0 * idle.submit_s, idle.run_s, idle.num_procs, 2.0 * idle.run_s, user=idle.user)
    nets = [net for net in candidates_of() if net.name in (DEFAULT, OPEN)]
    found = mars_replay(idle, PROCS, candidates=nets, selection=RULES, cost=JobCost(measure))
    assert found.choices[-1].chosen == OPEN
    busy = mars_replay(two_users(), PROCS, candidates=nets, selection=RULES, cost=JobCost(measure))
    assert busy.choices[-1].chosen == DEFAULT


def test_rewards_are_minus_the_costs(tmp_path: Path) -> None:
    trace = two_users()
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("replay", "mars", {})
        nets = [classic_net(name) for name in ("smallest", "largest")]
        found = mars_replay(trace, PROCS, candidates=nets, selection=RULES, cost=JobCost("flow", 3.0), run=run)
        told = log.events(run.id, kinds=["reward"])
        jobs = np.concatenate([event.fields["job"] for event in told]).astype(int)
        rewards = np.concatenate([event.fields["reward"] for event in told])
        assert sorted(jobs) == list(range(trace.num_jobs))
        flow_s = found.start_s - trace.submit_s + trace.run_s
        np.testing.assert_allclose(rewards, -3.0 * flow_s[jobs] / 3600.0, atol=1e-5)
        followed = ["smallest", *(choice.chosen for choice in found.choices)]
        assert [event.subject for event in told] == followed
