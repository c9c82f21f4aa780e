"""Labels keep an order with few changes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from stretto.queues.relabel import MOST, relabel

ORDERS = st.lists(st.integers(0, 60), unique=True, max_size=40)
LABELS = st.dictionaries(
    st.integers(0, 60), st.sampled_from([0, 1, 2, 3, 10, 50, 999, 5000, MOST]) | st.integers(0, 99)
)


@given(ORDERS, LABELS, st.sampled_from([1, 7, 1000]))
def test_labels_fall_along_the_order(order: list[int], current: dict[int, int], spacing: int) -> None:
    updates = relabel(order, current, spacing=spacing)
    labels = [updates.get(job, current.get(job, 0)) for job in order]
    assert all(high > low for high, low in zip(labels, labels[1:]))
    assert all(0 < label <= MOST for label in labels)
    assert set(updates) <= set(order)
    assert all(current.get(job, 0) != label for job, label in updates.items())


@given(ORDERS)
def test_an_order_that_holds_needs_no_change(order: list[int]) -> None:
    labels = relabel(order, {})
    assert relabel(order, labels) == {}
    for job in order:  # nor does the end of a job
        rest = [other for other in order if other != job]
        assert relabel(rest, labels) == {}


@given(ORDERS.filter(lambda order: len(order) > 1), st.data())
def test_one_job_that_moves_is_one_change(order: list[int], data: st.DataObject) -> None:
    labels = relabel(order, {})
    moved = data.draw(st.sampled_from(order))
    rest = [job for job in order if job != moved]
    place = data.draw(st.integers(0, len(rest)))
    updates = relabel([*rest[:place], moved, *rest[place:]], labels)
    assert len(updates) <= 1


def test_many_arrivals_cost_a_few_changes_each() -> None:
    rng = random.Random(1)
    labels: dict[int, int] = {}
    order: list[int] = []
    changes = 0
    for job in range(300):
        order.insert(rng.randint(0, len(order)), job)
        updates = relabel(order, labels)
        labels |= updates
        changes += len(updates)
    assert changes < 4 * 300  # all anew each time would be 150 times 300
