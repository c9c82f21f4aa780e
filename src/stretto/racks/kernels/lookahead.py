"""What each choice of a decision would cost: the rest of the stream played out by a rule, once per candidate.

Every candidate meets the same future, so the differences between them are what the choice is worth and nothing else.
Who learns from that sees only what a scheduler sees: over many streams, what it cannot know averages out.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit
from stretto.racks.kernels.moves import act
from stretto.racks.kernels.oracle import fill_true_pressure, has_twin, roll_out
from stretto.racks.kernels.rules import choose
from stretto.racks.kernels.state import copy_row


@njit(cache=True, nogil=True)
def price_actions(a, w, s, rule, mask, order, state, actions, costs):
    """Fill candidates for the decision of rack 0 and what they would cost; return how many there are.

    Parameters
    ----------
    s
        Two racks: the first is at the decision and stays there, the second is for playing.
    rule
        Plays on after a candidate, knows the true pressures, and its own choice is always a candidate.
    order
        Valid actions, those first that should be candidates. Of processors that cannot be told apart, one counts.
    actions, costs
        Filled with actions and with the sums of job completion times that follow; [W].
    """
    num_execute = a.duration_s.shape[0] * a.duration_s.shape[1]
    scratch = np.zeros(mask.shape[0], np.bool_)
    pressure = np.zeros(s.load.shape[1])
    fill_true_pressure(a, w, s, 0, pressure)
    own = choose(a, w, s, 0, rule, a.duration_s, pressure, mask, state)
    actions[0] = own
    num = 1
    for action in order:
        if num == actions.shape[0]:
            break
        is_twin = action < num_execute and has_twin(
            a, s, 0, action // a.duration_s.shape[1], action % a.duration_s.shape[1]
        )
        if action != own and not is_twin:
            actions[num] = action
            num += 1
    for place in range(num):
        copy_row(s, 0, 1)
        act(a, w, s, 1, actions[place])
        is_wait = actions[place] == mask.shape[0] - 1
        costs[place] = roll_out(a, w, s, 1, rule, scratch, pressure, is_wait, state)
    return num
