"""Which waiting task starts on which idle core of a host.

Pure functions of a view: nothing here reads a clock, a file or an engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.racks.host.law import LawValues
from stretto.racks.host.parameters import HostParams
from stretto.racks.kernels.host_rollout import IDLE, fill_rates, price

Longs = NDArray[np.int64]
#: A core keeps at least this share for a task: the system divides its time fairly.
_LEAST_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class HostView:
    """What is known of a host at a decision: P cores, N waiting tasks.

    Attributes
    ----------
    lost
        Share of each core that a task there is expected to lose to foreign programs.
    near
        How much a busy core slows another one down, relative to the law's coupling.
    is_alive
        Whether a core can be used.
    running
        By core: the category of our task there, or -1.
    left_s, work_s, weight
        Of that task: CPU time that it still needs and needs in all, alone on the host, and its weight.
    tasks
        Numbers of the waiting tasks.
    category, task_work_s, task_weight
        Of the waiting tasks; work by core, infinite where a task cannot run.
    """

    lost: Floats  # [P]
    near: Floats  # [P, P]
    is_alive: np.ndarray  # [P]
    running: Longs  # [P]
    left_s: Floats  # [P]
    work_s: Floats  # [P]
    weight: Floats  # [P]
    tasks: Longs  # [N]
    category: Longs  # [N]
    task_work_s: Floats  # [N, P]
    task_weight: Floats  # [N]

    @property
    def share(self) -> Floats:
        """Share of each core that is left for a task."""
        return np.asarray(np.maximum(1.0 - self.lost, _LEAST_SHARE))

    @property
    def idle_busy(self) -> Floats:
        """How busy each core is by foreign programs where nothing of ours runs."""
        return np.asarray(np.minimum(self.lost / np.maximum(1.0 - self.lost, _LEAST_SHARE), 1.0))


def look_ahead(view: HostView, law: LawValues, params: HostParams) -> list[tuple[int, int]]:
    """Return tasks with the core on which each starts now; a core for which no task is left gets none.

    Every idle core, the least loaded one first, is given the category whose choice leads to the least weighted sum of
    completion times when the tasks that wait are played to their end.
    """
    work = _Played(view, law, params)
    chosen: list[tuple[int, int]] = []
    for core in work.idle_cores():
        found = work.best(core)
        if found is not None:
            chosen.append((found, core))
    return chosen


class _Played:
    """The state that candidates are played from; it changes with every choice."""

    def __init__(self, view: HostView, law: LawValues, params: HostParams) -> None:
        self.view = view
        self.law = (law.coupling, law.foreign, np.ascontiguousarray(law.demand))
        self.host = (view.share, np.ascontiguousarray(view.near), view.idle_busy)
        self.running = [view.running.astype(np.int64), view.left_s.copy(), view.work_s.copy(), view.weight.copy()]
        self.rows = by_category(view, len(law.demand), params.window)
        usable = np.flatnonzero(view.is_alive)
        self.order = usable[np.argsort(-self.host[0][usable], kind="stable")]

    def idle_cores(self) -> list[int]:
        return [int(core) for core in self.order if self.running[0][core] == IDLE]

    def best(self, core: int) -> int | None:
        """Return the task that starts on a core, None where none can; the state then has it running."""
        tasks = self._tasks()
        options = [k for k, row in enumerate(self.rows) if row and self._can_run(row[0], core)]
        if not options:
            return None
        costs = [price(self.law, self.host, tasks, tuple(self.running), self.order, core, k) for k in options]
        k = options[int(np.argmin(costs))]
        place = self.rows[k].pop(0)
        self.running[0][core] = k
        self.running[1][core] = self.running[2][core] = self.view.task_work_s[place, core]
        self.running[3][core] = self.view.task_weight[place]
        return int(self.view.tasks[place])

    def _can_run(self, place: int, core: int) -> bool:
        return bool(self.view.task_work_s[place, core] < np.inf)

    def _tasks(self) -> tuple[Any, Any, Any]:
        places = [place for row in self.rows for place in row]
        ptr = np.cumsum([0, *(len(row) for row in self.rows)])
        return ptr, self.view.task_work_s[places], self.view.task_weight[places]


def by_category(view: HostView, num_categories: int, window: int) -> list[list[int]]:
    """Return places of waiting tasks by category: most weight for its work first, as many as the window has room for.

    Categories have room in proportion to their waiting tasks, and at least for one.
    """
    least = np.where(np.isfinite(view.task_work_s), view.task_work_s, np.inf).min(axis=1, initial=np.inf)
    urgency = view.task_weight / np.maximum(least, 1e-12)
    order = np.lexsort((view.tasks, -urgency))
    rows: list[list[int]] = [[] for _ in range(num_categories)]
    for place in order.tolist():
        rows[int(view.category[place])].append(place)
    num = len(view.tasks)
    if num <= window:
        return rows
    return [row[: max(1, round(window * len(row) / num))] for row in rows]


def earliest_completion(view: HostView, law: LawValues) -> list[tuple[int, int]]:
    """Return tasks with cores by the rule ``mct``: in their order, each where it is expected to end first.

    A task whose best core is busy waits for it.
    """
    rates = _rates_with(view, law, view.running)
    busy_s = np.where(view.running != IDLE, view.left_s / np.maximum(rates, 1e-12), 0.0)
    free = {int(core) for core in np.flatnonzero(view.is_alive & (view.running == IDLE))}
    usable = np.flatnonzero(view.is_alive)
    running = view.running.copy()
    chosen: list[tuple[int, int]] = []
    for place in np.argsort(view.tasks, kind="stable").tolist():
        if not free:
            break
        seconds = [_seconds(view, law, running, place, int(core)) for core in usable]
        at = int(np.argmin(busy_s[usable] + seconds))
        core = int(usable[at])
        busy_s[core] += seconds[at]
        if core in free and np.isfinite(seconds[at]):
            free.discard(core)
            running[core] = view.category[place]
            chosen.append((int(view.tasks[place]), core))
    return chosen


def _seconds(view: HostView, law: LawValues, running: Longs, place: int, core: int) -> float:
    """Return how long a task takes on a core beside what runs on the others."""
    with_it = running.copy()
    with_it[core] = view.category[place]
    return float(view.task_work_s[place, core] / _rates_with(view, law, with_it)[core])


def _rates_with(view: HostView, law: LawValues, running: Longs) -> Floats:
    rate = np.zeros(len(running))
    host = (view.share, np.ascontiguousarray(view.near), view.idle_busy)
    fill_rates(law.coupling, law.foreign, np.ascontiguousarray(law.demand), *host, running.astype(np.int64), rate)
    return rate


def warm_up() -> None:
    """Compile the look-ahead on a host of one core, so that the first decision does not wait for it."""
    one, idle = np.ones(1), np.full(1, IDLE)
    none = np.zeros(1)
    whole = np.ones(1, dtype=bool)
    task = np.zeros(1, dtype=np.int64)
    view = HostView(none, np.zeros((1, 1)), whole, idle, none, one, one, task, task, np.ones((1, 1)), one)
    law = LawValues(0.0, 0.0, one, one)
    look_ahead(view, law, HostParams())
    earliest_completion(view, law)


def weights_of(num_tasks: int, order: Sequence[int], parents: Sequence[Sequence[int]]) -> Floats:
    """Return the weight of each task: one for itself and its share of the weight of every child.

    Parameters
    ----------
    order
        A topological order.
    parents
        By task; a child shares its weight equally among its parents.
    """
    weight = np.ones(num_tasks)
    for task in reversed(order):
        for parent in parents[task]:
            weight[parent] += weight[task] / len(parents[task])
    return weight
