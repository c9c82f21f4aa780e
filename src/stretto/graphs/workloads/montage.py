"""The shape of Montage, which assembles mosaics of the sky."""

from __future__ import annotations

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.graphs.workloads.flow import Flow

_MB = 1e6


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
