"""Energy and carbon of a replay: idle nodes and the busy share of processors, over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.pool import Pool
from stretto.core.request import components_of
from stretto.core.site import Site
from stretto.errors import InvalidInput
from stretto.files.prices.carbon import HOUR_S, CarbonSeries
from stretto.queues.result import QueueResult

_JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True)
class NodePower:
    """What a node draws; on a plain machine a node is one processor.

    Attributes
    ----------
    power_w, idle_power_w
        While all its processors are busy, and while none is; in between, in proportion to the busy ones.
    """

    power_w: float
    idle_power_w: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.idle_power_w <= self.power_w <= 1e9:
            raise InvalidInput(
                f"power {self.power_w} W and idle power {self.idle_power_w} W: both must lie between 0 and 1e9, the "
                "idle one not above the other",
                field="power",
            )


@dataclass(frozen=True, eq=False)
class _Draws:
    """Amounts of power, each from a begin to an end."""

    begin_s: Floats
    end_s: Floats
    watts: Floats

    def joules(self, until_s: float) -> float:
        length = np.clip(self.end_s, 0.0, until_s) - np.clip(self.begin_s, 0.0, until_s)
        return float(self.watts @ np.maximum(length, 0.0))

    def joules_by_edge(self, edges: Floats) -> Floats:
        """Return the energy up to each edge."""
        order_begin, order_end = np.argsort(self.begin_s), np.argsort(self.end_s)
        ended = order_end[np.isfinite(self.end_s[order_end])]
        return _ramp(self.begin_s[order_begin], self.watts[order_begin], edges) - _ramp(
            self.end_s[ended], self.watts[ended], edges
        )


def _ramp(times: Floats, watts: Floats, edges: Floats) -> Floats:
    """Return the sum of ``watts * max(0, edge - time)`` for each edge; times ascend."""
    count = np.searchsorted(times, edges, side="right")
    power = np.concatenate([[0.0], np.cumsum(watts)])
    moment = np.concatenate([[0.0], np.cumsum(watts * times)])
    found: Floats = power[count] * edges - moment[count]
    return found


@dataclass(frozen=True)
class _Grid:
    """The intensities of a replay's hours: a series, and the Unix time at which the replay begins."""

    series: CarbonSeries
    start_unix_s: float

    def kg(self, draws: _Draws, until_s: float) -> float:
        first = math.floor(self.start_unix_s / HOUR_S) * HOUR_S
        count = max(1, math.ceil((self.start_unix_s + until_s - first) / HOUR_S))
        grams = self.series.hours(first, count)
        edges = np.clip(first - self.start_unix_s + HOUR_S * np.arange(count + 1), 0.0, until_s)
        return float(grams @ np.diff(draws.joules_by_edge(edges))) / _JOULES_PER_KWH / 1000.0


@dataclass(frozen=True, eq=False)
class Energy:
    """What a replay consumed.

    Attributes
    ----------
    idle
        What nodes that are up draw whether they work or not.
    busy_kwh, busy_carbon_kg
        What busy processors draw beyond that; carbon is None without a series of intensities.
    until_s
        The end of the time that is counted; it begins with the first submission.
    notes
        What was assumed or not known.
    """

    idle: _Draws
    busy_kwh: float
    busy_carbon_kg: float | None
    until_s: float
    grid: _Grid | None = None
    notes: tuple[str, ...] = ()

    @property
    def idle_kwh(self) -> float:
        return self.idle.joules(self.until_s) / _JOULES_PER_KWH

    @property
    def kwh(self) -> float:
        return self.idle_kwh + self.busy_kwh

    @property
    def carbon_kg(self) -> float | None:
        if self.grid is None or self.busy_carbon_kg is None:
            return None
        return self.busy_carbon_kg + self.grid.kg(self.idle, self.until_s)

    def until(self, until_s: float) -> Energy:
        """Return the same replay counted up to a later end: a machine that is done earlier goes on idling."""
        return replace(self, until_s=max(self.until_s, until_s))

    def figures(self) -> dict[str, float]:
        """Return the figures by the names that tables and rankings use; less is better."""
        found = {"energy_kwh": self.kwh}
        carbon = self.carbon_kg
        return found if carbon is None else found | {"carbon_kg": carbon}

    def to_json(self) -> dict[str, float]:
        """Return the figures with what idle and busy nodes drew, for ``--output json``."""
        return self.figures() | {"idle_energy_kwh": self.idle_kwh, "busy_energy_kwh": self.busy_kwh}


