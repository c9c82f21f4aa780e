"""What becomes of tasks when attempts fail and devices are lost; all of it changes facts on the board."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from stretto.engines.board import DONE, FAILED, ISSUED, READY, UNPLACED, WAITING, Board

_UNFINISHED = (WAITING, READY, ISSUED)


def load_s(board: Board) -> list[float]:
    """Return the seconds of work that each device still has."""
    load = [0.0] * len(board.is_alive)
    for task, device in enumerate(board.device):
        if device != UNPLACED and board.state[task] in _UNFINISHED:
            load[device] += board.tables.seconds(task, device)
    return load


def move(board: Board, task: int, load: list[float], avoid: Collection[int] = ()) -> bool:
    """Place a task on the remaining device that would be through with it first; return False when none can run it.

    Parameters
    ----------
    load
        Of :func:`load_s`; kept current.
    avoid
        Devices that are taken only when there is no other.
    """
    board.is_stale = True
    tables, old = board.tables, board.device[task]
    able = [d for d, is_alive in enumerate(board.is_alive) if is_alive and tables.can_run(task, d)]
    if not able:
        return False
    fresh = [d for d in able if d not in avoid] or able
    load[old] -= tables.seconds(task, old)
    chosen = min(fresh, key=lambda d: (load[d] + tables.seconds(task, d), d))
    load[chosen] += tables.seconds(task, chosen)
    board.device[task] = chosen
    return True


def give_up(board: Board, task: int) -> None:
    """Count a task as failed, and with it all that can never run without it."""
    hopeless = [task]
    while hopeless:
        current = hopeless.pop()
        board.state[current] = FAILED
        readers = (reader for item in board.tables.outputs[current] for reader in board.tables.readers[item])
        hopeless += [reader for reader in readers if board.state[reader] in (WAITING, READY)]
    board.is_stale = True


def forget(board: Board, tasks: Iterable[int]) -> None:
    """Book that the outputs of some tasks are gone."""
    for task in tasks:
        for item in board.tables.outputs[task]:
            board.holders[item].clear()


def revive(board: Board) -> list[int]:
    """Have every task run again whose output is gone and still needed; return those tasks.

    Needed means: by a task that is not finished, or by one so revived.
    """
    revived = []
    wanted = [task for task, state in enumerate(board.state) if state in _UNFINISHED]
    while wanted:
        for item in board.tables.reads[wanted.pop()]:
            producer = board.tables.producer[item]
            if board.state[producer] == DONE and board.carries_data[item] and not board.holders[item]:
                board.state[producer] = WAITING
                board.num_done -= 1
                wanted.append(producer)
                revived.append(producer)
    board.is_stale = True
    return revived


def displace(board: Board) -> None:
    """Take the device from every task that was placed and now waits for a parent to run again."""
    for task, state in enumerate(board.state):
        parents = (board.tables.producer[item] for item in board.tables.reads[task])
        if state in (WAITING, READY) and any(board.state[parent] != DONE for parent in parents):
            board.device[task] = UNPLACED
    board.is_stale = True
