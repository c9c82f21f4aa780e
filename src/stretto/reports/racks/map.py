"""The map of a cluster: every device, machine by machine, with how much of it was in use from time to time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.queues.result import QueueResult
from stretto.queues.steps import binned, changes
from stretto.reports.page.view_types import Column, MapJson, QueueJson
from stretto.reports.strict_json import drawn

#: Moments of a map; a slider goes over them.
NUM_FRAMES = 120
#: More tiles than this nobody looks at; then whole machines are tiles, or all devices of a kind.
MAX_TILES = 400
_DIGITS = 3


def device_map(
    device: Ints,
    start_s: Floats,
    finish_s: Floats,
    *,
    names: Sequence[str],
    kinds: Sequence[str],
    machines: Sequence[str],
) -> MapJson | None:
    """Return the map of what ran where.

    Parameters
    ----------
    device
        Of each task; the names, kinds and machines are those of the devices.
    """
    if len(start_s) == 0:
        return None
    end_s = float(finish_s.max())
    tile, labels, notes, groups = _tiles(names, kinds, machines)
    counts = np.bincount(tile, minlength=len(labels))
    of_task = tile[device]
    order = np.argsort(of_task, kind="stable")
    bounds = np.searchsorted(of_task[order], np.arange(len(labels) + 1))
    use, total = [], []
    for place, count in enumerate(counts.tolist()):
        mine = order[bounds[place] : bounds[place + 1]]
        mean = _mean(start_s[mine], finish_s[mine], 1.0 / count, end_s)
        use.append(drawn(mean, _DIGITS))
        total.append(round(float(mean.mean()), 4))
    return _map(groups, labels, notes, end_s, use, total)


def pool_map(result: QueueResult, curves: QueueJson) -> MapJson:
    """Return the map of a queue's pools."""
    labels = [pool.name for pool in result.pools]
    notes = [f"{pool.num_procs:,} processors" for pool in result.pools]
    step = max(1, len(curves["use"][0]["mean"]) // NUM_FRAMES)
    series = [[value or 0.0 for value in one["mean"]] for one in curves["use"]]
    use = [drawn([np.mean(row[k : k + step]) for k in range(0, len(row), step)], _DIGITS) for row in series]
    total = [round(float(np.mean(row)), 4) for row in series]
    return _map({"": list(range(len(labels)))}, labels, notes, float(curves["end_s"]), use, total)


def _map(
    groups: Mapping[str, list[int]],
    labels: list[str],
    notes: list[str],
    end_s: float,
    use: list[Column],
    total: list[float],
) -> MapJson:
    return {
        "kind": "devices",
        "groups": [{"name": name, "tiles": tiles} for name, tiles in groups.items()],
        "names": labels,
        "notes": notes,
        "end_s": end_s,
        "use": use,
        "total": total,
    }


def _tiles(
    names: Sequence[str], kinds: Sequence[str], machines: Sequence[str]
) -> tuple[Ints, list[str], list[str], dict[str, list[int]]]:
    """Return the tile of each device, and of each tile its name, a note and its group."""
    if len(names) <= MAX_TILES:
        groups: dict[str, list[int]] = {}
        for place, machine in enumerate(machines):
            groups.setdefault(machine, []).append(place)
        # A device that is called after its kind need not say it twice.
        notes = ["" if name.startswith(kind) else kind for name, kind in zip(names, kinds, strict=True)]
        return np.arange(len(names), dtype=np.int32), list(names), notes, groups
    by = machines if len(set(machines)) <= MAX_TILES and len(set(machines)) > 1 else kinds
    found = {name: place for place, name in enumerate(dict.fromkeys(by))}
    tile = np.array([found[name] for name in by], dtype=np.int32)
    counts = np.bincount(tile)
    return tile, list(found), [f"{count:,} devices" for count in counts.tolist()], {"": list(range(len(found)))}


def _mean(start_s: Floats, finish_s: Floats, share: float, end_s: float) -> Floats:
    if len(start_s) == 0:
        return np.zeros(NUM_FRAMES)
    mean: Floats = np.clip(
        binned(changes(start_s, finish_s, np.full(len(start_s), share)), end_s, NUM_FRAMES).mean, 0, 1
    )
    return mean
