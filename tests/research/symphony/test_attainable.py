"""Sampled futures keep what a rack knows, and a price under the stream itself is what playing on costs."""

from __future__ import annotations

import numpy as np
import pytest
from research.symphony.attainable import HIDDEN, fill_future, fill_prices, futures_of, world_of

from stretto.core.kernels.rng import seeded
from stretto.racks.kernels.moves import act
from stretto.racks.kernels.oracle import _to_true_decision, fill_true_pressure
from stretto.racks.kernels.policy_inputs import fill_candidates
from stretto.racks.kernels.policy_teacher import play_out
from stretto.racks.kernels.state import ARRIVED, DONE, begin, copy_row
from stretto.racks.simulator import new_state
from stretto.racks.symphony.network import load_weights


@pytest.fixture(scope="module")
def moment():
    """A generated rack after some decisions: two jobs have arrived and others are to come."""
    world, spec = world_of("generated-5000", seed=3, num=2)
    a, w, s = world.model.arrays, world.streams, new_state(world.model, world.streams, 2)
    mask = np.zeros(world.model.num_actions, np.bool_)
    begin(a, w, s, 0, 1)
    while not _to_true_decision(a, w, s, 0, mask, False):
        if s.num[0, ARRIVED] >= 2:
            break
        act(a, w, s, 0, int(np.flatnonzero(mask)[0]))
    assert (s.status[0] == DONE).any()
    assert s.num[0, ARRIVED] < w.arrival_s.shape[1]
    return world, spec, s, mask


def test_a_future_with_nothing_hidden_is_the_stream(moment):
    world, spec, s, _ = moment
    futures = futures_of("generated-5000", world, spec, num=1, hide="")
    fill_future(world.streams, s, 0, futures, seeded(0))
    for mine, theirs in zip(futures.out, world.streams, strict=True):
        np.testing.assert_array_equal(mine[0], theirs[1])


def test_what_is_hidden_is_drawn_anew_and_what_is_known_stays(moment):
    world, spec, s, _ = moment
    w, futures = world.streams, futures_of("generated-5000", world, spec, num=4, hide=",".join(HIDDEN))
    num, now_s = int(s.num[0, ARRIVED]), float(s.now_s[0])
    mine = int(w.job_size[1, :num].sum())
    for f in range(4):
        fill_future(w, s, f, futures, seeded(5, f))
        out, begun = futures.out, s.status[0, :mine] >= 2
        np.testing.assert_array_equal(out.kernel[f, :mine], w.kernel[1, :mine])
        np.testing.assert_array_equal(out.scale[f, :mine][begun], w.scale[1, :mine][begun])
        assert (out.scale[f, :mine][~begun] != w.scale[1, :mine][~begun]).all()
        assert (out.arrival_s[f, num:] > now_s).all()
        assert (np.diff(out.arrival_s[f]) >= 0).all()
        num_jobs = w.arrival_s.shape[1]
        np.testing.assert_array_equal(np.bincount(out.job[f], minlength=num_jobs)[:num_jobs], out.job_size[f])
        before = np.zeros(w.kernel.shape[1], np.int64)
        for task in range(int(out.job_size[f].sum())):
            for later in out.after[f, out.after_ptr[f, task] : out.after_ptr[f, task + 1]]:
                assert out.job[f, later] == out.job[f, task]
                before[later] += 1
        np.testing.assert_array_equal(before, out.num_before[f])
        for source, place in enumerate(s.flow_place[0]):
            np.testing.assert_array_equal(out.flow_level[f, source, : place + 1], w.flow_level[1, source, : place + 1])
            assert (out.flow_s[f, source, place + 1 :] > now_s).all()
    assert len({float(one[num:].sum()) for one in futures.out.arrival_s}) == 4


def test_a_price_under_the_stream_itself_is_what_playing_on_costs(moment):
    world, spec, s, mask = moment
    a, w, weights = world.model.arrays, world.streams, load_weights()[0]
    actions, pressure = np.empty(len(mask), np.int64), np.zeros(s.load.shape[1])
    tried = actions[: fill_candidates(a, s, 0, mask, actions)][:3].copy()
    fill_true_pressure(a, w, s, 0, pressure)
    total, known = np.empty((1, len(tried))), np.empty((1, len(tried)))
    futures = futures_of("generated-5000", world, spec, num=1, hide="")
    fill_prices(a, w, s, weights, futures, tried, False, seeded(0), pressure, mask, total, known)
    for c, action in enumerate(tried):
        copy_row(s, 0, 1)
        assert play_out(a, w, s, 1, weights, action) == pytest.approx(total[0, c])
        ends = s.job_end_s[1, : s.num[0, ARRIVED]] - w.arrival_s[1, : s.num[0, ARRIVED]]
        assert known[0, c] == pytest.approx(ends.sum())
