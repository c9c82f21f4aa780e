"""The shape of CyberShake, which computes earthquake hazards."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow

_MB = 1e6


def cybershake(
    num_ruptures: int = 6, num_variations: int = 12, *, scale: float = 1.0, seed: int = 0, noise: float = 0.3
) -> TaskGraph:
    """CyberShake-like workflow: large extracts, many short syntheses, two archives of everything.

    The structure follows the published workflow; the numbers are synthetic. The extracts'
    outputs are large and read by all variations of their rupture: data placement decides.

    Parameters
    ----------
    num_variations
        Seismograms of each rupture.
    scale
        Factor on all durations.
    """
    checks.at_least(1, num_ruptures=num_ruptures, num_variations=num_variations)
    checks.positive(scale=scale)
    num_tasks = num_ruptures * (2 * num_variations + 1)
    checks.makes_tasks(num_tasks, num_ruptures=num_ruptures, num_variations=num_variations)
    flow = Flow(f"cybershake-{num_ruptures}x{num_variations}", seed=seed, noise=noise)
    seismograms: list[int] = []
    peaks: list[int] = []
    for rupture in range(num_ruptures):
        extract = flow.step(f"extract_{rupture}", "extract", work_s=110 * scale, out_bytes=450 * _MB)
        for variation in range(num_variations):
            place = f"{rupture}_{variation}"
            wave = flow.step(f"synthesis_{place}", "synthesis", [extract], work_s=40 * scale, out_bytes=0.2 * _MB)
            seismograms.append(wave)
            peaks.append(flow.step(f"peak_{place}", "peak", [wave], work_s=scale, out_bytes=0.001 * _MB))
    work_s = scale * (10 + len(peaks) / 4)
    flow.step("zip_seismograms", "zip", seismograms, work_s=work_s)
    flow.step("zip_peaks", "zip", peaks, work_s=work_s)
    return flow.graph()
