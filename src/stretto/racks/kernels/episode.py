"""From decision to decision: time passes, counters are read, beliefs follow, in one environment or in many."""

from __future__ import annotations

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.belief import fill_belief, forget_all, update_belief
from stretto.racks.kernels.counters import close_window, read_counters
from stretto.racks.kernels.moves import act, fill_mask
from stretto.racks.kernels.progress import read_progress
from stretto.racks.kernels.state import OVER, SAME_S, TICK, begin
from stretto.racks.kernels.time import happen, pass_time


@njit(cache=True, nogil=True)
def restart(a, w, s, readings, belief, b, instance):
    """Begin an instance with nothing known of it."""
    begin(a, w, s, b, instance)
    readings.mean[b, :] = 0.0
    readings.sd[b, :] = 0.0
    readings.num[b, :] = 0
    readings.age_s[b, :] = 0.0
    readings.total[b, :] = 0.0
    readings.num_windows[b, :] = 0
    readings.progress[b, :] = 0.0
    forget_all(belief, b)


@njit(cache=True, nogil=True)
def to_decision(a, w, c, s, readings, belief, params, b, state, mask, must_pass, is_believing):
    """Go on until a decision is due; return whether the episode is over.

    Parameters
    ----------
    state
        Of the random generator of the counters.
    mask
        Filled with the valid actions.
    must_pass
        Whether somebody chose to wait: then an event comes first.
    is_believing
        Whether to keep the belief, which costs more than the rest.
    """
    has_passed = False
    while True:
        if not must_pass and fill_mask(a, s, b, mask):
            if is_believing:
                fill_belief(a, s, b, belief, params)
            return False
        must_pass = False
        if not has_passed:
            has_passed = True
            readings.total[b, :] = 0.0
            readings.num_windows[b, :] = 0
        event = TICK
        while event == TICK:
            event = pass_time(a, w, s, b, c.period_s - s.window_s[b])
            if event == TICK and s.window_s[b] >= c.period_s - SAME_S:
                _take_in(a, w, c, s, readings, belief, params, b, state, is_believing)
        if event == OVER:
            mask[:] = False
            return True
        _take_in(a, w, c, s, readings, belief, params, b, state, is_believing)
        happen(a, w, s, b)


@njit(cache=True, nogil=True)
def _take_in(a, w, c, s, readings, belief, params, b, state, is_believing):
    """Read the counters for the window that ends now, and learn from it."""
    dt_s = s.window_s[b]
    if read_counters(c, s, b, readings, state):
        if is_believing:
            read_progress(c, w, s, b, readings, state)
            update_belief(a, c, s, b, readings, belief, params, dt_s)
        close_window(s, b)


@njit(cache=True, nogil=True)
def step_many(a, w, c, s, readings, belief, params, states, actions, nexts, mask, cost, is_over, ends_s, is_believing):
    """Act in every environment and go on to its next decision; one that is over begins the instance ``nexts`` names.

    ``cost`` is filled with seconds and job-seconds since the last decision, [B, 2]; ``ends_s`` with the ends of the
    jobs of an episode that is over, [B, J].
    """
    last = mask.shape[1] - 1
    for b in range(actions.shape[0]):
        act(a, w, s, b, actions[b])
        is_over[b] = to_decision(
            a, w, c, s, readings, belief, params, b, states[b], mask[b], actions[b] == last, is_believing
        )
        cost[b] = s.cost[b]
        s.cost[b] = 0.0
        if is_over[b]:
            ends_s[b] = s.job_end_s[b]
            restart(a, w, s, readings, belief, b, nexts[b])
            to_decision(a, w, c, s, readings, belief, params, b, states[b], mask[b], False, is_believing)


@njit(cache=True, nogil=True)
def start_many(a, w, c, s, readings, belief, params, states, firsts, mask, is_believing):
    """Begin all environments."""
    for b in range(firsts.shape[0]):
        restart(a, w, s, readings, belief, b, firsts[b])
        to_decision(a, w, c, s, readings, belief, params, b, states[b], mask[b], False, is_believing)
        s.cost[b] = 0.0
