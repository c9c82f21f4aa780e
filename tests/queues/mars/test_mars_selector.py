"""The selector: falls back, follows what wins, notices changes, and never looks into the future."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.mars.candidates import Variants
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.evidence import means_of
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels.run import run_mars
from stretto.queues.mars.network import classic_net
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.replay import mars_replay
from stretto.queues.mars.selector import Choice, EpochComparison, Selector
from stretto.queues.portfolio import kinds_of

PROCS = 16
#: Jobs played and arrived, and the time, where much has been seen.
BIG = (20_000, 20_000, 0.0)


def choose(selector: Selector, *seen: Any, **more: Any) -> Choice:
    return selector.choose(EpochComparison(*seen, **more))


def crowded(n: int, seed: int = 0, load: float = 1.1) -> Trace:
    rng = np.random.default_rng(seed)
    run = np.round(np.exp(rng.normal(5, 1.5, n))) + 1
    procs = rng.integers(1, PROCS + 1, n)
    gap = rng.exponential(float((run * procs).mean()) / (PROCS * load), n)
    estimate = np.round(run * rng.uniform(1, 5, n))
    return Trace.of(np.floor(np.cumsum(gap)), run, procs, estimate, user=rng.integers(0, 6, n).astype(np.int32))


def one(cost: Sequence[float] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a single epoch of these costs."""
    return np.array(cost, float)[:, None]


def chosen(selector: Selector, costs: list[list[float]]) -> list[str]:
    return [
        choose(selector, np.array(cost), one(cost), 1000 * (k + 1), 1000 * (k + 1), float(k)).chosen
        for k, cost in enumerate(costs)
    ]


def test_default_is_kept_until_another_one_saves_enough() -> None:
    selector = Selector(
        ["default", "other", "net"], ["net"], Selection(least_gain=0.1, early_gain=0.0, network_gain=0.5, certainty=0.0)
    )
    assert chosen(selector, [[10, 9.5, 9.5], [10, 8, 9], [10, 8, 5], [10, 8, 4], [3, 8, 9.9]]) == [
        "default",  # neither saves enough
        "other",
        "other",  # a network must save more
        "net",
        "default",  # the guard
    ]


def test_a_variant_is_followed_for_less_and_stands_for_the_default() -> None:
    rules = Selection(least_gain=0.4, early_gain=0.0, variant_gain=0.1, certainty=0.0, variant_certainty=0.0, guard=1.0)
    selector = Selector(["default", "variant", "other"], [], rules, Variants(["variant"]))
    assert chosen(
        selector, [[10, 9.5, 8], [10, 8.8, 8], [10, 9.4, 6], [10, 9.4, 4], [10, 9.4, 7.7], [10, 10.1, 8]]
    ) == [
        "default",
        "variant",  # another candidate that saves as much is not followed
        "variant",  # to stay, any gain is enough; the other saves less than it must
        "other",
        "variant",  # what is left of the other's gain is less than half, against the variant
        "default",
    ]
    selector.restore(selector.state() | {"default": 1, "chosen": 1})
    guarded = choose(selector, np.array([10.0, 5.0, 1.0]), one([10, 5, 1]), 9000, 9000, 0.0, real=11.0)
    assert (guarded.chosen, guarded.is_fallback) == ("variant", True)
    assert guarded.reason == (
        "the queue really costs 11, more than 2 times what variant alone would (5); "
        "other would save 80% of what variant costs (40% required); too few epochs have been compared to be sure"
    )


