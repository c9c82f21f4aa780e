"""The look-ahead portfolio: equal to its slow twin, honest about what it knows, and a valid schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from portfolio_twin import Twin
from queue_cases import traces

from stretto.core.kernels.rng import seeded
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.kernels import keys
from stretto.queues.kernels.lookahead import BELIEVED, NARROW, RESERVE
from stretto.queues.kernels.portfolio import LookaheadRules, run_portfolio
from stretto.queues.kernels.run import run_queue
from stretto.queues.portfolio import Forecast, kinds_of, portfolio_replay
from stretto.queues.replay import replay as replay_trace
from stretto.queues.strategies import MEMBERS, member_code
from stretto.queues.validate import check_replay

NUM_PROCS = 6
CODES = [
    keys.SMALLEST_AREA,
    keys.FCFS,
    keys.SHORTEST,
    keys.LONGEST,
    keys.MOST_PROCS,
    keys.F3,
    keys.WFP3,
    keys.UNICEP,
    keys.DEADLINE,
    keys.SMALLEST_AREA + BELIEVED,
    keys.WFP3 + BELIEVED,
    keys.SMALLEST_AREA + BELIEVED + 5 * RESERVE,
    keys.SMALLEST_AREA + BELIEVED + 30 * RESERVE,
    keys.FCFS + 33 * RESERVE,
    keys.SMALLEST_AREA + BELIEVED + 5 * RESERVE + NARROW,
    keys.FCFS + 1 * RESERVE + NARROW,
]

#: A minute, or an hour and more, for what is some seconds.
SLOW = st.sampled_from([1.0, 60.0, 1000.0])

looks = st.builds(
    LookaheadRules,
    interval=st.sampled_from([0.0, 3.0, 50.0]),
    num_scenarios=st.sampled_from([1, 2, 9]),
    num_guesses=st.sampled_from([0, 1, 4]),
    memory=st.sampled_from([1, 3, 100]),
    confidence=st.sampled_from([0.0, 1.0, 3.0]),
    depth=st.sampled_from([1, 2, 64]),
    review=st.sampled_from([0, 1, 5]),
)


def replay(trace: Trace, look: LookaheadRules, codes: list[int], seed: int = 0) -> tuple[Any, Any, int]:
    q = trace.arrays()
    start, chosen = np.empty(trace.num_jobs), np.zeros(trace.num_jobs, np.int64)
    num_epochs = run_portfolio(q, kinds_of(q), NUM_PROCS, np.array(codes), look, seeded(seed), start, chosen)
    return start, chosen, int(num_epochs)


def slowed(trace: Trace, factor: float) -> Trace:
    """The same jobs so many times as long, so that some are long ones."""
    times = ("submit_s", "run_s", "estimate_s", "deadline_s")
    columns = {name: getattr(trace, name) for name in times if getattr(trace, name) is not None}
    return replace(trace, **{name: factor * column for name, column in columns.items()})


def crowd(seed: int, num_jobs: int) -> Trace:
    """Jobs of a few users who repeat themselves, enough to fill the rings of the past."""
    rng = np.random.default_rng(seed)
    estimate = rng.choice([20.0, 60.0, 300.0], num_jobs)
    run = np.ceil(estimate * rng.choice([0.05, 0.3, 0.9, 1.0], num_jobs))
    submit = np.cumsum(rng.choice([0.0, 1.0, 10.0, 60.0], num_jobs))
    user = rng.integers(0, 2, num_jobs).astype(np.int32)
    return Trace.of(submit - submit[0], run, rng.integers(1, NUM_PROCS + 1, num_jobs), estimate, user=user)


@given(traces(plain=True), SLOW, looks, st.permutations(CODES), st.integers(1, len(CODES)), st.integers(0, 9))
@settings(max_examples=200, deadline=None)
def test_equals_its_twin(
    trace: Trace, slow: float, look: LookaheadRules, codes: list[int], num_codes: int, seed: int
) -> None:
    trace = slowed(trace, slow)
    start, chosen, num_epochs = replay(trace, look, codes[:num_codes], seed)
    q = trace.arrays()
    twin = Twin(q, kinds_of(q), NUM_PROCS, codes[:num_codes], look, seeded(seed))
    assert (start.tolist(), chosen.tolist(), num_epochs) == twin.replay()


@pytest.mark.parametrize("review", [0, 20])
@pytest.mark.parametrize("seed", range(4))
def test_equals_its_twin_with_a_long_past(seed: int, review: int) -> None:
    trace, look = slowed(crowd(seed, 120), 1.0 + 39.0 * (seed % 2)), LookaheadRules(0.0, 8, 5, 30, 0.5, 8, review)
    start, chosen, num_epochs = replay(trace, look, CODES, seed)
    assert num_epochs > 5
    assert len(set(chosen.tolist())) > 1
    q = trace.arrays()
    twin = Twin(q, kinds_of(q), NUM_PROCS, CODES, look, seeded(seed))
    assert (start.tolist(), chosen.tolist(), num_epochs) == twin.replay()


def test_a_base_that_reserves_too_little_gives_way() -> None:
    """Short jobs among long ones that often fill the machine: whoever reserves nothing lets them wait."""
    rng = np.random.default_rng(1)
    is_long = rng.random(600) < 0.2
    run = np.where(is_long, 9000.0, 30.0)
    trace = Trace.of(np.cumsum(rng.exponential(400.0, 600)), run, np.ones(600, np.int32), run)
    codes = [keys.SMALLEST_AREA, keys.SMALLEST_AREA + 10 * RESERVE]
    kept, left = (replay(trace, LookaheadRules(0.0, 2, 5, 30, 1e9, 8, review), codes) for review in (0, 50))
    assert set(kept[1].tolist()) == {0}
    assert left[1].tolist()[-100:] == [1] * 100
    slowdown = [np.mean((found[0] - trace.submit_s)[~is_long]) for found in (kept, left)]
    assert slowdown[1] < 0.5 * slowdown[0]


@given(traces(plain=True), looks, st.sampled_from([code for code in CODES if code < BELIEVED]))
@settings(max_examples=100, deadline=None)
def test_one_candidate_is_that_strategy(trace: Trace, look: LookaheadRules, code: int) -> None:
    start, _, num_epochs = replay(trace, look, [code])
    fixed = np.empty(trace.num_jobs)
    run_queue(trace.arrays(), NUM_PROCS, code, True, False, fixed)
    assert start.tolist() == fixed.tolist()
    assert num_epochs == 0


@given(st.integers(0, 10_000), looks, st.data())
@settings(max_examples=100, deadline=None)
def test_decides_without_knowing_when_jobs_will_end(seed: int, look: LookaheadRules, data: st.DataObject) -> None:
    trace = crowd(seed, 40)
    start, chosen, _ = replay(trace, look, CODES)
    moment = float(data.draw(st.sampled_from(np.unique(start).tolist())))
    # Whatever had not ended by then may last as long as its estimate allows; what was decided by then must stand.
    unknown = start + trace.run_s > moment
    least = np.maximum(1.0, np.floor(moment - start) + 1.0)
    share = np.random.default_rng(seed).random(trace.num_jobs)
    other = np.where(unknown, least + share * np.maximum(trace.estimate_s - least, 0.0), trace.run_s)
    other = np.minimum(other, trace.estimate_s)
    known = start <= moment
    changed = Trace.of(trace.submit_s, other, trace.num_procs, trace.estimate_s, user=trace.user)
    again, chosen_again, _ = replay(changed, look, CODES)
    assert again[known].tolist() == start[known].tolist()
    assert chosen_again[known].tolist() == chosen[known].tolist()
    assert np.all(again[~known] > moment)


def test_a_long_job_leaves_room_for_a_short_one() -> None:
    """Six processors: under ``reserve`` the last long job waits for the first, and the short one waits for nobody."""
    run = [100.0, 10.0] + [9000.0] * 3 + [60.0]
    submit = [0.0, 1.0, 200.0, 201.0, 202.0, 203.0]
    trace = Trace.of(submit, run, [6, 1, 4, 1, 1, 1], run)  # the second job is short, and has to wait
    plain = portfolio_replay(trace, NUM_PROCS, strategies=("fcfs-believed",))
    reserved = portfolio_replay(trace, NUM_PROCS, strategies=("fcfs-believed-reserve-10",))
    assert plain.start_s.tolist() == [0.0, 100.0, 200.0, 201.0, 202.0, 9200.0]
    assert reserved.start_s.tolist() == [0.0, 100.0, 200.0, 201.0, 9200.0, 203.0]


def test_only_short_jobs_pass_where_the_way_is_narrow() -> None:
    """A wide job waits. Another one, long but in time, passes it under EASY; narrowly only the short one does."""
    run = [100.0, 10.0, 9000.0, 9000.0, 5000.0, 60.0]
    submit = [0.0, 1.0, 200.0, 201.0, 202.0, 203.0]
    trace = Trace.of(submit, run, [6, 1, 4, 6, 1, 1], run)
    wide = portfolio_replay(trace, NUM_PROCS, strategies=("fcfs-believed-reserve-1",))
    narrow = portfolio_replay(trace, NUM_PROCS, strategies=("fcfs-believed-reserve-1-narrow",))
    assert wide.start_s.tolist() == [0.0, 100.0, 200.0, 9200.0, 202.0, 203.0]
    assert narrow.start_s.tolist() == [0.0, 100.0, 200.0, 9200.0, 18200.0, 203.0]


def test_nothing_is_kept_free_before_a_short_job_had_to_wait() -> None:
    trace = Trace.of([0.0, 1.0, 2.0], [9000.0] * 3, [4, 1, 1], [9000.0] * 3)
    assert portfolio_replay(trace, NUM_PROCS).start_s.tolist() == [0.0, 1.0, 2.0]


def test_nobody_is_held_back_where_a_third_is_free() -> None:
    """Two jobs of half the machine run side by side: to reserve a processor would cost three."""
    trace = Trace.of([0.0, 1.0], [9000.0, 9000.0], [3, 3], [9000.0, 9000.0])
    reserved = portfolio_replay(trace, NUM_PROCS, strategies=("fcfs-reserve-33",))
    assert reserved.start_s.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("name", [f"saf-reserve-{share}" for share in ("0", "34", "x", "", "5-wide")])
def test_bad_reserve_shares_are_told(name: str) -> None:
    with pytest.raises(InvalidInput, match="percentage"):
        member_code(name)


@given(traces(plain=True), looks)
@settings(max_examples=100, deadline=None)
def test_the_schedule_is_valid(trace: Trace, look: LookaheadRules) -> None:
    start, _, _ = replay(trace, look, CODES)
    assert np.all(start >= trace.submit_s)
    for moment in start:
        busy = (start <= moment) & (start + trace.run_s > moment)
        assert trace.num_procs[busy].sum() <= NUM_PROCS


def test_looking_ahead_pays() -> None:
    """One wide job against many short ones behind a long one: neither order alone is best in both halves."""
    submit = [0.0, 1.0, *[2.0] * 5, 1000.0, 1001.0, *[1002.0] * 5]
    run = [100.0, 10.0, *[50.0] * 5, 100.0, 400.0, *[20.0] * 5]
    procs = [5, 6, *[1] * 5, 5, 6, *[2] * 5]
    trace = Trace.of(submit, run, procs)
    q = trace.arrays()

    def mean(start: Any) -> float:
        return float(np.mean(np.maximum(1.0, (start - q.submit + q.run) / np.maximum(q.run, 10.0))))

    fixed = np.empty(trace.num_jobs)
    means = []
    for code in (keys.LARGEST_AREA, keys.FCFS):
        run_queue(q, NUM_PROCS, code, True, False, fixed)
        means.append(mean(fixed))
    found = portfolio_replay(
        trace, NUM_PROCS, strategies=("laf", "fcfs", "sjf"), forecast=Forecast(num_arrivals=0, confidence=0.0)
    )
    assert mean(found.start_s) < min(means)


def test_same_seed_same_result() -> None:
    trace = crowd(3, 200)
    first = portfolio_replay(trace, NUM_PROCS, seed=5)
    again = portfolio_replay(trace, NUM_PROCS, seed=5)
    assert first.start_s.tolist() == again.start_s.tolist()
    assert first.strategies == MEMBERS
    assert first.num_epochs > 0


def test_playing_the_portfolio_is_its_replay() -> None:
    trace = crowd(1, 150)
    result = replay_trace(trace, NUM_PROCS, strategy="portfolio", seed=2)
    assert result.start_s.tolist() == portfolio_replay(trace, NUM_PROCS, seed=2).start_s.tolist()
    check_replay(trace, NUM_PROCS, result)


def test_jobs_that_do_not_fit_are_told() -> None:
    found = portfolio_replay(Trace.of([0.0, 1.0, 2.0], [5.0, 5.0, 5.0], [1, 9, 2]), NUM_PROCS)
    assert found.num_dropped == 1
    assert found.start_s.tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"strategies": ()}, "strategies"),
        ({"strategies": ("fcfs", "fcfs")}, "strategies"),
        ({"strategies": ("multifactor",)}, "strategies"),
        ({"interval_s": -1.0}, "interval_s"),
        ({"interval_s": float("nan")}, "interval_s"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_told(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        portfolio_replay(crowd(0, 5), NUM_PROCS, **options)


@pytest.mark.parametrize("options", [{"num_scenarios": 0}, {"num_arrivals": -1}, {"confidence": -1.0}, {"depth": 0}])
def test_bad_forecasts_are_told(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        Forecast(**options)


def test_unknown_strategies_and_dependencies_are_told() -> None:
    with pytest.raises(UnknownName, match="sjff"):
        portfolio_replay(crowd(0, 5), NUM_PROCS, strategies=("sjff",))
    chain = Trace.of([0.0, 0.0], [1.0, 1.0], [1, 1], parent=np.array([0], np.int32), child=np.array([1], np.int32))
    with pytest.raises(InvalidInput, match="dependencies"):
        portfolio_replay(chain, NUM_PROCS)
