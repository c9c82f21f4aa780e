"""The strategist: what it sees, what it says, how it learns on the way, and that it is heard only where it is sure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from research.mars.advice import Advisor
from research.mars.advised_replay import AdvisedSelector, advised_replay
from research.mars.observation import Observation, exactness_of, look_ahead, nearest
from research.mars.strategist import (
    SHIPPED,
    Strategist,
    load_strategist,
    prior,
    save_strategist,
    shipped,
    strategist_of,
)

from research.mars import observation
from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.forecaster import shipped as shipped_forecaster
from stretto.queues.mars.network import classic_net
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.selector import Choice, EpochComparison, Selector
from stretto.queues.portfolio import kinds_of

PROCS = 16
NAMES = ["default-order", "saf", "default-1h", "net-saf"]


def choose(selector: Selector, *seen: Any, **more: Any) -> Choice:
    return selector.choose(EpochComparison(*seen, **more))


def seen_of(cost: list[float], *, chosen: int = 0, ahead: dict[str, float] | None = None) -> Observation:
    epochs = np.array(cost)[:, None] * np.random.default_rng(0).uniform(0.9, 1.1, (1, 30))
    return Observation(np.array(cost), epochs, chosen, 7500, 12, 0.25, ahead or {})


def rows_of(seen: Observation) -> Floats:
    return seen.rows(NAMES, np.array([0, 0, 0, 1], bool), np.array([0, 0, 1, 0], bool))


def some(seed: int) -> Strategist:
    rng = np.random.default_rng(seed)
    arrays = {name: rng.normal(size=array.shape) * 0.3 for name, array in prior().to_arrays().items()}
    return strategist_of({**arrays, "threshold": np.array([0.4])})


def crowded(n: int) -> Trace:
    rng = np.random.default_rng(5)
    run = np.round(np.exp(rng.normal(5, 1.5, n))) + 1
    procs = rng.integers(1, PROCS + 1, n)
    gap = rng.exponential(float((run * procs).mean()) / PROCS, n)
    return Trace.of(np.floor(np.cumsum(gap)), run, procs, np.round(3 * run), user=np.zeros(n, np.int32))


def test_rows_say_what_is_cheaper_by_how_much_and_who_is_who() -> None:
    rows = rows_of(seen_of([10.0, 5.0, 20.0, np.inf], chosen=1, ahead={"saf-believed": 4.0, "saf": 2.0}))
    np.testing.assert_allclose(rows[:3, observation.ALL], np.log([1.0, 0.5, 2.0]))
    np.testing.assert_allclose(rows[:3, observation.LATEST], np.log([1.0, 0.5, 2.0]))
    assert rows[1, observation.SURE] > 0.9
    assert rows[2, observation.SURE] < -0.9
    np.testing.assert_array_equal(rows[:3, observation.IS_FOLLOWED], [0, 1, 0])
    np.testing.assert_array_equal(rows[:3, observation.IS_VARIANT], [0, 0, 1])
    np.testing.assert_allclose(rows[:3, observation.AHEAD], [0.0, np.log(0.5), 0.0])
    assert np.isnan(rows[3]).all(), "it is no longer watched"


@pytest.mark.parametrize(
    ("name", "order"),
    [("saf", "saf"), ("default-1h", "saf-believed"), ("sjf-forecast-aged", "sjf-believed"), ("x", "x")],
)
def test_candidates_have_a_nearest_order(name: str, order: str) -> None:
    assert nearest(name) == order


def test_the_look_ahead_favours_the_short_one_and_knows_no_future() -> None:
    submit, run = np.arange(12.0), np.r_[np.full(6, 1000.0), np.full(3, 5000.0), np.full(3, 10.0)]
    procs = np.r_[np.full(6, 2), np.full(6, PROCS)].astype(np.int32)
    jobs = Trace.of(submit, run, procs, run, user=np.zeros(12, np.int32)).arrays()
    start = np.r_[np.arange(6.0), np.full(6, -1.0)]
    said = look_ahead(jobs, start, 12, 12.0, PROCS)
    assert said["sjf"] < said["fcfs"]
    later = jobs._replace(run=np.where(start < 0, 7.0 * jobs.run, jobs.run))
    assert look_ahead(later, start, 12, 12.0, PROCS) == said, "what waits has not run yet"
    assert look_ahead(jobs, np.arange(12.0), 12, 12.0, PROCS) == {}, "nobody waits"


def test_replays_tell_how_exact_estimates_have_been() -> None:
    trace = crowded(600)
    share = float(np.mean(trace.estimate_s <= 1.05 * trace.run_s))
    for estimate, exactness in ((trace.run_s, 1.0), (trace.estimate_s, share)):
        jobs = Trace.of(trace.submit_s, trace.run_s, trace.num_procs, estimate, user=trace.user).arrays()
        replays = CounterfactualReplays(jobs, kinds_of(jobs), PROCS, [classic_net("saf")], shipped_forecaster())
        assert exactness_of(replays) == 0.0, "nothing has ended yet"
        replays.learn(jobs.submit, 600, float(jobs.submit[-1] + jobs.run.max()))
        assert exactness_of(replays) == pytest.approx(exactness, abs=0.01)


def test_probabilities_do_not_depend_on_the_order_of_candidates() -> None:
    rows = rows_of(seen_of([10.0, 5.0, 20.0, 7.0]))
    likely = some(3).probabilities(rows)
    assert likely.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(some(3).probabilities(rows[[2, 0, 3, 1]]), likely[[2, 0, 3, 1]])
    rows[1] = np.nan
    assert some(3).probabilities(rows)[1] == 0.0


def test_the_prior_goes_by_shadows_and_stays_where_nothing_differs() -> None:
    stays = prior().probabilities(rows_of(seen_of([10.0, 10.0, 10.0, 10.0])))
    assert np.argmax(stays) == 0
    leaves = prior().probabilities(rows_of(seen_of([10.0, 2.0, 10.0, 10.0])))
    assert np.argmax(leaves) == 1


def test_a_step_is_the_gradient_of_the_expected_reward() -> None:
    rows, reward = rows_of(seen_of([10.0, 5.0, 20.0, 7.0])), np.array([0.0, 0.7, -0.7, 0.3])
    before = some(7)
    after = before.learn(rows, reward, 0.2, discount=0.9)
    for part in ("linear", "bias", "out", "hidden"):
        step = getattr(after, part) - getattr(before, part)
        place = np.unravel_index(int(np.argmax(np.abs(step))), step.shape)
        moved = getattr(before, part).copy()
        moved[place] += 1e-6
        change = replace(before, **{part: moved}).probabilities(rows) @ reward - before.probabilities(rows) @ reward
        assert step[place] == pytest.approx(0.01 * change / 1e-6, rel=1e-3)
    wanted = float(before.probabilities(rows) @ reward) + 0.9 * 0.2
    assert abs(after.value(rows) - wanted) < abs(before.value(rows) - wanted)


def test_counsel_learns_who_saves_and_can_be_put_away() -> None:
    def cheap(k: int) -> Observation:
        """The last one is the cheapest of this epoch, which the past does not tell."""
        seen = seen_of([10.0, 10.0, 10.0, 10.0])
        epochs = np.full((4, 30), 10.0)
        epochs[3, -1] = 2.0
        return replace(seen, epochs=epochs)

    advisor = Advisor(prior(), NAMES, ["net-saf"], ["default-1h"])
    first = advisor.advise(cheap(0))
    for k in range(300):
        last = advisor.advise(cheap(k))
    assert advisor.num_lessons == 300
    assert last[3] > 1.2 * first[3]
    assert last[0] < first[0]
    other = Advisor(prior(), NAMES, ["net-saf"], ["default-1h"])
    other.restore(advisor.state())
    np.testing.assert_array_equal(other.advise(cheap(0)), advisor.advise(cheap(0)))
    fixed = Advisor(prior(), NAMES, learns=False)
    fixed.advise(cheap(0))
    fixed.advise(cheap(0))
    assert fixed.num_lessons == 0


def test_it_is_heard_where_it_is_sure_and_the_guard_stands_above_it() -> None:
    cost, epochs = np.array([10.0, 9.9, 9.8]), np.full((3, 8), 10.0)
    likely = np.array([0.2, 0.7, 0.1])

    def chosen(real: float | None = None, **signs: object) -> str:
        selector = AdvisedSelector(["default", "a", "b"], rules=Selection(), likely=likely, **signs)  # type: ignore[arg-type]
        return choose(selector, cost, epochs, 5000, 5000, 0.0, real=real).chosen

    assert chosen(threshold=0.6) == "a"
    assert chosen(threshold=0.8) == "default"
    assert chosen(threshold=0.6, allowed=np.array([True, False, True])) == "default"
    assert chosen(30.0, threshold=0.6) == "default", "the real queue costs more than the default alone would"


def test_a_replay_by_the_strategist_tells_why() -> None:
    trace, rules = crowded(1500), Selection(epoch_jobs=100, least_jobs=200)
    nets = [classic_net("laf"), classic_net("saf")]
    found = advised_replay(trace, PROCS, candidates=nets, selection=rules, strategist=prior())
    assert np.mean(found.chosen[800:] == 1) > 0.9
    assert any("strategist" in choice.reason for choice in found.choices)


def test_files_are_read_back_and_others_refused(tmp_path: Path) -> None:
    path = tmp_path / "strategist.npz"
    save_strategist(path, some(1), {"queues": ["a"]})
    back, meta = load_strategist(path)
    assert meta["queues"] == ["a"]
    for name, array in some(1).to_arrays().items():
        np.testing.assert_array_equal(getattr(back, name), array)
    checkpoint.save(path, some(1).to_arrays(), {"kind": "mars"})
    with pytest.raises(InvalidInput, match="strategist"):
        load_strategist(path)
    with pytest.raises(InvalidInput, match="no threshold"):
        strategist_of({name: array for name, array in some(1).to_arrays().items() if name != "threshold"})
    with pytest.raises(InvalidInput, match="not a number"):
        replace(some(1), bias=np.full(16, np.nan))
    with pytest.raises(InvalidInput, match="shape"):
        replace(some(1), out=np.zeros(3))


def test_the_shipped_one_did_not_see_what_is_held_out() -> None:
    _, meta = load_strategist(SHIPPED)
    assert len(meta["queues"]) >= 10
    assert not any(name.startswith(("CTC", "OSC", "SDSC-BLUE", "Theta", "lublin")) for name in meta["queues"])
    assert 0.0 < shipped().threshold[0] < 1.0
