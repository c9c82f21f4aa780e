"""The wakeup: orders come through the queue whatever the words say."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest

from stretto.engines.driver.events import Start
from stretto.engines.local.wakeup import Wakeup

listening = pytest.mark.parametrize("spins", [False, True])


@listening
def test_a_word_without_an_order_wakes_nobody_for_long(spins: bool) -> None:
    bell, inbox = Wakeup(2, spins), SimpleQueue[Start | None]()
    bell.wake([1])  # for an order that was taken before
    found: list[Start | None] = []
    device = threading.Thread(target=lambda: found.append(bell.next_order(1, inbox, ())))
    device.start()
    device.join(0.05)
    assert not found
    inbox.put(Start(3, 1, 1))  # and nobody rings
    device.join(30.0)
    assert found == [Start(3, 1, 1)]


@listening
def test_two_devices_hand_orders_to_and_fro(spins: bool) -> None:
    num_rounds = 500
    bell = Wakeup(2, spins)
    inboxes: list[SimpleQueue[Start | None]] = [SimpleQueue(), SimpleQueue()]
    seen: list[list[int]] = [[], []]

    def serve(device: int) -> None:
        others: list[int] = []
        while (order := bell.next_order(device, inboxes[device], others)) is not None:
            seen[device].append(order.task)
            others = [1 - device]
            inboxes[1 - device].put(Start(order.task + 1, 1 - device, 1) if order.task < num_rounds else None)
        bell.wake([1 - device])
        inboxes[1 - device].put(None)

    threads = [threading.Thread(target=serve, args=(device,)) for device in (0, 1)]
    for thread in threads:
        thread.start()
    inboxes[0].put(Start(0, 0, 1))
    bell.wake([0])
    for thread in threads:
        thread.join(60.0)
    assert seen == [list(range(0, num_rounds + 1, 2)), list(range(1, num_rounds, 2))]
