"""How task states change when attempts fail and devices are lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from stretto.engines.driver.states import DONE, FAILED, ISSUED, READY, UNPLACED, WAITING, TaskStates

_UNFINISHED = (WAITING, READY, ISSUED)


def load_s(states: TaskStates) -> list[float]:
    """Return the seconds of work that each device still has."""
    load = [0.0] * len(states.is_alive)
    for task, device in enumerate(states.device):
        if device != UNPLACED and states.state[task] in _UNFINISHED:
            load[device] += states.tables.seconds(task, device)
    return load


def move(states: TaskStates, task: int, load: list[float], avoid: Collection[int] = ()) -> bool:
    """Place a task on the remaining device that would finish it first; return False when none can run it.

    Parameters
    ----------
    load
        Of :func:`load_s`; kept current.
    avoid
        Devices that are taken only when there is no other.
    """
    states.is_stale = True
    tables, old = states.tables, states.device[task]
    able = [d for d, is_alive in enumerate(states.is_alive) if is_alive and tables.can_run(task, d)]
    if not able:
        return False
    fresh = [d for d in able if d not in avoid] or able
    load[old] -= tables.seconds(task, old)
    chosen = min(fresh, key=lambda d: (load[d] + tables.seconds(task, d), d))
    load[chosen] += tables.seconds(task, chosen)
    states.device[task] = chosen
    return True


def give_up(states: TaskStates, task: int) -> None:
    """Mark a task as failed, and with it all tasks that depend on it."""
    failing = [task]
    while failing:
        current = failing.pop()
        states.state[current] = FAILED
        readers = (reader for item in states.tables.outputs[current] for reader in states.tables.readers[item])
        failing += [reader for reader in readers if states.state[reader] in (WAITING, READY)]
    states.is_stale = True


def forget(states: TaskStates, tasks: Iterable[int]) -> None:
    """Record that the outputs of some tasks are gone."""
    for task in tasks:
        for item in states.tables.outputs[task]:
            states.holders[item].clear()


def revive(states: TaskStates) -> list[int]:
    """Schedule every task again whose output is lost and still needed; return those tasks.

    Needed means: read by a task that is not finished, or by one that runs again.
    """
    revived = []
    wanted = [task for task, state in enumerate(states.state) if state in _UNFINISHED]
    while wanted:
        for item in states.tables.reads[wanted.pop()]:
            producer = states.tables.producer[item]
            if states.state[producer] == DONE and states.carries_data[item] and not states.holders[item]:
                states.state[producer] = WAITING
                states.num_done -= 1
                wanted.append(producer)
                revived.append(producer)
    states.is_stale = True
    return revived


def displace(states: TaskStates) -> None:
    """Unplace every task that now waits for a parent to run again."""
    for task, state in enumerate(states.state):
        parents = (states.tables.producer[item] for item in states.tables.reads[task])
        if state in (WAITING, READY) and any(states.state[parent] != DONE for parent in parents):
            states.device[task] = UNPLACED
    states.is_stale = True
