"""Machines that come with Stretto: the paper's two types, a modern GPU server, and the small case of two NICs.

The paper's Table 4 names Power8 machines with K80, K40 and FPGAs but no bandwidths; those here are the vendors' round
figures. A CPU stands for an executor thread; the threads of a core share its issue slots.
"""

from __future__ import annotations

from collections.abc import Callable

from stretto.core.machine import Machine, Part, Rack, rack_of
from stretto.errors import UnknownName

_GB = 1e9
PCIE3_X16 = 12.5 * _GB
PCIE5_X16 = 50.0 * _GB


class MachineBuilder:
    """Puts a machine together, socket by socket."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: list[Part] = []
        self.links: list[tuple[str, str]] = []

    def add(self, name: str, kind: str, capacity: float = float("inf"), *, to: str = "", model: str = "") -> str:
        """Add a part, joined to another one."""
        self.parts.append(Part(name, kind, capacity, model))
        if to:
            self.links.append((name, to))
        return name

    def socket(self, number: int, *, num_cores: int, num_threads: int, memory: float, root: float, model: str) -> None:
        """Add memory, a root complex and cores with their threads."""
        node = self.add(f"mem{number}", "memory", memory)
        self.add(f"root{number}", "root-complex", root, to=node)
        for core in range(num_cores):
            unit = self.add(f"core{number}.{core}", "core", 1.0, to=node)
            for thread in range(num_threads):
                self.add(f"cpu{number}.{core}.{thread}", "cpu", to=unit, model=model)

    def join_sockets(self, a: int, b: int, bandwidth: float) -> None:
        """Join the memories of two sockets."""
        link = self.add(f"link{a}-{b}", "socket-link", bandwidth, to=f"mem{a}")
        self.links.append((link, f"mem{b}"))

    def build(self) -> Machine:
        return Machine(self.name, tuple(self.parts), tuple(self.links))


def _power8(name: str, *, num_k80: int, num_k40: int, fpga: str, num_cores: int, num_threads: int) -> Machine:
    build = MachineBuilder(name)
    for socket in (0, 1):
        build.socket(
            socket, num_cores=num_cores, num_threads=num_threads, memory=96 * _GB, root=32 * _GB, model="power8"
        )
        build.add(f"switch{socket}", "pcie-switch", PCIE3_X16, to=f"root{socket}")
    build.join_sockets(0, 1, 38.4 * _GB)
    models = ["k80"] * num_k80 + ["k40"] * num_k40
    for place, model in enumerate(models):
        build.add(f"gpu{place}", "gpu", to=f"switch{place % 2}", model=model)
    if fpga:
        build.add("fpga0", "fpga", to=f"switch{len(models) % 2}", model=fpga)
    build.add("nic0", "nic", 6.8 * _GB, to="switch0")
    return build.build()


def power8_m1(*, num_cores: int = 1, num_threads: int = 2, num_gpus: int = 3) -> Machine:
    """Return the paper's first type: Power8 with K80 halves and an Alpha Data 7V3."""
    return _power8("m1", num_k80=num_gpus, num_k40=0, fpga="7v3", num_cores=num_cores, num_threads=num_threads)


def power8_m2(*, num_cores: int = 1, num_threads: int = 2, num_gpus: int = 1, fpga: str = "385") -> Machine:
    """Return the paper's second type: Power8 with K40 and a Nallatech 385."""
    return _power8("m2", num_k80=0, num_k40=num_gpus, fpga=fpga, num_cores=num_cores, num_threads=num_threads)


def hgx8(*, num_cores: int = 8, num_threads: int = 2) -> Machine:
    """Return a dual-socket server with 8 GPUs behind four PCIe switches, each with a NIC."""
    build = MachineBuilder("hgx8")
    for socket in (0, 1):
        build.socket(
            socket, num_cores=num_cores, num_threads=num_threads, memory=300 * _GB, root=180 * _GB, model="xeon"
        )
    build.join_sockets(0, 1, 96 * _GB)
    for switch in range(4):
        build.add(f"switch{switch}", "pcie-switch", PCIE5_X16, to=f"root{switch // 2}")
        for gpu in (2 * switch, 2 * switch + 1):
            build.add(f"gpu{gpu}", "gpu", to=f"switch{switch}", model="h100")
        build.add(f"nic{switch}", "nic", 50 * _GB, to=f"switch{switch}")
    return build.build()


def two_nics() -> Machine:
    """Return the small case: two NICs, each behind a PCIe switch that it shares with GPUs (after BayesPerf)."""
    build = MachineBuilder("two-nics")
    for socket in (0, 1):
        build.socket(socket, num_cores=2, num_threads=1, memory=60 * _GB, root=32 * _GB, model="xeon")
        build.add(f"switch{socket}", "pcie-switch", PCIE3_X16, to=f"root{socket}")
        build.add(f"gpu{socket}", "gpu", to=f"switch{socket}", model="k80")
        build.add(f"nic{socket}", "nic", 11.5 * _GB, to=f"switch{socket}")
    build.join_sockets(0, 1, 38.4 * _GB)
    return build.build()


def paper_rack() -> Rack:
    """Return 12 Power8 sockets, 6 K80, 2 K40 and 2 FPGAs in six machines (the counts of the paper's section 5).

    Its Table 4 gives the second type an FPGA as well, which would make six of them; the text's two are kept.
    """
    machines = [power8_m1() for _ in range(2)]
    machines += [power8_m2(num_gpus=int(place < 2), fpga="") for place in range(4)]
    return rack_of(machines, "paper-rack")


def small_rack() -> Rack:
    """Return one machine of the first type and one of the second, for tests and first steps."""
    return rack_of([power8_m1(num_gpus=2), power8_m2(num_gpus=1, fpga="")], "small-rack")


PRESETS: dict[str, Callable[[], Rack]] = {
    "m1": lambda: rack_of([power8_m1()], "m1"),
    "m2": lambda: rack_of([power8_m2()], "m2"),
    "hgx8": lambda: rack_of([hgx8()], "hgx8"),
    "two-nics": lambda: rack_of([two_nics()], "two-nics"),
    "small-rack": small_rack,
    "paper-rack": paper_rack,
}


def preset(name: str) -> Rack:
    """Return a rack by name."""
    if name not in PRESETS:
        raise UnknownName("rack", name, PRESETS)
    return PRESETS[name]()
