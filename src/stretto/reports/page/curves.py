"""Curves over time for pages and figures: use of devices and processors, and the length of a queue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.queues.result import QueueResult
from stretto.queues.steps import StepCurve, binned, changes
from stretto.reports.page.view_types import Column, QueueJson, Series, UseJson
from stretto.reports.strict_json import drawn

#: Bins of a curve; a page is seldom wider than a few points for each.
NUM_BINS = 300


def device_use(device: Ints, start_s: Floats, finish_s: Floats, kinds: Sequence[str]) -> UseJson | None:
    """Return the share of busy devices over time, of all and by kind.

    Parameters
    ----------
    kinds
        The kind of each device.
    """
    if len(start_s) == 0:
        return None
    end = float(finish_s.max())
    kind_of = np.array(kinds)[device]
    names = list(dict.fromkeys(kinds))
    groups = [("all devices", np.ones(len(device), dtype=bool), len(kinds))]
    if len(names) > 1:
        groups += [(name, kind_of == name, sum(kind == name for kind in kinds)) for name in names]
    series: list[Series] = []
    for name, chosen, count in groups:
        begin, finish = start_s[chosen], finish_s[chosen]
        curve = _curve(begin, finish, np.full(len(begin), 1.0 / count), end)
        series.append({"name": name, "mean": drawn(curve.mean)})
    return {"end_s": end, "series": series}


def queue_curves(result: QueueResult) -> QueueJson:
    """Return processors in use and the number of waiting jobs over time, mean and most of each bin."""
    end = result.makespan_s
    procs = result.trace.num_procs.astype(np.float64)
    total = sum(pool.num_procs for pool in result.pools)
    use: list[Series] = [
        {"name": pool.name if len(result.pools) > 1 else "processors", "mean": _share(result, index, procs, end)}
        for index, pool in enumerate(result.pools)
    ]
    waits = result.start_s > result.ready_s
    length = _curve(result.ready_s[waits], result.start_s[waits], np.ones(int(waits.sum())), end)
    demand = _curve(result.ready_s[waits], result.start_s[waits], procs[waits], end)
    return {
        "end_s": end,
        "num_procs": total,
        "use": use,
        "waiting_mean": drawn(length.mean),
        "waiting_most": drawn(length.most),
        "waiting_procs": drawn(demand.mean),
    }


def _share(result: QueueResult, index: int, procs: Floats, end_s: float) -> Column:
    here = result.pool == index
    amount = procs[here] / result.pools[index].num_procs
    return drawn(_curve(result.start_s[here], result.end_s[here], amount, end_s).mean)


def _curve(begin_s: Floats, end_s: Floats, amount: Floats, until_s: float) -> StepCurve:
    if len(begin_s) == 0:
        nothing = np.zeros(NUM_BINS)
        return StepCurve(np.linspace(0.0, until_s, NUM_BINS + 1), nothing, nothing)
    return binned(changes(begin_s, end_s, amount), until_s, NUM_BINS)
