"""Does every set of tasks that runs together fit its node? Checked from the schedule alone."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Floats
from stretto.core.nodes.packing import Packing
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import InvalidPlan


def check_packing(problem: Problem, packing: Packing, schedule: Schedule, slack: float) -> None:
    """Raise InvalidPlan where tasks that run at one moment need more than their node has."""
    lasting = schedule.finish_s - schedule.start_s > slack
    for node in np.flatnonzero(packing.packs).tolist():
        tasks = np.flatnonzero((schedule.device == node) & lasting)
        # A task that ends within the slack of another's start gives back first.
        times = np.concatenate([schedule.finish_s[tasks] - slack, schedule.start_s[tasks]])
        takes = np.repeat([0, 1], len(tasks))
        change = np.concatenate([-packing.need[tasks], packing.need[tasks]])
        order = np.lexsort((takes, times))
        level = np.cumsum(change[order], axis=0)
        bad = np.argwhere(level > packing.capacity[node])
        if len(bad):
            at, column = int(bad[0][0]), int(bad[0][1])
            # All that starts at that moment is there.
            most = float(level[times[order] <= times[order[at]], column][-1])
            raise InvalidPlan(
                f"node {problem.cluster.devices[node].name!r} holds {packing.amount(column, most):.9g} of "
                f"{packing.amount(column, float(packing.capacity[node, column])):.9g} {packing.names[column]} "
                f"at {times[order[at]]:.9g} s"
            )


def check_nodes_work(problem: Problem, packing: Packing, schedule: Schedule, ready: Floats, slack: float) -> None:
    """Raise InvalidPlan where a node had room for a ready task and did not start it."""
    for node in np.flatnonzero(packing.packs).tolist():
        tasks = np.flatnonzero(schedule.device == node)
        start, finish, need = schedule.start_s[tasks], schedule.finish_s[tasks], packing.need[tasks]
        for index, task in enumerate(tasks.tolist()):
            moments = np.concatenate([[ready[task]], finish[(finish >= ready[task]) & (finish < start[index])]])
            for moment in moments[moments < start[index] - slack].tolist():
                running = (start <= moment + slack) & (finish > moment + slack)
                running[index] = False
                if np.all(need[running].sum(axis=0) + need[index] <= packing.capacity[node]):
                    raise InvalidPlan(
                        f"node {problem.cluster.devices[node].name!r} has room for task "
                        f"{problem.graph.task_name(task)!r} from {moment:.9g} s, but starts it at {start[index]:.9g} s"
                    )
