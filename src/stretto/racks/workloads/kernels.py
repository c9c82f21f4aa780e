"""Kernels after those of the paper, for racks: how long on what, and what they take of shared resources.

Durations are invented, their proportions are not: PairHMM spreads a hundredfold over processors, two kernels that
each take 0.9 of a PCIe switch run 1.8 times slower together, and two threads of a core up to 1.4 times.
"""

from __future__ import annotations

from stretto.racks.machine_work import KernelSpec

_GB = 1e9


def _spec(
    name: str,
    cpu_s: float,
    gpu_s: float | None,
    fpga_s: float | None,
    *,
    memory_gb: float,
    pcie_gb: float,
    remote: float = 0.1,
    issue: float = 0.6,
) -> KernelSpec:
    """Return a kernel; a K40 is a fifth slower than half a K80, other makes are as their kind."""
    seconds = {"cpu": cpu_s}
    if gpu_s is not None:
        seconds |= {"gpu": gpu_s, "k40": 1.2 * gpu_s}
    if fpga_s is not None:
        seconds["fpga"] = fpga_s
    traffic = {"cpu": memory_gb * _GB, "gpu": pcie_gb * _GB, "fpga": 0.6 * pcie_gb * _GB}
    return KernelSpec(name, seconds, traffic, remote, issue)


#: Variant calling (three stages and their inner kernels), EEG graphs, security analytics.
GENOMICS = (
    _spec("alignment", 9.0, 2.2, 1.2, memory_gb=30, pcie_gb=9.0, issue=0.65),
    _spec("indel-realignment", 5.0, None, None, memory_gb=38, pcie_gb=0.0, issue=0.55),
    _spec("variant-calling", 10.0, 2.6, 1.8, memory_gb=26, pcie_gb=7.5),
    _spec("pairhmm", 60.0, 2.4, 0.6, memory_gb=12, pcie_gb=11.25, issue=0.7),
    _spec("smith-waterman", 12.0, 1.6, 0.9, memory_gb=14, pcie_gb=10.0, issue=0.7),
)
EEG = (
    _spec("eeg-filter", 3.0, 0.9, 0.8, memory_gb=34, pcie_gb=11.0, issue=0.5),
    _spec("eeg-graph", 14.0, 2.8, 2.2, memory_gb=30, pcie_gb=6.0),
)
SECURITY = (_spec("attack-tagger", 4.0, 1.2, 1.0, memory_gb=20, pcie_gb=8.0, issue=0.65),)
PAPER_KERNELS = (*GENOMICS, *EEG, *SECURITY)

#: The small case: a shuffle's transfers through a NIC, at its injection bandwidth.
SHUFFLES = (
    KernelSpec("shuffle-small", {"nic": 0.25}, {"nic": 11.0 * _GB}),
    KernelSpec("shuffle-large", {"nic": 1.0}, {"nic": 11.0 * _GB}),
)