@dataclass(frozen=True)
class EnergyMeter:
    """What is needed to count the energy of replays.

    Attributes
    ----------
    power
        Of a node of the machine or of each pool; on a site, of nodes that state none.
    carbon
        Grams of CO2 per kWh by the hour.
    start_unix_s
        When the first submission is in that series; by default as the trace says.
    """

    power: NodePower | None = None
    carbon: CarbonSeries | None = None
    start_unix_s: float | None = None

    def applies(self, machine: int | Sequence[Pool] | Site) -> bool:
        """Say whether anything is known about the power of a machine; raise where carbon is asked for without it."""
        has_power = isinstance(machine, Site) and any(node.power_w is not None for node in machine.nodes)
        if self.power is not None or has_power:
            return True
        if self.carbon is not None:
            raise InvalidInput("needs the power of nodes: say --power, or give a site with power_w", field="--carbon")
        return False

    def measure(
        self, result: QueueResult, machine: int | Sequence[Pool] | Site, first_unix_s: float | None = None
    ) -> Energy:
        """Return the energy of a replay whose first submission was at a Unix time."""
        start = first_unix_s if self.start_unix_s is None else self.start_unix_s
        site = machine if isinstance(machine, Site) and result.site is None else None
        return energy_of(result, self.power, carbon=self.carbon, start_unix_s=start, site=site)


def energy_of(
    result: QueueResult,
    power: NodePower | None = None,
    *,
    carbon: CarbonSeries | None = None,
    start_unix_s: float | None = None,
    until_s: float | None = None,
    site: Site | None = None,
) -> Energy:
    """Return the energy of a replay, from the first submission on.

    Parameters
    ----------
    power
        Of a node of the machine or of each pool; on a site, of nodes that state none.
    carbon
        Grams of CO2 per kWh by the hour.
    start_unix_s
        When the replay begins in the series; by default when the trace began.
    until_s
        The end of the time that is counted, by default the end of the last job. Give the same to all replays that are
        compared: a machine that is done earlier goes on idling.
    site
        Of a result that does not say on which nodes jobs ran, such as the recorded past.
    """
    end = float(result.end_s.max())
    until = end if until_s is None else until_s
    if not (math.isfinite(until) and until >= end):
        raise InvalidInput(f"{until} s is before the end of the last job at {end:g} s", field="until_s")
    if result.site is not None:
        idle, busy, notes = _of_site(result, result.site, power)
    elif site is not None:
        idle, busy, notes = _of_mean_node(result, site, power)
    else:
        idle, busy, notes = _of_pools(result, power, until)
    grid = None if carbon is None else _Grid(carbon, _start(result, start_unix_s))
    kg = None if grid is None else grid.kg(busy, until)
    return Energy(idle, busy.joules(until) / _JOULES_PER_KWH, kg, until, grid, tuple(notes))


def _start(result: QueueResult, given: float | None) -> float:
    if given is not None:
        return given
    if result.trace.origin_unix_s is None:
        raise InvalidInput(
            f"{result.trace.name!r} does not say when it began: say with carbon_start at which time of the series the "
            "replay begins",
            field="carbon_start",
        )
    return result.trace.origin_unix_s + result.shift_s


def _of_pools(result: QueueResult, power: NodePower | None, until: float) -> tuple[_Draws, _Draws, list[str]]:
    if power is None:
        raise InvalidInput(
            "the power of the machine is unknown: give the watts of a node, or a site whose nodes have power_w",
            field="power",
        )
    notes = []
    begin, end, watts = [], [], []
    for k, pool in enumerate(result.pools):
        nodes, ends = float(pool.num_nodes), math.inf
        if pool.is_elastic or pool.spot is not None:
            nodes = float(result.billed_node_s[k]) / until if until > 0 else 0.0
            notes.append(
                f"assumed: the {nodes:,.1f} nodes of pool {pool.name!r} that were up in the mean were up all the time"
            )
            ends = until
        begin.append(0.0)
        end.append(ends)
        watts.append(nodes * power.idle_power_w)
    if np.any(result.num_interruptions):
        notes.append("not counted: what interrupted attempts drew beyond idle power")
    per_node = np.array([pool.procs_per_node for pool in result.pools], np.float64)[result.pool]
    each = result.trace.num_procs / per_node * (power.power_w - power.idle_power_w)
    idle = _Draws(np.array(begin), np.array(end), np.array(watts))
    return idle, _Draws(result.start_s, result.end_s, each), notes


