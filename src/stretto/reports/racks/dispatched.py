"""What a dispatcher believes about this host, written into its run: the page shows it beside the tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stretto.core.csr import Floats
from stretto.engines.host.dispatcher import HostBeliefNow, HostDispatcher
from stretto.racks.telemetry.host import HostTelemetry
from stretto.racks.telemetry.host_machine import HostMachine
from stretto.reports.racks.belief import BeliefSample, record_sample
from stretto.reports.racks.host import DENSE, HostWatch
from stretto.reports.racks.topology import TOPOLOGY, MachineJson, PartJson, Topology
from stretto.reports.strict_json import packed
from stretto.runlog import Run

#: The machine's name on the page, since the load is theirs.
OTHERS = "other programs"
_EVERY_S = 0.25


class DispatchWatch(HostWatch):
    """Writes the load that a dispatcher attributes to foreign programs, and what its devices run, into the run.

    Of cores it is the share of their time, of memory the demand for bandwidth that slowdowns tell of, where 1 slows a
    task of demand 1 down by its whole duration; of disks, the share of time with requests, our own included.
    """

    def __init__(self, path: Path, dispatcher: HostDispatcher, *, every_s: float = _EVERY_S) -> None:
        super().__init__(path, every_s=every_s)
        self.dispatcher = dispatcher

    def _write(self, run: Run, started_s: float) -> None:
        disks = DiskUse()
        topology, num_read = None, 0
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(self.every_s)
            now = self.dispatcher.belief_now()
            if now is None:
                continue
            if topology is None:
                topology = host_belief_topology(now.host)
                if TOPOLOGY not in run.log.artifacts(run.id):
                    run.attach(TOPOLOGY, packed(topology))
            if is_over or num_read % (1 + num_read // DENSE) == 0:
                record_sample(run, _sample(now, topology, disks.read(now.host), run.log.clock() - started_s))
            num_read += 1


class DiskUse:
    """Share of the time in which each disk had requests."""

    def __init__(self) -> None:
        self._telemetry = HostTelemetry()

    def read(self, host: HostMachine) -> Floats:
        """Return the use since the last call; NaN where nothing is counted."""
        found = self._telemetry.sample()
        return np.array([min(found.get(f"disk/{name}", np.nan), 1.0) for name in host.disks], dtype=np.float64)


def host_belief_topology(host: HostMachine) -> Topology:
    """Return the host as boxes: memory, cores, CPUs and disks."""
    parts: list[PartJson] = [
        {"name": part.name, "kind": part.kind, "model": "", "capacity": None}
        for part in host.machine.parts
        if part.kind in ("memory", "core", "cpu", "socket-link")
    ]
    shown = {part["name"] for part in parts}
    links = [list(link) for link in host.machine.links if set(link) <= shown]
    memory = next(part["name"] for part in parts if part["kind"] == "memory")
    for disk in host.disks:
        parts.append({"name": disk, "kind": "disk", "model": "", "capacity": None})
        links.append([disk, memory])
    machine: MachineJson = {"name": OTHERS, "parts": parts, "links": links}
    cores = dict.fromkeys(host.core_of.values())
    resources = [f"{OTHERS}/{name}" for name in (memory, *cores, *host.disks)]
    return {
        "name": "host",
        "machines": [machine],
        "resources": resources,
        "processors": [f"{OTHERS}/cpu{cpu}" for cpu in host.cpus],
    }


def _sample(now: HostBeliefNow, topology: Topology, disks: Floats, at_s: float) -> BeliefSample:
    cores = list(dict.fromkeys(now.host.core_of.values()))
    places = [[at for at, cpu in enumerate(now.cpus) if now.host.core_of.get(cpu) == core] for core in cores]

    def by_core(values: Floats) -> list[float]:
        return [float(np.mean(values[at])) if at else float("nan") for at in places]

    mean = np.array([now.memory, *by_core(now.load), *np.nan_to_num(disks)])
    sd = np.array([now.memory_sd, *by_core(now.load_sd), *np.full(len(disks), 0.02)])
    raw = np.array([float("nan"), *by_core(now.load_raw), *disks])
    running = [now.running.get(cpu) for cpu in now.host.cpus]
    assert len(mean) == len(topology["resources"])
    return BeliefSample(at_s, np.nan_to_num(mean), np.nan_to_num(sd), raw, running=running)
