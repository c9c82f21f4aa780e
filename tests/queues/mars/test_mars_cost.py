"""What a job costs: each measure against its formula, and that another measure follows another candidate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.candidates import classic_candidate
from stretto.queues.mars.cost import MEASURES, JobCost
from stretto.queues.mars.parameters import MarsParameters
from stretto.queues.mars.replay import mars_replay

PROCS = 16
RULES = MarsParameters(epoch_jobs=100, block_epochs=1, guard=99.0)
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
@pytest.mark.parametrize("policy", ["smallest", "largest"])
def test_another_measure_follows_another_candidate(measure: str, expected: str, policy: str) -> None:
    """Wide jobs first: bad for most jobs, good for one of two users."""
    some = sorted((classic_candidate(name) for name in ("smallest", "largest")), key=lambda one: one.name != policy)
    found = mars_replay(two_users(), PROCS, candidates=some, rules=RULES, cost=JobCost(measure))
    assert found.choices[-1].chosen == expected
    assert found.cost.measure == measure


def test_money_makes_candidates_more_alike_and_changes_no_order() -> None:
    def costs(money: float) -> dict[str, float]:
        some = [classic_candidate(name) for name in ("smallest", "largest")]
        found = mars_replay(two_users(), PROCS, candidates=some, rules=RULES, cost=JobCost(money=money))
        return found.choices[-1].cost

    without, rich = costs(0.0), costs(1e6)
    assert (without["smallest"] < without["largest"]) == (rich["smallest"] < rich["largest"])
    assert rich["smallest"] / rich["largest"] == pytest.approx(1.0, abs=1e-3)
    assert without["smallest"] / without["largest"] < 0.9
