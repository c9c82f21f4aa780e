"""How fast numerical kernels run: one CPU core and one GPU, by kernel category.

The rates are round figures in double precision: a core of a server CPU, and a data-centre
GPU whose lead over that core depends on the kernel. Panel factorisations are sequential
and gain about a factor of two; triangular solves about eleven; matrix products close to
thirty. These ratios are what makes heterogeneous linear algebra interesting to schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import UnknownName

GIGA = 1e9
DOUBLE_BYTES = 8

CPU_MEMORY_BYTES_PER_S = 12e9
GPU_MEMORY_BYTES_PER_S = 600e9
#: Starting a kernel on a GPU costs this much, whatever it computes.
GPU_LAUNCH_S = 8e-6


@dataclass(frozen=True)
class Rate:
    """Sustained rate on one core, and how many times faster the GPU is."""

    cpu_flops_per_s: float
    gpu_lead: float


RATES: dict[str, Rate] = {
    "gemm": Rate(36 * GIGA, 29.0),
    "syrk": Rate(34 * GIGA, 26.0),
    "trsm": Rate(30 * GIGA, 11.0),
    "potrf": Rate(22 * GIGA, 2.0),
    "getrf": Rate(20 * GIGA, 1.8),
    "geqrt": Rate(18 * GIGA, 2.2),
    "tsqrt": Rate(20 * GIGA, 3.0),
    "unmqr": Rate(26 * GIGA, 10.0),
    "tsmqr": Rate(30 * GIGA, 20.0),
    "attention": Rate(24 * GIGA, 24.0),
    "elementwise": Rate(4 * GIGA, 40.0),
    "reduce": Rate(4 * GIGA, 40.0),
    "input": Rate(4 * GIGA, 1.0),
}


def seconds(category: str, flops: float, touched_bytes: float = 0.0) -> dict[str, float]:
    """Return the time per device kind: arithmetic or memory traffic, whichever is slower."""
    if category not in RATES:
        raise UnknownName("kernel category", category, RATES)
    rate = RATES[category]
    cpu = max(flops / rate.cpu_flops_per_s, touched_bytes / CPU_MEMORY_BYTES_PER_S)
    gpu = max(flops / (rate.cpu_flops_per_s * rate.gpu_lead), touched_bytes / GPU_MEMORY_BYTES_PER_S)
    return {"cpu": cpu, "gpu": gpu + GPU_LAUNCH_S}
