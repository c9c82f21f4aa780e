"""Racks, kernels and task graphs drawn at random, so that a policy is trained and judged on many of each.

What is drawn stays within what data centers have: one to three machines with one or two sockets, up to four GPUs and an
FPGA each, kernels that take 0.5 s to 60 s and some of which run on CPUs only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.core.graph import TaskGraph, sequence_of
from stretto.core.machine import Machine, Rack, rack_of
from stretto.core.machine_presets import MachineBuilder
from stretto.racks.machine_work import KernelSpec
from stretto.racks.workloads.streams import ForeignLoad, StreamSpec

_GB = 1e9
_MODELS = ("k40", "k80", "h100")


class Generated(NamedTuple):
    """A rack with the kernels and graphs that run on it, and how their streams are drawn."""

    rack: Rack
    kernels: tuple[KernelSpec, ...]
    mix: tuple[TaskGraph, ...]
    stream: StreamSpec


def generated(seed: int, *, num_machines: int | None = None) -> Generated:
    """Return a rack and its work; the same seed gives the same, and seeds have nothing to do with each other."""
    rng = np.random.default_rng([seed, 41])
    num = num_machines or int(rng.choice([1, 1, 2, 3]))
    rack = rack_of([_machine(f"g{place}", rng) for place in range(num)], f"generated-{seed}")
    kernels = tuple(_kernel(f"kernel-{k}", rng) for k in range(int(rng.integers(4, 11))))
    mix = tuple(_graph(f"graph-{place}", kernels, rng) for place in range(int(rng.integers(3, 7))))
    low = rng.uniform(0.1, 0.6)
    levels = {
        "pcie-switch": (low, low + rng.uniform(0.3, 1.0)),
        "memory": (0.1, rng.uniform(0.2, 0.5)),
        "core": (0.2, rng.uniform(0.4, 0.8)),
    }
    foreign = ForeignLoad(float(rng.uniform(0.2, 0.6)), levels, float(rng.uniform(15.0, 60.0)))
    stream = StreamSpec(
        num_jobs=4 * num + int(rng.integers(0, 4)),
        utilization=float(rng.uniform(0.4, 0.8)),
        scale_sd=float(rng.uniform(0.05, 0.3)),
        foreign=foreign,
    )
    return Generated(rack, kernels, mix, stream)


def _machine(name: str, rng: np.random.Generator) -> Machine:
    build = MachineBuilder(name)
    num_sockets = int(rng.integers(1, 3))
    memory, bus = rng.uniform(60, 300) * _GB, rng.choice([12.5, 25.0, 50.0]) * _GB
    shape = {"num_cores": int(rng.integers(1, 4)), "num_threads": int(rng.integers(1, 3))}
    for socket in range(num_sockets):
        build.socket(socket, **shape, memory=memory, root=rng.uniform(2.0, 4.0) * bus, model="generic")
        build.add(f"switch{socket}", "pcie-switch", bus, to=f"root{socket}")
    if num_sockets == 2:
        build.join_sockets(0, 1, 0.4 * memory)
    for gpu in range(int(rng.integers(1, 5))):
        build.add(f"gpu{gpu}", "gpu", to=f"switch{gpu % num_sockets}", model=str(rng.choice(_MODELS)))
    if rng.random() < 0.5:
        build.add("fpga0", "fpga", to=f"switch{int(rng.integers(num_sockets))}", model="generic")
    build.add("nic0", "nic", 0.5 * bus, to="switch0")
    return build.build()


def _kernel(name: str, rng: np.random.Generator) -> KernelSpec:
    cpu_s = float(np.exp(rng.uniform(np.log(2.0), np.log(30.0))))
    seconds, traffic = {"cpu": cpu_s}, {"cpu": rng.uniform(5, 40) * _GB}
    if rng.random() < 0.85:
        gpu_s = max(0.5, cpu_s / np.exp(rng.uniform(0.5, 3.0)))
        seconds |= {"gpu": gpu_s, "k40": gpu_s * rng.uniform(1.0, 1.5), "h100": gpu_s * rng.uniform(0.4, 1.0)}
        traffic["gpu"] = rng.uniform(2, 12) * _GB
    if rng.random() < 0.6:
        seconds["fpga"] = max(0.5, cpu_s / np.exp(rng.uniform(0.5, 3.5)))
        traffic["fpga"] = rng.uniform(1, 8) * _GB
    return KernelSpec(name, seconds, traffic, float(rng.uniform(0, 0.2)), float(rng.uniform(0.4, 0.8)))


def _graph(name: str, kernels: tuple[KernelSpec, ...], rng: np.random.Generator) -> TaskGraph:
    """Return layers of tasks of one kernel each; a task has one to three predecessors in the layer before."""
    layers = [int(rng.integers(1, 7)) for _ in range(int(rng.integers(1, 5)))]
    names: list[str] = []
    edges: list[tuple[int, int]] = []
    before: list[int] = []
    for width in layers:
        kernel = kernels[int(rng.integers(len(kernels)))].name
        here = list(range(len(names), len(names) + width))
        names += [kernel] * width
        for task in here if before else []:
            num = min(len(before), int(rng.integers(1, 4)))
            edges += [(int(other), task) for other in rng.choice(before, num, replace=False)]
        before = here
    categories, category = sequence_of(names)
    source, target = [x for x, _ in edges], [y for _, y in edges]
    return TaskGraph.from_edges(
        np.ones(len(names)), source, target, name=name, categories=categories, category=category
    )