def test_the_reason_says_what_the_cheapest_other_misses() -> None:
    rules = Selection(least_gain=0.3, early_gain=0.0, certainty=3.0, variant_gain=0.05, variant_certainty=1.5)
    selector = Selector(["default", "variant", "other", "open"], [], rules, Variants(["variant"], "open"))
    rng = np.random.default_rng(0)
    noise = np.exp(rng.normal(0.0, 0.05, (4, 60)))

    def choice(*levels: float) -> Any:
        epochs = np.array(levels)[:, None] * noise
        return choose(selector, np.array(levels), epochs, *BIG)

    little = choice(10.0, 10.1, 8.0, 11.0)
    assert (little.chosen, little.rival.name, little.rival.against) == ("default", "other", "default")
    assert little.rival.saves == pytest.approx(0.2)
    assert little.rival.gain == pytest.approx(0.2, abs=0.03)
    assert 0 < little.rival.error < 0.05
    assert (little.rival.saves_enough, little.rival.is_sure) == (False, True)
    assert "other would save 20% of what default costs, below the required 30%" in little.reason
    assert "standard errors required)" in little.reason
    seldom = choose(
        selector,
        np.array([10.0, 10.1, 5.0, 11.0]),
        np.array([[10.0] * 60, [10.1] * 60, [99.0, 1.0] * 30, [11.0] * 60]),
        *BIG,
    )
    assert (seldom.chosen, seldom.rival.saves_enough, seldom.rival.is_sure) == ("default", True, False)
    assert re.search(r"cheaper, below the required \d\.\d standard errors$", seldom.reason)
    alone = choice(10.0, 10.1, 12.0, 11.0)
    assert (alone.chosen, alone.rival, alone.reason) == ("default", None, "the default")
    open_one = choice(10.0, 10.1, 12.0, 4.0)
    assert open_one.reason == ("the default; open has cost less, but it is followed under light load only")
    better = choice(10.0, 9.0, 12.0, 11.0)
    assert better.chosen == "variant"
    assert better.reason == "a variant of the default that cost 10% less over the last 20,000 jobs (100% sure)"
    followed = choice(10.0, 9.0, 4.0, 11.0)
    assert (followed.chosen, followed.reason) == ("other", "it saves 56% of what variant costs")


def test_a_variant_who_has_been_bad_lately_is_left_although_it_leads() -> None:
    rules = Selection(variant_gain=0.1, early_gain=0.0, variant_certainty=0.0)
    selector = Selector(["default", "variant"], [], rules, Variants(["variant"]))
    epochs = np.full((2, 20), 10.0)
    epochs[1] = 2.0
    assert choose(selector, epochs.mean(axis=1), epochs, 5000, 0, 0.0).chosen == "variant"
    epochs[1, -4:] = 14.0
    assert choose(selector, epochs.mean(axis=1), epochs, 5000, 0, 0.0).chosen == "variant", "not so much dearer"
    epochs[1, -4:] = 16.0
    assert choose(selector, epochs.mean(axis=1), epochs, 5000, 0, 0.0).chosen == "default"
    assert epochs[1].mean() < 0.5 * epochs[0].mean()


def test_under_light_load_no_job_is_held_back() -> None:
    selector = Selector(["default", "open", "other"], [], Selection(early_gain=0.0), Variants(light_load="open"))
    cost = np.array([1.2, 1.0, 0.4])

    def at(num: int, real: float) -> tuple[str, bool]:
        choice = choose(selector, cost, one(cost), num, num, 0.0, real=real, real_latest=real)
        return choice.chosen, choice.is_fallback

    assert at(250, 1.0) == ("default", True), "nothing is known yet"
    assert at(1000, 1.005) == ("open", True)
    assert "no job is held back" in choose(selector, cost, one(cost), 1000, 1000, 0.0, real=1.0).reason
    assert at(1250, 1.2) == ("default", True), "somebody had to wait"
    assert at(1500, 1.2) != ("open", True), "and who is open is no candidate then"


def test_nothing_is_chosen_from_little_and_less_counts_for_less() -> None:
    selector = Selector(["default", "other"], rules=Selection(least_jobs=5000, certainty=0.0))
    assert chosen(selector, [[10, 1]] * 6) == ["default"] * 4 + ["other"] * 2
    rules = Selection(least_jobs=1000, least_gain=0.0, early_gain=0.4, certainty=0.0)
    selector = Selector(["default", "other"], rules=rules)
    assert chosen(selector, [[10, 8]] * 3) == ["default"] * 2 + ["other"]


def test_after_a_change_old_jobs_do_not_count_and_the_default_decides() -> None:
    rules = Selection(drift=2.0, epoch_jobs=1000, least_jobs=2000, certainty=0.0)
    selector = Selector(["default", "other"], rules=rules)
    usual = np.array([2.0, 1.0])
    for k in range(5):
        assert not choose(selector, usual, one(usual), 1000 * (k + 1), 0, 0.0).has_drifted
    assert selector.since == 0
    assert selector.chosen == 1
    late = np.array([60.0, 20.0])
    found = choose(selector, usual, one(late), 6000, 0, 0.0)
    assert found.has_drifted
    assert found.chosen == "default"
    assert selector.since == 5000
    assert choose(selector, late, one(late), 6500, 0, 0.0).chosen == "default", "too little has been seen"
    assert choose(selector, late, one(late), 7000, 0, 0.0).chosen == "other"


