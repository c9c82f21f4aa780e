"""How fast a placed model runs, beside one device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stretto.core.answers.plan import how_good
from stretto.core.units import format_seconds

if TYPE_CHECKING:
    from stretto.reports.placement import Placement


def placement_answer(found: Placement) -> str:
    """Say how long one pass takes, on how many devices, against one device, and how good that is."""
    problem = found.result.problem
    used = len(np.unique(found.plan.assignment))
    return (
        f"{found.graph.name} takes {format_seconds(found.makespan_s)} on {used} of {problem.num_devices} devices, "
        f"{_versus_one(found)}: {how_good(problem, found.result.gap)}."
    )


def _versus_one(found: Placement) -> str:
    """Compare a placement with the best single device."""
    if math.isinf(found.single_device_s):
        return "and no single device can run all of it"
    ratio = found.speedup_over_single
    if f"{ratio:.2f}" == "1.00":
        return "as fast as the best single device"
    return f"{ratio:.2f} times as fast as the best single device"
