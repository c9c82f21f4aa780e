"""This host as a machine of the racks: cores, threads of cores, caches, memory nodes and PCIe devices from ``/sys``.

Virtual machines and containers show little of it. What is missing is assumed, and the notes say so: a host of which
nothing can be read has one core for each CPU that this process may use, and one memory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from stretto.core.csr import Floats
from stretto.core.machine import Machine, Part
from stretto.racks.telemetry.core_times import online_cpus, parse_cpu_list, text_of

#: What no file tells: round figures of a desktop's memory and of a PCIe root.
ASSUMED_MEMORY, ASSUMED_ROOT, ASSUMED_LINK = 20e9, 16e9, 20e9
#: PCI classes that run tasks or inject traffic.
_PCI_KINDS = {"0x0200": "nic", "0x0207": "nic", "0x0302": "gpu", "0x1200": "fpga"}
_CPUS = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"


@dataclass(frozen=True, eq=False)
class HostMachine:
    """A host: its machine, and where its CPUs are in it.

    Attributes
    ----------
    cpus
        Numbers of the CPUs that are online, ascending.
    core_of
        The part that each CPU is a thread of.
    caches
        By CPU: the last cache and the CPUs that share it, as ``L3 32768K 0-7``.
    disks
        Block devices that hold data.
    notes
        What could not be read and is assumed.
    """

    machine: Machine
    cpus: tuple[int, ...]
    core_of: Mapping[int, str]
    caches: Mapping[int, str]
    disks: tuple[str, ...]
    notes: tuple[str, ...]

    def nearness(self, cpus: tuple[int | None, ...]) -> Floats:
        """Return how much a busy device slows another one down, relative to the law's coupling, [P, P].

        A thread of the same core counts fully; all the others together count as one.
        """
        num = len(cpus)
        near = np.full((num, num), 1.0 / max(num - 1, 1))
        for a, first in enumerate(cpus):
            for b, second in enumerate(cpus):
                if first is not None and second is not None and self.core_of.get(first) == self.core_of.get(second):
                    near[a, b] = 1.0
        np.fill_diagonal(near, 0.0)
        return near


def host_machine(root: Path = Path("/")) -> HostMachine:
    """Read the topology of a host."""
    notes: list[str] = []
    online = sorted(online_cpus(root))
    if not online:
        online = (
            sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
        )
        notes.append(f"CPUs: /{_CPUS}/online cannot be read; the {len(online)} of this process are assumed")
    node_of = _nodes(root, online, notes)
    parts: list[Part] = []
    links: list[tuple[str, str]] = []
    nodes = sorted(set(node_of.values()))
    for node in nodes:
        parts += [Part(f"mem{node}", "memory", ASSUMED_MEMORY), Part(f"root{node}", "root-complex", ASSUMED_ROOT)]
        links.append((f"root{node}", f"mem{node}"))
    for a, b in pairwise(nodes):
        parts.append(Part(f"link{a}-{b}", "socket-link", ASSUMED_LINK))
        links += [(f"link{a}-{b}", f"mem{a}"), (f"link{a}-{b}", f"mem{b}")]
    core_of = _cores(root, online, notes)
    for core in dict.fromkeys(core_of.values()):
        first = next(cpu for cpu in online if core_of[cpu] == core)
        parts.append(Part(core, "core", 1.0))
        links.append((core, f"mem{node_of[first]}"))
    for cpu in online:
        parts.append(Part(f"cpu{cpu}", "cpu"))
        links.append((f"cpu{cpu}", core_of[cpu]))
    _add_pci(root, nodes, parts, links)
    notes.append(f"memory bandwidth: no file tells it; {ASSUMED_MEMORY / 1e9:g} GB/s per node are assumed")
    caches = {cpu: found for cpu in online if (found := _last_cache(root, cpu))}
    meta = {f"cache of cpu{cpu}": text for cpu, text in caches.items()}
    machine = Machine("host", tuple(parts), tuple(links), meta)
    return HostMachine(machine, tuple(online), core_of, caches, tuple(_disks(root)), tuple(notes))


def _nodes(root: Path, online: list[int], notes: list[str]) -> dict[int, int]:
    """Return the memory node of each CPU."""
    found: dict[int, int] = {}
    for name in _entries(root, _NODES):
        if name.startswith("node") and name[4:].isdigit():
            for cpu in parse_cpu_list(text_of(root, f"{_NODES}/{name}/cpulist")):
                found[cpu] = int(name[4:])
    if not all(cpu in found for cpu in online):
        notes.append(f"NUMA: /{_NODES} does not name every CPU; one node is assumed for the others")
    return {cpu: found.get(cpu, min(found.values(), default=0)) for cpu in online}


def _cores(root: Path, online: list[int], notes: list[str]) -> dict[int, str]:
    """Return the core of each CPU: those that share one have the same name."""
    found = {}
    is_told = True
    for cpu in online:
        text = text_of(root, f"{_CPUS}/cpu{cpu}/topology/thread_siblings_list") or text_of(
            root, f"{_CPUS}/cpu{cpu}/topology/core_cpus_list"
        )
        is_told &= bool(text)
        found[cpu] = f"core{min(parse_cpu_list(text) & set(online), default=cpu)}"
    if not is_told:
        notes.append("SMT: no list of sibling threads; every CPU is assumed to be a core of its own")
    return found


def _last_cache(root: Path, cpu: int) -> str:
    """Return level, size and sharers of the highest cache of a CPU, nothing where the system does not say."""
    best = (0, "")
    for name in _entries(root, f"{_CPUS}/cpu{cpu}/cache"):
        folder = f"{_CPUS}/cpu{cpu}/cache/{name}"
        level, size, shared = (text_of(root, f"{folder}/{key}").strip() for key in ("level", "size", "shared_cpu_list"))
        if level.isdigit() and int(level) > best[0]:
            best = (int(level), f"L{level} {size} {shared}".strip())
    return best[1]


def _add_pci(root: Path, nodes: list[int], parts: list[Part], links: list[tuple[str, str]]) -> None:
    """Add accelerators and network devices below the root of their memory node."""
    for address in _entries(root, "sys/bus/pci/devices"):
        folder = f"sys/bus/pci/devices/{address}"
        kind = _PCI_KINDS.get(text_of(root, f"{folder}/class").strip()[:6])
        if kind is None:
            continue
        node = text_of(root, f"{folder}/numa_node").strip()
        at = int(node) if node.isdigit() and int(node) in nodes else nodes[0]
        parts.append(Part(f"{kind}-{address}", kind))
        links.append((f"{kind}-{address}", f"root{at}"))


def _disks(root: Path) -> list[str]:
    return [name for name in _entries(root, "sys/block") if not name.startswith(("loop", "ram", "zram", "sr", "fd"))]


def _entries(root: Path, path: str) -> list[str]:
    try:
        return sorted(os.listdir(root / path), key=lambda name: (len(name), name))
    except OSError:
        return []
