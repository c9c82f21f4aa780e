"""Parts of the fast kernels beside their plain meaning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.queues.kernels.dynamic import fill_ranks, first_of, new_crowd
from stretto.queues.kernels.expected import expect, forget, new_expected, put_in_order, shadow_at
from stretto.queues.kernels.keys import EXPANSION, UNICEP, WFP3, dynamic_key
from stretto.queues.kernels.profile import drop_past, new_profile, reserve
from stretto.queues.kernels.waiting import HOLE_PROCS, new_waiting, next_candidate, next_fitting
from stretto.queues.promises.kernels.reserve_all import reserve_all

QUICK = settings(max_examples=150, deadline=None)


@QUICK
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.sampled_from("aabc")), min_size=1, max_size=40),
    st.integers(0, 5),
    st.booleans(),
    st.data(),
)
def test_the_shadow_is_the_first_time_at_which_enough_is_free(
    jobs: list[tuple[int, int, str]], now: int, one_event: bool, data: st.DataObject
) -> None:
    """Jobs start and some end, around two questions (a: stays, b: ends before the first, c: between them)."""
    x = new_expected(len(jobs))
    for job, (end, procs, _) in enumerate(jobs):
        expect(x, job, float(end), procs)
        if job % 7 == 6:
            put_in_order(x)
    for moment in "bc":
        for job in [job for job, (_, _, fate) in enumerate(jobs) if fate == moment]:
            forget(x, job)
        put_in_order(x)
    late = now + 1.0 if one_event else float(now)
    ends = [(float(end) if end > now else late, procs) for end, procs, fate in jobs if fate == "a"]
    if not ends:
        return
    need = data.draw(st.integers(1, sum(procs for _, procs in ends)))
    shadow = min(time for time, _ in ends if sum(p for t, p in ends if t <= time) >= need)
    extra = sum(p for t, p in ends if t <= shadow) - need
    assert shadow_at(x, need, float(now), late) == (shadow, extra)


@pytest.mark.parametrize("code", [EXPANSION, WFP3, UNICEP])
def test_ranks_are_minus_the_keys_to_the_last_bit(code: int) -> None:
    rng = np.random.default_rng(code)
    n, now = 300, 5000.0
    c = new_crowd(n)
    c.size[0] = n
    c.submit[:] = rng.integers(0, 5001, n)
    c.procs[:] = rng.integers(1, 200, n)
    estimate = rng.choice([0.0, 0.5, 7.0, 3600.0], n) * rng.random(n)
    c.scale[:] = np.maximum(1.0, estimate)
    if code == UNICEP:
        c.scale[:] *= np.maximum(1e-12, np.log2(c.procs))
    fill_ranks(c, code, now)
    keys = [dynamic_key(code, now, c.submit[k], estimate[k], c.procs[k]) for k in range(n)]
    assert (-c.rank).tolist() == keys
    assert first_of(c) == int(np.argmin(keys))


@QUICK
@given(st.integers(0, 5), st.integers(0, 250), st.integers(1, 8), st.integers(-2, 8), st.integers(0, 999))
def test_blocks_find_what_one_by_one_would(first: int, last: int, free: int, extra: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = new_waiting(256)
    w.procs[:] = np.where(rng.random(256) < 0.9, HOLE_PROCS, rng.integers(1, 9, 256))
    w.estimate[:] = rng.integers(1, 9, 256)
    now, shadow = 10.0, 14.0
    fits = [k for k in range(first, last) if w.procs[k] <= free]
    ready = [k for k in fits if now + w.estimate[k] <= shadow or w.procs[k] <= extra]
    end = max(first, last)
    assert next_fitting(w, first, last, free) == min(fits, default=end)
    assert next_candidate(w, first, last, free, now, shadow, extra) == min(ready, default=end)


@QUICK
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=25))
def test_reservations_are_as_early_as_they_can_be(jobs: list[tuple[int, int, int]]) -> None:
    """Against a table of free processors by second."""
    free = np.full(400, 4)
    profile = new_profile(len(jobs), 4)
    now = 0
    for procs, span, gap in jobs:
        now += gap
        drop_past(profile, float(now))
        at = next(t for t in range(now, 400) if bool(np.all(free[t : t + span] >= procs)))
        free[at : at + span] -= procs
        assert reserve(profile, procs, float(span)) == at


@pytest.mark.parametrize("seed", range(6))
def test_room_for_many_is_room_for_one_after_the_other(seed: int) -> None:
    """Few and many different jobs: their classes are values or quantiles."""
    rng = np.random.default_rng(seed)
    n, num_procs = 600, 64
    procs = rng.integers(1, num_procs + 1, n) if seed % 2 else rng.choice([1, 4, 16, 64], n)
    span = rng.exponential(500.0, n).round() + 1 if seed % 3 else rng.choice([60.0, 600.0, 3600.0], n)
    one, many = new_profile(n, num_procs), new_profile(n, num_procs)
    expected = [reserve(one, int(p), float(s)) for p, s in zip(procs, span, strict=True)]
    assert reserve_all(many, procs, span).tolist() == expected
    size = one.size[0]
    assert many.size[0] == size
    np.testing.assert_array_equal(many.free[:size], one.free[:size])
    np.testing.assert_array_equal(many.begin[:size], one.begin[:size])