def test_one_bad_week_is_no_reason() -> None:
    """The sum is in favour of the other one, because of a single epoch; then because of most."""
    selector = Selector(["default", "other"])
    epochs = np.full((2, 30), 2.0)
    epochs[0, 7] = 500.0
    assert choose(selector, epochs.mean(axis=1), epochs, 7500, 0, 0.0).chosen == "default"
    epochs[1, :27] = 1.0
    assert choose(selector, epochs.mean(axis=1), epochs, 7500, 0, 0.0).chosen == "other"
    epochs[1, 15:] = 3.0  # as often dearer as cheaper: not left for that, if the sum is still far less
    assert choose(selector, epochs.mean(axis=1), epochs, 7500, 0, 0.0).chosen == "other"
    epochs[0, 7] = 2.0
    assert choose(selector, epochs.mean(axis=1), epochs, 7500, 0, 0.0).chosen == "default", "it saves nothing"


def test_few_epochs_are_enough_if_all_agree() -> None:
    epochs = np.array([[9.0] * 5, [1.0] * 5])
    cost = epochs.mean(axis=1)
    assert choose(Selector(["default", "other"]), cost, epochs, 1250, 0, 0.0).chosen == "other"
    assert choose(Selector(["default", "other"]), cost, epochs[:, :4], 1250, 0, 0.0).chosen == "default"
    assert choose(Selector(["default", "other"]), 3 * cost, 3 * epochs, 1250, 0, 0.0).chosen == "other"
    assert choose(Selector(["default", "other"]), cost + 2, epochs + 2, 1250, 0, 0.0).chosen == "default", "not so much"
    epochs[1, 2] = 9.0
    assert choose(Selector(["default", "other"]), cost, epochs, 1250, 0, 0.0).chosen == "default"


def test_epochs_end_with_the_last_job() -> None:
    slowdown = np.array([[9.0, 1.0, 3.0, 5.0, 7.0], [9.0, 2.0, 2.0, 4.0, 4.0]])
    np.testing.assert_allclose(means_of(slowdown, 2), [[2.0, 6.0], [2.0, 4.0]])
    np.testing.assert_allclose(means_of(slowdown, 99), slowdown.mean(axis=1, keepdims=True))


def test_selector_resumes_exactly() -> None:
    rng = np.random.default_rng(4)
    costs = rng.uniform(1, 30, (30, 3))
    rules = Selection(drift=1.0, certainty=0.0)
    first, second = Selector(["a", "b", "c"], rules=rules), Selector(["a", "b", "c"], rules=rules)
    seen = set()
    for k, cost in enumerate(costs):
        if k == 12:
            second.restore(first.state())
        found = choose(first, cost, one(cost), 1000 * k + 1000, k, 0.0)
        seen.add(found.chosen)
        if k >= 12:
            assert choose(second, cost, one(cost), 1000 * k + 1000, k, 0.0) == found
    assert len(seen) > 1


def test_one_candidate_is_a_plain_replay() -> None:
    trace = crowded(600).fitting(PROCS)[0]
    net = classic_net("saf")
    found = mars_replay(trace, PROCS, candidates=[net], selection=Selection(epoch_jobs=70))
    jobs = trace.arrays()
    expected = np.empty(trace.num_jobs)
    run_mars(jobs, kinds_of(jobs), PROCS, net.net, shipped(), expected)
    np.testing.assert_array_equal(found.start_s, expected)


def test_a_bad_default_is_left() -> None:
    trace = crowded(3000)
    candidates = [classic_net("laf"), classic_net("saf")]
    found = mars_replay(trace, PROCS, candidates=candidates, selection=Selection(epoch_jobs=50, least_jobs=300))
    assert np.mean(found.chosen[1000:] == 1) > 0.9
    alone = mars_replay(trace, PROCS, candidates=candidates[:1])
    assert found.start_s.mean() < alone.start_s.mean()
    assert found.choices[-1].cost["saf"] < found.choices[-1].cost["laf"]


def test_the_future_does_not_matter() -> None:
    """Jobs that have not ended may have any run time: nothing before their end changes."""
    trace = crowded(1500, seed=3)
    nets = [classic_net("fcfs"), classic_net("saf"), classic_net("sjf-believed")]
    rules = Selection(epoch_jobs=100, least_jobs=200)
    one = mars_replay(trace, PROCS, candidates=nets, selection=rules)
    middle = float(one.start_s[700])
    open_jobs = one.start_s + one.trace.run_s > middle
    run = np.where(open_jobs, one.trace.estimate_s, one.trace.run_s)
    other = Trace.of(one.trace.submit_s, run, one.trace.num_procs, one.trace.estimate_s, user=one.trace.user)
    two = mars_replay(other, PROCS, candidates=nets, selection=rules)
    early = one.start_s <= middle
    np.testing.assert_array_equal(one.start_s[early], two.start_s[early])


