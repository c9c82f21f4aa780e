"""Cut a placed JAX program into stretches: few compiled functions per device that do not wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.core.schedule import Schedule
from stretto.files.graphs.jax_groups import JaxOperation

#: A stretch of its own costs about this much; so long may an operation wait for others to run in one stretch.
_STRETCH_S = 50e-6


@dataclass(frozen=True)
class Stretch:
    """Consecutive operations of one device that run as one compiled function."""

    device: int
    operations: tuple[int, ...]


@dataclass
class _OpenStretch:
    """A stretch that may still grow: its first place in the order, its start, and when its first value is awaited."""

    tasks: list[int]
    place: int
    start_s: float
    sent_s: float = float("inf")


def stretches(found: Sequence[JaxOperation], schedule: Schedule) -> list[Stretch]:
    """Cut the schedule of operations into few stretches, in an order that respects what they read.

    A stretch reads from other devices only what operations before its first one in the schedule have made, so no two
    stretches wait for each other. It goes on past a value that another device awaits, and takes in an operation that
    awaits a value itself, only where the delay is below the cost of one more stretch.
    """
    device, start, finish = schedule.device.tolist(), schedule.start_s.tolist(), schedule.finish_s.tolist()
    order = sorted(range(len(found)), key=lambda task: (start[task], finish[task], task))
    parents = _parents(found)
    order = _parents_first(order, parents)
    position = {task: rank for rank, task in enumerate(order)}
    sends = {p for task, above in enumerate(parents) for p in above if device[p] != device[task]}
    growing: dict[int, _OpenStretch] = {}
    done: list[_OpenStretch] = []
    for task in order:
        here = growing.get(device[task])
        remote = [p for p in parents[task] if device[p] != device[task]]
        is_late = here is not None and any(
            finish[p] > here.start_s + _STRETCH_S or position[p] > here.place for p in remote
        )
        if here is None or is_late or finish[task] > here.sent_s + _STRETCH_S:
            here = growing[device[task]] = _OpenStretch([], position[task], start[task])
            done.append(here)
        here.tasks.append(task)
        if task in sends:
            here.sent_s = min(here.sent_s, finish[task])
    return [Stretch(device[one.tasks[0]], tuple(one.tasks)) for one in done]


def _parents(found: Sequence[JaxOperation]) -> list[set[int]]:
    writer = {value: task for task, operation in enumerate(found) for value in operation.writes}
    return [{writer[v] for v in operation.reads if v in writer} for operation in found]


def _parents_first(order: Sequence[int], parents: Sequence[set[int]]) -> list[int]:
    """Return the order with every task behind its parents: those of no duration may begin at the same moment."""
    placed: dict[int, None] = {}

    def place(task: int) -> None:
        waiting = [task]
        while waiting:
            missing = [p for p in parents[waiting[-1]] if p not in placed]
            if missing:
                waiting.append(missing[0])
            else:
                placed.setdefault(waiting.pop())

    for task in order:
        place(task)
    return list(placed)
