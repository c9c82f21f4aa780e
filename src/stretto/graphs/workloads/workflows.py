"""Shapes of published scientific workflows, with synthetic numbers."""

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


def montage(num_images: int = 25, *, scale: float = 1.0, seed: int = 0, noise: float = 0.3) -> TaskGraph:
    """Montage-like workflow: project, fit differences of neighbours, correct, add up.

    The structure follows the published workflow: images lie on a grid, and each pair of
    neighbours (beside, below or diagonal) overlaps. The numbers are synthetic.

    Parameters
    ----------
    num_images
        Images of the mosaic.
    scale
        Factor on all durations.
    """
    checks.at_least(1, num_images=num_images)
    checks.positive(scale=scale)
    checks.makes_tasks(6 * num_images, num_images=num_images)
    flow = Flow(f"montage-{num_images}", seed=seed, noise=noise)
    projected = [flow.step(f"project_{i}", "project", work_s=14 * scale, out_bytes=8 * _MB) for i in range(num_images)]
    fits = [
        flow.step(f"diff_fit_{i}_{j}", "diff_fit", [projected[i], projected[j]], work_s=10 * scale, out_bytes=0.3 * _MB)
        for i, j in _overlaps(num_images)
    ]
    table = flow.step("concat_fit", "concat_fit", fits or projected, work_s=scale * (2 + len(fits) / 4), out_bytes=_MB)
    model_s = scale * (4 + num_images / 2)
    model = flow.step("background_model", "background_model", [table], work_s=model_s, out_bytes=0.1 * _MB)
    corrected = [
        flow.step(f"background_{i}", "background", [image, model], work_s=11 * scale, out_bytes=8 * _MB)
        for i, image in enumerate(projected)
    ]
    index = flow.step("image_table", "image_table", corrected, work_s=scale * (2 + num_images / 8), out_bytes=0.1 * _MB)
    add_s = scale * (5 + num_images)
    mosaic = flow.step("add", "add", [index, *corrected], work_s=add_s, out_bytes=6 * _MB * num_images)
    small = flow.step("shrink", "shrink", [mosaic], work_s=scale * (2 + num_images / 6), out_bytes=5 * _MB)
    flow.step("picture", "picture", [small], work_s=scale)
    return flow.graph()


def _overlaps(num_images: int) -> list[tuple[int, int]]:
    side = 1
    while side * side < num_images:
        side += 1
    pairs = []
    for i in range(num_images):
        row, column = divmod(i, side)
        for down, right in ((0, 1), (1, -1), (1, 0), (1, 1)):
            j = (row + down) * side + column + right
            if 0 <= column + right < side and j < num_images:
                pairs.append((i, j))
    return pairs


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
