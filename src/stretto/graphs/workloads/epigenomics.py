"""The shape of Epigenomics, which maps the methylation of DNA."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow

_MB = 1e6
#: The pipeline of each chunk: category, seconds, output.
_PIPELINE = (
    ("filter", 3.0, 22 * _MB),
    ("convert", 1.5, 18 * _MB),
    ("pack", 2.0, 5 * _MB),
    ("map", 110.0, 3 * _MB),
)


def epigenomics(
    num_lanes: int = 3, num_chunks: int = 10, *, scale: float = 1.0, seed: int = 0, noise: float = 0.3
) -> TaskGraph:
    """Epigenomics-like workflow: lanes are split, pipelined chunk by chunk, and merged.

    The structure follows the published workflow; the numbers are synthetic.

    Parameters
    ----------
    num_chunks
        Chunks of each lane.
    scale
        Factor on all durations.
    """
    checks.at_least(1, num_lanes=num_lanes, num_chunks=num_chunks)
    checks.positive(scale=scale)
    num_tasks = num_lanes * (len(_PIPELINE) * num_chunks + 2)
    checks.makes_tasks(num_tasks, num_lanes=num_lanes, num_chunks=num_chunks)
    flow = Flow(f"epigenomics-{num_lanes}x{num_chunks}", seed=seed, noise=noise)
    merged = []
    for lane in range(num_lanes):
        split = flow.step(f"split_{lane}", "split", work_s=4 * num_chunks * scale, out_bytes=24 * _MB)
        chunks = [split, *(flow.output(split, 24 * _MB) for _ in range(num_chunks - 1))]
        mapped = [_pipeline(flow, f"{lane}_{i}", chunk, scale) for i, chunk in enumerate(chunks)]
        work_s = scale * (3 + num_chunks)
        merged.append(flow.step(f"merge_{lane}", "merge", mapped, work_s=work_s, out_bytes=2 * _MB * num_chunks))
    size = 2 * _MB * num_chunks * num_lanes
    whole = flow.step("merge_all", "merge_all", merged, work_s=scale * (5 + 2 * num_lanes), out_bytes=size)
    index = flow.step("index", "index", [whole], work_s=scale * 43, out_bytes=size)
    flow.step("pileup", "pileup", [index], work_s=scale * 55)
    return flow.graph()


def _pipeline(flow: Flow, place: str, chunk: int, scale: float) -> int:
    for category, work_s, out_bytes in _PIPELINE:
        chunk = flow.step(f"{category}_{place}", category, [chunk], work_s=work_s * scale, out_bytes=out_bytes)
    return chunk
