"""A tournament tree: the least of a fixed set of (time, tie) pairs, any of which may change.

Node ``i`` holds the index that wins below it; the leaves of the set stand at ``size .. 2 * size``
and the overall winner at node 1. A change costs one walk to the root, and stops early
where a node's winner neither was nor becomes the changed one.
"""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.kernels.compile import njit


@njit(cache=True, nogil=True)
def make_tournament(num_players: int) -> Ints:
    """Return a tree for players whose times are all equal: the first one wins."""
    size = 1
    while size < num_players:
        size *= 2
    tree = np.full(2 * size, -1, dtype=np.int32)
    for player in range(num_players):
        tree[size + player] = player
    for node in range(size - 1, 0, -1):
        tree[node] = tree[2 * node]
    return tree


@njit(cache=True, nogil=True)
def replay(tree: Ints, time: Floats, tie: Ints, player: int) -> None:
    """Repair the tree after the time or the tie of one player has changed."""
    node = (tree.size // 2 + player) >> 1
    while node > 0:
        left = tree[2 * node]
        right = tree[2 * node + 1]
        winner = left
        if right >= 0 and (time[right] < time[left] or (time[right] == time[left] and tie[right] < tie[left])):
            winner = right
        before = tree[node]
        tree[node] = winner
        if before == winner and winner != player:
            break
        node >>= 1
