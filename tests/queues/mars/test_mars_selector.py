"""The selector: the prior, certainty, the guard, and a restart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.queues.mars.parameters import MarsParameters
from stretto.queues.mars.selector import Choice, EpochCosts, Selector

PLAIN = MarsParameters(block_epochs=1, prior_epochs=0.0, memory_epochs=1e9)


def seen(epochs: Any, real: Any = None) -> EpochCosts:
    costs: Floats = np.atleast_2d(np.array(epochs, float))
    return EpochCosts(costs, costs[0] if real is None else np.array(real, float), 250 * costs.shape[1], 0.0)


def choose(selector: Selector, epochs: Any, real: Any = None) -> Choice:
    return selector.choose(seen(epochs, real))


def test_the_prior_decides_before_anything_has_been_seen() -> None:
    assert Selector(["fcfs", "saf", "net"], [False, False, True]).chosen == 2
    assert Selector(["fcfs", "saf"], [False, False]).chosen == 0
    assert Selector(["net", "saf"], [True, False]).chosen == 0, "a network that is the policy has no prior"
    assert Selector(["fcfs", "net"], [False, True], replace(PLAIN, prior_ratio=1.2)).chosen == 0


def test_the_prior_gives_way_to_what_is_seen() -> None:
    rules = MarsParameters(block_epochs=1, prior_epochs=8.0, prior_ratio=0.8)
    selector = Selector(["fcfs", "net"], [False, True], rules)
    assert choose(selector, [[10.0] * 2, [11.0] * 2]).chosen == "net", "two epochs against a prior of eight"
    assert choose(selector, [[10.0] * 60, [11.0] * 60]).chosen == "fcfs"


def test_costs_are_told_as_replayed_and_the_prior_counts_as_so_many_epochs() -> None:
    rules = MarsParameters(block_epochs=1, prior_epochs=8.0, prior_ratio=0.5, memory_epochs=1e9)
    selector = Selector(["fcfs", "net"], [False, True], rules)
    found = choose(selector, [[10.0] * 2, [20.0] * 2])
    assert found.cost == pytest.approx({"fcfs": 10.0, "net": 20.0})
    _, mean, _ = selector._weigh(np.array([[10.0] * 2, [20.0] * 2]))
    assert mean.tolist() == pytest.approx([10.0, (2 * 20.0 + 8 * 5.0) / 10])


def test_old_epochs_count_less() -> None:
    rules = replace(PLAIN, memory_epochs=2.0)
    epochs = np.array([[1.0, 1.0, 9.0], [5.0, 5.0, 5.0]])
    found = choose(Selector(["a", "b"], [False, False], rules), epochs)
    fade = np.exp(-np.array([2, 1, 0]) / 2.0)
    assert found.cost["a"] == pytest.approx(float(epochs[0] @ fade / fade.sum()))


def test_a_difference_that_one_epoch_makes_is_not_certain() -> None:
    epochs = np.full((2, 30), 2.0)
    epochs[0, 7], epochs[1] = 25.0, 2.5  # the sum is in favor of the other one, because of a single epoch
    assert epochs[1].mean() < epochs[0].mean()
    selector = Selector(["fcfs", "saf"], [False, False], PLAIN)
    found = choose(selector, epochs)
    assert (found.chosen, found.saved, found.sure) == ("fcfs", 0.0, 0.0)
    assert found.rival is not None
    assert found.rival.name == "saf"
    assert 0.5 < found.rival.sure < PLAIN.certainty
    epochs[1] = 1.9
    found = choose(selector, epochs)
    assert (found.chosen, found.sure) == ("saf", 1.0)
    assert found.saved == pytest.approx(1 - 1.9 / epochs[0].mean())


def test_certainty_is_what_the_parameter_says() -> None:
    """Noise of which the other one is cheaper in most weightings, but not in nearly all."""
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 1.0, 40)
    epochs = np.stack([np.full(40, 10.0), 10.0 - (noise - noise.mean() + 0.18)])
    chosen = {}
    for certainty in (0.5, 0.999):
        chosen[certainty] = choose(
            Selector(["fcfs", "saf"], [False, False], replace(PLAIN, certainty=certainty)), epochs
        )
    assert chosen[0.5].chosen == "saf"
    assert 0.75 < chosen[0.5].sure < 0.98
    assert chosen[0.999].chosen == "fcfs"


def test_neighboring_epochs_are_drawn_together() -> None:
    """Ten good epochs in a row are less evidence than ten spread over the past."""
    row = np.full(40, 2.2)
    row[:20] = 1.6
    epochs = np.stack([np.full(40, 2.0), row])
    alone, blocks = (
        choose(Selector(["fcfs", "saf"], [False, False], replace(PLAIN, block_epochs=size, certainty=0.0)), epochs).sure
        for size in (1, 20)
    )
    assert alone > 0.95 > blocks


def test_what_is_followed_stays_until_another_is_surely_cheaper() -> None:
    selector = Selector(["fcfs", "saf", "f4"], [False] * 3, PLAIN)
    assert choose(selector, [[3.0] * 20, [1.0] * 20, [2.0] * 20]).chosen == "saf"
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.5, 20)
    near = [[3.0] * 20, [1.0] * 20, 1.0 + noise - noise.mean() - 0.01]
    assert choose(selector, near).chosen == "saf"
    assert choose(selector, [[3.0] * 20, [1.0] * 20, [0.9] * 20]).chosen == "f4"


def test_the_guard_lets_the_policy_decide_until_half_of_the_excess_is_made_good() -> None:
    rules = replace(PLAIN, guard=0.1, guard_epochs=0.0)
    selector = Selector(["fcfs", "saf"], [False, False], rules)
    cheap = [[10.0] * 10, [5.0] * 10]
    assert choose(selector, cheap, [10.5] * 10).chosen == "saf", "five percent are allowed"
    found = choose(selector, cheap, [11.5] * 10)
    assert (found.chosen, found.is_fallback) == ("fcfs", True)
    assert found.regret == pytest.approx(0.15)
    assert "the guard" in found.reason
    assert "15 %" in found.reason.replace("%", " %").replace("  ", " ")
    assert choose(selector, cheap, [10.8] * 10).is_fallback, "not yet half"
    found = choose(selector, cheap, [10.4] * 10)
    assert (found.chosen, found.is_fallback) == ("saf", False)


def test_the_guard_allows_some_epochs_of_the_policy_at_first() -> None:
    rules = replace(PLAIN, guard=0.0, guard_epochs=8.0)
    assert not choose(Selector(["fcfs", "saf"], [False, False], rules), [[10.0] * 4, [9.0] * 4], [29.0] * 4).is_fallback
    assert choose(Selector(["fcfs", "saf"], [False, False], rules), [[10.0] * 4, [9.0] * 4], [31.0] * 4).is_fallback


def test_only_who_is_far_behind_for_long_is_given_up() -> None:
    rules = replace(PLAIN, hopeless_epochs=10, hopeless_ratio=4.0)
    selector = Selector(["fcfs", "near", "far"], [False] * 3, rules)
    assert selector.hopeless(np.outer([1.0, 3.0, 5.0], np.ones(9))) == []
    assert selector.hopeless(np.outer([1.0, 3.0, 5.0], np.ones(10))) == [2]
    assert selector.hopeless(np.outer([9.0, 1.0, np.inf], np.ones(10))) == [], "never the policy, nor one twice"
    selector.chosen = 2
    assert selector.hopeless(np.outer([1.0, 3.0, 5.0], np.ones(10))) == []


def test_a_dropped_candidate_is_neither_chosen_nor_told() -> None:
    selector = Selector(["fcfs", "saf", "f4"], [False] * 3, PLAIN)
    found = choose(selector, [[3.0] * 9, [np.inf] * 9, [2.0] * 9])
    assert found.chosen == "f4"
    assert set(found.cost) == {"fcfs", "f4"}
    assert found.rival is not None
    assert found.rival.name == "fcfs"


def test_reasons_say_what_was_saved_and_how_sure_that_is() -> None:
    selector = Selector(["fcfs", "saf"], [False, False], PLAIN)
    assert "operator's policy" in choose(selector, [[2.0] * 9, [3.0] * 9]).reason
    reason = choose(selector, [[4.0] * 9, [3.0] * 9]).reason
    assert "saf cost 25 % less than fcfs over the last 2,250 jobs (over 99 % sure)" in reason


def test_it_resumes_where_it_was() -> None:
    first = Selector(["a", "b", "c"], [False] * 3, replace(PLAIN, guard=0.0, guard_epochs=0.0))
    choose(first, [[3.0] * 9, [2.0] * 9, [1.0] * 9])
    again = Selector(["a", "b", "c"], [False] * 3, first.rules)
    again.restore(first.state())
    assert (again.chosen, again.is_guarded) == (2, False)
    choose(first, [[3.0] * 9, [2.0] * 9, [1.0] * 9], [4.0] * 9)
    again.restore(first.state())
    assert (again.chosen, again.is_guarded) == (0, True)
    for wrong in ({}, {"chosen": 3}, {"chosen": "b"}, {"chosen": -1}):
        with pytest.raises(InvalidInput, match="chosen"):
            again.restore(wrong)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="epoch_jobs"):
        MarsParameters(epoch_jobs=0)
    with pytest.raises(InvalidInput, match="guard"):
        MarsParameters(guard=-1.0)
    for names, trained in (([], []), (["a"], [])):
        with pytest.raises(InvalidInput, match="candidates"):
            Selector(names, trained)