def test_shadows_know_only_what_has_ended() -> None:
    jobs = crowded(50, seed=1).fitting(PROCS)[0].arrays()
    shadows = CounterfactualReplays(jobs, kinds_of(jobs), PROCS, [classic_net("saf")], shipped())
    start = np.full(50, -1.0)
    start[:10] = jobs.submit[:10]
    now = float(np.sort(start[:10] + jobs.run[:10])[5])
    shadows.learn(start, 20, now)
    ended = (start >= 0) & (start + jobs.run <= now)
    assert ended.sum() >= 6
    np.testing.assert_array_equal(shadows.jobs.run[ended], jobs.run[ended])
    running = (start >= 0) & ~ended
    assert np.all(shadows.jobs.run[running] >= (now - start)[running])
    waiting = slice(10, 20)  # nothing but the first share is known of them
    np.testing.assert_allclose(shadows.jobs.run[waiting], np.maximum(1.0, 0.5 * jobs.estimate[waiting]))


def test_guesses_are_not_those_of_short_jobs_alone() -> None:
    """Of the latest jobs only the short ones have ended: what is guessed for the others must not be short, too."""
    n = 3000
    run = np.where(np.arange(n) % 2 == 0, 5.0, 100.0)
    jobs = Trace.of(np.arange(n), run, np.ones(n), np.full(n, 100.0), user=np.zeros(n, np.int32)).arrays()
    shadows = CounterfactualReplays(jobs, kinds_of(jobs), n, [classic_net("saf")], shipped())
    shadows.learn(jobs.submit.copy(), 2000, 2200.0)  # all of these have ended
    assert shadows.num_playable == 2000
    start = np.where(np.arange(n) < 2500, jobs.submit, -1.0)
    now = 2520.0
    shadows.learn(start, n, now)
    assert shadows.num_playable < 2600, "shadows wait until most have ended"
    waiting = shadows.jobs.run[2500:]
    assert 0.4 < np.mean(waiting == 100.0) < 0.6
    running = (start >= 0) & (start + run > now)
    assert np.all(shadows.jobs.run[running] > (now - start)[running] - 1e-9)


def test_what_flatters_itself_is_believed_less() -> None:
    selector = Selector(["default", "other"], rules=Selection(guard=100.0, certainty=0.0))
    cost = np.array([10.0, 6.0])
    found = []
    for k in range(12):  # the real queue costs 60 while the other one is followed, and 10 under the default
        real = 60.0 if selector.chosen else 10.0
        found.append(choose(selector, cost, one(cost), 5000 + 250 * k, 0, 0.0, real_latest=real).chosen)
    assert found[0] == "other"
    assert found[-1] == "default", "ten times as dear in truth as in its shadow"
    honest = Selector(["default", "other"], rules=Selection(guard=100.0, certainty=0.0))
    found = [choose(honest, cost, one(cost), 5000 + 250 * k, 0, 0.0, real_latest=6.0).chosen for k in range(12)]
    assert found[-1] == "other"


def test_another_workload_is_met_with_the_default() -> None:
    selector = Selector(["default", "other"], rules=Selection(certainty=0.0))
    cost = np.array([10.0, 5.0])
    assert choose(selector, cost, one(cost), 5000, 0, 0.0).chosen == "other"
    found = choose(selector, cost, one(cost), 5250, 0, 0.0, is_new=True)
    assert found.chosen == "default"
    assert found.has_drifted
    assert selector.since == 5000


def test_dependencies_and_wrong_settings_are_refused() -> None:
    trace = Trace.of([0, 1], [5, 5], [1, 1], parent=np.array([0], np.int32), child=np.array([1], np.int32))
    with pytest.raises(InvalidInput, match="dependencies"):
        mars_replay(trace, 4, candidates=[classic_net("saf")])
    with pytest.raises(InvalidInput, match="epoch_jobs"):
        Selection(epoch_jobs=0)
    with pytest.raises(InvalidInput, match="candidates"):
        Selector([])


def test_the_default_decides_while_the_real_queue_is_dearer() -> None:
    selector = Selector(["default", "other"], rules=Selection(certainty=0.0))
    cost = np.array([10.0, 5.0])
    assert choose(selector, cost, one(cost), 5000, 0, 0.0, real=6.0).chosen == "other"
    assert choose(selector, cost, one(cost), 5250, 0, 0.0, real=21.0).chosen == "default"
    assert choose(selector, cost, one(cost), 5500, 0, 0.0, real=19.0).chosen == "other"
