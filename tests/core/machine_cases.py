"""A small machine for tests, and routes by name."""

from __future__ import annotations

from stretto.core.machine import Machine
from stretto.core.machine_presets import MachineBuilder


def box(name: str = "box") -> Machine:
    """Two sockets of one core each; GPU and FPGA behind the switch of socket 0, the NIC at the root of socket 1."""
    build = MachineBuilder(name)
    for socket in (0, 1):
        build.socket(socket, num_cores=1, num_threads=2, memory=100.0, root=50.0, model="xeon")
    build.join_sockets(0, 1, 40.0)
    build.add("switch0", "pcie-switch", 20.0, to="root0")
    build.add("gpu0", "gpu", to="switch0", model="k80")
    build.add("fpga0", "fpga", to="switch0")
    build.add("nic0", "nic", 10.0, to="root1")
    return build.build()


def way(machine: Machine, start: str, end: str) -> list[str] | None:
    found = machine.route(machine.index_of[start], machine.index_of[end])
    return None if found is None else [machine.parts[place].name for place in found]
