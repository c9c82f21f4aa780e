"""Numbers that put jobs in an order, changed as little as possible when the order changes.

Telling Slurm one number costs a call of several milliseconds, and mostly one job arrives or a few change places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

#: Slurm's site factors reach twice as far.
MOST = 2**30


def relabel(order: Sequence[int], current: Mapping[int, int], *, spacing: int = 1000) -> dict[int, int]:
    """Return new labels for as few jobs as possible, such that labels are positive and fall along the order.

    Parameters
    ----------
    order
        Jobs, first to last.
    current
        The labels that jobs have; without one, or with zero, a job has none.
    spacing
        Between the labels of neighbours, where there is room.
    """
    kept = _kept(order, current)
    top = current[order[kept[0]]] + spacing * (kept[0] + 1) if kept else 0
    if not kept or top > MOST:
        step = max(1, min(spacing, MOST // (len(order) + 1)))
        fresh = {job: step * (len(order) - place) for place, job in enumerate(order)}
        return {job: label for job, label in fresh.items() if current.get(job, 0) != label}
    found: dict[int, int] = {}
    places = [-1, *kept, len(order)]
    labels = [top, *(current[order[place]] for place in kept), 0]
    for left, right, high, low in zip(places, places[1:], labels, labels[1:], strict=False):
        count = right - left - 1
        for number in range(1, count + 1):
            found[order[left + number]] = high - (high - low) * number // (count + 1)
    return {job: label for job, label in found.items() if current.get(job, 0) != label}


def _kept(order: Sequence[int], current: Mapping[int, int]) -> list[int]:
    """Return the places of the most jobs that can keep their labels with room for all others between them.

    Of two kept jobs, the labels must differ by at least as much as the places: label + place must not rise. What is
    looked for is a longest subsequence of that kind, by patience sorting.
    """
    tails: list[int] = []  # negated label + place at the end of the best subsequence of each length
    ends: list[int] = []  # its last place
    before: dict[int, int] = {}
    for place, job in enumerate(order):
        label = current.get(job, 0)
        if label < len(order) - place:  # no room for those behind it
            continue
        value = -(label + place)
        length = bisect_right(tails, value)
        before[place] = ends[length - 1] if length else -1
        if length == len(tails):
            tails.append(value)
            ends.append(place)
        else:
            tails[length], ends[length] = value, place
    chain = []
    place = ends[-1] if ends else -1
    while place >= 0:
        chain.append(place)
        place = before[place]
    return chain[::-1]
