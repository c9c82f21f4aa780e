"""MARS on many jobs: what saves time and memory changes no result, and a replay can be watched and stopped."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.queues.mars.candidates import candidates_of, default_net, forecast_nets, variant_nets
from stretto.queues.mars.cost import JobCost
from stretto.queues.mars.counterfactual import RunTimeDraws, known_until
from stretto.queues.mars.evidence import means_of
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels.lazy import goes_by_beliefs, is_lazy
from stretto.queues.mars.kernels.run import run_mars, weigh
from stretto.queues.mars.network import MarsNet, classic_net
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.replay import mars_replay
from stretto.queues.portfolio import kinds_of
from stretto.queues.workloads.lublin import lublin

EAGER = {"epoch_jobs": 60, "least_jobs": 100, "least_gain": 0.02, "certainty": 0.5, "memory_jobs": 400}
#: What the code did that compared all jobs at every epoch (commit 1d5345c): queue, rules, digests of starts and of who
#: was followed, and the last cost of the default.
EARLIER: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "overloaded": (
        {"num_jobs": 2500, "num_procs": 64, "load": 1.6, "seed": 4},
        {},
        "5936ae660e5755be",
        "2f190e20c3f49f58",
    ),
    "changes soon": (
        {"num_jobs": 3000, "num_procs": 128, "load": 0.9, "seed": 5},
        {"selection": Selection(variant_gain=0.0, drift=4.0, **EAGER)},
        "908a2cf1abc6b009",
        "60c78ea32479a297",
    ),
    "by users": (
        {"num_jobs": 2500, "num_procs": 128, "load": 0.9, "seed": 6},
        {"cost": JobCost("fairness"), "selection": Selection(epoch_jobs=70, least_jobs=200)},
        "edc7f66095a1d938",
        "f91078785d377877",
    ),
    "another default": (
        {"num_jobs": 4000, "num_procs": 128, "load": 0.9, "seed": 9},
        {"candidates": candidates_of(default="fcfs")},
        "7cf6be57f7d72aea",
        "c9b85eddc78edb3e",
    ),
}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def former_name(name: str) -> str:
    """Return what a candidate was called when the digests were made."""
    for new, old in (
        ("default-order", "steady"),
        ("default-", "steady-"),
        ("-forecast", "-bold"),
        ("-reserve-", "-spare-"),
    ):
        name = name.replace(new, old)
    return name


@pytest.mark.parametrize("name", EARLIER)
def test_results_are_those_of_the_code_that_compared_everything(name: str) -> None:
    queue, rules, starts, followed = EARLIER[name]
    found = mars_replay(lublin(**queue), queue["num_procs"], **rules)
    assert digest(found.start_s.tobytes()) == starts
    names = [former_name(name) for name in found.candidates]
    assert digest("|".join(names[k] for k in found.chosen).encode()) == followed


@pytest.mark.parametrize(
    "net",
    [classic_net("saf"), classic_net("expansion"), default_net(), *variant_nets(), forecast_nets()[0]],
    ids=lambda net: net.name,
)
def test_lazy_scores_start_the_same_jobs_as_all_scores(net: MarsNet) -> None:
    """A hidden layer that counts nothing leaves the order as it is, but all scores are then computed at every pass."""
    whole, _ = lublin(1500, seed=11, num_procs=64, load=1.3).fitting(64)
    jobs = whole.arrays()._replace(user=np.arange(1500, dtype=np.int32) % 7)
    kinds = kinds_of(jobs)
    lazily, eagerly = np.empty(1500), np.empty(1500)
    run_mars(jobs, kinds, 64, net.net, shipped(), lazily)
    eager = net.with_hidden(1, seed=0).net
    assert not is_lazy(eager)
    assert goes_by_beliefs(eager)
    run_mars(jobs, kinds, 64, eager, shipped(), eagerly)
    assert is_lazy(net.net) == (net.name != "expansion")
    assert np.array_equal(lazily, eagerly)


def test_guesses_are_draws_of_one_user_after_the_other() -> None:
    rng = np.random.default_rng(3)
    guesses, plain = RunTimeDraws(5), np.random.default_rng(0)
    past: list[tuple[int, float]] = []
    for _ in range(60):
        user, ratio = rng.integers(0, 4, 9), rng.uniform(0.01, 1.2, 9)
        past += zip(user.tolist(), ratio.tolist(), strict=True)
        guesses.remember(user, ratio)
        who, estimate, elapsed = rng.integers(0, 5, 12), rng.uniform(0.5, 500, 12), rng.uniform(0, 300, 12)
        everybody = [0.5, *(value for _, value in past)][-2000:]
        expected = []
        for one, given, run in zip(who.tolist(), np.maximum(estimate, 1.0), elapsed, strict=True):
            own = [value for user, value in past if user == one][-16:]
            drawn = plain.choice(np.array(own or everybody), 4) * given
            fit = drawn[drawn > run]
            expected.append(max(1.0, fit[0] if len(fit) else max(run, 0.5 * (run + given))))
        assert guesses.draw(who, estimate, elapsed).tolist() == expected


def test_shadows_play_as_far_as_three_in_four_are_known() -> None:
    rng = np.random.default_rng(5)
    for share in (0.0, 0.5, 0.74, 0.76, 1.0):
        known = rng.random(1500) < share
        for first, least in ((0, 0), (100, 400), (700, 900)):
            reached = [i + 1 for i in range(first, 1500) if known[max(first, i - 199) : i + 1].sum() >= 150]
            expected = max([at for at in reached if at > least], default=least)
            assert max(least, known_until(known, first, 1500, least)) == expected


@pytest.mark.parametrize("num_jobs", [1, 24, 25, 130])
def test_costs_are_weighed_as_by_hand(num_jobs: int) -> None:
    rng = np.random.default_rng(num_jobs)
    cost: Floats = rng.uniform(1, 9, 200)
    fade = np.exp(-np.arange(149, -1, -1) / 40.0)
    first, last = 50, 50 + num_jobs
    for share in (np.zeros(0), rng.uniform(0.5, 2, num_jobs)):
        counted = cost[first:last] * (share if len(share) else 1.0)
        means = np.empty(max(1, num_jobs // 25))
        total = weigh(cost, first, last, fade, share, min(25, num_jobs), means)
        assert total == pytest.approx(counted @ fade[-num_jobs:])
        assert means == pytest.approx(means_of(counted[None], 25)[0])


def test_a_replay_says_how_far_it_is_and_can_be_stopped() -> None:
    trace = lublin(1600, seed=3, num_procs=64, load=1.1)
    told: list[tuple[int, int]] = []

    def watch(done: int, total: int) -> bool:
        told.append((done, total))
        return done < 1000

    found = mars_replay(trace, 64, watch=watch)
    assert told == [(250, 1600), (500, 1600), (750, 1600), (1000, 1600)]
    assert (found.trace.num_jobs, found.num_unplayed, len(found.start_s)) == (1000, 600, 1000)
    whole = mars_replay(trace, 64)
    assert whole.num_unplayed == 0
    before = whole.start_s[:1000] < whole.trace.submit_s[999]
    assert np.array_equal(found.start_s[before], whole.start_s[:1000][before])
    assert (found.start_s >= found.trace.submit_s).all(), "what had arrived is worked off"
    assert [one.job for one in found.choices] == [one.job for one in whole.choices if one.job < 1000]


def one_stuck_job(num_jobs: int) -> Trace:
    """A job that never gets its turn, at the beginning of an even stream of others."""
    submit = np.arange(num_jobs) * 10.0
    run = np.full(num_jobs, 10.0)
    run[0] = 1e9
    return Trace.of(submit, run, np.ones(num_jobs, np.int32), run)


@pytest.mark.long
def test_time_grows_with_the_number_of_jobs_even_where_one_never_ends() -> None:
    taken = []
    for num_jobs in (2000, 10_000, 40_000):  # the first one compiles
        begin = time.process_time()
        mars_replay(one_stuck_job(num_jobs), 4)
        taken.append(time.process_time() - begin)
    assert taken[2] < 8 * taken[1]


SEEDS: tuple[dict[str, int], ...] = ({}, {"seed": 0}, {"seed": 1})


def test_the_seed_reaches_the_guesses_of_run_times() -> None:
    exact, rng = lublin(1200, seed=4, num_procs=64, load=1.2), np.random.default_rng(0)
    trace = replace(exact, estimate_s=exact.run_s * rng.uniform(1, 9, exact.num_jobs))
    one, same, other = ([choice.cost for choice in mars_replay(trace, 64, **seed).choices] for seed in SEEDS)
    assert one == same
    assert one != other
