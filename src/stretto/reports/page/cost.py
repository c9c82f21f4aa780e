"""What a plan or a replay costs, device by device or pool by pool."""

from __future__ import annotations

import numpy as np

from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.queues.result import QueueResult
from stretto.reports.page.view_types import CostLine

_HOUR_S = 3600.0
#: More lines than this are gathered by kind.
_MAX_LINES = 12


def device_costs(problem: Problem, schedule: Schedule) -> list[CostLine]:
    """Return a line per device (per kind where there are many): how long it is held, busy, and paid."""
    m = problem.num_devices
    first, last = np.full(m, np.inf), np.zeros(m)
    np.minimum.at(first, schedule.device, schedule.start_s)
    np.maximum.at(last, schedule.device, schedule.finish_s)
    used = np.isfinite(first)
    held = np.where(used, last - np.where(used, first, 0.0), 0.0)
    busy = np.bincount(schedule.device, weights=schedule.finish_s - schedule.start_s, minlength=m)
    price = np.array([device.price_usd_per_hour for device in problem.cluster.devices])
    lines: dict[str, CostLine] = {}
    for index, device in enumerate(problem.cluster.devices):
        name = device.name if m <= _MAX_LINES else device.kind
        line = lines.setdefault(name, {"name": name, "count": 0, "held_s": 0.0, "busy_s": 0.0, "usd": 0.0})
        line["count"] += 1
        line["held_s"] += float(held[index])
        line["busy_s"] += float(busy[index])
        line["usd"] += float(held[index] * price[index]) / _HOUR_S
    return list(lines.values())


def pool_costs(result: QueueResult) -> list[CostLine]:
    """Return a line per pool: node-seconds billed, processor-seconds used, and paid."""
    used = result.trace.num_procs * result.run_s
    return [
        {
            "name": pool.name,
            "count": pool.num_nodes,
            "held_s": float(result.billed_node_s[index]),
            "busy_s": float(used[result.pool == index].sum()) / pool.procs_per_node,
            "usd": float(result.cost_usd[index]),
        }
        for index, pool in enumerate(result.pools)
    ]