def _of_site(result: QueueResult, site: Site, power: NodePower | None) -> tuple[_Draws, _Draws, list[str]]:
    full, idle, notes = _node_power(site, power)
    assert result.node is not None
    job, cpus = _allocated(result, site)
    total = np.array([node.cpus for node in site.nodes], np.float64)[result.node]
    each = (full - idle)[result.node] * cpus / total
    busy = _Draws(result.start_s[job], result.end_s[job], each)
    return _idle_nodes(site, idle, result.shift_s), busy, notes


def _of_mean_node(result: QueueResult, site: Site, power: NodePower | None) -> tuple[_Draws, _Draws, list[str]]:
    """Return what jobs draw whose nodes nobody recorded: their share of the site's processors."""
    full, idle, notes = _node_power(site, power)
    each = result.trace.num_procs * float(np.sum(full - idle)) / site.num_cpus
    notes.append("assumed: a recorded job draws its share of the whole site, for its nodes are not known")
    return _idle_nodes(site, idle, result.shift_s), _Draws(result.start_s, result.end_s, each), notes


def _idle_nodes(site: Site, idle: Floats, shift_s: float) -> _Draws:
    """Return what nodes draw for ever; a closed node counts as switched off."""
    begin, end, watts = [0.0] * len(site.nodes), [math.inf] * len(site.nodes), idle.tolist()
    index = {node.name: i for i, node in enumerate(site.nodes)}
    for item in site.reservations:
        for name in item.nodes:
            begin.append(max(0.0, item.start_s - shift_s))
            end.append(max(0.0, item.end_s - shift_s))
            watts.append(-float(idle[index[name]]))
    return _Draws(np.array(begin), np.array(end), np.array(watts))


def _node_power(site: Site, power: NodePower | None) -> tuple[Floats, Floats, list[str]]:
    """Return the watts of each node, busy and idle, and what is not known of them."""
    notes = []
    missing = sum(node.power_w is None for node in site.nodes)
    if power is None and missing == len(site.nodes):
        raise InvalidInput(f"no node of site {site.name!r} states its power_w", field="power")
    if not missing and power is not None:
        raise InvalidInput(f"every node of site {site.name!r} states its power_w: leave --power out", field="--power")
    if missing and power is None:
        notes.append(f"not counted: {missing:,} of {len(site.nodes):,} nodes state no power_w")
    no_idle = sum(node.power_w is not None and node.idle_power_w is None for node in site.nodes)
    if no_idle:
        notes.append(f"{no_idle:,} of {len(site.nodes):,} nodes state no idle_power_w: counted as 0 W while idle")
    rest = power or NodePower(0.0)
    full = [rest.power_w if node.power_w is None else node.power_w for node in site.nodes]
    idle = [rest.idle_power_w if node.power_w is None else node.idle_power_w or 0.0 for node in site.nodes]
    return np.array(full), np.array(idle), notes


def _allocated(result: QueueResult, site: Site) -> tuple[NDArray[np.intp], Floats]:
    """Return the job and the processors of each entry of ``result.node``; exclusive jobs have all of a node."""
    trace = result.trace
    assert result.place_ptr is not None
    assert result.node is not None
    assert result.tasks is not None
    assert result.partition is not None
    assert trace.request is not None
    job = np.repeat(np.arange(trace.num_jobs), np.diff(result.place_ptr))
    parts = [components_of(request) for request in trace.requests]
    per_task = np.array([part[0].cpus_per_task for part in parts], np.float64)
    is_whole = np.array([any(one.is_exclusive for one in part) for part in parts], np.bool_)
    in_whole = np.array([partition.is_exclusive for partition in site.partitions], np.bool_)[result.partition]
    kind = trace.request[job]
    cpus = result.tasks * per_task[kind]
    for one in np.flatnonzero([len(parts[int(k)]) > 1 for k in trace.request]).tolist():
        at = int(result.place_ptr[one])
        for part in parts[int(trace.request[one])]:
            left = part.num_tasks
            while left > 0:
                cpus[at] = result.tasks[at] * part.cpus_per_task
                left -= int(result.tasks[at])
                at += 1
    total = np.array([node.cpus for node in site.nodes], np.float64)[result.node]
    return job, np.where(is_whole[kind] | in_whole, total, np.minimum(cpus, total))
